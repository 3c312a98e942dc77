package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// semaphore is the [recipe] of Curator's InterProcessSemaphoreMutex: a semaphore with one
// lease. The requests of one acquisition, in their order:
//
//	create    /name/locks/_c_<uuid>-lock-    a place in a queue, as of a mutex
//	children  /name/locks                    until the own node is the first
//	create    /name/leases/_c_<uuid>-lease-  the lease
//	get       the lease's node               its czxid is the token
//	children  /name/leases, watched          until the own node is the only one: the lock is held
//	delete    the node in locks              before the acquisition returns
//	delete    the node in leases             the release
type semaphore struct{}

func (semaphore) busy(ctx context.Context, c *core, name string) (bool, error) {
	s, err := c.session(ctx)
	if err != nil {
		return false, err
	}
	leases, err := s.children(ctx, name+leasesDir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	if n, _ := count(leases, ""); n > 0 {
		return true, nil
	}
	return queue{mutexMode}.busy(ctx, c, name+locksDir)
}

// count returns how many of children are leases, and whether own is one of them.
func count(children []string, own string) (n int, mine bool) {
	for _, c := range children {
		if _, ok := sequence(c, leasePrefix); ok {
			n++
			mine = mine || c == own
		}
	}
	return n, mine
}

func (semaphore) step(ctx context.Context, a *acquisition, wait bool) (held bool, err error) {
	if a.queued == nil {
		if a.own != nil { // the place in locks was lost after the lease was made
			return false, errNoOwn
		}
		if a.queued, err = a.st.create(ctx, a.id.Name+locksDir, lockPrefix, "", a); err != nil {
			return false, err
		}
	}
	if a.own == nil {
		before, err := a.await(ctx, a.queued, mutexMode, wait)
		if err != nil || before != "" {
			return false, err
		}
		if a.own, err = a.st.create(ctx, a.id.Name+leasesDir, leasePrefix, "", a); err != nil {
			return false, err
		}
	}
	if a.own.s != a.queued.s {
		return false, errNoOwn
	}
	if a.own.zxid() == 0 {
		if err := a.own.read(ctx); err != nil {
			return false, ownGone(err)
		}
	}
	if alone, err := a.onlyLease(ctx, wait); !alone || err != nil {
		return false, err
	}
	if err := a.deleteGate(ctx); err != nil {
		return false, err
	}
	a.since, err = a.own.s.confirm(ctx, a.term)
	return err == nil, err
}

// onlyLease reports whether the own lease is the only one. If wait is set, the waiter will be
// notified when the leases have changed.
func (a *acquisition) onlyLease(ctx context.Context, wait bool) (bool, error) {
	for {
		a.listen(a.own.s, place{a.own.dir, true}, a.notify)
		children, again, err := a.own.s.childrenWatched(ctx, a.own.dir)
		if err != nil {
			return false, ownGone(err)
		}
		n, mine := count(children, a.own.name)
		switch {
		case !mine:
			return false, errNoOwn
		case n == 1 || !wait:
			return n == 1, nil
		}
		// If another client has deleted the own node in locks, the next one there has made a
		// lease too. Each would wait for the other's to go.
		if _, err := a.queued.s.get(ctx, a.queued.path()); err != nil {
			return false, ownGone(err)
		}
		if !again {
			return false, nil
		}
	}
}

// deleteGate deletes the own node in locks. A lease that was made by the head of locks, and is
// the only one, is the lock: no other client could make another lease. So the node must be the
// head until it is deleted.
func (a *acquisition) deleteGate(ctx context.Context) error {
	queued := a.queued
	if err := await(ctx, []<-chan struct{}{queued.discard()}, patience); err != nil {
		return fmt.Errorf("delete %q: %w", queued.path(), err)
	}
	a.queued = nil
	if !queued.removed() {
		return errNoOwn
	}
	return nil
}

// ownGone turns the server's answer that a node of an acquisition is missing into errNoOwn.
func ownGone(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return errNoOwn
	}
	return err
}
