package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// clientsDir is where each client describes its process, in an ephemeral node named after the
// number of its session. So the nodes of locks need no additional data, as in Curator: their owner
// is the session.
const clientsDir = "/locks_clients"

// Identify is part of [driver.Inspector]. All stores of a client get the same identity.
func (st *store) Identify(_, identity string) { st.identity.Store(&identity) }

// introduce makes the node that describes this client, once in a session and in the background. If
// it fails, locks work the same, but inspectors know less.
func (c *core) introduce(s *session) {
	identity := c.identity.Load()
	if identity == nil || s.introduced.Swap(true) {
		return
	}
	c.jobs.Go(func() {
		ctx, cancel := c.within(s.term())
		defer cancel()
		for range 3 { // the container may go between two requests
			_, err := s.create(ctx, c.clientPath(s.conn.SessionID()), []byte(*identity), zk.FlagEphemeral)
			if !errors.Is(err, zk.ErrNoNode) || s.makeContainer(ctx, c.clients) != nil {
				return
			}
		}
	})
}

func (c *core) clientPath(session int64) string {
	return fmt.Sprintf("%s/%016x", c.clients, uint64(session))
}

// sight is the nodes of a lock: paths of holders, and of waiters in order of arrival.
type sight struct {
	holders, waiters []string
	shared           bool
	waiting          int // -1: unknown
}

// maxAsked is how many waiters are asked for their processes. The others are only counted.
const maxAsked = 64

// Inspect reads the lock's directory, its nodes, and the descriptions of their clients.
func (st *store) Inspect(ctx context.Context, name string) (state driver.State, err error) {
	s, err := st.session(ctx)
	if err != nil {
		return state, err
	}
	if err := s.sync(ctx, name); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return state, err
	}
	seen, err := st.recipe.inspect(ctx, s, name)
	if err != nil {
		return state, err
	}
	state.Shared, state.Waiting = seen.shared, seen.waiting
	holders, err := st.claims(ctx, s, seen.holders)
	if err != nil {
		return state, err
	}
	waiters, err := st.claims(ctx, s, seen.waiters[:min(len(seen.waiters), maxAsked)])
	if st.recipe == (semaphore{}) {
		holders = holdersOf(holders, waiters)
		state.Shared = len(holders) > 1
	}
	for _, h := range holders {
		state.Holders = append(state.Holders, h.Claim)
	}
	for _, w := range waiters {
		w.Token = 0
		state.Waiters = append(state.Waiters, w.Claim)
	}
	// The holder of a semaphore leaves its queue a moment later.
	all := len(state.Waiters)
	state.Waiters = slices.DeleteFunc(state.Waiters, func(w driver.Claim) bool {
		return slices.ContainsFunc(state.Holders, func(h driver.Claim) bool { return h.Acquisition == w.Acquisition })
	})
	state.Waiting -= all - len(state.Waiters)
	return state, err
}

// claim is the claim that a node describes.
type claim struct {
	driver.Claim
	session int64 // of its client
	named   bool  // the node has the acquisition's name: otherwise the node's own name is used
}

// claims returns the claims of the nodes at paths. A node that has gone meanwhile is left out.
func (c *core) claims(ctx context.Context, s *session, paths []string) ([]claim, error) {
	claims, errs := make([]claim, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		wg.Go(func() { claims[i], errs[i] = c.claim(ctx, s, path) })
	}
	wg.Wait()
	left := claims[:0]
	for i, err := range errs {
		switch {
		case err == nil:
			left = append(left, claims[i])
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
	}
	return left, nil
}

func (c *core) claim(ctx context.Context, s *session, path string) (is claim, err error) {
	st, err := s.get(ctx, path)
	if err != nil {
		return is, err
	}
	host, acquisition, _ := strings.Cut(string(st.data), "\n")
	if own, ok := c.mine.Load(path); ok && st.EphemeralOwner == s.conn.SessionID() {
		acquisition = own.(*node).id
	}
	is.named = acquisition != ""
	is.Acquisition = cmp.Or(acquisition, path[strings.LastIndexByte(path, '/')+1:])
	is.session, is.Since, is.Token = st.EphemeralOwner, time.UnixMilli(st.Ctime), uint64(st.Czxid)
	if ip := net.ParseIP(host); ip != nil {
		is.Host = ip.String()
	}
	client, err := s.get(ctx, c.clientPath(st.EphemeralOwner))
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return is, err
	}
	is.Identity = string(client.data)
	return is, nil
}

