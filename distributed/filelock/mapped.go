package filelock

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

// Mapped is a lock between the processes of one machine that is one word of memory which they share: an atomic in a mapped
// file. To take it and to give it back is one atomic operation each, and no system call as long as nobody waits; a file lock
// needs
// three. On Linux those who wait sleep in the kernel, in a futex, and a release wakes one; elsewhere they try
// again and again, each 25 ms at the latest.
//
// It belongs to the goroutine that took it, or to the [locks.Owner] of its context, which may take it again while it holds
// it. Goroutines of one process queue at a gate in order of arrival; among processes there is no order, but one that has had
// the lock 64 times
// in a row while others waited lets them go first. Two Mapped of one path exclude each other, also in one process: open one.
//
// The word has the number of the process that holds the lock, and when that was started. If it is dead, one of those who
// wait takes the
// lock over, within 50 ms if there is a processor for it. What the dead one was doing may be half done: [Mapped.Recovered] tells.
//
// # Limits
//
// The kernel knows nothing of the lock; whether its holder lives is judged by its number. So all processes must be in one
// PID namespace: a process of
// another one is refused with [locks.ErrForeign]. A number that is used again is told from the old one by its start
// time, on Linux to 10 ms, on macOS to 1 ms; on other systems it is not, and the lock is not freed as long as another
// process has the
// number of the dead. A holder that is stopped keeps the lock, and so does one that has lost it from sight: there is no lease.
//
// Whoever may write to the file can break the lock, and whoever truncates it kills the processes that have it mapped. If it
// is deleted
// while in use, those who open it later have another lock. It must be on a local file system, best one in memory such as
// /dev/shm. If that is
// too much to ask, take [Open], which has none of these limits.
type Mapped struct {
	path string
	gate *reentrant.Mutex
	id   uint64 // this process, as it stands in the word
	order

	open context.Context // until Close
	shut context.CancelFunc

	mu        sync.Mutex
	m         *mapping // nil when it is closed and nobody uses it
	users     int      // calls that use m
	closing   bool
	holds     int // of the gate's holder
	lost      bool
	recovered bool
	turns     int  // acquisitions in a row here
	rivals    bool // somebody waited at the last release

	slow chan struct{} // has a value while one of the gate's holder waits for the word
}

var _ locks.TryLocker = (*Mapped)(nil)

// fairShare is how often in a row a process may take the lock while others wait.
const fairShare = 64

// slice is for how long a waiter sleeps at most before it looks at the word, and whether its holder lives.
const slice = 50 * time.Millisecond

// OpenMapped returns the lock in the file at path, which is made for the user of this process alone if it does not exist. If
// it has something else in it,
// or is used in another PID namespace, the error matches [locks.ErrForeign]; where memory cannot be shared,
// [errors.ErrUnsupported].
func OpenMapped(path string) (*Mapped, error) {
	fail := func(err error) (*Mapped, error) { return nil, fmt.Errorf("filelock: OpenMapped(%q): %w", path, err) }
	abs, err := filepath.Abs(path)
	if err != nil {
		return fail(err)
	}
	id, err := self()
	if err != nil {
		return fail(err)
	}
	m, err := openMapping(abs)
	if err != nil {
		return fail(err)
	}
	s := &Mapped{path: abs, gate: reentrant.New(fair.FIFO), id: id, order: orderOf(abs), m: m, slow: make(chan struct{}, 1)}
	s.open, s.shut = context.WithCancel(context.Background())
	return s, nil
}

// Path returns the absolute path of the file.
func (s *Mapped) Path() string { return s.path }

// LockKey names the lock among those of the machine, which gives [locks.Multi] its order.
func (s *Mapped) LockKey() string { return s.path }

// QueueLength returns how many wait at the gate of this process.
func (s *Mapped) QueueLength() int { return s.gate.QueueLength() }

// String describes the lock and its state in this process.
func (s *Mapped) String() string {
	state := "not held here"
	s.mu.Lock()
	if s.holds > 0 {
		state = "held by " + s.gate.Owner().String()
	}
	s.mu.Unlock()
	return fmt.Sprintf("filelock.Mapped(%q)[%s, %d queued]", s.path, state, s.QueueLength())
}

