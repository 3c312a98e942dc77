package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock/internal/hook"
)

// Mutex is a lock of one name and kind, with the rules of a [lease.Mutex]. If its name cannot be
// the name of a lock, its methods return an error that says why. Goroutines may share a Mutex.
type Mutex struct {
	m      *lease.Mutex
	c      *Client
	bad    error // why the lock cannot be used
	revoke func(token uint64)
	kind   kind
}

var (
	_ locks.Leased    = (*Mutex)(nil)
	_ locks.Inspector = (*Mutex)(nil)
)

// MutexOption changes how a lock is made.
type MutexOption func(*Mutex)

// WithRevocation has f called when another client asks the holder to give the lock back: with
// [Mutex.Revoke] or Curator's Revoker. The call has a goroutine of its own, happens once for
// each hold, and gets the token of the hold. Nothing is taken away: f decides what to do.
func WithRevocation(f func(token uint64)) MutexOption { return func(l *Mutex) { l.revoke = f } }

func (c *Client) mutex(k kind, name string, opts []MutexOption, of ...lease.MutexOption) *Mutex {
	lc, path, bad := c.locksOf(k, name)
	l := &Mutex{c: c, kind: k, bad: bad}
	for _, o := range opts {
		o(l)
	}
	l.m = lc.Mutex(path, append(of, lease.WithRefusal(bad), lease.WithData(l.revoke))...)
	return l
}

// locksOf returns the locks of kind k, and the path of the lock called name. bad says why there can
// be no such lock.
func (c *Client) locksOf(k kind, name string) (lc *lease.Client, path string, bad error) {
	path, bad = cleanName(c.namespace, name)
	if bad != nil {
		path = name[:min(len(name), maxName)] // which the errors tell
	}
	lc, err := c.kind(k)
	if err != nil {
		bad = err
		lc, _ = c.kind(mutexes)
	}
	return lc, path, bad
}

// Locker returns the lock called name, as [Client.Mutex] does. It is a [*Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name, Curator's InterProcessMutex. Clients get it in the order
// in which they asked for it.
func (c *Client) Mutex(name string, opts ...MutexOption) *Mutex { return c.mutex(mutexes, name, opts) }

// SemaphoreMutex returns the lock called name that its owner cannot acquire again, Curator's
// InterProcessSemaphoreMutex. LockContext by the holder returns [locks.ErrDeadlock], because it
// would wait for itself. TryLockContext by the holder reports false. The lock is the
// [Client.Semaphore] of this name with one permit.
func (c *Client) SemaphoreMutex(name string) *Mutex { return c.mutex(semaphores, name, nil) }

func init() {
	hook.Ephemeral = func(client any, name string) any { return client.(*Client).mutex(ephemerals, name, nil) }
}

// RWMutex is a read-write lock, Curator's InterProcessReadWriteLock. Any number of readers hold
// it, or one writer, in the order in which they asked for it. The holder of the write lock may
// acquire the read lock too. If it then releases the write lock, it stays a reader, and no
// writer holds the lock in between. A reader that asks for the write lock gets
// [locks.ErrUpgrade] at once.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// RWMutex returns the read-write lock called name.
func (c *Client) RWMutex(name string, opts ...MutexOption) *RWMutex {
	l := &RWMutex{c.mutex(readers, name, opts, lease.WithShared()), c.mutex(writers, name, opts)}
	lease.Halves(l.read.m, l.write.m)
	return l
}

// ReadLocker returns the half that readers share. It is a [*Mutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the half of the writer. It is a [*Mutex].
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

// ReadMutex is [RWMutex.ReadLocker] with its own type, which has Hold and Inspect.
func (l *RWMutex) ReadMutex() *Mutex { return l.read }

// WriteMutex is [RWMutex.WriteLocker] with its own type.
func (l *RWMutex) WriteMutex() *Mutex { return l.write }

