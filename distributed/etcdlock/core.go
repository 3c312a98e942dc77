package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// core is what the stores of one client share: the sessions, the spare leases, and the keeper,
// one goroutine for all sessions.
//
// Mutexes are acquired in this order: session.op, core.mu, session.mu, core.keeper.
type core struct {
	client *clientv3.Client
	life   context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session // by acquisition
	watches  map[string]*watch   // by acquisition
	spares   map[time.Duration][]spare

	keeper sync.Mutex
	next   time.Time // when the keeper looks by itself; zero: never
	wake   chan struct{}
}

// spare is a lease without a key.
type spare struct {
	id    clientv3.LeaseID
	since time.Time // by lease.Now
}

const (
	// maxSpares is how many spare leases of one length are kept.
	maxSpares = 64
	// batch is how many leases are kept alive together.
	batch = 100
	// quiet is how old a hold is when its key begins to be watched. The renewal checks it in any
	// case.
	quiet = 100 * time.Millisecond
	// pace is how long the keeper rests at least.
	pace = 20 * time.Millisecond
)

func newCore(client *clientv3.Client) *core {
	c := &core{
		client:   client,
		sessions: make(map[string]*session),
		watches:  make(map[string]*watch),
		spares:   make(map[time.Duration][]spare),
		wake:     make(chan struct{}, 1),
	}
	c.life, c.stop = context.WithCancel(context.Background())
	c.spawn(c.keep)
	return c
}

// close ends everything, and revokes the spare leases. The others end by themselves.
func (c *core) close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	spares := c.spares
	c.spares = nil
	c.mu.Unlock()
	c.stop()
	c.wg.Wait()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, of := range spares {
		for _, s := range of {
			wg.Go(func() { c.client.Revoke(ctx, s.id) })
		}
	}
	wg.Wait()
}

// spawn runs job in a goroutine for which close waits. It returns false if the core is closed.
func (c *core) spawn(job func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(job)
	}
	return !c.closed
}

func (c *core) find(acquisition string) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[acquisition]
}

// add adds a new session. If its acquisition has a watch, the session notifies that.
func (c *core) add(x *session) {
	c.mu.Lock()
	c.sessions[x.acquisition] = x
	if w := c.watches[x.acquisition]; w != nil {
		x.arm(w.notify)
	}
	c.mu.Unlock()
	c.wakeKeeper(x.end())
}

func (c *core) drop(x *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[x.acquisition] == x {
		delete(c.sessions, x.acquisition)
	}
}

// refused reports whether err is a server's answer that says that nothing was done. After any
// other error the outcome is unknown.
func refused(err error) bool {
	var e rpctypes.EtcdError
	code := status.Code(err)
	if errors.As(err, &e) {
		code = e.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted,
		codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated:
		return true
	}
	return false
}

// failed returns err as an error of a [lease.Store].
func failed(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return errExpired
	case refused(err):
		return lease.Mark(err, lease.ErrRefused)
	}
	return err
}

// attempt is how long a request may take before it is sent again.
func attempt(ttl time.Duration) time.Duration {
	return min(max(ttl/3, 300*time.Millisecond), time.Second)
}

