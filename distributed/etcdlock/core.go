package etcdlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// core holds the state that the stores of one client share: sessions, and the places of
// acquisitions.
//
// Mutexes are acquired in this order: place.op, core.mu.
type core struct {
	client *clientv3.Client
	ttl    time.Duration // of a hold
	lease  time.Duration // of a session: ttl in whole seconds
	life   context.Context
	stop   context.CancelFunc
	jobs   adapter.Jobs          // each ends when life does
	alive  *adapter.Shared[kept] // which keeps the sessions alive

	mu       sync.Mutex
	present  *session              // which takes new keys, or nil
	opening  *opening              // or nil
	sessions map[*session]struct{} // whose leases may be there
	places   map[string]*place     // by acquisition
	watches  map[string]watch      // by acquisition
	turns    map[string]*turn      // by acquisition, while requests are under way
}

const (
	// batch is how many keys are confirmed together.
	batch = 100
	// quiet is how old a hold is when its key begins to be watched. The renewal checks it in any
	// case.
	quiet = 100 * time.Millisecond
	// pace is how long a session rests at least between two requests.
	pace = 20 * time.Millisecond
)

func newCore(client *clientv3.Client, ttl time.Duration) *core {
	ttl = min(ttl, longest)
	c := &core{
		client:   client,
		ttl:      ttl,
		lease:    ((ttl-1)/time.Second + 1) * time.Second,
		sessions: make(map[*session]struct{}),
		places:   make(map[string]*place),
		watches:  make(map[string]watch),
		turns:    make(map[string]*turn),
	}
	c.life, c.stop = context.WithCancel(context.Background())
	c.alive = adapter.NewShared(&c.jobs, max(c.lease/30, pace), c.keepAlive)
	return c
}

// close ends everything, and revokes the leases. It reports whether no lease is left: then no key
// is left, and no late request can put one.
func (c *core) close(ctx context.Context) (ended bool) {
	c.stop()
	c.jobs.Close(context.Background())
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var left atomic.Int64
	for s := range c.sessions {
		wg.Go(func() {
			if err := c.revoke(ctx, s); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
				left.Add(1)
			}
		})
	}
	wg.Wait()
	return left.Load() == 0
}

// find returns the place of an acquisition of the lock called name, or nil.
func (c *core) find(name, acquisition string) *place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.places[acquisition]; p != nil && p.id.Name == name {
		return p
	}
	return nil
}

// forget forgets p. c.mu is held.
func (c *core) forget(p *place) {
	if c.places[p.id.Acquisition] == p {
		delete(c.places, p.id.Acquisition)
	}
}

// try is how long a request may take before it is sent again.
func (c *core) try() time.Duration {
	return min(max(c.lease/3, 300*time.Millisecond), time.Second)
}

// connect makes the client try its connections at once. By default, a gRPC client waits for a
// second after the first failure, and up to two minutes later on. A short lease would end
// although the cluster can be reached again.
func (c *core) connect() { c.client.ActiveConnection().ResetConnectBackoff() }

// persist calls f until f succeeds, f fails lastingly, or limit is over. The error matches no
// error of a context, since package lease returns the error of the caller's context.
func (c *core) persist(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for rest := 5 * time.Millisecond; ; rest = min(2*rest, 250*time.Millisecond) {
		once, cancel := context.WithTimeout(ctx, c.try())
		err := f(once)
		cancel()
		if err == nil || lasting(err) || ctx.Err() != nil {
			return err
		}
		c.connect()
		adapter.Sleep(ctx, rest)
	}
}

// give ends p, and reports whether there was a key. It may be called again. It first waits for
// any request that is putting the key.
func (c *core) give(ctx context.Context, p *place) (held bool, err error) {
	c.leave(p)
	p.op.Lock()
	defer p.op.Unlock()
	return c.remove(ctx, p)
}

// leave ends all that is done here for p. A request to put its key is not repeated.
func (c *core) leave(p *place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.leave()
}

// remove deletes the key of p, which was left. Without an answer the session repeats the
// deletion; a later "no such key" then counts as deleted. The session may have deleted the key
// since p was left, which counts as deleted too. p.op is held.
func (c *core) remove(ctx context.Context, p *place) (held bool, err error) {
	if p.sent && !p.is(dead, dead) {
		ctx, cancel := context.WithTimeout(ctx, c.try())
		defer cancel()
		resp, err := c.client.Delete(ctx, p.key)
		if err != nil {
			if !isRefusal(err) {
				p.noteDoubt()
				p.unanswered = true
			}
			return false, storeError(err)
		}
		p.deleted = p.deleted || resp.Deleted > 0 || p.unanswered
	}
	c.mu.Lock()
	if p.sent && p.session.closing != nil {
		p.deleted = true // by the end of the session, with which Close has been ahead
	}
	p.settle()
	c.forget(p)
	over := c.present != p.session && !p.session.needed()
	c.mu.Unlock()
	if over {
		p.session.die()
	}
	return p.deleted, nil
}

