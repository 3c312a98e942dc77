package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a lock: one key for each holder and each waiter. The holder's key was created first.
// A waiter waits for the next older key. This is the layout of etcd's own concurrency.Mutex:
// <prefix>/<lease in hex>. If a client has several keys below one prefix, the keys after the first
// end with a number, -1 and so on. The mutex of etcd treats every key below its prefix as part of
// the queue. The value of our keys is for inspectors: the acquisition, a line feed, and the
// identity of its process. The mutex of etcd writes empty values, and reads no value.
//
//	Acquire       if no key, put mine
//	Enqueue       if mine is absent, put it; read the newest older one
//	Enqueue again read mine, and the newest older one
//	Release       delete mine
//	Renew         keep the lease alive; read mine
//
// When a session ends, its keys and their watches end. A waiter then begins anew, with a new key
// at the end of the queue. Its notifications go to the same channel as before.

// kind is a kind of lock, by the place of its keys.
type kind struct {
	own    string // where the keys of this kind are, below the lock's directory
	rivals string // where the keys are that go first if they are older
	alone  bool   // each hold is acquired from the store and given back to it
}

var plain = &kind{}

// older returns the prefix of the keys that go before a key of this kind if they are older.
func (k *kind) older(name string) string { return name + "/" + k.rivals }

// store is the [driver.Store] of a kind of lock. The keys of a lock begin with its name and a
// slash.
type store struct {
	c    *core
	kind *kind
	lost func(driver.HoldID, error)

	identity string // of this process
}

var (
	_ driver.Store                = (*store)(nil)
	_ driver.Queue                = (*store)(nil)
	_ driver.LossNotifier         = (*store)(nil)
	_ driver.Session              = (*store)(nil)
	_ driver.Inspector            = (*store)(nil)
	_ driver.ReleaseHeedsDeadline = (*store)(nil)
)

// NotifyLoss keeps the function to call when a holder's key has vanished.
func (s *store) NotifyLoss(lost func(driver.HoldID, error)) { s.lost = lost }

// oldest returns the request for the oldest rivals of p, as many as there are permits: one for a
// lock. If so many rivals are older than p, p must wait.
func (p *place) oldest() clientv3.Op { return p.rivals(clientv3.SortAscend, p.size) }

// before returns the request for the rivals for which p may wait. If p's key is there, no rival is
// newer than p's key. For a lock, p waits for the newest rival. The request reads two keys, because
// the first may be p's own.
func (p *place) before() clientv3.Op {
	if p.st.kind == counting {
		return p.oldest()
	}
	return p.rivals(clientv3.SortDescend, 2)
}

func (p *place) rivals(order clientv3.SortOrder, limit int64) clientv3.Op {
	opts := []clientv3.OpOption{
		clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, order),
		clientv3.WithLimit(limit),
	}
	if p.rev > 0 {
		opts = append(opts, clientv3.WithMaxCreateRev(p.rev))
	}
	return clientv3.OpGet(p.st.kind.older(p.id.Name), opts...)
}

// Term is part of [driver.Session].
func (s *store) Term() time.Duration { return s.c.ttl }

// Lost gives up a hold whose time is over. The session of the hold may live on.
func (s *store) Lost(id driver.HoldID) {
	s.c.jobs.Go(func() {
		s.c.persist(s.c.life, s.c.lease, func(ctx context.Context) error {
			_, err := s.Release(ctx, id)
			return err
		})
	})
}

// Acquire puts a key if the lock is without a key, or if the existing keys leave enough permits.
func (s *store) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	leave, err := s.c.enter(ctx, req.Acquisition)
	if err != nil {
		return driver.Reply{}, err
	}
	defer leave()
	if req.Writer != "" {
		return s.readUnder(ctx, req)
	}
	if p := s.c.find(req.Name, req.Acquisition); p != nil { // asked again
		keeps := p.is(waiting, holding) || p.isGone() // a hold that was lost is not begun anew
		if r, err := s.lookup(ctx, req); r.Held || keeps || err != nil {
			return r, err
		}
	}
	p, resp, err := s.create(ctx, req, (*place).oldest, s.kind.noneSince(req.Name, 0))
	for err == nil && p.is(asked, asked) {
		room, bad := p.hasRoom(kvs(resp, 1))
		if !room {
			_, err := s.c.give(ctx, p)
			return driver.Reply{}, cmp.Or(err, bad)
		}
		resp, err = s.put(ctx, p, p.oldest(), s.kind.noneSince(req.Name, resp.Header.Revision))
	}
	if err != nil {
		return driver.Reply{}, err
	}
	return p.grant(req.TTL)
}

// noneSince is the condition that no rival's key was created after a revision.
func (k *kind) noneSince(name string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(k.older(name)), "<", rev+1).WithPrefix()
}

