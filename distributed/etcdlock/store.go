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

// The state of a lock: one key for each holder and each waiter, attached to an etcd lease of its
// own. The holder's key is the one created first. This is the layout of etcd's own
// concurrency.Mutex: <prefix>/<lease in hex>. A waiter waits for the next older key. The value of
// our keys is for inspectors: the acquisition, a line feed, and the identity of its process. The
// value of etcd's own mutex is empty, and it reads none.
//
//	Acquire       if no key, put mine
//	Enqueue       if mine is absent, put it; read the newest older one
//	Enqueue again read mine, and the newest older one
//	Release       delete mine, or revoke its lease
//	Renew         keep the lease alive; read mine
//
// A lease belongs to one session at a time, which is one attempt of an acquisition to have a key.
// It is reused only if every request of that session was answered, so that none is under way any
// more. If one was not, the lease is revoked instead of the key deleted: a late request finds no
// lease, and does nothing.
//
// When a session ends, its key, its watches and its lease end with it. A waiter then begins anew,
// with a new session at the end of the queue. Its notifications go to the same channel as before.

// kind is a kind of lock, by the place of its keys.
type kind struct {
	own    string // where the keys of this kind are, below the lock's directory
	rivals string // where the keys are that go first if they are older
	alone  bool   // each hold is acquired from the store and given back to it
}

var plain = &kind{}

// store is the [lease.Store] of a kind of lock. The name of a lock is what its keys begin with,
// up to a slash.
type store struct {
	c    *core
	kind *kind
	lost func(lease.HoldID, error)

	identity string // of this process
}

var (
	_ lease.Store        = (*store)(nil)
	_ lease.Queue        = (*store)(nil)
	_ lease.LossNotifier = (*store)(nil)
	_ lease.Inspector    = (*store)(nil)
)

// NotifyLoss keeps the function to call when a holder's key has vanished.
func (s *store) NotifyLoss(lost func(lease.HoldID, error)) { s.lost = lost }

func (s *store) rivals(name string) string { return name + "/" + s.kind.rivals }

// before returns the request for the newest rival key that is not newer than rev. It reads two
// keys, because the first may be the asking one.
func (s *store) before(name string, rev int64) clientv3.Op {
	opts := []clientv3.OpOption{
		clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend),
		clientv3.WithLimit(2),
	}
	if rev > 0 {
		opts = append(opts, clientv3.WithMaxCreateRev(rev))
	}
	return clientv3.OpGet(s.rivals(name), opts...)
}