// abandon gives p up in the background.
func (c *core) abandon(p *place) {
	c.leave(p)
	c.jobs.Go(func() { c.give(c.life, p) })
}

// renew keeps the sessions of ps alive, and reports which places are known to have their keys.
// Without an error, the others are dead.
//
// A leader that is cut off from the majority still answers for a while that it keeps leases
// alive, although another leader already counts their time. So renew reads the keys afterwards,
// which takes a majority. The renewal counts only if both answers have the same term: then one
// leader gave both.
//
// Sessions are kept alive ahead of the keys. The engine renews holds in batches, and all batches of
// a client share one request for its sessions. So a session goes on although the keys of thousands
// of holds are read late.
func (c *core) renew(ctx context.Context, ps []*place) (alive []bool, err error) {
	confirmed := make(map[*session]bool)
	look := make([]clientv3.Op, len(ps))
	for i, p := range ps {
		confirmed[p.session] = false
		look[i] = clientv3.OpGet(p.key, clientv3.WithKeysOnly())
	}
	kept, err := c.alive.Do(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Txn(ctx).Then(look...).Commit()
	if err != nil {
		return nil, storeError(err)
	}
	for s := range confirmed {
		switch r := kept.answers[s.id]; {
		case r == nil || r.TTL > 0 && r.Header.GetRaftTerm() != resp.Header.GetRaftTerm():
			err = errors.New("the leader has changed meanwhile")
		case r.TTL <= 0:
			s.die()
		default:
			confirmed[s] = true
			s.prolong(kept.sent)
		}
	}
	alive = make([]bool, len(ps))
	for i, p := range ps {
		if !p.among(kvs(resp, i)) {
			p.die()
		}
		alive[i] = confirmed[p.session] && p.is(waiting, holding)
	}
	return alive, err
}

// kept is the answers to a request to keep all sessions of a client alive, and when it was sent.
type kept struct {
	sent    time.Time
	answers map[clientv3.LeaseID]*etcdserverpb.LeaseKeepAliveResponse
}

// keepAlive keeps alive the sessions that have holds or waiters.
//
// Without a connection, the client's own KeepAliveOnce repeats its request without a pause, and it
// needs a stream for each lease. keepAlive fails at once without a connection.
//
// Our half of the stream stays open until all answers are there: a proxy of etcd (grpc-proxy) drops
// the requests of a stream whose client has closed its half.
func (c *core) keepAlive() (k kept, err error) {
	ctx, cancel := context.WithTimeout(c.life, c.lease) // ends the stream
	defer cancel()
	defer func() {
		if err != nil {
			c.connect()
		}
	}()
	c.mu.Lock()
	var ids []clientv3.LeaseID
	for s := range c.sessions {
		if s.has(waiting, holding) {
			ids = append(ids, s.id)
		}
	}
	c.mu.Unlock()
	k = kept{driver.Now(), make(map[clientv3.LeaseID]*etcdserverpb.LeaseKeepAliveResponse, len(ids))}
	stream, err := etcdserverpb.NewLeaseClient(c.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return k, err
	}
	for _, id := range ids {
		if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
			return k, err
		}
	}
	for range ids {
		r, err := stream.Recv()
		if err != nil {
			return k, err
		}
		k.answers[clientv3.LeaseID(r.ID)] = r
	}
	return k, nil
}

// watch calls on for each event of key from now on, until on reports the last event, or until
// life ends. If the watch itself ends, watch calls on with nil. watch returns when the watch has
// begun, or when ctx ends.
//
// The watch begins at the server's present revision, not after the revision that was read last.
// On a server with other writers the latter would be in the past, for which etcd delivers events
// only ten times a second. So the caller reads the key again.
func (c *core) watch(
	ctx, life context.Context, key string, on func(*clientv3.Event) (last bool), opts ...clientv3.OpOption) error {
	// A member without a leader delivers no events.
	life, end := context.WithCancel(clientv3.WithRequireLeader(life))
	began := make(chan error, 1)
	ok := c.jobs.Go(func() {
		defer end()
		first := true
		err := errors.New("the watch has ended")
		for resp := range c.client.Watch(life, key, append(opts, clientv3.WithCreatedNotify())...) {
			if err = resp.Err(); err != nil {
				break
			}
			if first {
				first = false
				began <- nil
			}
			for _, e := range resp.Events {
				if on(e) {
					return
				}
			}
		}
		if first {
			began <- err
		} else if life.Err() == nil {
			on(nil)
		}
	})
	if !ok {
		end()
		return locks.ErrClosed
	}
	var err error
	select {
	case err = <-began:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		end()
	}
	return err
}
