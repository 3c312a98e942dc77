package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// Lock is a lock of one name and kind: a [lease.Mutex]. One whose name cannot be that of a lock cannot be taken; the error
// says why. It can be
// shared by goroutines.
type Lock struct {
	*lease.Mutex
	c      *Client
	bad    error
	revoke func(token uint64)
	kind   kind
	once   bool  // the owner cannot take it again
	write  *Lock // the other half of a read lock
	read   *Lock // the other half of a write lock
}

var _ locks.Leased = (*Lock)(nil)

// LockOption changes how a lock is made.
type LockOption func(*Lock)

// Revocable has f called, in a goroutine of its own, when somebody asks the holder to give the lock back: with
// [Lock.Revoke], or Curator's
// Revoker. token is that of the hold. What f does about it is its own affair; nothing is taken away.
func Revocable(f func(token uint64)) LockOption { return func(l *Lock) { l.revoke = f } }

func (c *Client) lock(k kind, name string, opts []LockOption, of ...lease.MutexOption) *Lock {
	path, bad := cleanName(c.namespace, name)
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(mutexes)
	}
	l := &Lock{Mutex: lc.Mutex(path, of...), c: c, kind: k, bad: bad}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Locker returns the lock called name, Curator's InterProcessMutex. It is a [*Lock].
func (c *Client) Locker(name string) locks.TryLocker { return c.Lock(name) }

// Lock returns the lock called name, Curator's InterProcessMutex: whoever asked first gets it first.
func (c *Client) Lock(name string, opts ...LockOption) *Lock { return c.lock(mutexes, name, opts) }

// SemaphoreLocker returns the lock called name whose owner cannot take it again, Curator's InterProcessSemaphoreMutex. A
// LockContext by the
// holder is refused with [locks.ErrDeadlock], for it would wait for itself, and a TryLockContext reports false.
func (c *Client) SemaphoreLocker(name string) *Lock {
	l := c.lock(semaphores, name, nil)
	l.once = true
	return l
}

// EphemeralLocker returns the lock called name that is one node. It is here for the lesson: all who wait are woken by each
// release, to find
// that one of them was faster, and nobody's turn is ever sure to come. Take [Client.Lock].
func (c *Client) EphemeralLocker(name string) *Lock { return c.lock(ephemerals, name, nil) }

// RWLock is a read-write lock, Curator's InterProcessReadWriteLock: any number of readers or one writer, who get it in the
// order in which they
// asked. The owner of the write lock may take the read lock too, and so go on as a reader when it gives the write lock back,
// without
// a writer in between. A reader who asks for the write lock is refused at once with [locks.ErrUpgrade].
type RWLock struct{ read, write *Lock }

var _ locks.ReadWriteLocker = (*RWLock)(nil)

// ReadWriteLocker returns the read-write lock called name.
func (c *Client) ReadWriteLocker(name string, opts ...LockOption) *RWLock {
	l := &RWLock{c.lock(readers, name, opts, lease.Shared()), c.lock(writers, name, opts)}
	l.read.write, l.write.read = l.write, l.read
	return l
}

// ReadLocker returns the half that readers share. It is a [*Lock].
func (l *RWLock) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Lock].
func (l *RWLock) WriteLocker() locks.TryLocker { return l.write }

// LockKey gives [locks.Multi] its order: the same in every process, by path first.
func (l *Lock) LockKey() string {
	if l.bad != nil {
		return ""
	}
	return fmt.Sprintf("%s\x00%d\x00%s\x00%s", l.Name(), l.kind, l.c.core.order, l.Mutex.LockKey())
}

// errAgain says that the owner has a lock that it cannot take again.
var errAgain = errors.New("held by the caller")

// prepare returns the context of an acquisition, or why ctx's owner cannot have the lock whatever the server says.
func (l *Lock) prepare(ctx context.Context) (context.Context, error) {
	switch {
	case l.bad != nil:
		return nil, l.bad
	case ctx == nil || ctx.Err() != nil:
		return ctx, nil
	}
	var q request
	q.revoke = l.revoke
	switch {
	case l.once:
		if h, err := l.Mutex.Hold(ctx); err == nil {
			return nil, errors.Join(errAgain, h.Err())
		}
	case l.read != nil:
		_, written := l.Mutex.Hold(ctx)
		if _, err := l.read.Mutex.Hold(ctx); err == nil && written != nil {
			return nil, fmt.Errorf("zklock: write lock of %q for a reader: %w", l.Name(), locks.ErrUpgrade)
		}
	case l.write != nil:
		if h, err := l.write.Mutex.Hold(ctx); err == nil && h.Err() == nil {
			l.c.mu.Lock()
			st := l.c.stores[writers]
			l.c.mu.Unlock()
			q.under = st.nodeOf(l.Name(), h.Token())
		}
	}
	if q.revoke == nil && q.under == nil {
		return ctx, nil
	}
	return context.WithValue(ctx, requestKey{}, &q), nil
}

// LockContext takes the lock, and waits for it until ctx ends.
func (l *Lock) LockContext(ctx context.Context) error {
	rctx, err := l.prepare(ctx)
	if errors.Is(err, errAgain) && !errors.Is(err, locks.ErrLost) {
		return fmt.Errorf("zklock: LockContext of %q by its holder: %w", l.Name(), locks.ErrDeadlock)
	} else if err != nil {
		return err
	}
	return l.Mutex.LockContext(rctx)
}

// TryLockContext takes the lock if nobody has it or waits for it. It waits for the server's answer until ctx ends.
func (l *Lock) TryLockContext(ctx context.Context) (bool, error) {
	rctx, err := l.prepare(ctx)
	if errors.Is(err, errAgain) && !errors.Is(err, locks.ErrLost) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return l.Mutex.TryLockContext(rctx)
}

// Revoke asks all who hold the lock at present, in whatever process, to give it back: those that are [Revocable], or whose
// Java twin has a
// listener. It neither waits for that nor takes anything away. Locks without a queue have no such thing, and return
// [errors.ErrUnsupported].
func (l *Lock) Revoke(ctx context.Context) error {
	fail := func(err error) error { return fmt.Errorf("zklock: Revoke of %q: %w", l.Name(), err) }
	switch {
	case l.bad != nil:
		return l.bad
	case ctx == nil:
		return fail(locks.ErrNilContext)
	case l.once || l.kind == ephemerals:
		return fail(errors.ErrUnsupported)
	}
	s, err := l.c.core.session(ctx)
	if err != nil {
		return fail(err)
	}
	children, err := s.children(ctx, l.Name())
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	} else if err != nil {
		return fail(err)
	}
	for _, c := range holders(children) {
		if err := s.set(ctx, l.Name()+"/"+c, []byte(revoked)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fail(err)
		}
	}
	return nil
}
