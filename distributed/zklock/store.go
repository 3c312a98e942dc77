package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// recipe is the part that differs between the kinds of locks: which nodes an acquisition makes, and
// which nodes it waits for.
type recipe interface {
	// step goes on until a has the lock or, if wait is set, watches the node that it must wait for.
	step(ctx context.Context, a *acquisition, wait bool) (held bool, err error)
	// busy reports whether other clients hold the lock of req and leave no room, or wait for the
	// lock.
	busy(ctx context.Context, c *core, req driver.Request) (bool, error)
	// inspect returns the nodes of the lock called name.
	inspect(ctx context.Context, s *session, name string) (sight, error)
}

// store is the [driver.Store] of the locks of one kind. It knows the acquisitions under way and
// the holds.
type store struct {
	*core
	recipe recipe
	lost   func(driver.HoldID, error)

	mu           sync.Mutex
	acquisitions map[driver.HoldID]*acquisition
}

var (
	_ driver.Store                = (*store)(nil)
	_ driver.Queue                = (*store)(nil)
	_ driver.LossNotifier         = (*store)(nil)
	_ driver.Session              = (*store)(nil)
	_ driver.Inspector            = (*store)(nil)
	_ driver.ReleaseHeedsDeadline = (*store)(nil)
	_ driver.BatchReleaser        = (*store)(nil)
)

func newStore(c *core, r recipe) *store {
	st := &store{core: c, recipe: r, acquisitions: make(map[driver.HoldID]*acquisition)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = append(c.stores, st)
	return st
}

// NotifyLoss is part of [driver.LossNotifier].
func (st *store) NotifyLoss(lost func(driver.HoldID, error)) { st.lost = lost }

// begin returns the acquisition of req, and begins the acquisition if there is none.
func (st *store) begin(req driver.Request) *acquisition {
	if a := st.find(req.HoldID); a != nil {
		return a
	}
	a := &acquisition{st: st, id: req.HoldID, bell: adapter.NewBell()}
	a.revoke, _ = req.Data.(func(token uint64))
	if req.Writer != "" {
		a.under = st.writer(driver.HoldID{Name: req.Name, Acquisition: req.Writer})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if first := st.acquisitions[req.HoldID]; first != nil {
		return first
	}
	st.acquisitions[req.HoldID] = a
	return a
}

// find returns an acquisition that was begun, or nil.
func (st *store) find(id driver.HoldID) *acquisition {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.acquisitions[id]
}

// forget forgets a. It keeps a newer acquisition that a late request has begun under the same id.
func (st *store) forget(a *acquisition) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.acquisitions[a.id] == a {
		delete(st.acquisitions, a.id)
	}
}

// writer returns the node of a hold of the write half of a lock, or nil.
func (c *core) writer(id driver.HoldID) *node {
	c.mu.Lock()
	stores := c.stores
	c.mu.Unlock()
	for _, st := range stores {
		if st.recipe != (queue{writeMode}) {
			continue
		}
		if a := st.find(id); a != nil {
			if h := a.holding(); h != nil {
				return h.leases[0]
			}
			return nil
		}
	}
	return nil
}

// Enqueue takes the lock, or a place in its queue.
func (st *store) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	reply, err := st.request(ctx, req, func(ctx context.Context, a *acquisition) (bool, error) {
		return st.recipe.step(ctx, a, true)
	}, func(err error) bool {
		return !errors.Is(err, driver.ErrRefused) && !errors.Is(err, locks.ErrForeign)
	})
	reply.Listening = true // Watch returns a.bell
	return reply, err
}

// Acquire takes the lock if no other client holds it or waits for it. Otherwise it leaves nothing
// behind.
func (st *store) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return st.request(ctx, req, func(ctx context.Context, a *acquisition) (bool, error) {
		if a.own == nil && a.queued == nil && a.under == nil {
			if busy, err := st.busy(ctx, req); busy || err != nil {
				return false, err
			}
		}
		return st.recipe.step(ctx, a, false)
	}, func(error) bool { return false })
}

// request is Acquire and Enqueue. keeps reports whether the acquisition keeps its place after a
// request that did not get the lock; the argument is the error of the request, or nil.
//
// Two requests for one acquisition may be under way: package lease repeats a request without a
// reply, and the first request may be late. They take turns, and each continues from the state that
// the request before it has left:
//
//	the request before          the next request
//	holds                       returns that hold
//	has a place, or no answer   goes on with its nodes
//	has no place                begins the acquisition anew
//	was ended, by any cause     asks nothing
//
// A request without a place deletes only the nodes that it has made itself.
func (st *store) request(ctx context.Context, req driver.Request,
	step func(ctx context.Context, a *acquisition) (bool, error), keeps func(error) bool) (driver.Reply, error) {
	a := st.begin(req)
	for a.turn.Lock(); a.dropped; a.turn.Lock() {
		a.turn.Unlock()
		a = st.begin(req)
	}
	defer a.turn.Unlock()
	a.req = req
	if a.holding() != nil {
		if reply, err := st.Lookup(ctx, req); reply.Held || err != nil {
			return reply, err
		}
		a.placed = false // the hold has ended, and the place with it
	}
	reply, err := a.ask(func(ctx context.Context) (bool, error) { return step(ctx, a) })
	err = outcome(err)
	switch {
	case reply.Held || keeps(err):
		a.placed = true
	case !a.placed && a.leave():
		a.dropped = true
		st.forget(a)
		await(ctx, a.end(), nil)
	}
	return reply, err
}

