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

// file is an open file, and the lock of it that the process has for all its owners.
//
// Owners queue at the gate, a read-write lock of the process. Who has passed it needs the kernel's lock as well, which may be
// there already: because others read, or because the one who had it before left it.
//
//	lock      users  meaning
//	unlocked  0      nobody here holds it. Those who have passed the gate try to get it
//	unlocked  > 0    all holds here are lost
//	shared    > 0    readers hold it
//	shared    0      left by the last reader to the next one at the gate, whoever that is
//	exclusive > 0    a writer holds it, or readers do, one of which was that writer
//	exclusive 0      left by a writer to the next one at the gate
//
// The lock is never converted: flock gives the old one up before it has the new one. So a writer that goes on reading keeps
// others out until the last reader here has left.
//
// No lock is left behind: it is left only while somebody waits at the gate, under mu, and whoever leaves the gate without a hold
// calls collect afterwards, which gives it back if nobody else is there to do so.
type file struct {
	id   fileID
	gate *rwlock.RWMutex
	// paths are its names, guarded by the registry's mutex. strayed is set when it has lost one.
	paths   []string
	strayed atomic.Bool

	mu     sync.Mutex
	d      descriptor
	dead   bool // closed
	parted bool // it lost one of its names
	mode   mode
	users  int // possessions
	writer *possession
	reader map[locks.Owner]*possession
	spare  []*possession
	// polling is set while one of those who have passed the gate tries again and again. Others wait for changed, which is
	// made when one does and closed when the one has ended.
	polling bool
	changed chan struct{}
	// turns is how many acquisitions there were here in a row, as far as is known. passed is when the lock was left first
	// since the kernel gave it.
	turns  int
	passed time.Time
	// owed is set if the lock was given back to the kernel because those here had had their share.
	owed bool
}

// possession is the hold of one owner, from its first acquisition to its last release.
type possession struct {
	f     *file
	p     *Client // by which it was begun
	place place
	owner locks.Owner
	kind  mode
	token uint64

	// Guarded by f.mu.
	count    int
	released bool
	shown    bool          // somebody has it as a locks.Hold: it cannot be used for another one
	cause    error         // why it is lost
	lost     chan struct{} // made when asked for
	over     chan struct{} // closed at the end, if something watches
}

// errStale says that the file does not have the name any more, or is closed. The caller asks the registry again.
var errStale = errors.New("filelock: stale file")

// errReplaced is the cause of a loss.
var errReplaced = errors.New("the lock file was deleted or replaced")

func newFile(d descriptor, id fileID) *file {
	return &file{id: id, d: d, gate: rwlock.New(fair.FIFO), reader: make(map[locks.Owner]*possession)}
}

// unused reports whether nobody is concerned with f, but for those who have not come to its gate yet. f.mu is held.
func (f *file) unused() bool {
	return f.users == 0 && f.mode == unlocked && !f.polling && !f.busy()
}

// busy reports whether anybody is at the gate, or has passed it.
func (f *file) busy() bool {
	return f.gate.HasQueued() || f.gate.IsWriteLocked() || f.gate.IsReadLocked()
}

// of returns o's possession of the kind. f.mu is held.
func (f *file) of(o locks.Owner, kind mode) *possession {
	if kind == shared {
		return f.reader[o]
	}
	if f.writer != nil && f.writer.owner == o {
		return f.writer
	}
	return nil
}

// has reports whether o has a possession of the kind.
func (f *file) has(o locks.Owner, kind mode) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(o, kind) != nil
}

// concerns reports whether o has a hold of either kind that was begun under path.
func (f *file) concerns(o locks.Owner, path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range []mode{shared, exclusive} {
		if q := f.of(o, kind); q != nil && q.place.path == path {
			return true
		}
	}
	return false
}

// lock takes the lock for o. It has left everything as it was if it returns false.
func (f *file) lock(ctx context.Context, l *Mutex, o locks.Owner, wait bool) (bool, error) {
	ok, err := f.pass(ctx, l, wait)
	if ok {
		if ok, err = f.ensure(ctx, l, o, wait); !ok {
			f.leave(ctx, l.kind)
		}
	}
	if !ok {
		f.collect()
	}
	return ok, err
}

// pass gets a hold of the gate.
func (f *file) pass(ctx context.Context, l *Mutex, wait bool) (ok bool, err error) {
	// Nobody is overtaken: not even readers inside make a newcomer one of them while others wait.
	if !wait || !f.gate.HasQueued() {
		if l.kind == exclusive {
			ok, err = f.gate.TryLockContext(ctx)
		} else {
			ok, err = f.gate.TryRLockContext(ctx)
		}
		if ok || err != nil || !wait {
			return ok, err
		}
	}
	queue := f.gate.LockContext
	if l.kind == shared {
		queue = f.gate.RLockContext
	}
	err = until(ctx, l.p.open, queue)
	return err == nil, err // such as locks.ErrUpgrade
}

// until has queue wait until ctx or open ends. The error says which did.
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
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ended(ctx)
	case open.Err() != nil:
		return locks.ErrClosed
	}
	return err
}

// valuesOf is a context that ends like the one and has the values of the other.
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

// leave gives a hold of the gate back.
func (f *file) leave(ctx context.Context, kind mode) {
	if kind == exclusive {
		f.gate.UnlockContext(ctx)
	} else {
		f.gate.RUnlockContext(ctx)
	}
}

// collect gives the kernel's lock back if it was left to somebody at the gate who went away.
func (f *file) collect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Whoever is at the gate, or has passed it, gets a hold or comes here in turn.
	if f.mode != unlocked && f.users == 0 && !f.busy() {
		f.free() // there is nobody to tell: the next one who asks gets the error
	}
}