func (s *Mapped) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s of %q: %w", op, s.path, err)
}

// LockContext takes the lock, and waits for it until ctx ends.
func (s *Mapped) LockContext(ctx context.Context) error {
	_, err := s.lock(ctx, "LockContext", true)
	return err
}

// TryLockContext takes the lock if nobody has it, or a process that is dead. It may report false though nobody holds it, if
// somebody else here is at the gate in vain.
func (s *Mapped) TryLockContext(ctx context.Context) (bool, error) {
	return s.lock(ctx, "TryLockContext", false)
}

func (s *Mapped) lock(ctx context.Context, op string, wait bool) (bool, error) {
	switch {
	case ctx == nil:
		return false, s.fail(op, locks.ErrNilContext)
	case ctx.Err() != nil:
		return false, s.fail(op, ended(ctx))
	}
	ok, err := s.pass(ctx, wait)
	if ok {
		if ok, err = s.ensure(ctx, wait); !ok {
			s.gate.UnlockContext(ctx)
		}
	}
	if err != nil {
		return false, s.fail(op, err)
	}
	return ok, nil
}

// pass gets a hold of the gate.
func (s *Mapped) pass(ctx context.Context, wait bool) (bool, error) {
	if ok, err := s.gate.TryLockContext(ctx); ok || err != nil || !wait {
		return ok, err
	}
	err := until(ctx, s.open, s.gate.LockContext)
	return err == nil, err
}

// ensure makes sure that the holder of the gate has the word as well, and counts the hold.
func (s *Mapped) ensure(ctx context.Context, wait bool) (bool, error) {
	ok, polite, err := s.grab(ctx, grabbing{})
	switch {
	case ok || err != nil:
		return ok, err
	case !wait:
		return s.seize(ctx)
	}
	// Several goroutines of an explicit owner may be here. One of them waits for the word, the others for that one.
	select {
	case s.slow <- struct{}{}:
		defer func() { <-s.slow }()
	case <-ctx.Done():
		return false, ended(ctx)
	case <-s.open.Done():
		return false, locks.ErrClosed
	}
	m, err := s.use()
	if err != nil {
		return false, err
	}
	defer s.unuse()
	return s.wait(ctx, m, polite)
}

// seize takes the lock if a process has it that is dead.
func (s *Mapped) seize(ctx context.Context) (bool, error) {
	m, err := s.use()
	if err != nil {
		return false, err
	}
	defer s.unuse()
	w := m.word.Load()
	if w == 0 || alive(w) {
		return false, nil
	}
	ok, _, err := s.grab(ctx, grabbing{barges: true, dead: w})
	return ok, err
}

// grabbing says how to take the word.
type grabbing struct {
	slept  bool   // others may be asleep of whom the word does not tell any more
	barges bool   // even if it is others' turn
	dead   uint64 // the word of one who is dead, or 0
}

// grab takes the word if that needs no waiting, or joins the goroutine of the same owner that has it. If it does neither, it
// reports whether it is
// for politeness that it does not.
func (s *Mapped) grab(ctx context.Context, how grabbing) (ok, polite bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.holds > 0 && s.lost:
		return false, false, fmt.Errorf("%w: %w", locks.ErrLost, locks.ErrClosed)
	case s.holds > 0:
		s.holds++
		return true, false, nil
	case s.closing:
		return false, false, locks.ErrClosed
	case ctx.Err() != nil:
		return false, false, ended(ctx)
	case !how.barges && s.rivals && s.turns >= fairShare:
		return false, true, nil
	}
	switch m := s.m; {
	case !how.slept && m.word.CompareAndSwap(0, s.id), how.slept && m.word.CompareAndSwap(0, s.id|sleepers):
		s.recovered = false
	case how.dead != 0 && m.word.CompareAndSwap(how.dead, s.id|sleepers):
		s.recovered = true
	default:
		return false, false, nil
	}
	s.order.acquired()
	s.holds = 1
	s.turns++
	return true, false, nil
}

