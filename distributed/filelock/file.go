package filelock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/rwlock"
)

// mode is how the process has a file locked.
type mode uint8

const (
	unlocked mode = iota
	shared
	exclusive
)

// file is an open file, and the kernel's lock that the process has on the file for all its owners.
//
// Owners first acquire local, a read-write lock of the process, in order of arrival. An owner that
// has local needs the kernel's lock as well. The process may already have the kernel's lock: for
// other readers, or because the last holder handed it off. The queue of package lease cannot be
// local. It gives each reading owner a queue and a hold of the store, but all readers of a file
// share one lock of the kernel.
//
//	mode       holds  meaning
//	unlocked   0      no owner here holds the lock; some may be trying to get it
//	unlocked   > 0    all holds here are lost
//	shared     > 0    readers hold it
//	shared     0      a reader handed it off to the next owner in the local queue
//	exclusive  > 0    a writer holds it, or readers do, one of which was that writer
//	exclusive  0      a writer handed it off to the next owner in the local queue
//
// The kernel's lock is never converted, because flock releases the old lock before it has the
// new one. A writer that goes on reading therefore keeps other processes out until the last
// reader here has released the lock.
//
// No lock is left behind. A release hands it off only while the local queue has a waiter, and
// holds mu then. An owner that leaves the local queue without a hold calls collect, which
// unlocks the file if no other owner is there to do so.
type file struct {
	id    fileID
	d     descriptor
	local *rwlock.RWMutex
	// poller is full while an owner that has left the local queue polls the kernel. Other owners
	// that have left the queue wait for the poller, and then try in turn.
	poller chan struct{}
	// paths are the paths that lead to the file, or have led to it if the file is a stray. The
	// registry's mutex guards them.
	paths []string

	mu      sync.Mutex
	closed  bool
	mode    mode
	writer  *hold
	readers map[locks.Owner]*hold
	// turns is the number of acquisitions in a row in this process. handedOff is the time of
	// the first hand-off since the kernel granted the lock.
	turns     int
	handedOff time.Time
	// yielded is set if a release unlocked the file because this process had had its share.
	yielded bool
}

// errStale says that the path no longer leads to the file, or that the file is closed. The
// caller asks the registry again.
var errStale = errors.New("stale file")

// errEnded says that the caller's ctx has ended. The caller asks ctx for its error once it has
// given up the local lock.
var errEnded = errors.New("the context has ended")

// errReplaced is the cause of a loss.
var errReplaced = errors.New("the lock file was deleted or replaced")

func newFile(d descriptor, id fileID) *file {
	return &file{
		id: id, d: d, local: rwlock.New(locks.FIFO), poller: make(chan struct{}, 1),
		readers: make(map[locks.Owner]*hold),
	}
}

// held reports whether an owner here has a hold, possibly a lost hold. f.mu is held.
func (f *file) held() bool { return f.writer != nil || len(f.readers) > 0 }

// busy reports whether an owner is in the local queue, or has left it and not unlocked yet.
func (f *file) busy() bool {
	return f.local.HasQueued() || f.local.IsWriteLocked() || f.local.IsReadLocked()
}

// unused reports whether no owner holds f, waits for it or is trying to lock it. f.mu is held.
func (f *file) unused() bool { return f.mode == unlocked && !f.held() && !f.busy() }

// of returns o's hold of mode m. f.mu is held.
func (f *file) of(o locks.Owner, m mode) *hold {
	if m == shared {
		return f.readers[o]
	}
	if f.writer != nil && f.writer.owner == o {
		return f.writer
	}
	return nil
}

// lossOf returns why o has lost a hold that it began under path, or nil without such a hold.
func (f *file) lossOf(o locks.Owner, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range []mode{shared, exclusive} {
		if h := f.of(o, m); h != nil && h.path == path && h.cause != nil {
			return h.cause
		}
	}
	return nil
}

// lock acquires the lock for o. If it returns false, it has left no trace. No method of ctx is
// called while o has the local lock: see [adapter.End].
func (f *file) lock(ctx context.Context, end adapter.End, l *Mutex, o locks.Owner, wait bool) (bool, error) {
	ok, err := f.lockLocal(ctx, l, wait)
	if ok {
		if ok, err = f.lockFile(end, l, o, wait); !ok {
			f.unlockLocal(o, l.mode)
		}
	}
	if !ok {
		f.collect()
	}
	return ok, err
}

// lockLocal acquires the local lock.
func (f *file) lockLocal(ctx context.Context, l *Mutex, wait bool) (ok bool, err error) {
	try, queue := f.local.TryLockContext, f.local.LockContext
	if l.mode == shared {
		try, queue = f.local.TryRLockContext, f.local.RLockContext
	}
	// A newcomer does not barge, not even a reader that could join other readers while a writer
	// waits.
	if !wait || !f.local.HasQueued() {
		ok, err = try(ctx)
	}
	if !ok && err == nil && wait {
		err = adapter.Until(ctx, l.client.open, queue)
		ok = err == nil
	}
	switch cause := errors.Unwrap(err); {
	case err != nil && ctx.Err() != nil:
		err = adapter.Ended(ctx)
	case cause != nil: // such as locks.ErrUpgrade: the caller adds what was attempted
		err = cause
	}
	return ok, err
}

// unlockLocal releases o's local lock once.
func (f *file) unlockLocal(o locks.Owner, m mode) {
	ctx := adapter.As(o)
	if m == exclusive {
		_ = f.local.UnlockContext(ctx)
	} else {
		_ = f.local.RUnlockContext(ctx)
	}
}

