package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ephemeral is the [recipe] of the lock that is a single node, see package zklock/ephemeral. The
// recipe is in this package because it needs the sessions and the nodes.
type ephemeral struct{}

func (ephemeral) busy(context.Context, *core, driver.Request) (bool, error) { return false, nil }

func (ephemeral) step(ctx context.Context, a *acquisition, wait bool) (held bool, err error) {
	for a.own == nil {
		if goOn, err := a.createSingle(ctx, wait); !goOn || err != nil {
			return false, err
		}
	}
	if a.own.zxid() == 0 {
		if err := a.own.read(ctx); err != nil {
			return false, ownGone(err)
		}
	}
	return true, nil
}

// createSingle makes the node if it does not exist. It reports false if the acquisition must wait
// for another client's node.
func (a *acquisition) createSingle(ctx context.Context, wait bool) (goOn bool, err error) {
	s, err := a.st.session(ctx)
	if err != nil {
		return false, err
	}
	a.st.introduce(s)
	path := a.id.Name
	i := strings.LastIndexByte(path, '/')
	n := &node{c: a.st.core, s: s, dir: path[:i], name: path[i+1:], uuid: adapter.NewUUID(4), id: a.id.Acquisition,
		hear: a.onChange, single: true}
	_, err = s.create(ctx, path, []byte(n.uuid), zk.FlagEphemeral)
	switch {
	case err == nil:
		a.own = n
		a.st.mine.Store(path, n)
		return true, nil
	case errors.Is(err, zk.ErrNodeExists):
		return a.awaitSingle(ctx, s, path, wait)
	case errors.Is(err, zk.ErrNoNode):
		err := s.makeContainer(ctx, n.dir)
		return err == nil, err
	case !inDoubt(err):
		return false, refusal(err, path)
	case classOf(err) == classes.Moment || classOf(err) == classes.Connection:
		return false, err
	}
	n.unsure = true // delete finds out whether the node exists
	n.discard()
	return false, err
}

// awaitSingle reports whether the node at path has gone. If wait is set, the waiter will be
// notified when it goes.
func (a *acquisition) awaitSingle(ctx context.Context, s *session, path string, wait bool) (gone bool, err error) {
	var st stat
	if wait {
		a.listener.listen(s, target{path, false}, a.bell.Ring)
		st, gone, err = s.getWatched(ctx, path)
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
	return gone, nil
}
