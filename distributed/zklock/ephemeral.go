package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// ephemeral is the [lease.Store] of the lock that is one node, which who makes it has. All who wait watch it, and all wake
// when it goes.
type ephemeral struct{ store }

var (
	_ lease.Store        = (*ephemeral)(nil)
	_ lease.LossNotifier = (*ephemeral)(nil)
	_ lease.Session      = (*ephemeral)(nil)
)

func (e *ephemeral) Acquire(ctx context.Context, name, owner string, _ time.Duration) (lease.Reply, error) {
	waits := e.find(owner) != nil
	r := e.record(ctx, name, owner)
	reply, err := r.ask(func(ctx context.Context) (bool, error) { return e.step(ctx, r, waits) })
	if !reply.Held && (!waits || err != nil) {
		e.leave(r)
	} else if !reply.Held && e.find(owner) != r { // it was given up meanwhile
		r.deaf()
	}
	return reply, err
}

// leave ends what r has.
func (e *ephemeral) leave(r *record) {
	e.take(r.ref.Acquisition)
	r.deaf()
	r.discard()
}

func (e *ephemeral) step(ctx context.Context, r *record, wait bool) (held bool, err error) {
	path := r.ref.Name
	for {
		s, err := e.session(ctx)
		if err != nil {
			return false, err
		}
		i := strings.LastIndexByte(path, '/')
		n := &node{c: e.core, s: s, dir: path[:i], name: path[i+1:], uuid: newUUID(), alone: true}
		_, err = s.create(ctx, path, []byte(n.uuid), zk.FlagEphemeral)
		switch {
		case err == nil:
		case errors.Is(err, zk.ErrNodeExists):
			if again, err := e.watch(ctx, r, s, path, wait); !again {
				return false, err
			}
			continue
		case errors.Is(err, zk.ErrNoNode):
			if err := e.mkdirs(ctx, s, n.dir); err != nil {
				return false, err
			}
			continue
		case !isTrouble(err):
			return false, refusal(err, path)
		default:
			// Whether it is there will be seen: the deletion looks whose it is.
			n.unsure = true
			n.discard()
			return false, err
		}
		r.own = n
		if _, err := n.observe(ctx, r.ear(n)); errors.Is(err, zk.ErrNoNode) {
			return false, errNoOwn
		} else if err != nil {
			return false, r.undo(err)
		}
		return true, nil
	}
}

// watch has r roused when the node goes, if it waits, and reports whether it has gone already.
func (e *ephemeral) watch(ctx context.Context, r *record, s *session, path string, wait bool) (again bool, err error) {
	var st stat
	if wait {
		r.listen(s, place{path, false}, "")
		st, again, err = s.getWatched(ctx, path)
	} else {
		st, err = s.get(ctx, path)
	}
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return true, nil
	case err != nil:
		return false, err
	case st.EphemeralOwner == 0:
		return false, fmt.Errorf("%w: %q is no ephemeral node", locks.ErrForeign, path)
	}
	return again, nil
}

// Watch is ended by the client's asking no more.
func (e *ephemeral) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	return watching{waiter{e.record(ctx, name, owner)}}, nil
}

type watching struct{ waiter }

func (w watching) Close() {
	if w.r.holding() == nil && w.r.st.find(w.r.ref.Acquisition) == w.r {
		w.r.st.take(w.r.ref.Acquisition)
		w.r.deaf()
	}
}