// busy reports whether others hold the lock of req, or wait for it. A server that lags behind the
// leader may still see an old holder, so the server first catches up.
func (st *store) busy(ctx context.Context, req driver.Request) (bool, error) {
	busy, err := st.recipe.busy(ctx, st.core, req)
	if !busy || err != nil {
		return false, err
	}
	s, err := st.session(ctx)
	if err != nil {
		return false, err
	}
	if err := s.sync(ctx, req.Name); err != nil {
		return false, err
	}
	return st.recipe.busy(ctx, st.core, req)
}

// patience is how long a call waits for the deletion of a node, which goes on without it.
const patience = time.Second

// ReleaseHeedsDeadline is part of [driver.ReleaseHeedsDeadline].
func (st *store) ReleaseHeedsDeadline() bool { return true }

// Release deletes the nodes of a hold. It does not report a hold that was found lost.
func (st *store) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	a := st.find(id)
	if a == nil {
		return driver.Released{}, nil
	}
	if err := a.endInTime(ctx); err != nil {
		return driver.Released{}, outcome(fmt.Errorf("delete the node in %q: %w", id.Name, err))
	}
	st.forget(a)
	// Waiters in the queue of the store go first without help from here.
	return driver.Released{Held: a.removed(), Awaited: st.recipe == ephemeral{}}, nil
}

// ReleaseAll sends the requests for all holds at once.
func (st *store) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	done, errs := make([]bool, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			_, errs[i] = st.Release(ctx, id)
			done[i] = errs[i] == nil
		})
	}
	all.Wait()
	return done, cmp.Or(errs...)
}

// Leave deletes the nodes of a waiter. A deletion that takes long goes on in the background.
func (st *store) Leave(ctx context.Context, id driver.HoldID) error {
	if a := st.find(id); a != nil && (a.leave() || a.isEnded()) {
		st.forget(a)
		await(ctx, a.end(), nil)
	}
	return nil
}

// Lost deletes the nodes of a lost hold. The session of the hold may live on.
func (st *store) Lost(id driver.HoldID) {
	if a := st.find(id); a != nil {
		st.forget(a)
		a.end()
	}
}

// Lookup asks for the node of a hold. The nodes of an acquisition without a hold have been deleted,
// or will be.
func (st *store) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	a := st.find(req.HoldID)
	if a == nil {
		return driver.Reply{}, nil
	}
	h := a.holding()
	if h == nil {
		return driver.Reply{}, nil
	}
	if held, err := st.Renew(ctx, []driver.HoldID{a.id}, 0); !held[0] {
		return driver.Reply{}, err
	}
	return h.reply, nil
}

// Watch returns the wake-ups of a waiter.
func (st *store) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return wakeUps{st.begin(driver.Request{HoldID: id}).bell}, nil
}

type wakeUps struct{ adapter.Bell }

func (w wakeUps) Close() {} // Leave, or the hold's end, ends them

// Renew makes the leader confirm each session, and reads the nodes whose watches are not set. The
// deletion of the other nodes would have been reported. Batches of holds that are renewed at the
// same time share the request for a session.
func (st *store) Renew(ctx context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	confirmed := make(map[*session]bool)
	var refusal error
	for i, h := range holds {
		a := st.find(h)
		if a == nil {
			continue
		}
		hold := a.holding()
		if hold == nil || hold.leases[0].s.isOver() {
			continue
		}
		s, err := hold.leases[0].s, error(nil)
		if !confirmed[s] {
			err = repeat(ctx, s, func() error { return s.syncOnce(ctx) })
			confirmed[s] = !inDoubt(err)
		}
		for _, part := range hold.leases {
			if err == nil && !part.watched() {
				err = repeat(ctx, part.s, func() error { return a.check(ctx, part) })
			}
		}
		switch {
		case inDoubt(err) && !s.isOver():
			return make([]bool, len(holds)), err // only holds that the leader has confirmed count
		case classOf(err) == classes.Request: // the server does not say whether the node exists
			refusal = err
		}
		held[i] = err == nil && a.holding() == hold
	}
	return held, refusal
}

// repeat repeats a request until there is an answer, ctx ends, or the session is over.
func repeat(ctx context.Context, s *session, ask func() error) error {
	for {
		err := ask()
		if !inDoubt(err) || ctx.Err() != nil || s.isOver() {
			return err
		}
		adapter.Sleep(ctx, 5*time.Millisecond)
	}
}

// drop is called when s is over: its holds are lost, and waiters begin anew.
func (st *store) drop(s *session, why error) {
	st.mu.Lock()
	var all []*acquisition
	for _, a := range st.acquisitions {
		all = append(all, a)
	}
	st.mu.Unlock()
	for _, a := range all {
		if h := a.holding(); h == nil {
			a.bell.Ring()
		} else if h.leases[0].s == s {
			st.lost(a.id, why)
		}
	}
}

// await waits until all are done, for patience at most, until ctx ends, or until refused has an
// error.
func await(ctx context.Context, done []<-chan struct{}, refused <-chan error) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, ch := range done {
		select {
		case <-ch:
		case err := <-refused:
			return err
		case <-timer.C:
			return errNoAnswer
		case <-ctx.Done():
			return errNoAnswer
		}
	}
	return nil
}