// LockKey gives [locks.Multi] its order: by path, and so the same in every process. See
// [lease.Mutex.LockKey].
func (l *Mutex) LockKey() string {
	if l.bad != nil {
		return ""
	}
	return l.m.LockKey()
}

// SameLock reports whether other is this lock. See [lease.Mutex.SameLock].
func (l *Mutex) SameLock(ctx context.Context, other locks.TryLocker) (bool, error) {
	if o, ok := other.(*Mutex); ok {
		other = o.m
	}
	return l.m.SameLock(ctx, other)
}

// held reports whether the caller holds a lock that it cannot acquire again.
func (l *Mutex) held(ctx context.Context) (bool, error) {
	if l.kind != semaphores || l.bad != nil || ctx == nil || ctx.Err() != nil {
		return false, nil // the lease client returns the error
	}
	h, err := l.m.Hold(ctx)
	if err != nil {
		return false, nil
	}
	return true, h.Err()
}

func (l *Mutex) fail(op string, err error) error {
	return fmt.Errorf("zklock: %s %q: %w", op, l.Name(), err)
}

// LockContext acquires the lock. It waits until ctx ends.
func (l *Mutex) LockContext(ctx context.Context) error {
	switch held, err := l.held(ctx); {
	case err != nil:
		return l.fail("lock", err)
	case held:
		return l.fail("lock", fmt.Errorf("held by the caller: %w", locks.ErrDeadlock))
	}
	return l.m.LockContext(ctx)
}

// TryLockContext acquires the lock if no client holds it or waits for it. An attempt of another
// client that is failing at this moment counts as a wait. TryLockContext waits for the answer of
// the server until ctx ends.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	switch held, err := l.held(ctx); {
	case err != nil:
		return false, l.fail("try lock", err)
	case held:
		return false, nil
	}
	return l.m.TryLockContext(ctx)
}

// UnlockContext releases one hold of the caller. See [lease.Mutex.UnlockContext] for what an error
// says.
func (l *Mutex) UnlockContext(ctx context.Context) error { return l.m.UnlockContext(ctx) }

// Hold returns the caller's hold, or an error matching [locks.ErrNotHeld].
func (l *Mutex) Hold(ctx context.Context) (locks.Hold, error) { return l.m.Hold(ctx) }

// ForceUnlock frees the lock without its holder's consent, and reports whether it was held. See
// [lease.Mutex.ForceUnlock].
func (l *Mutex) ForceUnlock(ctx context.Context) (bool, error) { return l.m.ForceUnlock(ctx) }

// Name returns the path of the lock.
func (l *Mutex) Name() string { return l.m.Name() }

// QueueLength returns how many goroutines of this process wait for their turn at the lock.
func (l *Mutex) QueueLength() int { return l.m.QueueLength() }

// String describes the lock and its state in this process.
func (l *Mutex) String() string { return l.m.String() }

// Revoke asks all present holders of the lock, in any process, to give it back. A holder hears of
// it if its lock was made with [WithRevocation], or if its Java twin has a listener. Revoke neither
// waits for holders nor takes anything away. SemaphoreMutex has no
// revocation, and returns [errors.ErrUnsupported].
func (l *Mutex) Revoke(ctx context.Context) error {
	switch {
	case l.bad != nil:
		return l.fail("revoke", l.bad)
	case ctx == nil:
		return l.fail("revoke", locks.ErrNilContext)
	case l.kind == semaphores || l.kind == ephemerals:
		return l.fail("revoke", errors.ErrUnsupported)
	}
	done := make(chan error, 1)
	go func() { done <- l.c.core.revoke(ctx, l.Name()) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return l.fail("revoke", err)
	}
	return nil
}

// revoke writes Curator's request to the nodes of the holders of a lock.
func (c *core) revoke(ctx context.Context, name string) error {
	s, err := c.session(ctx)
	if err != nil {
		return err
	}
	children, err := s.children(ctx, name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	} else if err != nil {
		return err
	}
	for _, child := range holders(children) {
		if err := s.set(ctx, name+"/"+child, []byte(revoked)); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return nil
}
