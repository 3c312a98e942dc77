package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease"
)

// queue is the [lease.Store] of InterProcessMutex and of the halves of InterProcessReadWriteLock. Under the lock's name
// there is a
// container, and in it a node for each who holds or waits, ephemeral and sequential: the first has the lock, or the readers
// before the
// first writer. Who waits watches the nearest one before it that excludes it, and nobody else.
type queue struct {
	store
	recipe recipe
}

var (
	_ lease.Store        = (*queue)(nil)
	_ lease.Queue        = (*queue)(nil)
	_ lease.Teller       = (*queue)(nil)
	_ lease.LossNotifier = (*queue)(nil)
	_ lease.Session      = (*queue)(nil)
)

// Enqueue makes the node, or looks how it stands.
func (q *queue) Enqueue(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	r := q.record(ctx, name, owner)
	r.span = d
	reply, err := r.ask(func(ctx context.Context) (bool, error) { return q.step(ctx, r, true) })
	reply.Listening = true // r is what Watch returns
	return reply, err
}

// Granted knows what an heir knows, and what a look says that has ended.
func (q *queue) Granted(name, owner string) (lease.Reply, bool) {
	r := q.find(owner)
	if r == nil || r.own == nil || !r.told() {
		return lease.Reply{}, false
	}
	reply, _ := r.ask(func(context.Context) (bool, error) { return r.own != nil && (r.succeeds() || q.first(r)), nil })
	if !reply.Held {
		r.mu.Lock()
		r.dirty = true // Enqueue has to look
		r.mu.Unlock()
	}
	return reply, reply.Held
}

// first reports whether r has the lock according to its look. If so, the hold counts from the time of that, or
// from when the leader has confirmed the session.
func (q *queue) first(r *record) bool {
	l := r.looked()
	if l == nil || l.err != nil || l.s != r.own.s || l.dir != r.own.dir || time.Since(l.sent) > current {
		return false
	}
	before, _, err := standing(l.names, r.own.name, q.recipe)
	if err != nil || before != "" {
		return false
	}
	at, ok := l.s.confirmed(l.s.links.Load(), r.span)
	r.from(l.sent)
	r.from(at)
	return ok
}

// Acquire makes a node only if it looks as if that will be the first, and deletes it if it is not.
func (q *queue) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	r := q.record(ctx, name, owner)
	r.span = d
	reply, err := r.ask(func(ctx context.Context) (bool, error) {
		if r.own == nil && r.req.under == nil {
			if busy, err := q.busy(ctx, name); busy || err != nil {
				return false, err
			}
		}
		return q.step(ctx, r, false)
	})
	if !reply.Held {
		q.Leave(ctx, name, owner)
	}
	return reply, err
}

func (q *queue) busy(ctx context.Context, dir string) (bool, error) {
	s, err := q.session(ctx)
	if err != nil {
		return false, err
	}
	children, err := s.children(ctx, dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	before, _, err := last(children, q.recipe, "")
	return before != "", err
}

// step does what there is to do until r has the lock or knows whom to wait for.
func (q *queue) step(ctx context.Context, r *record, wait bool) (held bool, err error) {
	dir := r.ref.Name
	if r.own == nil && r.req.under != nil {
		if held, err := q.downgrade(ctx, r); held || err != nil {
			return held, err
		}
	}
	var listed []string
	if r.own == nil {
		if r.own, listed, err = q.create(ctx, dir, q.recipe.kind(), "", r.data, true); err != nil {
			return false, err
		}
	}
	if r.succeeds() {
		return true, nil
	}
	for {
		before, places, err := q.stands(ctx, r, r.own, q.recipe, listed)
		listed = nil // it is as good as one that is asked for now, but only now
		if err == nil && before == "" {
			err = r.confirm(ctx)
			return err == nil, err
		}
		if err != nil || !wait {
			return false, err
		}
		link := r.own.s.links.Load()
		again, err := r.watch(ctx, r.own, before)
		if err == nil && !again && q.recipe == mutex && r.own.link == link {
			if places == 1 {
				err = r.expect(ctx, dir+"/"+before, link)
			} else {
				r.foresee(places)
			}
		}
		if !again || err != nil {
			return false, err
		}
	}
}

// stands returns which node of n's directory n has to wait for, and how many before n exclude it. children are those of the
// directory, if they are known as of now.
func (st *store) stands(ctx context.Context, r *record, n *node, kind recipe, children []string,
) (before string, places int, err error) {
	var looked *asked[stat]
	if _, token := n.known(); token == 0 && n == r.own { // its creation was not answered
		looked = n.s.askFor(ctx, n.path())
	}
	if children == nil {
		children, err = r.list(ctx, n)
	}
	if looked != nil {
		state, failed := looked.wait(ctx)
		if failed == nil {
			n.seen(state)
			r.read(state)
		}
		err = errors.Join(err, failed)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0, errNoOwn
	} else if err != nil {
		return "", 0, err
	}
	before, places, err = standing(children, n.name, kind)
	if err != nil && !errors.Is(err, errNoOwn) {
		err = fmt.Errorf("%w: %w", errBroken, err)
	}
	return before, places, err
}

// watch has r, whose node is n, roused by what happens to the one called before in the same directory, and reports whether that has
// happened already.
func (r *record) watch(ctx context.Context, n *node, before string) (again bool, err error) {
	at := place{n.dir + "/" + before, false}
	r.listen(n.s, at, n.dir)
	if n.s.points.isArmed(at) {
		return false, nil
	}
	_, changed, err := n.s.getWatched(ctx, at.path)
	if errors.Is(err, zk.ErrNoNode) {
		return true, nil
	}
	return changed, err
}

// downgrade makes the node of a reader that holds the write lock: with the number of the writer's node, so that it stands
// before the
// writers in between when the writer has gone. That is Curator's form since 5.5.0. It must be there before the writer's node
// goes.
func (q *queue) downgrade(ctx context.Context, r *record) (held bool, err error) {
	w := r.req.under
	name, _ := w.known()
	seq, ok := sequence(name, writeName)
	if !ok || w.s.isOver() {
		r.req.under = nil
		return false, nil
	}
	n, _, err := q.create(ctx, r.ref.Name, readName, seq, r.data, false)
	if err != nil {
		return false, err
	}
	r.own = n
	if n.s == w.s {
		if state, err := n.observe(ctx, r.ear(n)); errors.Is(err, zk.ErrNoNode) {
			return false, errNoOwn
		} else if err != nil {
			return false, r.undo(err)
		} else {
			r.read(state)
		}
		// Asked after the node was made, in the same session: that is the order in which the server sees it.
		if _, err := w.s.get(ctx, w.path()); err == nil {
			return true, nil
		} else if isTrouble(err) {
			return false, r.undo(err)
		}
	}
	r.req.under = nil // the write lock has gone meanwhile: it is one reader among others
	r.reset()
	return false, nil
}

func (r *record) undo(err error) error {
	r.reset()
	return err
}
