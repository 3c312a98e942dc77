package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// semaphore is the [recipe] of Curator's InterProcessSemaphoreV2, and of
// InterProcessSemaphoreMutex, which has one lease. Each permit is a lease. The requests of one
// acquisition, in their order:
//
//	create    /name/locks/_c_<uuid>-lock-    a place in a queue, as of a mutex
//	children  /name/locks                    until the own node is the first
//	create    /name/leases/_c_<uuid>-lease-  as many leases as permits are asked for
//	get       the first lease's node         its czxid is the token
//	children  /name/leases, watched          until there are at most as many as the semaphore has:
//	                                         the leases are held
//	delete    the node in locks              before the acquisition returns
//	delete    the nodes in leases            the release
//
// The permits held never exceed the size. Only the first acquisition in locks makes leases, and it
// stays the first until it holds. It lists the leases after it has made its own, so the list has
// all leases of others, which can only become fewer meanwhile. A list of a server that lags behind
// has too many leases, never too few: it is not older than the own leases.
//
// Curator makes one lease at a time, and gives up its place in locks in between. So two
// acquisitions of several permits can wait for each other if one of them is Curator's. Two
// acquisitions of this package cannot.
type semaphore struct{}

// Semaphore returns the semaphore called name, of size permits: Curator's InterProcessSemaphoreV2
// of this path with size leases. A semaphore and a [Client.SemaphoreMutex] of one name have the
// same nodes. [Client.Mutex] and [Client.RWMutex] of the name have others.
//
// Each permit is a node in <name>/leases, whose czxid is the token. Acquisitions get their permits
// in order of arrival, in any process and language. An acquisition of many permits keeps back all
// later acquisitions until it has them. An acquisition and its release cost the requests of a
// mutex, and two requests for each permit: one makes its node, and one deletes it. A release wakes
// only the first waiter.
//
// All clients should give the same size. Each acquisition counts with the size that it was given.
// The permits of a process that died return at the end of its session. If another client deletes
// one of the nodes, all permits of the acquisition are lost.
//
// Curator takes several leases one by one. A Curator client that has some of its leases can wait
// for another acquisition of several permits, and the other way round. So give such calls of
// Curator a time limit.
func (c *Client) Semaphore(name string, size int64) *lease.Semaphore {
	lc, path, bad := c.locksOf(semaphores, name)
	return lc.Semaphore(path, size, driver.WithRefusal(bad))
}

func (semaphore) busy(ctx context.Context, c *core, req driver.Request) (bool, error) {
	s, err := c.session(ctx)
	if err != nil {
		return false, err
	}
	leases, err := s.children(ctx, req.Name+leasesDir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	permits, size := req.Weigh()
	if n, _ := count(leases, nil); n > size-permits {
		return true, nil
	}
	req.Name += locksDir
	return queue{mutexMode}.busy(ctx, c, req)
}

// count returns how many of children are leases, and how many of own are among them.
func count(children []string, own []*node) (n, mine int64) {
	for _, c := range children {
		if _, ok := sequence(c, leasePrefix); ok {
			n++
			if slices.ContainsFunc(own, func(o *node) bool { return o.name == c }) {
				mine++
			}
		}
	}
	return n, mine
}

func (semaphore) step(ctx context.Context, a *acquisition, wait bool) (held bool, err error) {
	if a.queued == nil {
		if a.own != nil { // the place in locks was lost after the lease was made
			return false, errNoOwn
		}
		if a.queued, err = a.st.create(ctx, a.id.Name+locksDir, lockPrefix, "", a, false); err != nil {
			return false, err
		}
	}
	if a.own == nil {
		before, err := a.await(ctx, a.queued, mutexMode, wait)
		if err != nil || before != "" {
			return false, err
		}
		if a.own, err = a.st.create(ctx, a.id.Name+leasesDir, leasePrefix, "", a, false); err != nil {
			return false, err
		}
	}
	if err := makeMore(ctx, a); err != nil {
		return false, err
	}
	for _, n := range a.leases() {
		if n.s != a.queued.s {
			return false, errNoOwn
		}
	}
	if a.own.zxid() == 0 {
		if err := a.own.read(ctx); err != nil {
			return false, ownGone(err)
		}
	}
	if room, err := a.hasRoom(ctx, wait); !room || err != nil {
		return false, err
	}
	if err := deleteGate(ctx, a); err != nil {
		return false, err
	}
	return true, nil
}

// atOnce is how many leases are made at a time.
const atOnce = 64

// makeMore makes all leases except the first.
func makeMore(ctx context.Context, a *acquisition) error {
	permits, _ := a.req.Weigh()
	for {
		missing := permits - 1 - int64(len(a.more))
		if missing <= 0 {
			return nil
		}
		made := make([]*node, min(missing, atOnce))
		errs := make([]error, len(made))
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() { made[i], errs[i] = a.st.create(ctx, a.own.dir, leasePrefix, "", a, false) })
		}
		wg.Wait()
		a.more = append(a.more, slices.DeleteFunc(made, func(n *node) bool { return n == nil })...)
		if err := cmp.Or(errs...); err != nil {
			return err
		}
	}
}

// hasRoom reports whether there are not too many leases. If wait is set, the waiter will be
// notified when the leases have changed.
func (a *acquisition) hasRoom(ctx context.Context, wait bool) (bool, error) {
	permits, size := a.req.Weigh()
	for {
		a.listener.listen(a.own.s, target{a.own.dir, true}, a.bell.Ring)
		children, again, err := a.own.s.childrenWatched(ctx, a.own.dir)
		if err != nil {
			return false, ownGone(err)
		}
		n, mine := count(children, a.leases())
		switch {
		case mine < permits:
			return false, errNoOwn
		case n <= size || !wait:
			return n <= size, nil
		}
		// If another client has deleted the own node in locks, the next acquisition there has made
		// a lease too. Each of both would wait for the other's lease to go.
		if _, err := a.queued.s.get(ctx, a.queued.path()); err != nil {
			return false, ownGone(err)
		}
		if !again {
			return false, nil
		}
	}
}

// deleteGate deletes the own node in locks. Leases that the head of locks has made, and that are
// not too many, are held: no other client could make another lease. So the node must be the head
// until it is deleted.
func deleteGate(ctx context.Context, a *acquisition) error {
	queued := a.queued
	if err := await(ctx, []<-chan struct{}{queued.discard()}, nil); err != nil {
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