// create puts a new key for req if the conditions hold, and reads. If not, it reads the key
// instead. If the request shows that the session is over, create begins another session.
func (s *store) create(ctx context.Context, req driver.Request, read func(*place) clientv3.Op,
	conditions ...clientv3.Cmp) (p *place, resp *clientv3.TxnResponse, err error) {
	for range 2 {
		p = newPlace(s, req)
		if err := s.c.join(ctx, p); err != nil {
			return nil, nil, err
		}
		if resp, err = s.put(ctx, p, read(p), conditions...); !errors.Is(err, ErrSessionExpired) {
			break
		}
		p.session.die()
	}
	return p, resp, err
}

// put puts p's key if the conditions hold, and reads. The request may be sent again if its reply
// is lost: the key is created once at most.
func (s *store) put(ctx context.Context, p *place, read clientv3.Op, conditions ...clientv3.Cmp) (
	resp *clientv3.TxnResponse, err error) {
	p.op.Lock()
	defer p.op.Unlock()
	conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(p.key), "=", 0))
	put := clientv3.OpPut(p.key, p.value(), clientv3.WithLease(p.session.id))
	err = s.c.persist(ctx, s.c.lease/2, func(ctx context.Context) error {
		if err := p.sending(); err != nil {
			return err
		}
		resp, err = s.c.client.Txn(ctx).If(conditions...).Then(put, read).Else(clientv3.OpGet(p.key), read).Commit()
		if err != nil && !isRefusal(err) {
			p.noteDoubt()
		}
		return err
	})
	switch {
	case err == nil && resp.Succeeded:
		p.noteAnswer(true, resp.Header.Revision)
	case err == nil && len(kvs(resp, 0)) == 1: // by a request whose reply was lost
		p.noteAnswer(true, kvs(resp, 0)[0].CreateRevision)
	case errors.Is(err, rpctypes.ErrNoSpace):
		// etcd may send a refusal for a request that it has carried out, if the quota was
		// exceeded meanwhile.
	case err == nil || isRefusal(err):
		p.noteAnswer(false, 0)
	}
	if err != nil && isRefusal(err) {
		s.c.abandon(p)
	}
	return resp, storeError(err)
}

// Enqueue puts a key, unless the acquisition has a key, and looks for the next older key. If the
// acquisition's key is gone, Enqueue puts another key.
func (s *store) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	leave, err := s.c.enter(ctx, req.Acquisition)
	if err != nil {
		return driver.Reply{}, err
	}
	defer leave()
	var r driver.Reply
	if req.Writer != "" {
		r, err = s.readUnder(ctx, req)
	} else {
		r, err = s.enqueue(ctx, req)
	}
	r.Listening = true // Watch also notifies of earlier events
	return r, err
}

func (s *store) enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if p := s.c.find(req.Name, req.Acquisition); p != nil {
		r, err := s.again(ctx, p, req.TTL, "")
		if !errors.Is(err, ErrSessionExpired) {
			return r, err // the place is an earlier request's, so err does not end it
		}
		s.c.abandon(p)
	}
	p, resp, err := s.create(ctx, req, (*place).before)
	if err != nil {
		return driver.Reply{}, err
	}
	r, err := s.rise(ctx, p, resp, req.TTL)
	if errors.Is(err, driver.ErrRefused) || errors.Is(err, locks.ErrForeign) {
		s.c.abandon(p)
	}
	return r, err
}

// rise takes the lock for p, whose key was put by a request with the answer resp, or waits.
func (s *store) rise(ctx context.Context, p *place, resp *clientv3.TxnResponse, d time.Duration) (driver.Reply, error) {
	before := ""
	if resp.Succeeded { // otherwise the keys that were read may be newer
		var err error
		if before, err = p.rank(kvs(resp, 1)); err != nil {
			return driver.Reply{}, err
		}
		if before == "" {
			return p.grant(d)
		}
	}
	r, err := s.again(ctx, p, d, before)
	if err == nil && !r.Held {
		s.c.jobs.Go(p.watch)
	}
	return r, err
}

// rank returns the key that p must wait for, or "" if p is the first. older has the newest keys
// that are not newer than p's own.
func (p *place) rank(older []*mvccpb.KeyValue) (before string, err error) {
	k := p.st.kind
	if k == counting {
		room, err := p.hasRoom(older)
		if room {
			return "", nil
		}
		return k.older(p.id.Name), err // all keys are watched
	}
	for _, kv := range older {
		switch {
		case string(kv.Key) == p.key:
		case kv.Lease == 0:
			return "", foreign(kv.Key)
		case k == reading && isDowngraded(kv.Value):
			return "", nil // only the first writer can have let readers in: no writer is before it
		default:
			return string(kv.Key), nil
		}
	}
	return "", nil
}