// persist calls f until it succeeds or is refused, or until the time until, by lease.Now. The
// error matches none of a context: package lease returns that of the caller's.
func (c *core) persist(
	ctx context.Context, try time.Duration, until time.Time, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, until.Sub(lease.Now()))
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		once, cancel := context.WithTimeout(ctx, try)
		err := f(once)
		cancel()
		if err == nil || refused(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// longest is the longest lease that etcd gives: 285 years.
const longest = 9_000_000_000 * time.Second

// grant returns a lease for at least d, but at most longest, and since when its time counts. If
// reuse is set, it may be a spare one, of whose time up to a third is over.
func (c *core) grant(ctx context.Context, d time.Duration, reuse bool) (
	id clientv3.LeaseID, ttl time.Duration, since time.Time, err error) {
	seconds := int64((min(d, longest)-1)/time.Second) + 1
	ttl = time.Duration(seconds) * time.Second
	if reuse {
		if s, ok := c.takeSpare(ttl); ok {
			return s.id, ttl, s.since, nil
		}
	}
	err = c.persist(ctx, attempt(ttl), lease.Now().Add(ttl/2), func(ctx context.Context) error {
		since = lease.Now()
		resp, err := c.client.Grant(ctx, seconds)
		if err != nil {
			return err
		}
		id = resp.ID
		if resp.TTL < seconds {
			return status.Errorf(codes.OutOfRange, "a lease of %ds, not %ds, was granted", resp.TTL, seconds)
		}
		return nil
	})
	switch { // a lease without a key is nothing
	case err == nil:
	case refused(err):
		return 0, 0, since, lease.Mark(fmt.Errorf("no etcd lease: %w", err), lease.ErrRefused)
	default:
		return 0, 0, since, lease.Mark(fmt.Errorf("no etcd lease: %w", err), lease.ErrRefused, lease.ErrUnavailable)
	}
	return id, ttl, since, nil
}

func (c *core) takeSpare(ttl time.Duration) (s spare, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.spares[ttl]
	for len(list) > 0 && !ok {
		s = list[len(list)-1]
		list = list[:len(list)-1]
		ok = lease.Now().Sub(s.since) < ttl/3 // else it ends by itself
	}
	if c.spares != nil {
		c.spares[ttl] = list
	}
	return s, ok
}

// keepSpare keeps the lease of x, whose key is gone, for another session.
func (c *core) keepSpare(x *session) {
	x.mu.Lock()
	ids, since, ttl, over := x.ids, x.since, x.ttl, x.state == dead
	x.mu.Unlock()
	if over {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spares != nil && len(ids) == 1 && len(c.spares[ttl]) < maxSpares && lease.Now().Sub(since) < ttl/3 {
		c.spares[ttl] = append(c.spares[ttl], spare{ids[0], since})
	}
}

// giveBack ends x, as give does.
func (c *core) giveBack(ctx context.Context, x *session) (held bool, err error) {
	x.op.Lock()
	defer x.op.Unlock()
	return c.give(ctx, x)
}

// give ends x: it deletes the key, or revokes the leases if a request may be under way that puts
// the key. It reports whether there was a key, and may be called again: after a success it does
// nothing, because another session may have the key by then. x.op is held.
func (c *core) give(ctx context.Context, x *session) (held bool, err error) {
	x.finish()
	x.mu.Lock()
	ids, ttl, doubt, mayBe := slices.Concat(x.past, x.ids), x.ttl, x.doubt, x.mayBe && x.state != dead
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attempt(ttl))
	defer cancel()
	switch {
	case doubt:
		for _, id := range ids {
			switch _, err := c.client.Revoke(ctx, id); {
			case err == nil:
				held = mayBe
			case !errors.Is(err, rpctypes.ErrLeaseNotFound):
				return false, failed(err)
			}
		}
		c.drop(x)
		x.given()
		return held, nil
	case mayBe:
		resp, err := c.client.Delete(ctx, x.key)
		if err != nil {
			x.doubted()
			return false, failed(err)
		}
		held = resp.Deleted > 0
	}
	c.drop(x)
	if held || !mayBe { // else the key may have been deleted with the lease
		c.keepSpare(x)
	}
	x.given()
	return held, nil
}

// abandon gives x up in the background.
func (c *core) abandon(x *session) {
	x.finish()
	c.spawn(func() {
		c.persist(c.life, attempt(x.term()), x.end(), func(ctx context.Context) error {
			_, err := c.giveBack(ctx, x)
			return err
		})
		c.drop(x)
	})
}

// grow gives the key of x, which holds, another lease, for at least d. The key keeps its create
// revision. It returns false if the key is gone.
//
// If the reply is lost, the key may have either lease. Both are kept alive from then on, and the
// session ends with the first of them.
func (c *core) grow(ctx context.Context, x *session, d time.Duration) (bool, error) {
	id, ttl, since, err := c.grant(ctx, d, false)
	if err != nil {
		return false, err
	}
	x.op.Lock()
	defer x.op.Unlock()
	x.mu.Lock()
	before, rev, holds := x.ids, x.rev, x.state == holding
	switch {
	case !holds:
		x.mu.Unlock()
		return false, nil
	case len(before) > 1:
		x.mu.Unlock()
		return false, lease.Mark(errors.New("an earlier change of the lease has no answer"), lease.ErrRefused)
	}
	x.ids = []clientv3.LeaseID{before[0], id}
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attempt(ttl))
	defer cancel()
	resp, err := c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(x.key), "=", rev)).
		Then(clientv3.OpPut(x.key, "", clientv3.WithLease(id), clientv3.WithIgnoreValue())).
		Commit()
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err == nil && resp.Succeeded:
		x.past = append(x.past, before[0])
		x.ids, x.ttl, x.since = []clientv3.LeaseID{id}, ttl, since
		return true, nil
	case err == nil:
		x.ids = before
		return false, nil
	case refused(err):
		x.ids = before
	default:
		x.doubt = true
	}
	return false, failed(err)
}

