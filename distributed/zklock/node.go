package zklock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// node is an ephemeral node of ours, with a protected name. It lives as long as its session at most.
type node struct {
	c    *core
	s    *session
	dir  string
	uuid string
	link int64 // the connection of s before the request that makes it was sent

	// alone is set if the name is not only ours: a lock that is one node. Its data is the UUID then, and it is looked at before
	// it is deleted.
	alone bool
	// unsure is set if the request that makes the node may be on its way.
	unsure bool

	mu    sync.Mutex
	name  string // in dir; "" while it is not known whether there is one
	token uint64 // czxid; 0 while it is not known
	hear  func(gone bool)
	doom  chan struct{} // closed when the node is no more; nil while it is wanted
	ours  bool          // it was deleted by us, and was there until then
}

// create makes a node in dir, which is made too if it is missing: with a number that ZooKeeper gives if number is "", else
// with that.
//
// If the answer is lost, the node is looked for by its UUID, after the server has caught up with what was under way. One of
// an earlier
// session is not ours any more, even if it is there still, and is deleted. If it is not to be found, or that cannot be
// asked, another one is
// made or none, and the first is looked for in the background: the request may be on its way.
//
// If list is set, the children of dir are asked for together with the creation. listed is what they are when the node is there, or
// nil if that is not known.
func (c *core) create(ctx context.Context, dir, kind, number string, data func(*session) []byte, list bool,
) (n *node, listed []string, err error) {
	flags := int32(zk.FlagEphemeral | zk.FlagSequence)
	if number != "" {
		flags = zk.FlagEphemeral
	}
	for {
		s, err := c.session(ctx)
		if err != nil {
			return nil, nil, err
		}
		n = &node{c: c, s: s, dir: dir, uuid: newUUID(), link: s.links.Load()}
		of := ""
		if list {
			of = dir
		}
		m, listed, err := s.createIn(ctx, dir+"/"+protection+n.uuid+"-"+kind+number, data(s), flags, of)
		switch {
		case err == nil:
			n.name, n.token = m.path[len(dir)+1:], m.czxid
			return n, listed, nil
		case errors.Is(err, zk.ErrNoNode):
			if err := c.mkdirs(ctx, s, dir); err != nil {
				return nil, nil, err
			}
			continue
		case !isTrouble(err):
			return nil, nil, refusal(err, dir)
		}
		now, found, lookup := n.find(ctx)
		switch {
		case lookup != nil:
			n.discard()
			return nil, nil, fmt.Errorf("create a node in %q: %w", dir, err)
		case found != "" && now == s:
			n.name = found
			return n, nil, nil
		case found != "":
			if err := now.delete(ctx, dir+"/"+found); isTrouble(err) {
				return nil, nil, err // it belongs to a session that is over: the servers will see to it
			}
		default:
			n.discard()
		}
	}
}

// refusal is an error that says that the server has refused a request, and nothing was done.
func refusal(err error, path string) error {
	if errors.Is(err, zk.ErrNoChildrenForEphemerals) {
		return fmt.Errorf("%w: %q is an ephemeral node: %w", locks.ErrForeign, path, err)
	}
	return fmt.Errorf("%w: %q: %w", lease.ErrRefused, path, err)
}

// mkdirs makes dir and what is above it, as containers, which ZooKeeper removes when they are empty for a while.
func (c *core) mkdirs(ctx context.Context, s *session, dir string) error {
	path := ""
	for part := range strings.SplitSeq(dir[1:], "/") {
		path += "/" + part
		_, err := call(ctx, s, func(conn *zk.Conn) (string, error) {
			return conn.CreateContainer(path, []byte{}, zk.FlagContainer, c.acl)
		})
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
		case errors.Is(err, zk.ErrNoNode):
			return nil // reaped just now: the caller comes again
		case errors.Is(err, zk.ErrNoAuth):
			// Perhaps it is there, and not ours to make.
			if _, err := s.get(ctx, path); err != nil && !errors.Is(err, zk.ErrNoAuth) {
				return refusal(zk.ErrNoAuth, path)
			}
		case isTrouble(err):
			return fmt.Errorf("create the container %q: %w", path, err)
		default:
			return refusal(err, path)
		}
	}
	return nil
}

// find looks for n by its UUID, and returns its name, or "", and which session is the present one.
func (n *node) find(ctx context.Context) (s *session, name string, err error) {
	if s, err = n.c.session(ctx); err != nil {
		return nil, "", err
	}
	if err := s.sync(ctx, n.dir); isTrouble(err) {
		return nil, "", err
	}
	children, err := s.children(ctx, n.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, "", err
	}
	for _, c := range children {
		if strings.HasPrefix(c, protection+n.uuid+"-") {
			return s, c, nil
		}
	}
	return s, "", nil
}

func (n *node) path() string { return n.dir + "/" + n.name }

// known returns n's name and czxid as far as they are known.
func (n *node) known() (name string, token uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name, n.token
}