// Acquire puts a key if there is none.
func (s *store) Acquire(ctx context.Context, name, acquisition string, d time.Duration) (lease.Reply, error) {
	if m := masterOf(ctx); m != nil {
		return s.readUnder(m, acquisition)
	}
	x, resp, err := s.create(ctx, name, acquisition, d, clientv3.OpGet(s.rivals(name), clientv3.WithFirstCreate()...),
		func(x *session) []clientv3.Cmp {
			return []clientv3.Cmp{
				clientv3.Compare(clientv3.CreateRevision(s.rivals(name)), "=", 0).WithPrefix(),
				clientv3.Compare(clientv3.CreateRevision(x.key), "=", 0), // which may not be among the rivals
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
	// The request may have been sent twice, and the first be under way: then this waits for its
	// end.
	if _, err := s.c.giveBack(ctx, x); err != nil {
		return lease.Reply{}, err
	}
	if oldest := kvs(resp, 1); len(oldest) == 1 && oldest[0].Lease == 0 {
		return lease.Reply{}, foreign(oldest[0].Key)
	}
	return lease.Reply{}, nil
}

// create puts a key for acquisition if the conditions hold, and reads. If not, it reads the key
// instead.
func (s *store) create(ctx context.Context, name, acquisition string, d time.Duration, read clientv3.Op,
	conditions func(*session) []clientv3.Cmp) (x *session, resp *clientv3.TxnResponse, err error) {
	for _, reuse := range []bool{true, false} {
		if x, err = s.begin(ctx, name, acquisition, d, reuse); err != nil {
			return nil, nil, err
		}
		// A spare lease may have been revoked meanwhile.
		resp, err = s.put(ctx, x, conditions(x), read)
		x.op.Unlock()
		if !errors.Is(err, ErrSessionExpired) {
			break
		}
	}
	return x, resp, err
}

// put puts x's key if the conditions hold, and reads. It is sent again if its reply is lost: no
// other acquisition has this key, so it is created once at most.
func (s *store) put(ctx context.Context, x *session, conditions []clientv3.Cmp, read clientv3.Op) (
	resp *clientv3.TxnResponse, err error) {
	id := x.lease()
	err = s.c.persist(ctx, x.try(), x.end().Add(-x.term()/2), func(ctx context.Context) error {
		x.sending()
		resp, err = s.c.client.Txn(ctx).
			If(conditions...).
			Then(clientv3.OpPut(x.key, s.value(x.acquisition), clientv3.WithLease(id)), read).
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

// Enqueue puts a key, unless acquisition has one, and looks for the next older one. If the
// session of acquisition has ended, it begins another one.
func (s *store) Enqueue(ctx context.Context, name, acquisition string, d time.Duration) (lease.Reply, error) {
	r, err := s.enqueue(ctx, name, acquisition, d)
	if errors.Is(err, locks.ErrForeign) {
		err = errors.Join(err, s.Leave(ctx, name, acquisition))
	}
	return r, err
}

func (s *store) enqueue(ctx context.Context, name, acquisition string, d time.Duration) (lease.Reply, error) {
	if m := masterOf(ctx); m != nil {
		return s.readUnder(m, acquisition)
	}
	if x := s.c.find(acquisition); x != nil {
		r, err := s.again(ctx, x)
		if !errors.Is(err, ErrSessionExpired) {
			return r, err
		}
		s.c.abandon(x)
	}
	x, resp, err := s.create(ctx, name, acquisition, d, s.before(name, 0), func(x *session) []clientv3.Cmp {
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
	r, err := s.rank(x, kvs(resp, 1))
	if err == nil && !r.Held && x.isArmed() { // it begins anew: its watches do so too
		s.c.spawn(func() { x.watchOwn(s.c.life) })
		return s.again(ctx, x)
	}
	return r, err
}

// rank returns x's reply, where older are the newest keys that are not newer than x's own.
func (s *store) rank(x *session, older []*mvccpb.KeyValue) (lease.Reply, error) {
	for _, kv := range older {
		if string(kv.Key) == x.key {
			continue
		}
		if kv.Lease == 0 {
			return lease.Reply{}, foreign(kv.Key)
		}
		// Only the first writer can have let readers in. So no writer is before it.
		if s.kind == reading && isDowngraded(kv.Value) {
			break
		}
		x.wait(string(kv.Key))
		return lease.Reply{}, nil
	}
	return x.held(x.rev), nil
}

// again looks for the key before x, which has a key, and makes x watch it.
//
// No wake-up is lost: the watch notifies of everything after its beginning, and what was before
// is read once it has begun. If that finds another key to watch, the same begins again.
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

// soon is how long a waiter that cannot watch waits before it asks again.
const soon = 200 * time.Millisecond

// Leave deletes the key of a waiter.
func (s *store) Leave(ctx context.Context, name, acquisition string) error {
	_, err := s.Release(ctx, name, acquisition)
	return err
}

// Lookup finds out whether the key was put. If not, it makes sure that the key never will be.
func (s *store) Lookup(ctx context.Context, _, acquisition string) (lease.Reply, error) {
	x := s.c.find(acquisition)
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

// Renew keeps leases alive, and checks whether the keys are still there.
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

// Release deletes the key. The next waiter watches it, so nobody has to be woken.
func (s *store) Release(ctx context.Context, _, acquisition string) (lease.Released, error) {
	x := s.c.find(acquisition)
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

// watch notifies a waiter of the end of its predecessor, or of its own session. It belongs to the
// acquisition, and outlives its sessions.
type watch struct {
	c           *core
	acquisition string
	notify      chan struct{}
}

// C delivers the notifications of all sessions of the acquisition.
func (w *watch) C() <-chan struct{} { return w.notify }

// Close ends the watches of the present session, and of later ones.
func (w *watch) Close() {
	w.c.mu.Lock()
	delete(w.c.watches, w.acquisition)
	x := w.c.sessions[w.acquisition]
	w.c.mu.Unlock()
	if x != nil {
		x.disarm()
	}
}

// Watch begins to watch the key before acquisition's, and its own key without waiting for that:
// if that begins too late, the renewal of the place will tell. If the session has ended, the next
// one watches.
func (s *store) Watch(ctx context.Context, _, acquisition string) (lease.Watch, error) {
	w := &watch{c: s.c, acquisition: acquisition, notify: make(chan struct{}, 1)}
	s.c.mu.Lock()
	s.c.watches[acquisition] = w
	x := s.c.sessions[acquisition]
	s.c.mu.Unlock()
	if x == nil || x.master != nil {
		return w, nil
	}
	x.arm(w.notify)
	if _, err := x.watchPredecessor(ctx); err != nil {
		w.Close()
		return nil, err
	}
	s.c.spawn(func() { x.watchOwn(s.c.life) })
	return w, nil
}

// kvs returns what the i-th request of a transaction has read.
func kvs(resp *clientv3.TxnResponse, i int) []*mvccpb.KeyValue {
	if r, ok := resp.Responses[i].Response.(*etcdserverpb.ResponseOp_ResponseRange); ok {
		return r.ResponseRange.Kvs
	}
	return nil
}

func foreign(key []byte) error {
	return fmt.Errorf("the key %q has no lease, so it is no place in a queue: %w", key, locks.ErrForeign)
}

// errExpired is the error of a request that was not carried out because its session has ended.
// Another session can be begun.
var errExpired = lease.Mark(ErrSessionExpired, lease.ErrRefused, lease.ErrUnavailable)