// standing is what is known of a session after an attempt to renew it.
type standing int

const (
	unknown standing = iota
	alive
	gone
)

// renew keeps the leases of xs alive, checks whether their keys are there, and returns how they
// stand. A session that is gone dies. An error says why something is unknown.
//
// A leader that is cut off from the others goes on for a while to answer that it keeps leases
// alive, although another leader counts their time already. So the keys are read afterwards, with
// a majority's consent. The renewal counts only if the term is the same: then one leader did
// both.
func (c *core) renew(ctx context.Context, xs []*session) ([]standing, error) {
	var ids []clientv3.LeaseID
	ends := make([]int, len(xs)) // of the ids of each
	look := make([]clientv3.Op, len(xs))
	for i, x := range xs {
		x.mu.Lock()
		ids = append(ids, x.ids...)
		x.mu.Unlock()
		ends[i] = len(ids)
		look[i] = clientv3.OpGet(x.key, clientv3.WithCountOnly())
	}
	sent := lease.Now()
	kept, broken := c.keepAlive(ctx, ids)
	states := make([]standing, len(xs))
	resp, err := c.client.Txn(ctx).Then(look...).Commit()
	if err != nil {
		return states, failed(err)
	}
	begin := 0
	for i, x := range xs {
		states[i] = alive
		for _, id := range ids[begin:ends[i]] {
			switch r := kept[id]; {
			case r != nil && r.TTL <= 0:
				states[i] = gone
			case states[i] == alive && (r == nil || r.Header.GetRaftTerm() != resp.Header.GetRaftTerm()):
				states[i] = unknown
			}
		}
		begin = ends[i]
		if resp.Responses[i].GetResponseRange().GetCount() == 0 {
			states[i] = gone
		}
		switch states[i] {
		case alive:
			x.renewed(sent)
		case gone:
			x.die()
		case unknown:
			if broken == nil {
				broken = errors.New("the leader has changed meanwhile")
			}
		}
	}
	return states, broken
}

// answers are the cluster's answers to requests to keep leases alive.
type answers map[clientv3.LeaseID]*etcdserverpb.LeaseKeepAliveResponse

// keepAlive keeps leases alive, and returns the answers.
//
// The client's own KeepAliveOnce asks without a pause while it has no connection, and needs a
// stream for each lease.
func (c *core) keepAlive(ctx context.Context, ids []clientv3.LeaseID) (answers, error) {
	ctx, cancel := context.WithCancel(ctx) // ends the stream
	defer cancel()
	stream, err := etcdserverpb.NewLeaseClient(c.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
			return nil, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	kept := make(answers, len(ids))
	for range ids {
		r, err := stream.Recv()
		if err != nil {
			return kept, err
		}
		kept[clientv3.LeaseID(r.ID)] = r
	}
	return kept, nil
}

// event is what a watch notifies of.
type event int

const (
	changed event = iota
	deleted       // the last
	broken        // the last: the watch itself has ended
)

// watch calls on for each event of key from now on, until stop is called or an event is the last.
// on may be called once more while stop runs.
//
// The watch begins at the server's present, not behind what was read last. On a server with other
// writers that would be in the past, where etcd delivers events ten times a second only. So the
// caller reads the key again.
func (c *core) watch(ctx context.Context, key string, on func(event)) (stop func(), err error) {
	// A member without a leader delivers no events.
	life, end := context.WithCancel(clientv3.WithRequireLeader(c.life))
	began := make(chan error, 1)
	ok := c.spawn(func() {
		defer end()
		first := true
		err := errors.New("the watch has ended")
		for resp := range c.client.Watch(life, key, clientv3.WithCreatedNotify()) {
			if err = resp.Err(); err != nil {
				break
			}
			if first {
				first = false
				began <- nil
			}
			for _, e := range resp.Events {
				if e.Type == mvccpb.Event_DELETE {
					on(deleted)
					return
				}
				on(changed)
			}
		}
		if first {
			began <- err
		} else if life.Err() == nil {
			on(broken)
		}
	})
	if !ok {
		end()
		return nil, locks.ErrClosed
	}
	select {
	case err = <-began:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, err
	}
	return end, nil
}
