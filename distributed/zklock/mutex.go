package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/zklock/internal/hook"
)

// WithRevocation sets the function to call when another client asks the holder to give the lock
// back: with [Client.Revoke] or Curator's Revoker. The function runs in its own goroutine, once for
// each hold, and gets the token of the hold. The hold goes on: the function decides what to do.
func WithRevocation(f func(token uint64)) lease.MutexOption { return driver.WithData(f) }

func (c *Client) mutex(k kind, name string, opts ...lease.MutexOption) *lease.Mutex {
	lc, path, bad := c.locksOf(k, name)
	return lc.Mutex(path, append(opts, driver.WithRefusal(bad))...)
}

// locksOf returns the locks of kind k, and the path of the lock called name. bad says why the name
// is refused.
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

// Locker returns the lock called name, as [Client.Mutex] does. It is a [*lease.Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Mutex returns the lock called name, Curator's InterProcessMutex. Clients get it in the order
// in which they asked for it.
func (c *Client) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	k := mutexes
	var conf driver.MutexConfig
	for _, opt := range opts {
		opt(&conf)
	}
	if conf.Data == hook.Ephemeral {
		k = ephemerals
	}
	return c.mutex(k, name, slices.Clone(opts)...)
}

// SemaphoreMutex returns the lock called name that its owner cannot acquire again, Curator's
// InterProcessSemaphoreMutex. LockContext by the holder returns [locks.ErrDeadlock], because the
// holder would wait for itself. TryLockContext by the holder reports false. The lock is the
// [Client.Semaphore] of this name with one permit.
func (c *Client) SemaphoreMutex(name string) *lease.Mutex {
	return c.mutex(semaphores, name, lease.WithoutReentry())
}

// RWMutex returns the read-write lock called name, Curator's InterProcessReadWriteLock. Readers and
// writers get it in the order in which they asked for it.
func (c *Client) RWMutex(name string, opts ...lease.MutexOption) *lease.RWMutex {
	opts = slices.Clip(opts)
	return lease.NewRWMutex(c.mutex(readers, name, append(opts, lease.WithShared())...), c.mutex(writers, name, opts...))
}

// Revoke asks all present holders of the lock called name, a [Client.Mutex] or a [Client.RWMutex]
// in any process, to give the lock back. The request reaches a holder whose lock was made with
// [WithRevocation], or a holder in Java that has a listener. Revoke neither waits for holders nor
// ends their holds. Holders of other kinds of locks cannot be asked.
func (c *Client) Revoke(ctx context.Context, name string) error {
	_, path, bad := c.locksOf(mutexes, name)
	err := bad
	switch {
	case err != nil:
	case ctx == nil:
		err = locks.ErrNilContext
	default:
		done := make(chan error, 1)
		go func() { done <- c.core.revoke(ctx, path) }()
		select {
		case err = <-done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("zklock: revoke %q: %w", path, err)
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
