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

// Mapped is a lock between the processes of one machine on one word of shared memory: an atomic
// in a mapped file. Without waiters, an acquisition and a release are one atomic operation each
// and no system call, where a file lock needs three. On Linux waiters sleep in a futex, and a
// release wakes one of them. Elsewhere waiters poll, every 25 ms at most.
//
// The lock is owned by the goroutine that acquired it, or by the [locks.Owner] of its context.
// The owner may acquire it again. Goroutines of one process wait in a local queue in order of
// arrival. Processes have no order among each other, but a process that has acquired the lock
// 64 times in a row while others wait lets them go first. Two Mappeds of one path exclude each
// other, also in one process, so a process should open one.
//
// The word contains the number and the start time of the holder's process. If that process is
// dead, a waiter takes the lock over, within 50 ms on an idle machine. The dead process may
// have left its work half done: [Mapped.Recovered] tells the new holder.
//
// # Limits
//
// The kernel does not know the lock; whether its holder lives is judged by the process number.
// All processes must be in one PID namespace and one time namespace: in another one,
// [OpenMapped] fails with [locks.ErrForeign]. A reused number is recognised by its start time,
// to 10 ms on Linux and to 1 ms on macOS. Other systems cannot tell, and the lock stays held as
// long as another process has the dead one's number. A stopped holder keeps the lock, and so
// does a goroutine that forgets it: there is no lease.
//
// A program that may write to the file can break the lock. A program that truncates it kills
// the processes that have it mapped. If the file is deleted while in use, processes that open
// the path later have another lock. The file must be on a local file system, best in memory,
// such as /dev/shm. [Open] has none of these limits.
type Mapped struct {
	path  string
	local *reentrant.Mutex
	id    uint64 // of this process, as it stands in the word
	order

	open context.Context // until Close
	shut context.CancelFunc

	mu        sync.Mutex
	m         *mapping // nil after Close when no call uses it
	users     int      // calls that use m
	closing   bool
	holds     int // of the owner of local
	lost      bool
	recovered bool
	turns     int  // acquisitions in a row here
	rivals    bool // the last release found a waiter

	slow chan struct{} // has a value while a goroutine of local's owner waits for the word
}

var _ locks.TryLocker = (*Mapped)(nil)

// fairShare is how often in a row a process may acquire the lock while others wait.
const fairShare = 64

// slice is how long a waiter sleeps at most before it checks the word, and whether its holder
// lives.
const slice = 50 * time.Millisecond

// OpenMapped returns the lock in the file at path. It creates the file with permissions 0600 if
// it does not exist. The error matches [locks.ErrForeign] if the file has other contents or is
// in use in another PID or time namespace. It matches [fs.ErrPermission] if this user cannot
// write to the file, and [errors.ErrUnsupported] on systems without shared memory.
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
	s := &Mapped{path: abs, id: id, order: orderOf(abs), m: m}
	s.local, s.slow = reentrant.New(fair.FIFO), make(chan struct{}, 1)
	s.open, s.shut = context.WithCancel(context.Background())
	return s, nil
}

// Path returns the absolute path of the file.
func (s *Mapped) Path() string { return s.path }

// LockKey names the lock among those of the machine, which gives [locks.Multi] its order.
func (s *Mapped) LockKey() string { return s.path }

// QueueLength returns the number of waiters in the local queue.
func (s *Mapped) QueueLength() int { return s.local.QueueLength() }

// String describes the lock and its state in this process.
func (s *Mapped) String() string {
	state := "not held here"
	s.mu.Lock()
	if s.holds > 0 {
		state = "held by " + s.local.Owner().String()
	}
	s.mu.Unlock()
	return fmt.Sprintf("filelock.Mapped(%q)[%s, %d queued]", s.path, state, s.QueueLength())
}

func (s *Mapped) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s %q: %w", op, s.path, err)
}

// LockContext waits until the caller holds the lock or ctx ends.
func (s *Mapped) LockContext(ctx context.Context) error {
	_, err := s.lock(ctx, "lock", true)
	return err
}

// TryLockContext acquires the lock if it is free or its holder's process is dead. It may return
// false although the lock is free, while another local attempt is failing.
func (s *Mapped) TryLockContext(ctx context.Context) (bool, error) {
	return s.lock(ctx, "try lock", false)
}

func (s *Mapped) lock(ctx context.Context, op string, wait bool) (bool, error) {
	switch {
	case ctx == nil:
		return false, s.fail(op, locks.ErrNilContext)
	case ctx.Err() != nil:
		return false, s.fail(op, ended(ctx))
	}
	ok, err := s.lockLocal(ctx, wait)
	if ok {
		if ok, err = s.ensure(ctx, wait); !ok {
			_ = s.local.UnlockContext(ctx)
		}
	}
	if err != nil {
		return false, s.fail(op, err)
	}
	return ok, nil
}

