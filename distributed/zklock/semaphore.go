package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease"
)

// semaphore is the [lease.Store] of InterProcessSemaphoreMutex: a semaphore with one lease. Under the lock's name there are
// two containers.
// Who acquires has to be the first in locks, as with a mutex; makes a node in leases; waits until it is the only one there; and
// leaves locks then.
type semaphore struct{ store }

var (
	_ lease.Store        = (*semaphore)(nil)
	_ lease.Queue        = (*semaphore)(nil)
	_ lease.LossNotifier = (*semaphore)(nil)
	_ lease.Session      = (*semaphore)(nil)
)

func (m *semaphore) Enqueue(ctx context.Context, name, owner string, _ time.Duration) (lease.Reply, error) {
	r := m.record(ctx, name, owner)
	reply, err := r.ask(func(ctx context.Context) (bool, error) { return m.step(ctx, r, true) })
	reply.Listening = true // r is what Watch returns
	return reply, err
}

func (m *semaphore) Acquire(ctx context.Context, name, owner string, _ time.Duration) (lease.Reply, error) {
	r := m.record(ctx, name, owner)
	reply, err := r.ask(func(ctx context.Context) (bool, error) {
		if r.gate == nil && r.own == nil {
			if busy, err := m.busy(ctx, name); busy || err != nil {
				return false, err
			}
		}
		return m.step(ctx, r, false)
	})
	if !reply.Held {
		m.Leave(ctx, name, owner)
	}
	return reply, err
}

func (m *semaphore) busy(ctx context.Context, name string) (bool, error) {
	s, err := m.session(ctx)
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
	waiting, err := s.children(ctx, name+locksDir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	before, _, err := last(waiting, mutex, "")
	return before != "", err
}

// count returns how many leases children are, and whether own is one of them.
func count(children []string, own string) (n int, mine bool) {
	for _, c := range children {
		if _, ok := sequence(c, leaseName); ok {
			n++
			mine = mine || c == own
		}
	}
	return n, mine
}

func (m *semaphore) step(ctx context.Context, r *record, wait bool) (held bool, err error) {
	var listed []string
	if r.gate == nil {
		if r.own != nil { // made before the place in locks was lost
			return false, errNoOwn
		}
		if r.gate, listed, err = m.create(ctx, r.ref.Name+locksDir, lockName, "", r.data, true); err != nil {
			return false, err
		}
	}
	for r.own == nil {
		before, _, err := m.stands(ctx, r, r.gate, mutex, listed)
		listed = nil
		switch {
		case err != nil || before != "" && !wait:
			return false, err
		case before == "":
			if r.own, _, err = m.create(ctx, r.ref.Name+leasesDir, leaseName, "", r.data, false); err != nil {
				return false, err
			}
		default:
			if again, err := r.watch(ctx, r.gate, before); !again || err != nil {
				return false, err
			}
		}
	}
	if r.own.s != r.gate.s {
		return false, errNoOwn
	}
	if _, token := r.own.known(); token == 0 {
		if _, err := r.own.observe(ctx, r.ear(r.own)); errors.Is(err, zk.ErrNoNode) {
			return false, errNoOwn
		} else if err != nil {
			return false, err
		}
	}
	for {
		r.listen(r.own.s, place{r.own.dir, true}, "")
		children, changed, err := r.own.s.childrenWatched(ctx, r.own.dir)
		if errors.Is(err, zk.ErrNoNode) {
			return false, errNoOwn
		} else if err != nil {
			return false, err
		}
		n, mine := count(children, r.own.name)
		switch {
		case !mine:
			return false, errNoOwn
		case n == 1:
			if err := m.enter(ctx, r); err != nil {
				return false, err
			}
			return true, nil
		case !wait:
			return false, nil
		}
		// If somebody has deleted its node in locks, the next one there has made a lease too: each would wait for the other's to go.
		if _, err := r.gate.s.get(ctx, r.gate.path()); errors.Is(err, zk.ErrNoNode) {
			return false, errNoOwn
		} else if err != nil {
			return false, err
		}
		if !changed {
			return false, nil
		}
	}
}

// enter leaves locks to the next one. Who made its lease while it was the first there has the lock if it has the only one:
// nobody else
// could make another one. So that must be so still.
func (m *semaphore) enter(ctx context.Context, r *record) error {
	gone := r.gate.discard()
	if err := await(ctx, []<-chan struct{}{gone}, patience); err != nil {
		return fmt.Errorf("delete %q: %w", r.gate.path(), err)
	}
	removed := r.gate.removed()
	r.gate = nil
	if !removed {
		return errNoOwn
	}
	return nil
}