// free gives the kernel's lock back. f.mu is held.
func (f *file) free() error {
	f.passed = time.Time{}
	if f.mode == unlocked || f.dead {
		return nil
	}
	f.mode = unlocked
	return f.d.unlock()
}

// ensure makes sure that o, who has passed the gate, has the kernel's lock as well, and counts the hold.
//
// Several may be here at a time: readers, and goroutines of one explicit owner. One of them talks to the kernel, the others wait
// for what comes of it.
func (f *file) ensure(ctx context.Context, l *Mutex, o locks.Owner, wait bool) (ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var polls, marks bool // this one does, and tells other processes
	var w waiting
	defer func() {
		w.stop()
		if marks {
			f.d.unmark()
		}
		if polls {
			f.polling = false
			f.change()
		}
	}()
	for {
		if q := f.of(o, l.kind); q != nil {
			if q.cause == nil {
				q.count++
			}
			return q.cause == nil, q.cause
		}
		switch {
		case ctx.Err() != nil:
			return false, ended(ctx)
		case l.p.open.Err() != nil:
			return false, locks.ErrClosed
		case f.dead:
			return false, errStale
		case f.polling && !polls && wait:
			if f.changed == nil {
				f.changed = make(chan struct{})
			}
			changed := f.changed
			f.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
			case <-l.p.open.Done():
			}
			f.mu.Lock()
			continue
		}
		var way time.Duration
		if wait && !polls {
			way = f.courtesy(l.p.cohort)
		}
		if way == 0 {
			ok, err := f.take(l)
			if ok {
				if err = f.begin(l, o); err != nil {
					f.drop()
				}
				return err == nil, err
			}
			if err != nil || !wait {
				return false, err
			}
		}
		polls, f.polling = true, true
		if way == 0 && !marks {
			marks = true
			f.d.mark()
		}
		f.mu.Unlock()
		if way == 0 {
			w.wait(ctx, l.p.open, w.next())
		} else {
			f.giveWay(ctx, l.p.open, &w, way)
		}
		f.mu.Lock()
	}
}

// change tells those who wait for what comes of polling that it has ended. f.mu is held.
func (f *file) change() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// take gets the kernel's lock if nobody's is in the way, or finds it here, and sees that the file has the name still. f.mu is
// held.
func (f *file) take(l *Mutex) (bool, error) {
	if f.mode != unlocked && f.mode != l.kind {
		switch {
		case f.users == 0: // left by one of the other kind
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
	same, err := true, error(nil)
	if !l.p.trust {
		same, err = f.d.names(l.place, f.id)
	}
	if same {
		f.turns++
		return true, nil
	}
	if err == nil {
		if !fresh {
			f.lose(errReplaced, func(q *possession) bool { return q.place.path == l.place.path })
		}
		err = errStale
	}
	f.drop()
	return false, err
}

// drop gives the kernel's lock back unless somebody holds it. f.mu is held.
func (f *file) drop() {
	if f.users == 0 {
		f.free()
	}
}

// begin makes o's possession. f.mu is held, and so is the kernel's lock.
func (f *file) begin(l *Mutex, o locks.Owner) error {
	var token uint64
	if l.p.tokens && l.kind == exclusive {
		var err error
		if token, err = nextToken(f.d); err != nil {
			return err
		}
	}
	var q *possession
	if n := len(f.spare); n > 0 {
		q, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		q = new(possession)
	}
	*q = possession{f: f, p: l.p, place: l.place, owner: o, kind: l.kind, token: token, count: 1}
	f.users++
	if l.kind == exclusive {
		f.writer = q
	} else {
		f.reader[o] = q
	}
	return nil
}

// unlock gives one of o's holds back, and the kernel's lock with the last, or leaves it to the next one at the gate.
func (f *file) unlock(ctx context.Context, l *Mutex, o locks.Owner) error {
	f.mu.Lock()
	q := f.of(o, l.kind)
	if q == nil { // or another goroutine of the same owner is about to get it
		f.mu.Unlock()
		return locks.ErrNotHeld
	}
	err := q.cause
	if q.count--; q.count > 0 {
		f.leave(ctx, l.kind)
		f.mu.Unlock()
		return err
	}
	path := q.place.path
	f.end(q) // which may make it another one's
	if f.users == 0 && !f.mayPass(l.p.cohort) {
		if e := f.free(); err == nil {
			err = e
		}
	}
	parted := f.parted && f.users == 0
	f.leave(ctx, l.kind)
	f.mu.Unlock()
	if parted {
		files.settle(path)
	}
	return err
}

// end ends q. f.mu is held.
func (f *file) end(q *possession) {
	q.released = true
	if q.over != nil {
		close(q.over)
	}
	f.users--
	if q.kind == exclusive {
		f.writer = nil
	} else {
		delete(f.reader, q.owner)
	}
	if !q.shown && len(f.spare) < 8 {
		*q = possession{}
		f.spare = append(f.spare, q)
	}
}

// lose makes the possessions lost that which selects, and gives the kernel's lock back if they were all. f.mu is held.
func (f *file) lose(cause error, which func(*possession) bool) {
	left := 0
	each := func(q *possession) {
		switch {
		case q.cause != nil:
		case which(q):
			q.cause = fmt.Errorf("%w: %w", locks.ErrLost, cause)
			if q.lost == nil {
				q.lost = closed
			} else {
				close(q.lost)
			}
		default:
			left++
		}
	}
	if f.writer != nil {
		each(f.writer)
	}
	for _, q := range f.reader {
		each(q)
	}
	if left == 0 {
		f.free()
	}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
