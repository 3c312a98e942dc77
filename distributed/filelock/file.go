package filelock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/rwlock"
)

// mode is how the process has a file locked.
type mode uint8

const (
	unlocked mode = iota
	shared
	exclusive
)

// file is an open file and the lock of it that the process has on behalf of all owners here.
//
// Owners first acquire local, a read-write lock of the process, in order of arrival. An owner
// that has it needs the kernel's lock as well. The process may have that already: for other
// readers, or because the last holder handed it off.
//
//	mode       users  meaning
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
	local *rwlock.RWMutex
	// paths are its names, guarded by the registry's mutex. strayed is set when it has lost one
	// of them.
	paths   []string
	strayed atomic.Bool

	mu      sync.Mutex
	d       descriptor
	dead    bool // closed
	parted  bool // it has lost one of its names
	mode    mode
	users   int // holds
	writer  *hold
	readers map[locks.Owner]*hold
	spare   []*hold
	// polling is set while one owner that has passed the local queue polls the kernel. The
	// others wait for changed, which the first of them makes, and which the poller closes at
	// its end.
	polling bool
	changed chan struct{}
	// turns is the number of acquisitions in a row in this process. handedOff is the time of
	// the first hand-off since the kernel granted the lock.
	turns     int
	handedOff time.Time
	// owed is set if a release unlocked the file because this process had had its share.
	owed bool
}

// errStale says that the path no longer leads to the file, or that the file is closed. The
// caller asks the registry again.
var errStale = errors.New("stale file")

// errReplaced is the cause of a loss.
var errReplaced = errors.New("the lock file was deleted or replaced")

func newFile(d descriptor, id fileID) *file {
	return &file{id: id, d: d, local: rwlock.New(fair.FIFO), readers: make(map[locks.Owner]*hold)}
}

// unused reports whether no owner holds f, waits for it or is trying to lock it. f.mu is held.
func (f *file) unused() bool {
	return f.users == 0 && f.mode == unlocked && !f.polling && !f.busy()
}

// busy reports whether an owner is in the local queue or has passed it.
func (f *file) busy() bool {
	return f.local.HasQueued() || f.local.IsWriteLocked() || f.local.IsReadLocked()
}

// of returns o's hold of the kind. f.mu is held.
func (f *file) of(o locks.Owner, kind mode) *hold {
	if kind == shared {
		return f.readers[o]
	}
	if f.writer != nil && f.writer.owner == o {
		return f.writer
	}
	return nil
}

// has reports whether o has a hold of the kind.
func (f *file) has(o locks.Owner, kind mode) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(o, kind) != nil
}

// concerns reports whether o has a hold of either kind that it began under path.
func (f *file) concerns(o locks.Owner, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range []mode{shared, exclusive} {
		if h := f.of(o, kind); h != nil && h.place.path == path {
			return true
		}
	}
	return false
}

// lock acquires the lock for o. If it returns false, it has left no trace.
func (f *file) lock(ctx context.Context, l *Mutex, o locks.Owner, wait bool) (bool, error) {
	ok, err := f.lockLocal(ctx, l, wait)
	if ok {
		if ok, err = f.ensure(ctx, l, o, wait); !ok {
			f.unlockLocal(ctx, l.kind)
		}
	}
	if !ok {
		f.collect()
	}
	return ok, err
}

// lockLocal acquires the local lock.
func (f *file) lockLocal(ctx context.Context, l *Mutex, wait bool) (ok bool, err error) {
	// A newcomer does not barge, not even a reader that could join other readers while a writer
	// waits.
	if !wait || !f.local.HasQueued() {
		if l.kind == exclusive {
			ok, err = f.local.TryLockContext(ctx)
		} else {
			ok, err = f.local.TryRLockContext(ctx)
		}
		if ok || err != nil || !wait {
			return ok, bare(ctx, err)
		}
	}
	queue := f.local.LockContext
	if l.kind == shared {
		queue = f.local.RLockContext
	}
	err = until(ctx, l.client.open, queue)
	return err == nil, err // such as locks.ErrUpgrade
}

// until calls queue with a context that ends with ctx or with open. The error says which of
// them ended.
func until(ctx, open context.Context, queue func(context.Context) error) (err error) {
	if ctx.Done() == nil {
		err = queue(valuesOf{open, ctx})
	} else {
		both, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(open, cancel)
		err = queue(both)
		stop()
		cancel()
	}
	if err != nil && ctx.Err() == nil && open.Err() != nil {
		return locks.ErrClosed
	}
	return bare(ctx, err)
}

// bare returns the cause of an error of the local lock: the caller says what was attempted.
func bare(ctx context.Context, err error) error {
	switch cause := errors.Unwrap(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	case cause != nil:
		return cause
	}
	return err
}

// valuesOf is a context that ends like the embedded one and has the values of the other.
type valuesOf struct {
	context.Context
	values context.Context
}

func (v valuesOf) Value(key any) any { return v.values.Value(key) }