// wait takes the word as soon as it can be had. It is the only one in this process that does, for one s.
//
// No wake-up is lost. One who goes to sleep has set the bit before, and the kernel lets it sleep only while the word is what
// it was then. Whoever
// releases a word with the bit wakes one. That one, should it get the word, sets the bit again, for those it may have left
// asleep; should it
// give up, it wakes another. One that dies in between, or is stopped, delays the others until they look by themselves.
func (s *Mapped) wait(ctx context.Context, m *mapping, polite bool) (bool, error) {
	if polite {
		s.giveWay(ctx, m)
	}
	sleep := newSleeper(m, ctx, s.open)
	defer sleep.end()
	how := grabbing{barges: true}
	for look := true; ; {
		ok, _, err := s.grab(ctx, how)
		if ok || err != nil {
			if !ok && how.slept {
				m.wake(1)
			}
			return ok, err
		}
		how.dead = 0
		w := m.word.Load()
		switch {
		case w == 0:
			continue
		case look && !alive(w):
			how.dead = w // if it is not that any more, somebody was quicker
			continue
		case w&sleepers == 0 && !m.word.CompareAndSwap(w, w|sleepers):
			continue
		}
		look = sleep.sleep(w|sleepers, slice)
		how.slept = true
	}
}

// giveWay gives others time to take the word, who were told that it is free.
func (s *Mapped) giveWay(ctx context.Context, m *mapping) {
	for end := time.Now().Add(2 * time.Millisecond); m.word.Load() == 0 && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(50 * time.Microsecond)
	}
	s.mu.Lock()
	s.turns, s.rivals = 0, false
	s.mu.Unlock()
}

// use returns the mapping, which stays until unuse.
func (s *Mapped) use() (*mapping, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, locks.ErrClosed
	}
	s.users++
	return s.m, nil
}

func (s *Mapped) unuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.unmap()
}

// unmap ends the mapping if s is closed and nobody uses it. s.mu is held.
func (s *Mapped) unmap() {
	if s.closing && s.users == 0 && s.m != nil {
		s.m.close()
		s.m = nil
	}
}

// UnlockContext gives one hold back, and the lock with the last, whether ctx has ended or not.
func (s *Mapped) UnlockContext(ctx context.Context) error {
	const op = "UnlockContext"
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds == 0 || s.gate.Owner() != locks.CurrentOwner(ctx) {
		return s.fail(op, locks.ErrNotHeld)
	}
	var err error
	if s.lost {
		err = fmt.Errorf("%w: %w", locks.ErrLost, locks.ErrClosed)
	}
	if s.holds--; s.holds == 0 && s.lost {
		s.lost = false
	} else if s.holds == 0 {
		err = s.release()
	}
	s.gate.UnlockContext(ctx)
	if err != nil {
		return s.fail(op, err)
	}
	return nil
}

// release frees the word, and wakes one who sleeps. s.mu is held.
func (s *Mapped) release() error {
	for {
		w := s.m.word.Load()
		if w&^sleepers != s.id {
			return fmt.Errorf("%w: somebody else has written to the file", locks.ErrLost)
		}
		s.order.releasing()
		if s.m.word.CompareAndSwap(w, 0) {
			if w&sleepers != 0 {
				s.rivals = true
				s.m.wake(1)
			}
			return nil
		}
	}
}

// Recovered reports whether ctx's owner holds the lock and it was taken over from a process that died while it held it.
func (s *Mapped) Recovered(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds > 0 && s.recovered && s.gate.Owner() == locks.CurrentOwner(ctx)
}

// Close frees the lock if it is held here, whose holder finds that out when it unlocks it, with [locks.ErrLost], and has all
// who wait return
// [locks.ErrClosed]. The memory is unmapped when the last of them has. It waits for nothing, and ctx is there for the
// sake of likeness. Only the first call does anything.
func (s *Mapped) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil
	}
	s.closing = true
	s.shut()
	var err error
	if s.holds > 0 {
		s.lost = true
		err = s.release()
	}
	s.unmap()
	if err != nil {
		return s.fail("Close", err)
	}
	return nil
}
