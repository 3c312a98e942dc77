package zklock

import (
	"context"
	"runtime"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease"
)

// survey is what is read of a node's directory around the request that makes the node. All three
// requests are sent at once, so that a place in a queue, and where it stands, cost one round trip.
// They usually reach the server in their order, but nothing depends on that:
//
//	the list has the node     it was made before the list: the list is as good as a later one
//	the list has it not       it says nothing. The caller asks again
//
// A free lock needs no request for its token either, see [survey.czxid].
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
	sent := lease.Now()
	v := &survey{before: begin(n.s, func(c *zk.Conn) (zk.Stat, error) {
		_, st, err := c.Exists(n.dir)
		if err != nil {
			return zk.Stat{}, err
		}
		return *st, nil
	})}
	runtime.Gosched() // the request before comes first, as a rule
	create := begin(n.s, n.s.creation(path, data, flags))
	runtime.Gosched()
	v.after = begin(n.s, func(c *zk.Conn) (listing, error) {
		names, st, err := c.Children(n.dir)
		if err != nil {
			return listing{}, err
		}
		return listing{names, *st}, nil
	})
	made, err := create.await(ctx)
	n.s.confirmedAt(sent, err)
	n.survey = v
	return made, err
}

// read returns the children of n's directory, and n's token if it is known. It reports false if it
// does not know the children. It is called once.
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
// second state is from after the node was made. The pzxid of a directory is that of the last
// change of its children. If making the node was the only change between both states, that is the
// czxid of the node. It was the only one if
//
//   - the directory is the same one,
//   - the first state is from before the node was made: as many nodes had been made in the directory
//     as the number in the name says, for ZooKeeper counts them to give that number, and
//   - the number of changes has grown by one. The cversion counts nodes that were made and deleted.
//     So it is twice the number of the nodes made, less those that are there.
func czxid(name string, before, after zk.Stat) uint64 {
	number, err := strconv.ParseInt(name[max(0, len(name)-10):], 10, 32)
	if err != nil || before.Czxid != after.Czxid || before.Cversion+before.NumChildren != 2*int32(number) ||
		after.Cversion != before.Cversion+1 {
		return 0
	}
	return uint64(after.Pzxid)
}
