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
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// node is an ephemeral node that this client has made, or tried to make. It lives at most as long
// as its session.
type node struct {
	c     *core
	s     *session
	dir   string
	uuid  string // part of the name; the data of a single node
	infix string // follows the UUID in the name, in front of a number
	id    string // of the acquisition
	// hear is called when the node was deleted by another client, or has other data, after a
	// look. It must not block.
	hear func(n *node, gone bool)

	// single is set if the name of the node is the name of a lock, so that other clients make nodes
	// of this name too. Only the data then tells this node from theirs, so the node is read before
	// it is deleted.
	single bool
	// unsure is set while it is unknown whether the request that makes the node is carried out.
	unsure bool

	// Used by the goroutine that asks.
	survey *survey        // of its directory, until it is read
	asked  *pending[stat] // a request for its own state, until that is read

	mu      sync.Mutex
	name    string        // in dir; "" if not known
	token   uint64        // czxid; 0 before read
	deleted chan struct{} // nil while the node is wanted; closed when the deletion is over
	ours    bool          // the node existed until this client deleted it
	refused func(error)   // to be called when a server refuses to delete the node, or nil
}

// create makes a node in dir, and dir itself if it is missing. The name of the node has a UUID, and
// ends with number, or with the number that ZooKeeper gives if number is "".
//
// If the answer is lost, create searches the node by its UUID. If the node is not found, create
// makes another node, and searches the first in the background: the request may still be on its
// way.
//
// If surveyed is set, the node has a survey of dir.
func (c *core) create(ctx context.Context, dir, infix, number string, a *acquisition, surveyed bool) (*node, error) {
	flags := int32(zk.FlagEphemeral | zk.FlagSequence)
	if number != "" {
		flags = zk.FlagEphemeral
	}
	for {
		s, err := c.session(ctx)
		if err != nil {
			return nil, err
		}
		c.introduce(s)
		n := &node{c: c, s: s, dir: dir, uuid: adapter.NewUUID(4), infix: infix, id: a.id.Acquisition, hear: a.onChange}
		create := s.create
		if surveyed {
			create = n.enter
		}
		path, err := create(ctx, dir+"/"+n.prefix()+number, a.data(s), flags)
		switch {
		case err == nil:
			n.name = path[len(dir)+1:]
			c.mine.Store(path, n)
			return n, nil
		case errors.Is(err, zk.ErrNoNode):
			if err := s.makeContainer(ctx, dir); err != nil {
				return nil, err
			}
		case !inDoubt(err):
			return nil, refusal(err, dir)
		case classOf(err) == classes.Moment || classOf(err) == classes.Connection:
			return nil, outcome(fmt.Errorf("create a node in %q: %w", dir, err))
		default:
			n.unsure = true
			switch lookup := n.locate(ctx); {
			case lookup == nil:
				n.unsure = false
				c.mine.Store(n.path(), n)
				return n, nil
			case !errors.Is(lookup, zk.ErrNoNode) && !s.isOver():
				n.discard()
				return nil, fmt.Errorf("create a node in %q: %w", dir, err)
			}
			n.discard()
		}
	}
}

// refusal returns the error of a request that the server has refused. Nothing was done.
func refusal(err error, path string) error {
	if errors.Is(err, zk.ErrNoChildrenForEphemerals) {
		return fmt.Errorf("%w: %q is an ephemeral node: %w", locks.ErrForeign, path, err)
	}
	return driver.Mark(fmt.Errorf("node %q: %w", path, err), driver.ErrRefused)
}

// makeContainer makes dir, and the directories above it that are missing. ZooKeeper removes a
// container some time after its last child. The removal may come between any two requests, so each
// step is repeated until its directory exists. ZooKeeper may also remove dir before the caller's
// next request.
func (s *session) makeContainer(ctx context.Context, dir string) error {
	for {
		_, err := lead(ctx, s, func(c *zk.Conn) (string, error) {
			return c.CreateContainer(dir, []byte{}, zk.FlagContainer, s.c.acl)
		})
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case inDoubt(err):
			return fmt.Errorf("create the container %q: %w", dir, err)
		case !errors.Is(err, zk.ErrNoNode):
			return refusal(err, dir)
		}
		above := dir[:strings.LastIndexByte(dir, '/')]
		if above == "" {
			return refusal(err, dir)
		}
		if err := s.makeContainer(ctx, above); err != nil {
			return err
		}
	}
}