// observe has hear called when n is deleted by somebody else, or its data has changed, until n is discarded, and asks for
// n's state. It
// returns zk.ErrNoNode if n is gone. hear must not wait for anything.
func (n *node) observe(ctx context.Context, hear func(gone bool)) (stat, error) {
	n.mu.Lock()
	first := n.hear == nil
	n.hear = hear
	n.mu.Unlock()
	if first {
		n.s.points.listen(place{n.path(), false}, n, n.event)
	}
	st, err := n.look(ctx)
	if err == nil {
		n.seen(st)
	}
	return st, err
}

// seen notes what n's state says.
func (n *node) seen(st stat) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.token = uint64(st.Czxid)
}

// observed reports whether n is, and the server knows, or need not be any more.
func (n *node) observed() bool {
	n.mu.Lock()
	heard, doomed := n.hear != nil, n.doom != nil
	n.mu.Unlock()
	return doomed || heard && n.s.points.isArmed(place{n.path(), false})
}

// look gets n, with a watch.
func (n *node) look(ctx context.Context) (stat, error) {
	for {
		st, changed, err := n.s.getWatched(ctx, n.path())
		if err != nil || !changed || n.doomed() {
			return st, err
		}
	}
}

func (n *node) doomed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.doom != nil
}

func (n *node) event(e zk.Event) {
	n.mu.Lock()
	hear := n.hear
	if n.doom != nil {
		hear = nil
	}
	n.mu.Unlock()
	if hear != nil && (e.Type == zk.EventNodeDeleted || e.Type == zk.EventNodeDataChanged) {
		hear(e.Type == zk.EventNodeDeleted)
	}
}

// discard has n deleted, however often that has to be tried, until it is gone or the session over. It does not wait for that. The
// channel is closed then.
func (n *node) discard() <-chan struct{} {
	done, first := n.condemn()
	if first {
		n.end(false)
	}
	return done
}

// delete is discard, but it waits for what comes of the first request, or until ctx ends.
func (n *node) delete(ctx context.Context) {
	if n.alone || n.unsure || n.name == "" {
		n.discard()
		return
	}
	if _, first := n.condemn(); !first {
		return
	}
	n.ignore()
	switch err := n.s.delete(ctx, n.path()); {
	case err == nil:
		n.deleted()
	case !errors.Is(err, zk.ErrNoNode):
		n.end(true)
		return
	}
	close(n.doom)
}

// condemn notes that n is not wanted any more, and reports whether that is news.
func (n *node) condemn() (done <-chan struct{}, first bool) {
	n.mu.Lock()
	first = n.doom == nil
	if first {
		n.doom = make(chan struct{})
	}
	done = n.doom
	n.mu.Unlock()
	if first {
		n.c.guards.forget(n)
	}
	return done, first
}

// end has n deleted in the background, and waits for nothing: an event may be the reason. tried is set if a request to delete it
// may have been carried out.
func (n *node) end(tried bool) {
	n.mu.Lock()
	named := n.name != ""
	n.mu.Unlock()
	started := n.c.try(func() {
		defer close(n.doom)
		if named {
			n.ignore()
			n.remove(tried)
		} else {
			n.seek()
		}
	})
	if !started { // the client is closed, and the session with it
		close(n.doom)
	}
}

// ignore ends observe.
func (n *node) ignore() { n.s.points.ignore(place{n.path(), false}, n) }

// deleted notes that it was we who deleted n.
func (n *node) deleted() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ours = true
}

// remove deletes n.
func (n *node) remove(tried bool) {
	wait := 5 * time.Millisecond
	until := time.Now().Add(2 * n.s.term())
	for ; ; tried = true {
		ctx := n.c.patience()
		err := n.check(ctx)
		if err == nil {
			err = n.s.delete(ctx, n.path())
		}
		switch {
		case err == nil || tried && !n.unsure && errors.Is(err, zk.ErrNoNode):
			n.deleted()
			return
		case n.s.isOver() || n.c.life.Err() != nil || errors.Is(err, zk.ErrNoNode) && !(n.unsure && time.Now().Before(until)):
			return
		}
		n.pause(wait)
		wait = min(2*wait, time.Second)
	}
}

// check returns zk.ErrNoNode if the node under n's name is not n, where that can be.
func (n *node) check(ctx context.Context) error {
	if !n.alone {
		return nil
	}
	st, err := n.s.get(ctx, n.path())
	if err == nil && (string(st.data) != n.uuid || st.EphemeralOwner != n.s.number()) {
		return zk.ErrNoNode
	}
	return err
}

// seek deletes n if it turns up within two session timeouts. What was sent by a connection that is lost, and is on its way
// for longer, was sent
// in a session that is over.
func (n *node) seek() {
	until := time.Now().Add(2 * n.s.term())
	for !n.s.isOver() && n.c.life.Err() == nil {
		ctx, cancel := context.WithTimeout(n.c.life, n.s.term())
		s, name, err := n.find(ctx)
		cancel()
		switch {
		case err == nil && s != n.s:
			return
		case err == nil && name != "":
			n.mu.Lock()
			n.name = name
			n.mu.Unlock()
			n.remove(false)
			return
		case err == nil && time.Now().After(until):
			return
		}
		n.pause(max(n.s.term()/10, 10*time.Millisecond))
	}
}

func (n *node) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.s.dead:
	case <-n.c.life.Done():
	}
}

// removed reports whether it was we who deleted n.
func (n *node) removed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ours
}
