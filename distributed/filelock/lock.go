package filelock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jucgo/locks"
)

// Lock is one half of the lock of a file: the exclusive one, or the shared one. It belongs to the goroutine that took it, or
// to the
// [locks.Owner] of its context, which may take it again while it holds it. All Locks of one half of one file are the same
// lock in this process, whatever [Client] or path they come from.
//
// An acquisition waits at a gate of the process first, in order of arrival, and then for other processes, which have no order. An
// owner that reads and asks for the exclusive half gets [locks.ErrUpgrade] at once. An owner of the exclusive half may take
// the shared
// one as well, and go on with it alone: then readers in this process may join, and those in others when all here have left.
//
// A TryLockContext waits for nobody. It may report false though nobody holds the lock, if somebody else here is at the gate in
// vain, such as one who waits for another process.
type Mutex struct {
	p     *Client
	name  string
	place place
	bad   error // why it has no place
	kind  mode
	// last is the file where the lock was taken last, for as long as nothing has happened to any name: see file.
	last atomic.Pointer[file]
}

var _ locks.Leased = (*Mutex)(nil)

// Name returns what the lock was asked for by: a name, or a path.
func (l *Mutex) Name() string { return l.name }

// Path returns the absolute path of the file.
func (l *Mutex) Path() string { return l.place.path }

// LockKey names the lock among those of the machine, which gives [locks.Multi] its order. Two paths that lead to one file
// have different
// keys.
func (l *Mutex) LockKey() string {
	if l.kind == shared {
		return l.place.path + "\x00shared"
	}
	return l.place.path
}

func (l *Mutex) fail(op string, err error) error {
	return fmt.Errorf("filelock: %s of %q: %w", op, l.name, err)
}

// LockContext takes the lock, and waits for it until ctx ends. When ctx ends it returns at once, and leaves nothing behind.
//
// Without contention it costs about as much as the kernel takes to lock a file, and to look its path up.
func (l *Mutex) LockContext(ctx context.Context) error {
	_, err := l.lock(ctx, "LockContext", true)
	return err
}

// TryLockContext takes the lock if nobody has it.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	return l.lock(ctx, "TryLockContext", false)
}

func (l *Mutex) lock(ctx context.Context, op string, wait bool) (bool, error) {
	switch {
	case ctx == nil:
		return false, l.fail(op, locks.ErrNilContext)
	case ctx.Err() != nil:
		return false, l.fail(op, ended(ctx))
	case l.bad != nil:
		return false, l.fail(op, l.bad)
	}
	o := locks.CurrentOwner(ctx)
	for {
		f, left, err := l.file(o)
		ok := false
		if err == nil {
			ok, err = f.lock(ctx, l, o, wait)
		}
		switch {
		case err == nil:
			return ok, nil
		case err != errStale:
			return false, l.fail(op, err)
		case left: // the other half that o has is lost
			return false, l.fail(op, locks.ErrLost)
		}
		l.last.CompareAndSwap(f, nil)
		files.part(l.place.path, f)
	}
}

// file returns where o has to look for the lock: at the file of the name, or at one that had it before, if o has a hold
// there, as left
// tells.
func (l *Mutex) file(o locks.Owner) (f *file, left bool, err error) {
	if l.p.open.Err() != nil {
		return nil, false, locks.ErrClosed
	}
	// The registry would say the same, unless the file is dead by now, which it finds out itself.
	if f := l.last.Load(); f != nil && !f.strayed.Load() && files.stales.Load() == 0 {
		return f, false, nil
	}
	f, stale := files.under(l.place.path)
	for _, f := range stale {
		if f.concerns(o, l.place.path) {
			return f, true, nil
		}
	}
	if f == nil {
		f, err = files.get(l.place, l.p.perm)
	}
	l.last.Store(f)
	return f, false, err
}

// holder returns the file of the path where o has a hold of the lock.
func (l *Mutex) holder(o locks.Owner) *file {
	f, stale := files.under(l.place.path)
	if f != nil && f.has(o, l.kind) {
		return f
	}
	for _, f := range stale {
		if f.has(o, l.kind) {
			return f
		}
	}
	return nil
}

// UnlockContext gives one hold back, whether ctx has ended or not. With the last the file is unlocked, or left to the next
// one in this process. An
// error of the system is returned, and the hold ends all the same.
func (l *Mutex) UnlockContext(ctx context.Context) error {
	const op = "UnlockContext"
	o := locks.CurrentOwner(ctx)
	if f := l.last.Load(); f != nil { // where it most likely is
		if err := f.unlock(ctx, l, o); err == nil {
			return nil
		} else if err != locks.ErrNotHeld {
			return l.fail(op, err)
		}
	}
	err := locks.ErrNotHeld
	f, stale := files.under(l.place.path)
	if f != nil {
		err = f.unlock(ctx, l, o)
	}
	for i := 0; i < len(stale) && err == locks.ErrNotHeld; i++ {
		err = stale[i].unlock(ctx, l, o)
	}
	if err != nil {
		return l.fail(op, err)
	}
	return nil
}

// Hold returns the hold of the lock that ctx's owner has.
func (l *Mutex) Hold(ctx context.Context) (locks.Hold, error) {
	o := locks.CurrentOwner(ctx)
	if f := l.holder(o); f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if q := f.of(o, l.kind); q != nil {
			q.shown = true
			return (*hold)(q), nil
		}
	}
	return nil, l.fail("Hold", locks.ErrNotHeld)
}

// QueueLength returns how many wait at the gate of this process, for either half.
func (l *Mutex) QueueLength() int {
	if f, _ := files.under(l.place.path); f != nil {
		return f.gate.QueueLength()
	}
	return 0
}

// String describes the lock and its state in this process.
func (l *Mutex) String() string {
	state := "not held here"
	if f, _ := files.under(l.place.path); f != nil {
		f.mu.Lock()
		switch {
		case f.writer != nil:
			state = "held by " + f.writer.owner.String()
		case len(f.reader) > 0:
			state = fmt.Sprintf("shared by %d owners", len(f.reader))
		}
		f.mu.Unlock()
	}
	half := ""
	if l.kind == shared {
		half = ", shared half"
	}
	return fmt.Sprintf("filelock.Mutex(%q%s)[%s, %d queued]", l.name, half, state, l.QueueLength())
}

// RWMutex is the lock of a file as a read-write lock: any number of readers, or one writer, among all processes. In this
// process those who
// wait are admitted in order of arrival. Among processes there is no order, and readers that come and go can keep a
// writer of another process waiting.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// ReadLocker returns the shared half. It is a [*Mutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the exclusive half. It is a [*Mutex].
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

var errNUL = errors.New("the path has a NUL byte in it")
