package shmlock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/reentrant"
)

// Mutex is a lock between the processes of one machine on one word of shared memory. [Open] makes
// it. It is owned by the goroutine that acquired it, or by the [locks.Owner] of its context. The
// owner may acquire it again. Goroutines of one process wait in a local queue in order of arrival.
// Processes are not served in order, but a process that has acquired the lock 64 times in a row
// while others wait lets them go first.
//
// Two Mutexes of one path exclude each other, also in one process, so a process should open only
// one Mutex. Without waiters, an acquisition and a release are one atomic operation each, without a
// system call and without an allocation.
//
// A Mutex must not be copied.
type Mutex struct {
	path string
	// local queues the goroutines. The queue of package lease is such a Mutex too, and its client
	// adds a lease and its renewal to each hold. A hold here has no lease.
	local *reentrant.Mutex
	id    uint64 // of this process, as it stands in the word
	order

	open context.Context // until Close
	shut context.CancelFunc

	// waiter is full while a goroutine of local's owner waits for the word. An explicit owner can
	// have several goroutines here. Its other goroutines wait for that goroutine.
	waiter chan struct{}

	mu        sync.Mutex
	m         *mapping // nil after Close, once no goroutine waits for the word
	waits     bool     // a goroutine waits for the word, and uses m without mu
	holds     int      // of the owner of local
	lost      bool
	recovered bool
	turns     int // releases in a row here, beginning with a release that found a waiter
}

var _ locks.TryLocker = (*Mutex)(nil)

// fairShare is how often in a row a process may acquire the lock while others wait.
const fairShare = 64

// slice is how long a waiter sleeps at most before it checks the word, and whether its holder
// lives. Only tests change it.
var slice = 50 * time.Millisecond

// Open returns the lock in the file at path. It creates the file with permissions 0600 if it does
// not exist. The error matches [locks.ErrForeign] if the file has other contents or is in use in
// another PID or time namespace. It matches [fs.ErrPermission] if this user cannot write to the
// file, and [errors.ErrUnsupported] on systems without shared memory.
func Open(path string) (*Mutex, error) {
	l, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("shmlock: open %q: %w", path, err)
	}
	return l, nil
}

func open(path string) (*Mutex, error) {
	if path == "" { // would be the working directory
		return nil, errors.New("empty path")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	id, err := self()
	if err != nil {
		return nil, err
	}
	m, err := openMapping(path)
	if err != nil {
		return nil, err
	}
	l := &Mutex{path: path, id: id, order: orderOf(path), m: m}
	l.local, l.waiter = reentrant.New(locks.FIFO), make(chan struct{}, 1)
	l.open, l.shut = context.WithCancel(context.Background())
	return l, nil
}

// Path returns the absolute path of the file.
func (l *Mutex) Path() string { return l.path }

// LockKey names the lock among the locks of the machine for [locks.Multi]. The key begins with a
// zero byte, which says that the lock is without an order: another process may have another path to
// the same file.
func (l *Mutex) LockKey() string { return "\x00" + l.path }

// QueueLength returns the number of waiters in the local queue.
func (l *Mutex) QueueLength() int { return l.local.QueueLength() }

// String describes the lock and its state in this process.
func (l *Mutex) String() string {
	state := "not held here"
	l.mu.Lock()
	if l.holds > 0 {
		state = "held by " + l.local.Owner().String()
	}
	l.mu.Unlock()
	return fmt.Sprintf("shmlock.Mutex(%q)[%s, %d queued]", l.path, state, l.QueueLength())
}

// fail returns err with the operation and the lock, or nil if err is nil.
func (l *Mutex) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("shmlock: %s %q: %w", op, l.path, err)
}

// LockContext waits until the caller holds the lock or ctx ends.
func (l *Mutex) LockContext(ctx context.Context) error {
	_, err := l.lock(ctx, "lock", true)
	return err
}

// TryLockContext acquires the lock if it is free or its holder's process is dead. It may return
// false although the lock is free, while another local attempt is failing.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	return l.lock(ctx, "try lock", false)
}

func (l *Mutex) lock(ctx context.Context, op string, wait bool) (bool, error) {
	if err := adapter.Check(ctx); err != nil {
		return false, l.fail(op, err)
	}
	o, end := locks.CurrentOwner(ctx), adapter.EndOf(ctx)
	ok, err := l.local.TryLockContext(ctx)
	if !ok && err == nil && wait {
		err = adapter.Until(ctx, l.open, l.local.LockContext)
		ok = err == nil
	}
	if ok { // from here on no method of ctx is called until local is unlocked: see adapter.End
		if ok, err = l.acquire(end, wait); !ok {
			_ = l.local.UnlockContext(adapter.As(o))
		}
	} else if cause := errors.Unwrap(err); cause != nil {
		err = cause // fail says what was attempted
	}
	if err != nil && ctx.Err() != nil {
		err = adapter.Ended(ctx)
	}
	return ok, l.fail(op, err)
}

// acquire gets the word for the owner of the local lock, unless that owner has it, and counts the
// hold.
func (l *Mutex) acquire(end adapter.End, wait bool) (bool, error) {
	if ok, err := l.tryFirst(wait); ok || err != nil || !wait {
		return ok, err
	}
	err := adapter.Until(end.Context(), l.open, l.wait)
	return err == nil, err
}

// tryFirst tries to get the word. A caller that can wait does not try if it is the turn of other
// processes. A caller that cannot wait also takes the word over from a dead process.
func (l *Mutex) tryFirst(wait bool) (ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait && l.holds == 0 && l.turns >= fairShare {
		return false, nil
	}
	if ok, err = l.try(0, l.id); ok || err != nil || wait {
		return ok, err
	}
	if w := l.m.word.Load(); w != 0 && !alive(w) {
		return l.try(w, l.id|sleepers)
	}
	return false, nil
}