// collect unlocks the file if a release handed the lock off to a waiter that has gone away.
func (f *file) collect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Every owner in the local queue, or past it, gets a hold or calls collect in turn.
	if f.mode != unlocked && !f.held() && !f.busy() {
		f.free() // its error reaches the next owner that tries
	}
}

// free unlocks the file. f.mu is held.
func (f *file) free() error {
	f.handedOff = time.Time{}
	if f.mode == unlocked || f.closed {
		return nil
	}
	f.mode = unlocked
	return f.d.unlock()
}

// lockFile gets the kernel's lock for o, which has the local lock, unless the process has it, and
// counts the hold. Several goroutines may be here at a time: readers, and goroutines of one
// explicit owner.
//
//  1. If this process has had its share, and can wait, it goes to step 3.
//  2. An owner that has a hold by now re-enters. Any other owner tries to get the kernel's lock,
//     and starts its hold if it gets the lock.
//  3. Otherwise the goroutine becomes the poller, after the present poller.
//  4. If this process has had its share, the goroutine first gives way to other processes.
//  5. The poller repeats step 2, with pauses.
func (f *file) lockFile(end adapter.End, l *Mutex, o locks.Owner, wait bool) (bool, error) {
	var due time.Duration
	if wait {
		due = f.courtesy(l.client.handoffs)
	}
	if due == 0 {
		if ok, err := f.enter(end, l, o); ok || err != nil || !wait {
			return ok, err
		}
	}
	err := adapter.Until(end.Context(), l.client.open, func(both context.Context) error {
		select {
		case f.poller <- struct{}{}:
			defer func() { <-f.poller }()
		case <-both.Done():
			return both.Err()
		}
		f.giveWay(both, due)
		return f.poll(both, func() (bool, error) { return f.enter(end, l, o) })
	})
	if err != nil && end.Reached() {
		err = errEnded
	}
	return err == nil, err
}

// enter re-enters if o has a hold. Otherwise it tries to get the kernel's lock, and starts o's
// hold.
func (f *file) enter(end adapter.End, l *Mutex, o locks.Owner) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(o, l.mode)
	switch {
	case h != nil && h.cause == nil:
		h.count++
		return true, nil
	case h != nil:
		return false, h.cause
	case end.Reached():
		return false, errEnded
	case l.client.open.Err() != nil:
		return false, locks.ErrClosed
	case f.closed:
		return false, errStale
	}
	if ok, err := f.take(l); !ok {
		return false, err
	}
	if err := f.begin(l, o); err != nil {
		f.drop()
		return false, err
	}
	return true, nil
}

// take gets the kernel's lock unless another process has it, or finds it in this process, and
// checks that the path leads to the file. f.mu is held.
func (f *file) take(l *Mutex) (bool, error) {
	if f.mode != unlocked && f.mode != l.mode {
		switch {
		case !f.held(): // handed off by a holder of the other kind
			if err := f.free(); err != nil {
				return false, err
			}
		case l.mode == exclusive: // another goroutine of the same explicit owner reads
			return false, nil
		}
	}
	fresh := f.mode == unlocked
	if fresh {
		if ok, err := f.d.tryLock(l.mode == exclusive); !ok {
			f.turns, f.yielded = 0, false
			return false, err
		}
		f.mode = l.mode
	}
	// If the file was unlinked and made again, later processes lock the new file. The answer counts
	// only if the lock is there before the question.
	same, err := leads(l.path, f.id)
	if same {
		f.turns++
		return true, nil
	}
	if err == nil {
		if !fresh {
			f.lose(errReplaced, func(h *hold) bool { return h.path == l.path })
		}
		err = errStale
	}
	f.drop()
	return false, err
}

// drop unlocks the file unless an owner holds it. f.mu is held.
func (f *file) drop() {
	if !f.held() {
		f.free()
	}
}

// begin starts o's hold. f.mu is held, and so is the kernel's lock.
func (f *file) begin(l *Mutex, o locks.Owner) error {
	h := &hold{f: f, client: l.client, path: l.path, owner: o, mode: l.mode, count: 1}
	if l.mode == shared {
		f.readers[o] = h
		return nil
	}
	if l.client.tokens {
		var err error
		if h.token, err = nextToken(f.d); err != nil {
			return err
		}
	}
	f.writer = h
	return nil
}

// unlock releases one of o's holds. The last release unlocks the file, or hands the lock off to
// the next local waiter.
func (f *file) unlock(l *Mutex, o locks.Owner) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.of(o, l.mode)
	if h == nil { // or another goroutine of the same owner is about to get it
		return locks.ErrNotHeld
	}
	err := h.cause
	if h.count--; h.count == 0 {
		f.end(h)
		if !f.held() && !f.mayHandOff(l.client.handoffs) {
			if e := f.free(); err == nil {
				err = e
			}
		}
	}
	f.unlockLocal(o, l.mode)
	return err
}

// end ends h. f.mu is held.
func (f *file) end(h *hold) {
	if h.watch != nil {
		h.watch.Stop()
	}
	if h.mode == exclusive {
		f.writer = nil
	} else {
		delete(f.readers, h.owner)
	}
}

// lose marks the selected holds as lost, and unlocks the file if no other hold is left. f.mu is
// held.
func (f *file) lose(cause error, selected func(*hold) bool) {
	left := false
	each := func(h *hold) {
		if h.cause == nil && selected(h) {
			h.lose(cause)
		}
		left = left || h.cause == nil
	}
	if f.writer != nil {
		each(f.writer)
	}
	for _, h := range f.readers {
		each(h)
	}
	if !left {
		f.free()
	}
}

// hold returns o's hold of mode m, or nil. f may be nil.
func (f *file) hold(o locks.Owner, m mode) *hold {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(o, m)
}