// again looks for the key before p's key, and watches the key that it finds. If before is not "",
// before was that key a moment ago.
//
// No wake-up is lost: the watch notifies of all changes after its beginning, and once the watch
// has begun, again reads the keys to find earlier changes. If the read finds another key to
// watch, again repeats both steps.
func (s *store) again(ctx context.Context, p *place, d time.Duration, before string) (driver.Reply, error) {
	for p.is(waiting, holding) {
		try, cancel := context.WithTimeout(ctx, s.c.try())
		defer cancel()
		if before != "" {
			begun, err := p.watchBefore(try, before)
			if err != nil {
				return driver.Reply{Wait: soon}, nil
			}
			if !begun {
				return driver.Reply{}, nil
			}
		}
		resp, err := s.c.client.Txn(try).Then(clientv3.OpGet(p.key), p.before()).Commit()
		switch {
		case err != nil && lasting(err):
			return driver.Reply{}, storeError(err)
		case err != nil && ctx.Err() != nil:
			return driver.Reply{}, err
		case err != nil: // nothing is known, and nothing has changed
			s.c.connect()
			return driver.Reply{Wait: soon}, nil
		}
		if !p.among(kvs(resp, 0)) {
			p.die()
			break
		}
		before, err = p.rank(kvs(resp, 1))
		if err != nil {
			return driver.Reply{}, err
		}
		if before == "" {
			return p.grant(d)
		}
	}
	return driver.Reply{}, errExpired
}

// soon is how long a waiter that cannot watch waits before it asks again.
const soon = 200 * time.Millisecond

// Leave deletes the key of a waiter.
func (s *store) Leave(ctx context.Context, id driver.HoldID) error {
	if p := s.c.find(id.Name, id.Acquisition); p != nil && p.is(holding, holding) {
		return nil
	}
	_, err := s.Release(ctx, id)
	return err
}

// Lookup reads the key of a hold. If it is unknown whether the key exists, Lookup gives the key
// up.
func (s *store) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	leave, err := s.c.enter(ctx, req.Acquisition)
	if err != nil {
		return driver.Reply{}, err
	}
	defer leave()
	return s.lookup(ctx, req)
}

// lookup is Lookup by a request that has its turn.
func (s *store) lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	p := s.c.find(req.Name, req.Acquisition)
	switch {
	case p == nil || p.is(waiting, waiting) || p.isGone():
		return driver.Reply{}, nil
	case !p.isHeld():
		_, err := s.release(ctx, req.HoldID)
		return driver.Reply{}, err
	}
	key := p.ours()
	ctx, cancel := context.WithTimeout(ctx, s.c.try())
	defer cancel()
	resp, err := s.c.client.Get(ctx, key.key, clientv3.WithKeysOnly())
	if err != nil {
		return driver.Reply{}, storeError(err)
	}
	if !key.among(resp.Kvs) {
		key.die()
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if !p.holds() {
		return driver.Reply{}, nil
	}
	return key.reply(p.term), nil
}

// Renew keeps the sessions of holds alive, and checks whether the keys are still there. A hold is
// never longer than its session.
func (s *store) Renew(ctx context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	ok := make([]bool, len(holds))
	var ps []*place
	var which []int
	for i, h := range holds {
		if p := s.c.find(h.Name, h.Acquisition); p != nil && p.isHeld() {
			ps, which = append(ps, p.ours()), append(which, i)
		}
	}
	if len(ps) == 0 {
		return ok, nil
	}
	alive, err := s.c.renew(ctx, ps)
	for k := range alive {
		ok[which[k]] = alive[k]
	}
	return ok, err
}

// ReleaseHeedsDeadline is false for read-write locks, whose releases wait for each other.
func (s *store) ReleaseHeedsDeadline() bool { return s.kind == plain || s.kind == counting }

// Release deletes the key. The next waiter watches the key, so Release wakes nobody.
func (s *store) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	s.c.finish(id.Acquisition)
	return s.release(ctx, id)
}

// release is Release, after which requests that are under way go on.
func (s *store) release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	p := s.c.find(id.Name, id.Acquisition)
	switch {
	case p == nil:
		return driver.Released{}, nil
	case p.master != nil:
		return s.part(ctx, p)
	case s.kind == writing:
		return s.partWriter(ctx, p)
	}
	held, err := s.c.give(ctx, p)
	return driver.Released{Held: held}, err
}

// watch notifies a waiter when the key before its own ends, or its own key. The watch belongs to
// the acquisition, and outlives the acquisition's places.
type watch struct {
	adapter.Bell
	c           *core
	acquisition string
}

// Close ends the notifications. The watches of the keys end when the acquisition holds, or
// leaves.
func (w watch) Close() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	delete(w.c.watches, w.acquisition)
}

// Watch begins to notify the acquisition of changes to the keys that Enqueue watches.
func (s *store) Watch(_ context.Context, id driver.HoldID) (driver.Watch, error) {
	w := watch{adapter.NewBell(), s.c, id.Acquisition}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.watches[id.Acquisition] = w
	if p := s.c.places[id.Acquisition]; p != nil && p.news {
		p.notify()
	}
	return w, nil
}

// kvs returns the keys that the i-th request of a transaction has read.
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
var errExpired = driver.Mark(ErrSessionExpired, driver.ErrRefused, driver.ErrUnavailable)

// errLeft is the error of a request that is not sent because its key was given up.
var errLeft = driver.Mark(errors.New("given up meanwhile"), driver.ErrRefused, driver.ErrUnavailable)