// lockLocal acquires the local lock.
func (s *Mapped) lockLocal(ctx context.Context, wait bool) (bool, error) {
	if ok, err := s.local.TryLockContext(ctx); ok || err != nil || !wait {
		return ok, bare(ctx, err)
	}
	err := until(ctx, s.open, s.local.LockContext)
	return err == nil, err
}

// ensure gets the word for the owner of the local lock, unless that owner has it, and counts
// the hold.
func (s *Mapped) ensure(ctx context.Context, wait bool) (bool, error) {
	ok, polite, err := s.grab(ctx, attempt{})
	switch {
	case ok || err != nil:
		return ok, err
	case !wait:
		return s.takeOver(ctx)
	}
	// Several goroutines of an explicit owner may be here. One of them waits for the word, the
	// others wait for that one.
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

// takeOver acquires the lock if the process that holds it is dead.
func (s *Mapped) takeOver(ctx context.Context) (bool, error) {
	m, err := s.use()
	if err != nil {
		return false, err
	}
	defer s.unuse()
	w := m.word.Load()
	if w == 0 || alive(w) {
		return false, nil
	}
	ok, _, err := s.grab(ctx, attempt{barges: true, dead: w})
	return ok, err
}

// attempt says how to acquire the word.
type attempt struct {
	slept  bool   // other waiters may be asleep although the word no longer says so
	barges bool   // also if it is the turn of other processes
	dead   uint64 // the word of a dead process, or 0
}

// grab acquires the word if that needs no wait, or re-enters if a goroutine of the same owner
// has it. If it does neither, polite says that it left a free lock to other processes.
func (s *Mapped) grab(ctx context.Context, how attempt) (ok, polite bool, err error) {
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

// wait acquires the word as soon as possible. At most one goroutine is in it for one s.
//
// No wake-up is lost. A waiter sets the bit before it sleeps, and the kernel lets it sleep only
// while the word is unchanged. A release of a word with the bit wakes one waiter. If that
// waiter acquires the word, it sets the bit again, for others that may still sleep. If it gives
// up, it wakes another. If it dies or is stopped in between, the others notice when they next
// check by themselves.
func (s *Mapped) wait(ctx context.Context, m *mapping, polite bool) (bool, error) {
	if polite {
		s.giveWay(ctx, m)
	}
	sleep := newSleeper(m, ctx, s.open)
	defer sleep.end()
	how := attempt{barges: true}
	for check := true; ; {
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
		case check && !alive(w):
			how.dead = w // if the word has changed by then, another waiter was quicker
			continue
		case w&sleepers == 0 && !m.word.CompareAndSwap(w, w|sleepers):
			continue
		}
		check = sleep.sleep(w|sleepers, slice)
		how.slept = true
	}
}

// giveWay gives other processes, which were told that the word is free, time to acquire it.
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

// unmap ends the mapping if s is closed and no call uses it. s.mu is held.
func (s *Mapped) unmap() {
	if s.closing && s.users == 0 && s.m != nil {
		s.m.close()
		s.m = nil
	}
}

// UnlockContext releases one hold, whether ctx has ended or not. The owner's last release frees
// the lock.
func (s *Mapped) UnlockContext(ctx context.Context) error {
	const op = "unlock"
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds == 0 || s.local.Owner() != locks.CurrentOwner(ctx) {
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
	_ = s.local.UnlockContext(ctx)
	if err != nil {
		return s.fail(op, err)
	}
	return nil
}

// release frees the word, and wakes one waiter that sleeps. s.mu is held.
func (s *Mapped) release() error {
	for {
		w := s.m.word.Load()
		if w&^sleepers != s.id {
			return fmt.Errorf("%w: another program has written to the file", locks.ErrLost)
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

// Recovered reports whether ctx's owner holds the lock, and its last holder before died without
// releasing it: while this process waited, or before it opened the file. What the lock guards
// may be half changed then. Recovered returns false again after the next acquisition, so the
// holder that gets true has to do the repair.
func (s *Mapped) Recovered(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holds > 0 && s.recovered && s.local.Owner() == locks.CurrentOwner(ctx)
}

// Close releases the lock if this process holds it, and makes all waiters return
// [locks.ErrClosed]. The owner's UnlockContext then returns [locks.ErrLost]. The memory is
// unmapped when the last waiter has returned. Close does not block and ignores ctx. Only the
// first call has an effect.
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
		return s.fail("close", err)
	}
	return nil
}
