package zklock

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// survey is two reads of a directory: its state before a node is made in it, and its children
// afterwards. The three requests are sent at once. So one round trip gives a place in a queue, and
// the nodes before it. Nothing depends on the order in which the requests reach the server:
//
//	the list has the node             the list is newer than the node, and as good as a later list
//	the list does not have the node   the list says nothing. The caller asks again
//
// The two reads also tell the token, unless something else happened in the directory: see [czxid].
type survey struct {
	before pending[zk.Stat]
	after  pending[listing]
}

// listing is the children of a directory, and its own state.
type listing struct {
	names []string
	zk.Stat
}

// enter makes n at path, and surveys its directory.
func (n *node) enter(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	if err := n.s.await(ctx); err != nil {
		return "", err
	}
	sent := driver.Now()
	before := beginFirst(n.s, func(c *zk.Conn) (zk.Stat, error) {
		_, st, err := c.Exists(n.dir)
		if err != nil {
			return zk.Stat{}, err
		}
		return *st, nil
	})
	create := beginFirst(n.s, n.s.creation(path, data, flags))
	after := begin(n.s, func(c *zk.Conn) (listing, error) {
		names, st, err := c.Children(n.dir)
		if err != nil {
			return listing{}, err
		}
		return listing{names, *st}, nil
	})
	n.survey = &survey{before, after}
	made, err := create.await(ctx)
	n.s.noteConfirmation(sent, err)
	return made, err
}

// beginFirst is begin for a request that should be sent before the caller's next request. It
// returns when the goroutine of the request runs. That goroutine sends the request before it waits
// for anything. Rarely, the caller's next request is sent earlier, on another processor.
func beginFirst[T any](s *session, request func(*zk.Conn) (T, error)) pending[T] {
	runs := make(chan struct{})
	p := begin(s, func(c *zk.Conn) (T, error) {
		close(runs)
		return request(c)
	})
	<-runs
	return p
}

// read returns the children of n's directory, and n's token if it is known. It reports false if the
// children are unknown. read is called once.
func (v *survey) read(ctx context.Context, n *node) (children []string, token uint64, ok bool) {
	after, err := v.after.await(ctx)
	if err != nil || !slices.Contains(after.names, n.name) {
		return nil, 0, false
	}
	if before, err := v.before.await(ctx); err == nil {
		token = czxid(n.name, before, after.Stat)
	}
	return after.names, token, true
}

// czxid returns the czxid of the node called name from two states of its directory, or 0. The
// second state must be from after the node was made. The pzxid of a directory is the zxid of the
// last change of its children. If only this node was made between both states, the pzxid is the
// node's czxid. Three facts show that no other node was made:
//
//   - Both states are of the same directory.
//   - The first state is from before the node was made. The number in a name counts the nodes that
//     had been made in the directory by then. The cversion and the number of children of a state
//     add up to twice that number.
//   - The cversion counts each node that is made or deleted. It has grown by one, and so has the
//     number of children.
func czxid(name string, before, after zk.Stat) uint64 {
	number, err := strconv.ParseInt(name[max(0, len(name)-10):], 10, 32)
	if err != nil || before.Czxid != after.Czxid || before.Cversion+before.NumChildren != 2*int32(number) ||
		after.Cversion != before.Cversion+1 || after.NumChildren != before.NumChildren+1 {
		return 0
	}
	return uint64(after.Pzxid)
}