// ended returns the error of ctx, which has ended, with its cause.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// unlockLocal releases the local lock once.
func (f *file) unlockLocal(ctx context.Context, kind mode) {
	if kind == exclusive {
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
	if f.mode != unlocked && f.users == 0 && !f.busy() {
		f.free() // its error reaches the next owner that tries
	}
}

// free unlocks the file. f.mu is held.
func (f *file) free() error {
	f.handedOff = time.Time{}
	if f.mode == unlocked || f.dead {
		return nil
	}
	f.mode = unlocked
	return f.d.unlock()
}

// ensure gets the kernel's lock for o, which has the local lock, unless the process has it, and
// counts the hold.
//
// Several goroutines may be here at a time: readers, and goroutines of one explicit owner. One
// of them polls the kernel, and the others wait for its result.
//
//  1. An owner that has a hold by now re-enters.
//  2. If another goroutine polls, this one waits until that ends, and starts again.
//  3. If this process has had its share, the goroutine first gives way to other processes.
//  4. It tries to get the kernel's lock, and starts the hold if it does.
//  5. Otherwise it becomes the poller, pauses, and starts again.
func (f *file) ensure(ctx context.Context, l *Mutex, o locks.Owner, wait bool) (ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var p poller
	defer p.end(f)
	for {
		if h := f.of(o, l.kind); h != nil {
			if h.cause == nil {
				h.count++
			}
			return h.cause == nil, h.cause
		}
		if err := f.refusal(ctx, l); err != nil {
			return false, err
		}
		if wait && f.polling && !p.polls {
			f.await(ctx, l.client.open)
			continue
		}
		var pause time.Duration
		if wait && !p.polls {
			pause = f.courtesy(l.client.handoffs)
		}
		if pause == 0 {
			if ok, err = f.take(l); ok {
				if err = f.begin(l, o); err != nil {
					f.drop()
				}
				return err == nil, err
			}
			if err != nil || !wait {
				return false, err
			}
		}
		p.pause(ctx, l.client.open, f, pause)
	}
}

// refusal returns why an acquisition cannot go on, or nil. f.mu is held.
func (f *file) refusal(ctx context.Context, l *Mutex) error {
	switch {
	case ctx.Err() != nil:
		return ended(ctx)
	case l.client.open.Err() != nil:
		return locks.ErrClosed
	case f.dead:
		return errStale
	}
	return nil
}

// take gets the kernel's lock unless another process has it, or finds it in this process, and
// checks that the path leads to the file. f.mu is held.
func (f *file) take(l *Mutex) (bool, error) {
	if f.mode != unlocked && f.mode != l.kind {
		switch {
		case f.users == 0: // handed off by a holder of the other kind
			if err := f.free(); err != nil {
				return false, err
			}
		case l.kind == exclusive: // another goroutine of the same explicit owner reads
			return false, nil
		}
	}
	fresh := f.mode == unlocked
	if fresh {
		if ok, err := f.d.tryLock(l.kind == exclusive); !ok {
			f.turns, f.owed = 0, false
			return false, err
		}
		f.mode = l.kind
	}
	// A file that was unlinked and made again is another one, and later processes lock that.
	// The answer counts only if the lock is there before the question.
	same, err := true, error(nil)
	if !l.client.trust {
		same, err = f.d.names(l.place, f.id)
	}
	if same {
		f.turns++
		return true, nil
	}
	if err == nil {
		if !fresh {
			f.lose(errReplaced, func(h *hold) bool { return h.place.path == l.place.path })
		}
		err = errStale
	}
	f.drop()
	return false, err
}

// drop unlocks the file unless an owner holds it. f.mu is held.
func (f *file) drop() {
	if f.users == 0 {
		f.free()
	}
}

// begin starts o's hold. f.mu is held, and so is the kernel's lock.
func (f *file) begin(l *Mutex, o locks.Owner) error {
	var token uint64
	if l.client.tokens && l.kind == exclusive {
		var err error
		if token, err = nextToken(f.d); err != nil {
			return err
		}
	}
	var h *hold
	if n := len(f.spare); n > 0 {
		h, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		h = new(hold)
	}
	*h = hold{f: f, client: l.client, place: l.place, owner: o, kind: l.kind, token: token, count: 1}
	f.users++
	if l.kind == exclusive {
		f.writer = h
	} else {
		f.readers[o] = h
	}
	return nil
}

// unlock releases one of o's holds. The last release unlocks the file, or hands the lock off to
// the next local waiter.
func (f *file) unlock(ctx context.Context, l *Mutex, o locks.Owner) error {
	f.mu.Lock()
	h := f.of(o, l.kind)
	if h == nil { // or another goroutine of the same owner is about to get it
		f.mu.Unlock()
		return locks.ErrNotHeld
	}
	err := h.cause
	if h.count--; h.count > 0 {
		f.unlockLocal(ctx, l.kind)
		f.mu.Unlock()
		return err
	}
	path := h.place.path
	f.end(h) // h may belong to another owner after that
	if f.users == 0 && !f.mayHandOff(l.client.handoffs) {
		if e := f.free(); err == nil {
			err = e
		}
	}
	parted := f.parted && f.users == 0
	f.unlockLocal(ctx, l.kind)
	f.mu.Unlock()
	if parted {
		files.settle(path)
	}
	return err
}

// end ends h. f.mu is held.
func (f *file) end(h *hold) {
	h.released = true
	if h.over != nil {
		close(h.over)
	}
	f.users--
	if h.kind == exclusive {
		f.writer = nil
	} else {
		delete(f.readers, h.owner)
	}
	if !h.shown && len(f.spare) < 8 {
		*h = hold{}
		f.spare = append(f.spare, h)
	}
}

// lose marks the selected holds as lost, and unlocks the file if no other hold is left. f.mu is
// held.
func (f *file) lose(cause error, selected func(*hold) bool) {
	left := 0
	each := func(h *hold) {
		switch {
		case h.cause != nil:
		case selected(h):
			h.lose(cause)
		default:
			left++
		}
	}
	if f.writer != nil {
		each(f.writer)
	}
	for _, h := range f.readers {
		each(h)
	}
	if left == 0 {
		f.free()
	}
}
