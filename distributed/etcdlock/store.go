package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a lock: for everybody who holds it or waits for it a key, attached to an etcd lease of its own. The key that was
// created first is the holder's. That is the layout of etcd's own concurrency.Mutex: <prefix>/<lease in hex>, with an empty
// value. Whoever is not first waits for the one before.
//
//	take            if no key, put mine
//	take or wait    if mine is absent, put it; read the newest older one
//	look again      read mine, and the newest older one
//	give back       delete mine, or revoke its lease
//	keep            keep the lease alive; read mine
//
// A lease belongs to one acquisition at a time. It is used for another one only if everything that was sent for the first was
// answered, so that no request of the first is under way any more. If anything was not, its lease is revoked at the end instead
// of the key deleted: what arrives later finds no lease, and does nothing.

// kind is a kind of lock, by the place of its keys.
type kind struct {
	own    string // where the keys of those who want this lock are, below the lock's directory
	rivals string // where those are that have to go first, if they are older
	// alone has each hold be taken from the store, and given back to it.
	alone bool
}

var plain = &kind{}

// store is the [lease.Store] of a kind of lock. The names of locks are what their keys begin with, but for a slash.
type store struct {
	c    *core
	kind *kind
	lost func(lease.HoldID, error)
}

var (
	_ lease.Store        = (*store)(nil)
	_ lease.Queue        = (*store)(nil)
	_ lease.LossNotifier = (*store)(nil)
)

// NotifyLoss keeps what to call when a key has vanished.
func (s *store) NotifyLoss(lost func(lease.HoldID, error)) { s.lost = lost }

func (s *store) rivals(name string) string { return name + "/" + s.kind.rivals }

// before returns the request for the newest key of the others that is not newer than rev, and for one more because the first
// may be one's own.
func (s *store) before(name string, rev int64) clientv3.Op {
	opts := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(2),
	}
	if rev > 0 {
		opts = append(opts, clientv3.WithMaxCreateRev(rev))
	}
	return clientv3.OpGet(s.rivals(name), opts...)
}

// Acquire puts a key if there is none.
func (s *store) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	if m := masterOf(ctx); m != nil {
		return s.join(m, owner)
	}
	x, resp, err := s.create(ctx, name, owner, d, clientv3.OpGet(s.rivals(name), clientv3.WithFirstCreate()...),
		func(x *session) []clientv3.Cmp {
			return []clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(s.rivals(name)), "=", 0).WithPrefix(),
				clientv3.Compare(clientv3.CreateRevision(x.key), "=", 0), // which need not be among the rivals
			}
		})
	if err != nil {
		return lease.Reply{}, err
	}
	if resp.Succeeded {
		return x.held(resp.Header.Revision), nil
	}
	if mine := kvs(resp, 0); len(mine) == 1 { // put by a request whose reply was lost
		return x.held(mine[0].CreateRevision), nil
	}
	// The request may have been sent twice, and the first be under way: then this waits for the end of that.
	if _, err := s.c.giveBack(ctx, x); err != nil {
		return lease.Reply{}, err
	}
	if oldest := kvs(resp, 1); len(oldest) == 1 && oldest[0].Lease == 0 {
		return lease.Reply{}, foreign(oldest[0].Key)
	}
	return lease.Reply{}, nil
}

// create puts a key for owner if the conditions hold, and reads. If not, it reads the key instead.
func (s *store) create(ctx context.Context, name, owner string, d time.Duration, read clientv3.Op,
	conditions func(*session) []clientv3.Cmp) (x *session, resp *clientv3.TxnResponse, err error) {
	for _, reuse := range []bool{true, false} {
		if x, err = s.begin(ctx, name, owner, d, reuse); err != nil {
			return nil, nil, err
		}
		// A lease to spare may have been revoked meanwhile.
		resp, err = s.put(ctx, x, conditions(x), read)
		x.op.Unlock()
		if !errors.Is(err, ErrSessionExpired) {
			break
		}
	}
	return x, resp, err
}