// locate finds out whether n exists, after a request to make n got no answer. If n does not exist,
// locate returns zk.ErrNoNode. The server first catches up with the leader, and so with the
// request.
func (n *node) locate(ctx context.Context) error {
	if n.single {
		st, err := n.s.get(ctx, n.path())
		if err == nil && (string(st.data) != n.uuid || st.EphemeralOwner != n.s.conn.SessionID()) {
			return zk.ErrNoNode
		}
		return err
	}
	if err := n.s.sync(ctx, n.dir); inDoubt(err) {
		return err
	}
	children, err := n.s.children(ctx, n.dir)
	if err != nil {
		return err
	}
	for _, c := range children {
		_, numbered := sequence(c, n.infix)
		if numbered && strings.HasPrefix(c, n.prefix()) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.name = c
			return nil
		}
	}
	return zk.ErrNoNode
}

// prefix returns the name of a node without its number. No other node's name begins with it.
func (n *node) prefix() string { return protection + n.uuid + "-" + n.infix }

func (n *node) path() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dir + "/" + n.name
}

// zxid returns n's token, or 0 before read.
func (n *node) zxid() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.token
}

// read reads n's state, and with it the token. It returns zk.ErrNoNode if n is gone.
func (n *node) read(ctx context.Context) error { return n.note(n.s.get(ctx, n.path())) }

// note notes the token in a state that was read of n, and returns err.
func (n *node) note(st stat, err error) error {
	if err == nil {
		n.know(uint64(st.Czxid))
	}
	return err
}

func (n *node) know(token uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.token = token
}

// look reads n's state and sets a watch, so that hear is called at the next change. It returns
// zk.ErrNoNode if n is gone.
func (n *node) look(ctx context.Context) (stat, error) {
	at := target{n.path(), false}
	for {
		if !n.listen(at) {
			return stat{}, zk.ErrNoNode
		}
		st, again, err := n.s.getWatched(ctx, at.path)
		if err != nil || !again {
			return st, err
		}
	}
}

// listen makes the next change of n call event, or reports false because n is not wanted any more.
func (n *node) listen(at target) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deleted == nil {
		n.s.watches.listen(at, n, n.event)
	}
	return n.deleted == nil
}

// watched reports whether the server will report the next change of n.
func (n *node) watched() bool {
	_, armed := n.s.watches.find(target{n.path(), false})
	return armed
}

func (n *node) event(e zk.Event) {
	n.mu.Lock()
	wanted := n.deleted == nil
	n.mu.Unlock()
	if wanted {
		n.hear(n, e.Type == zk.EventNodeDeleted)
	}
}

// discard deletes n in the background: the request is repeated until n is gone or its session is
// over. Then the channel is closed.
func (n *node) discard() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deleted == nil {
		n.deleted = make(chan struct{})
		if !n.c.jobs.Go(n.delete) { // the client is closed, and the session with it
			close(n.deleted)
		}
	}
	return n.deleted
}

// delete deletes n. A request to make n that was not answered may take effect up to two session
// timeouts later: by then the session in which the request was sent is over.
func (n *node) delete() {
	defer close(n.deleted)
	defer func() { n.c.mine.CompareAndDelete(n.path(), n) }() // a later single node has the same path
	n.s.watches.ignore(target{n.path(), false}, n)
	until := time.Now().Add(2 * n.s.term())
	tried := false // a request may have deleted n
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		sent, err := n.deleteOnce()
		switch {
		case err == nil || tried && errors.Is(err, zk.ErrNoNode) && !n.unsure:
			n.mu.Lock()
			n.ours = true
			n.mu.Unlock()
			return
		case errors.Is(err, zk.ErrNoNode) && (!n.unsure || time.Now().After(until)):
			return
		case n.s.isOver() || n.c.life.Err() != nil:
			return
		}
		switch classOf(err) {
		case classes.Request, classes.Connection:
			n.tellRefusal(err)
		case classes.Unclear, ofSession:
			tried = tried || sent
		}
		pause(n.c.life, n.s.dead, wait)
	}
}

// tellRefusal passes on why a server refuses to delete n.
func (n *node) tellRefusal(err error) {
	n.mu.Lock()
	refused := n.refused
	n.mu.Unlock()
	if refused != nil {
		refused(err)
	}
}

// whenRefused makes each refusal of a server to delete n call refused, which must not block.
func (n *node) whenRefused(refused func(error)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refused = refused
}

// deleteOnce sends one request to delete n, unless n is known to be gone.
func (n *node) deleteOnce() (sent bool, err error) {
	ctx, cancel := n.c.within(n.s.term() / 2)
	defer cancel()
	if n.single || n.unsure {
		if err := n.locate(ctx); err != nil {
			return false, err
		}
	}
	return true, n.s.delete(ctx, n.path())
}

// removed reports whether n existed until this client deleted it.
func (n *node) removed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ours
}