// try re-enters if a goroutine of the same owner has the word. Otherwise it acquires the word if
// the word is from: free, or of a dead process. l.mu is held.
func (l *Mutex) try(from, to uint64) (bool, error) {
	switch {
	case l.holds > 0 && l.lost:
		return false, errLost
	case l.holds > 0:
		l.holds++
		return true, nil
	case l.open.Err() != nil:
		return false, locks.ErrClosed
	case !l.m.word.CompareAndSwap(from, to):
		l.turns = 0
		return false, nil
	}
	l.order.acquire()
	l.holds, l.recovered = 1, from != 0
	return true, nil
}

var errLost = fmt.Errorf("%w: %w", locks.ErrLost, locks.ErrClosed)

// wait acquires the word as soon as possible. ctx ends at Close too.
//
// No wake-up is lost. A waiter sets the bit before it sleeps, and the kernel lets it sleep only
// while the word is unchanged. A release of a word with the bit wakes one waiter. If that waiter
// acquires the word, it sets the bit again, for others that may still sleep. If that waiter gives
// up, it wakes another. If that waiter dies or is stopped in between, the others notice at their
// next check by themselves.
func (l *Mutex) wait(ctx context.Context) error {
	select {
	case l.waiter <- struct{}{}:
		defer func() { <-l.waiter }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m, err := l.use()
	if err != nil {
		return err
	}
	defer l.unuse()
	l.giveWay(ctx, m)
	sleep := newSleeper(ctx, m)
	defer sleep.end()
	to := l.id
	for check := true; ; {
		ok, err := l.tryLocked(ctx, 0, to)
		w := m.word.Load()
		if !ok && err == nil && check && w != 0 && !alive(w) {
			// If the word has changed by now, another waiter was quicker.
			ok, err = l.tryLocked(ctx, w, l.id|sleepers)
			w = m.word.Load()
		}
		switch {
		case ok:
			return nil
		case err != nil:
			if to != l.id {
				m.wake(1)
			}
			return err
		case w == 0, w&sleepers == 0 && !m.word.CompareAndSwap(w, w|sleepers):
			continue
		}
		check = sleep.sleep(w|sleepers, slice)
		to = l.id | sleepers // other waiters may sleep although the word no longer says so
	}
}

// tryLocked is try with l.mu, unless ctx has ended.
func (l *Mutex) tryLocked(ctx context.Context, from, to uint64) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.try(from, to)
}

// giveWay gives other processes, which were told that the word is free, time to acquire it, if it
// is their turn.
func (l *Mutex) giveWay(ctx context.Context, m *mapping) {
	l.mu.Lock()
	due := l.turns >= fairShare
	l.turns = 0
	l.mu.Unlock()
	end := time.Now().Add(2 * time.Millisecond)
	for due && m.word.Load() == 0 && ctx.Err() == nil && time.Now().Before(end) {
		time.Sleep(50 * time.Microsecond)
	}
}

// use returns the mapping, which stays until unuse.
func (l *Mutex) use() (*mapping, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Err() != nil {
		return nil, locks.ErrClosed
	}
	l.waits = true
	return l.m, nil
}

func (l *Mutex) unuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = false
	l.unmap()
}

// unmap ends the mapping if l is closed and no goroutine uses it. l.mu is held.
func (l *Mutex) unmap() {
	if l.open.Err() != nil && !l.waits && l.m != nil {
		l.m.close()
		l.m = nil
	}
}

// UnlockContext releases one hold, whether ctx has ended or not. The owner's last release frees
// the lock.
func (l *Mutex) UnlockContext(ctx context.Context) error {
	const op = "unlock"
	o := locks.CurrentOwner(ctx) // before l.mu: ctx may be a type of the program
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds == 0 {
		return l.fail(op, adapter.NotHeld(o))
	}
	if holder := l.local.Owner(); holder != o {
		if l.lost {
			return l.fail(op, adapter.NotHeldButLost(o, holder))
		}
		return l.fail(op, adapter.NotHeld(o, holder))
	}
	l.holds--
	var err error
	switch {
	case l.lost:
		err = errLost
		l.lost = l.holds > 0
	case l.holds == 0:
		err = l.release()
	}
	_ = l.local.UnlockContext(adapter.As(o))
	return l.fail(op, err)
}

// release frees the word, and wakes one waiter that sleeps. l.mu is held.
func (l *Mutex) release() error {
	for {
		w := l.m.word.Load()
		if w&^sleepers != l.id {
			return fmt.Errorf("%w: another program has written to the file", locks.ErrLost)
		}
		l.order.release()
		if l.m.word.CompareAndSwap(w, 0) {
			if w&sleepers != 0 || l.turns > 0 {
				l.turns++
			}
			if w&sleepers != 0 {
				l.m.wake(1)
			}
			return nil
		}
	}
}

// Recovered reports whether ctx's owner holds the lock, and its last holder before died without
// releasing it: while this process waited, or before it opened the file. In this case the guarded
// data may be half changed. Recovered returns false again after the next acquisition, so the holder
// that gets true must do the repair.
func (l *Mutex) Recovered(ctx context.Context) bool {
	o := locks.CurrentOwner(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holds > 0 && l.recovered && l.local.Owner() == o
}

// Close releases the lock if this process holds it, and makes all waiters return
// [locks.ErrClosed]. The owner's UnlockContext then returns [locks.ErrLost]. The memory is
// unmapped when the last waiter has returned. Close does not block and ignores ctx. Only the
// first call has an effect.
func (l *Mutex) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Err() != nil {
		return nil
	}
	l.shut()
	var err error
	if l.holds > 0 {
		l.lost = true
		err = l.release()
	}
	l.unmap()
	return l.fail("close", err)
}