// put puts x's key if the conditions hold, and reads. It is sent again if its reply is lost: the key, which no other
// acquisition has, is created once at most.
func (s *store) put(ctx context.Context, x *session, conditions []clientv3.Cmp, read clientv3.Op) (
	resp *clientv3.TxnResponse, err error) {
	id := x.lease()
	err = s.c.persist(ctx, x.try(), x.end().Add(-x.term()/2), func(ctx context.Context) error {
		x.sending()
		resp, err = s.c.client.Txn(ctx).
			If(conditions...).
			Then(clientv3.OpPut(x.key, "", clientv3.WithLease(id)), read).
			Else(clientv3.OpGet(x.key), read).
			Commit()
		if err != nil && !refused(err) {
			x.doubted()
		}
		return err
	})
	if err != nil {
		if refused(err) {
			s.c.abandon(x)
		}
		return nil, failed(err)
	}
	x.answered(resp.Succeeded)
	return resp, nil
}

// Enqueue puts a key, unless it has one, and looks who is before.
func (s *store) Enqueue(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	if m := masterOf(ctx); m != nil {
		return s.join(m, owner)
	}
	if x := s.c.find(owner); x != nil {
		return s.again(ctx, x)
	}
	x, resp, err := s.create(ctx, name, owner, d, s.before(name, 0), func(x *session) []clientv3.Cmp {
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(x.key), "=", 0)}
	})
	if err != nil {
		return lease.Reply{}, err
	}
	if !resp.Succeeded { // put by a request whose reply was lost: what was read may be newer
		if len(kvs(resp, 0)) == 0 {
			s.c.abandon(x)
			return lease.Reply{}, errExpired
		}
		x.created(kvs(resp, 0)[0].CreateRevision)
		return s.again(ctx, x)
	}
	x.created(resp.Header.Revision)
	return s.rank(x, kvs(resp, 1))
}

// rank says what it means for x that these keys are the newest that are not newer than its own.
func (s *store) rank(x *session, older []*mvccpb.KeyValue) (lease.Reply, error) {
	for _, kv := range older {
		if string(kv.Key) == x.key {
			continue
		}
		if kv.Lease == 0 {
			return lease.Reply{}, foreign(kv.Key)
		}
		// Of those who write, only the first can have made room for readers. So there is none before it.
		if s.kind == reading && string(kv.Value) == downgraded {
			break
		}
		x.wait(string(kv.Key))
		return lease.Reply{}, nil
	}
	return x.held(x.rev), nil
}

// again looks who is before x, which has a key, and has x watch it.
//
// No wake-up is lost: the watch tells of all that comes after its beginning, and what was before is read once it has begun. If
// that finds another one to be watched, the same begins anew.
func (s *store) again(ctx context.Context, x *session) (lease.Reply, error) {
	for {
		if x.isDead() {
			return lease.Reply{}, errExpired
		}
		try, cancel := context.WithTimeout(ctx, x.try())
		resp, err := s.c.client.Txn(try).Then(clientv3.OpGet(x.key), s.before(x.name, x.rev)).Commit()
		cancel()
		switch {
		case err != nil && refused(err):
			return lease.Reply{}, failed(err)
		case err != nil && ctx.Err() != nil:
			return lease.Reply{}, err
		case err != nil: // nothing is known, and nothing has changed
			x.keepPlace()
			return lease.Reply{Wait: soon}, nil
		}
		if mine := kvs(resp, 0); len(mine) != 1 || mine[0].CreateRevision != x.rev {
			x.die()
			return lease.Reply{}, errExpired
		}
		r, err := s.rank(x, kvs(resp, 1))
		if err != nil || r.Held {
			return r, err
		}
		changed, err := x.watchPredecessor(ctx)
		if err != nil {
			return lease.Reply{Wait: soon}, nil
		}
		if !changed {
			return r, nil
		}
	}
}

// soon is after which time one asks again who cannot watch.
const soon = 200 * time.Millisecond

