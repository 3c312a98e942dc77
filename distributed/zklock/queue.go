package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// queue is the [recipe] of Curator's InterProcessMutex, and of the two halves of
// InterProcessReadWriteLock. The requests of one acquisition, in their order:
//
//	exists    /name                     its state, for the token
//	create    /name/_c_<uuid>-lock-     ephemeral, sequential: the own place in the queue
//	children  /name                     no node before the own one excludes it: the lock is held.
//	                                    All three are sent at once: see survey
//	get       the own node              its czxid is the token; only if the three do not tell it
//	get       the node before, watched  the nearest node that excludes the own node
//	                                    children again when it has gone, before the waiter wakes
//	get       the own node, watched     after 100 ms of holding the lock: reports its deletion
//	delete    the own node              the release
//
// If /name is missing, it is created as a container.
type queue struct{ mode mode }

func (q queue) busy(ctx context.Context, c *core, req driver.Request) (bool, error) {
	s, err := c.session(ctx)
	if err != nil {
		return false, err
	}
	children, err := s.children(ctx, req.Name)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	before, err := last(children, q.mode, "")
	return before != "", err
}

func (q queue) step(ctx context.Context, a *acquisition, wait bool) (held bool, err error) {
	if a.own == nil && a.under != nil {
		if held, err := q.downgrade(ctx, a); held || err != nil {
			return held, err
		}
	}
	if a.own == nil {
		if a.own, err = a.st.create(ctx, a.id.Name, q.mode.prefix(), "", a, true); err != nil {
			return false, err
		}
	}
	before, err := a.await(ctx, a.own, q.mode, wait)
	if err != nil || before != "" {
		return false, err
	}
	return true, nil
}

// await returns the node that n, a node of a, must wait for, or "" if it is n's turn. If watch is
// set, the waiter will be notified when the node returned has gone.
func (a *acquisition) await(ctx context.Context, n *node, m mode, watch bool) (before string, err error) {
	for {
		if before, err = a.position(ctx, n, m); err != nil || before == "" || !watch {
			return before, err
		}
		at := target{n.dir + "/" + before, false}
		a.listener.listen(n.s, at, func() {
			// The answer comes sooner than if the waiter asked once it is awake.
			a.ahead.Store(&ahead{n, begin(n.s, childrenOf(n.dir))})
			a.bell.Ring()
		})
		if _, armed := n.s.watches.find(at); armed {
			return before, nil
		}
		_, again, err := n.s.getWatched(ctx, at.path)
		if gone := errors.Is(err, zk.ErrNoNode); !gone && !again {
			return before, err
		}
	}
}

// position returns the node that n must wait for, or "". If it returns "", and n is the own node,
// the token of n is known afterwards.
func (a *acquisition) position(ctx context.Context, n *node, m mode) (before string, err error) {
	children, known := []string(nil), false
	if v := n.survey; v != nil {
		var token uint64
		n.survey = nil
		children, token, known = v.read(ctx, n)
		n.know(token)
	}
	if n == a.own && n.zxid() == 0 && n.asked == nil {
		if err := n.s.await(ctx); err != nil {
			return "", err
		}
		p := begin(n.s, stateOf(n.path())) // sent together with the next request
		n.asked = &p
	}
	if !known {
		children, err = a.ahead.Swap(nil).children(ctx, n)
	}
	if err == nil {
		before, err = standing(children, n.name, m)
		if err != nil && !errors.Is(err, errNoOwn) {
			err = fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	if p := n.asked; p != nil && before == "" {
		n.asked = nil
		failed := n.note(p.await(ctx))
		if inDoubt(failed) { // its connection may have ended while n waited
			failed = n.read(ctx)
		}
		if err == nil {
			err = failed
		}
	}
	return before, ownGone(err)
}

// children returns the children of n's directory. A request that was sent ahead, after n was made,
// is as good as a new request: the first node in the queue stays the first.
func (p *ahead) children(ctx context.Context, n *node) ([]string, error) {
	if p != nil && p.n == n {
		if names, err := p.await(ctx); !inDoubt(err) {
			return names, err
		}
	}
	return n.s.children(ctx, n.dir)
}

// downgrade makes the node of a reader that holds the write lock. The reader's node has the number
// of the writer's node, as in Curator since 5.5.0. So the reader stands before the writers behind
// it when the writer's node has gone. The reader's node must exist before the writer's node goes.
func (q queue) downgrade(ctx context.Context, a *acquisition) (held bool, err error) {
	w := a.under
	seq, ok := sequence(w.path(), writePrefix)
	if !ok || w.s.isOver() {
		a.under = nil
		return false, nil
	}
	if a.own, err = a.st.create(ctx, a.id.Name, readPrefix, seq, a, false); err != nil {
		return false, err
	}
	err = a.own.read(ctx)
	if err == nil && a.own.s == w.s {
		// This request is sent after the node was made, in the same session: the server sees both
		// in this order.
		if _, err = w.s.get(ctx, w.path()); err == nil {
			return true, nil
		}
	}
	a.reset()
	if inDoubt(err) {
		return false, err
	}
	a.under = nil // the write lock is gone: this is a usual reader now
	return false, nil
}