// holdersOf returns the holders of a semaphore by its leases, the oldest first. The first waiter
// may already have made its leases. If the waiter is Curator's, its lease is the newest lease,
// belongs to the waiter's session, and is newer than the waiter's place.
func holdersOf(leases, waiters []claim) (holders []claim) {
	for i, l := range leases {
		waits := slices.ContainsFunc(waiters, func(w claim) bool { return w.Acquisition == l.Acquisition })
		if i == len(leases)-1 && len(waiters) > 0 && !l.named {
			w := waiters[0]
			waits = !w.named && w.session == l.session && w.Token < l.Token
		}
		if waits && l.Acquisition != leases[0].Acquisition {
			continue
		}
		same := func(h claim) bool { return h.Acquisition == l.Acquisition }
		at := slices.IndexFunc(holders, same)
		if at < 0 {
			at, holders = len(holders), append(holders, l)
		}
		holders[at].Permits++
	}
	return holders
}

// paths returns the paths of nodes in dir.
func paths(dir string, nodes []string) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = dir + "/" + n
	}
	return all
}

// placesIn returns the children that are places in a queue, in order of arrival.
func placesIn(children []string) (names []string) {
	seqs := make(map[string]string)
	for _, c := range children {
		for _, prefix := range []string{lockPrefix, leasePrefix, readPrefix, writePrefix} {
			if seq, ok := sequence(c, prefix); ok {
				seqs[c] = seq
				names = append(names, c)
				break
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(seqs[a], seqs[b]) })
	return names
}

// childrenIf returns the children of dir, or none if dir does not exist.
func childrenIf(ctx context.Context, s *session, dir string) ([]string, error) {
	children, err := s.children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return children, err
}

func (q queue) inspect(ctx context.Context, s *session, name string) (seen sight, err error) {
	children, err := childrenIf(ctx, s, name)
	if err != nil {
		return seen, err
	}
	if _, err := last(children, q.mode, ""); err != nil {
		return seen, err // of another kind
	}
	first := holders(children)
	reads := func(node string) bool { _, ok := sequence(node, readPrefix); return ok }
	seen.shared = len(first) > 0 && !slices.ContainsFunc(first, func(node string) bool { return !reads(node) })
	waiters := slices.DeleteFunc(placesIn(children), func(node string) bool { return slices.Contains(first, node) })
	if !seen.shared { // a writer that also reads counts once
		first = slices.DeleteFunc(first, reads)
	}
	seen.holders, seen.waiters, seen.waiting = paths(name, first), paths(name, waiters), len(waiters)
	return seen, nil
}

func (semaphore) inspect(ctx context.Context, s *session, name string) (seen sight, err error) {
	leases, err := childrenIf(ctx, s, name+leasesDir)
	if err != nil {
		return seen, err
	}
	waiters, err := childrenIf(ctx, s, name+locksDir)
	if err != nil {
		return seen, err
	}
	leases, waiters = placesIn(leases), placesIn(waiters)
	seen.holders = paths(name+leasesDir, leases)
	seen.waiters, seen.waiting = paths(name+locksDir, waiters), len(waiters)
	return seen, nil
}

func (ephemeral) inspect(ctx context.Context, s *session, name string) (seen sight, err error) {
	seen.waiting = -1
	node, err := s.get(ctx, name)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return seen, nil
	case err != nil:
		return seen, err
	case node.EphemeralOwner == 0:
		return seen, fmt.Errorf("%w: %q is no ephemeral node", locks.ErrForeign, name)
	}
	seen.holders = []string{name}
	return seen, nil
}