// Leave deletes the key of a waiter.
func (s *store) Leave(ctx context.Context, name, owner string) error {
	_, err := s.Release(ctx, name, owner)
	return err
}

// Lookup finds out whether the key was put, and if not sees to it that it never will be.
func (s *store) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	x := s.c.find(owner)
	if x == nil {
		return lease.Reply{}, nil
	}
	var resp *clientv3.GetResponse
	err := s.c.persist(ctx, x.try(), x.end(), func(ctx context.Context) (err error) {
		resp, err = s.c.client.Get(ctx, x.key)
		return err
	})
	if err == nil && len(resp.Kvs) == 1 {
		x.created(resp.Kvs[0].CreateRevision)
		r, err := s.again(ctx, x)
		if err == nil && r.Held {
			return r, nil
		}
	}
	_, err = s.c.giveBack(ctx, x)
	return lease.Reply{}, err
}

// Renew keeps leases alive, and looks whether the keys are there still.
func (s *store) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	ok := make([]bool, len(holds))
	var xs []*session
	var which []int
	var broken error
	for i, h := range holds {
		x := s.c.find(h.Acquisition)
		if x == nil {
			continue // its time was over
		}
		if x.master != nil {
			x = x.master
		}
		if x.term() < d {
			long, err := s.c.grow(ctx, x, d)
			if err != nil {
				broken = err
			}
			if err != nil || !long {
				continue
			}
		}
		xs, which = append(xs, x), append(which, i)
	}
	if len(xs) == 0 {
		return ok, broken
	}
	states, err := s.c.renew(ctx, xs)
	if err != nil {
		broken = err
	}
	for k, i := range which {
		ok[i] = states[k] == alive
	}
	return ok, broken
}

// Release deletes the key. Who comes next was in the queue before, so nobody has to be let through.
func (s *store) Release(ctx context.Context, _, owner string) (lease.Released, error) {
	x := s.c.find(owner)
	switch {
	case x == nil:
		return lease.Released{}, nil
	case x.master != nil:
		return s.part(ctx, x)
	}
	x.op.Lock()
	defer x.op.Unlock()
	x.mu.Lock()
	reader, gone := x.reader != nil, x.gone
	x.mu.Unlock()
	switch {
	case gone:
		return lease.Released{}, nil
	case reader:
		return s.downgrade(ctx, x)
	}
	held, err := s.c.give(ctx, x)
	return lease.Released{Held: held}, err
}

// watch is the notice of a waiter: of the end of its predecessor, or its own.
type watch struct{ x *session }

func (w watch) C() <-chan struct{} { return w.x.notify }
func (w watch) Close()             { w.x.disarm() }

// Watch begins to watch the one before, and, without waiting for that, one's own key: if that comes too late, whoever keeps the
// place alive, or looks again, will find out.
func (s *store) Watch(ctx context.Context, _, owner string) (lease.Watch, error) {
	x := s.c.find(owner)
	if x == nil || x.master != nil {
		return nil, ErrSessionExpired
	}
	x.arm()
	if _, err := x.watchPredecessor(ctx); err != nil {
		x.disarm()
		return nil, err
	}
	s.c.spawn(func() { x.watchOwn(s.c.life) })
	return watch{x}, nil
}

// kvs returns what the i-th request of a transaction has read.
func kvs(resp *clientv3.TxnResponse, i int) []*mvccpb.KeyValue {
	if r, ok := resp.Responses[i].Response.(*etcdserverpb.ResponseOp_ResponseRange); ok {
		return r.ResponseRange.Kvs
	}
	return nil
}

func foreign(key []byte) error {
	return fmt.Errorf("etcdlock: the key %q has no lease, so is nobody's place in a queue: %w", key, locks.ErrForeign)
}

// errExpired is the error of a request that was not carried out because its session is over.
var errExpired = fmt.Errorf("%w: %w", lease.ErrRefused, ErrSessionExpired)
