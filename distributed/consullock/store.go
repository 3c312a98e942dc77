package consullock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a lock is its key, in the form of Consul's own lock. The flags mark the key of a
// lock. The key's session is the holder's session, or empty. The value is for inspectors: the
// acquisition, a line feed, and the identity of its process.
//
//	Acquire   read the key; create it if it is not there; acquire it if it is free at this index
//	Release   release it if it has the index of my acquisition
//	Renew     renew the session; compare the indexes of the holds
//
// Each change of a key gives it the index of Consul's log. An index never comes again, also not
// after a key was deleted. So the index of an acquisition is its token, and a request that comes
// late finds another index, and is refused. Only for this reason a key is created before it is
// acquired: the condition "if it is not there" can come true again.

// store is the [driver.Store] of locks.
type store struct {
	client     *api.Client
	prefix     string
	ttl, delay time.Duration
	identity   string // of this process
	lost       func(driver.HoldID, error)
	life       context.Context
	stop       context.CancelFunc
	jobs       adapter.Jobs          // each job ends when life ends
	entering   chan struct{}         // full while an acquisition looks for the session
	kept       *adapter.Shared[kept] // which renews the session for the holds

	mu      sync.Mutex
	session *session                 // or nil
	holds   map[driver.HoldID]hold   // the holds whose acquisition was answered
	asked   map[driver.HoldID]uint64 // the index that the last request expects, while its outcome is unknown
}

// hold is the known state of a hold.
type hold struct {
	session *session
	index   uint64
}

var (
	_ driver.Store                = (*store)(nil)
	_ driver.LossNotifier         = (*store)(nil)
	_ driver.Session              = (*store)(nil)
	_ driver.Breaker              = (*store)(nil)
	_ driver.Inspector            = (*store)(nil)
	_ driver.ReleaseHeedsDeadline = (*store)(nil)
)

func newStore(client *api.Client, o options) *store {
	s := &store{
		client: client, prefix: o.prefix, ttl: o.ttl, delay: o.delay,
		entering: make(chan struct{}, 1),
		holds:    make(map[driver.HoldID]hold),
		asked:    make(map[driver.HoldID]uint64),
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.kept = adapter.NewShared(&s.jobs, s.ttl/30, s.keepPresent)
	return s
}

// close ends everything.
func (s *store) close(ctx context.Context) {
	s.finish(ctx)
	s.stop()
	s.jobs.Close(context.Background())
}

func (s *store) key(name string) string { return s.prefix + keyOf(name) }

// Identify is part of [driver.Inspector].
func (s *store) Identify(_, identity string) { s.identity = identity }

// NotifyLoss keeps the function to call when the session is over.
func (s *store) NotifyLoss(lost func(driver.HoldID, error)) { s.lost = lost }

// ReleaseHeedsDeadline is true: a request ends with its context.
func (s *store) ReleaseHeedsDeadline() bool { return true }

// Term is part of [driver.Session].
func (s *store) Term() time.Duration { return s.ttl }

// attempts is how often an acquisition begins anew because the key has changed meanwhile.
const attempts = 10

// Acquire acquires the key if it is free. A failure before the request to acquire the key has
// changed nothing.
func (s *store) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	for range attempts {
		pair, _, err := s.read(ctx, req.Name, false)
		if err == nil && pair == nil {
			pair, err = s.create(ctx, req.Name)
		}
		switch {
		case err != nil:
			return driver.Reply{}, undone(err)
		case pair == nil:
			continue
		case pair.Flags != api.LockFlagValue:
			return driver.Reply{}, foreign(pair)
		case isOf(pair, req.Acquisition):
			return s.Lookup(ctx, req)
		case pair.Session != "":
			return driver.Reply{}, nil
		}
		se, err := s.enter(ctx)
		if err != nil {
			return driver.Reply{}, undone(err)
		}
		pair, refusal, err := s.acquire(ctx, req.HoldID, pair.ModifyIndex, se)
		switch {
		case err != nil:
			return driver.Reply{}, err
		case refusal == nil:
			return s.noteGrant(req.HoldID, pair, se)
		case errors.Is(refusal, errDelay):
			// No answer tells when the delay ends. The leader logs each refusal: the waiter polls.
			return driver.Reply{Reason: refusal}, nil
		case errors.Is(refusal, errSession):
			s.die(se)
		}
	}
	return driver.Reply{Wait: soon}, nil
}

// soon is how long a waiter waits if no change of the key will tell it when to ask again.
const soon = 200 * time.Millisecond

// create creates the key of a free lock. It returns nil if the key is there by now.
func (s *store) create(ctx context.Context, name string) (*api.KVPair, error) {
	pair, _, err := s.change(ctx, &api.KVTxnOp{Verb: api.KVCAS, Key: s.key(name), Flags: api.LockFlagValue})
	return pair, err
}

// acquire acquires the key if it has the index at which it was free.
func (s *store) acquire(ctx context.Context, id driver.HoldID, index uint64, se *session) (
	pair *api.KVPair, refusal, err error) {
	s.mu.Lock()
	s.asked[id] = max(s.asked[id], index)
	s.mu.Unlock()
	pair, refusal, err = s.change(ctx, s.compare(id.Name, index), &api.KVTxnOp{
		Verb: api.KVLock, Key: s.key(id.Name), Flags: api.LockFlagValue, Session: se.id,
		Value: []byte(id.Acquisition + "\n" + s.identity),
	})
	if err == nil || errors.Is(err, driver.ErrRefused) {
		s.noteIndex(id, index)
	}
	return pair, refusal, err
}

// compare is the condition that the key has an index.
func (s *store) compare(name string, index uint64) *api.KVTxnOp {
	return &api.KVTxnOp{Verb: api.KVCheckIndex, Key: s.key(name), Index: index}
}

// noteIndex notes that no request at index, or at an earlier index, can acquire the key any more.
func (s *store) noteIndex(id driver.HoldID, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[id] <= index {
		delete(s.asked, id)
	}
}

// noteGrant notes that id holds the key as pair describes, unless the session has ended meanwhile.
func (s *store) noteGrant(id driver.HoldID, pair *api.KVPair, se *session) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != se {
		return driver.Reply{}, driver.Mark(errSession, driver.ErrUnavailable) // the key may still belong to se
	}
	s.holds[id] = hold{se, pair.ModifyIndex}
	return driver.Reply{Held: true, Token: pair.ModifyIndex, Since: se.since}, nil
}

// Lookup reads the key, and makes sure that no request can acquire it any more.
func (s *store) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	pair, err := s.settle(ctx, req.HoldID)
	if err != nil || pair == nil {
		return driver.Reply{Settled: err == nil}, err
	}
	s.mu.Lock()
	se := s.session
	s.mu.Unlock()
	if se == nil || se.id != pair.Session {
		return driver.Reply{}, nil // the lock ends with its session
	}
	return s.noteGrant(req.HoldID, pair, se)
}

// settle returns the pair of the key if id holds the key. If id does not, no request of id that was
// sent before can acquire the key any more: the request would find another index.
func (s *store) settle(ctx context.Context, id driver.HoldID) (*api.KVPair, error) {
	for {
		pair, _, err := s.read(ctx, id.Name, true)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		index, unknown := s.asked[id]
		s.mu.Unlock()
		if unknown && pair != nil && pair.ModifyIndex == index { // the key is free: raise its index
			_, _, err := s.change(ctx, &api.KVTxnOp{
				Verb: api.KVCAS, Key: s.key(id.Name), Flags: api.LockFlagValue, Index: index,
				Value: fmt.Append(nil, "raised from ", index), // a write without a change would not raise the index
			})
			if err != nil {
				return nil, err
			}
			continue
		}
		s.noteIndex(id, index)
		if isOf(pair, id.Acquisition) {
			return pair, nil
		}
		return nil, nil
	}
}

// isOf reports whether the acquisition holds the key.
func isOf(pair *api.KVPair, acquisition string) bool {
	return pair != nil && pair.Session != "" && strings.HasPrefix(string(pair.Value), acquisition+"\n")
}

func foreign(pair *api.KVPair) error {
	return fmt.Errorf("the key %q has not the flags of a lock: %w", pair.Key, locks.ErrForeign)
}

// maxOps is how many operations a transaction of Consul may have.
const maxOps = 64

// Renew renews the session, and compares the index of each hold.
//
// A leader that was cut off from the other servers renews sessions for a while, although another
// leader already counts their time. So Renew then compares the indexes at a leader that has asked
// the other servers whether it still leads.
//
// The engine renews holds in batches. All batches share one renewal of the session, which comes
// before all comparisons. So the session goes on although the indexes of thousands of holds are
// compared late.
func (s *store) Renew(ctx context.Context, ids []driver.HoldID, _ time.Duration) ([]bool, error) {
	ok := make([]bool, len(ids))
	var which []int
	var ops api.KVTxnOps
	s.mu.Lock()
	se := s.session
	for i, id := range ids {
		if h, known := s.holds[id]; known && h.session == se {
			which, ops = append(which, i), append(ops, s.compare(id.Name, h.index))
		}
	}
	s.mu.Unlock()
	if len(ops) == 0 {
		return ok, nil
	}
	k, err := s.kept.Do(ctx)
	if err != nil || k.session != se { // se is over
		return ok, err
	}
	for some := range slices.Chunk(ops, maxOps) {
		gone, err := s.check(ctx, some)
		if err != nil {
			return ok, err
		}
		s.prolong(se, k.sent)
		for n, i := range which[:len(some)] {
			ok[i] = !gone[n]
		}
		which = which[len(some):]
	}
	return ok, nil
}

// check reports which of the conditions do not hold.
func (s *store) check(ctx context.Context, conditions api.KVTxnOps) (gone map[int]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.try())
	defer cancel()
	q := (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
	_, resp, _, err := s.client.KV().Txn(conditions, q)
	if err != nil {
		return nil, err
	}
	if _, err := refusalOf(resp.Errors); err != nil {
		return nil, err
	}
	gone = make(map[int]bool)
	for _, e := range resp.Errors {
		gone[e.OpIndex] = true
	}
	return gone, nil
}

// Release releases the key if it has the index of id's acquisition. All waiters learn of the
// release.
func (s *store) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	s.mu.Lock()
	h, known := s.holds[id]
	s.mu.Unlock()
	var pair *api.KVPair
	if known {
		pair = &api.KVPair{ModifyIndex: h.index, Session: h.session.id}
	} else {
		var err error
		if pair, err = s.settle(ctx, id); err != nil || pair == nil {
			return driver.Released{Settled: err == nil}, err
		}
	}
	held, err := s.free(ctx, id.Name, pair)
	if err != nil {
		return driver.Released{}, err
	}
	s.mu.Lock()
	delete(s.holds, id)
	s.mu.Unlock()
	return driver.Released{Held: held, Settled: true, Awaited: true}, nil
}

// free releases the key called name if the key is unchanged since pair, and reports whether it was.
func (s *store) free(ctx context.Context, name string, pair *api.KVPair) (bool, error) {
	_, refusal, err := s.change(ctx, s.unlock(name, pair.ModifyIndex, pair.Session)...)
	return err == nil && refusal == nil, err
}

// unlock releases the key called name if session holds it and the key has the index.
func (s *store) unlock(name string, index uint64, session string) api.KVTxnOps {
	return api.KVTxnOps{s.compare(name, index), {
		Verb: api.KVUnlock, Key: s.key(name), Flags: api.LockFlagValue, Session: session,
	}}
}

// Lost releases a hold whose time is over. The session may live on.
func (s *store) Lost(id driver.HoldID) {
	s.jobs.Go(func() {
		for rest := 10 * time.Millisecond; s.life.Err() == nil; rest = min(2*rest, s.ttl/3) {
			if _, err := s.Release(s.life, id); err == nil {
				return
			}
			adapter.Sleep(s.life, adapter.Jitter(rest))
		}
	})
}

// Break frees the key of the present holder. If the lock changes hands meanwhile, Break looks
// again.
func (s *store) Break(ctx context.Context, name string) (bool, error) {
	for {
		pair, _, err := s.read(ctx, name, true)
		switch {
		case err != nil:
			return false, err
		case pair == nil:
			return false, nil
		case pair.Flags != api.LockFlagValue:
			return false, foreign(pair)
		case pair.Session == "":
			return false, nil
		}
		if held, err := s.free(ctx, name, pair); held || err != nil {
			return held, err
		}
	}
}

// Inspect reads the key.
func (s *store) Inspect(ctx context.Context, name string) (driver.State, error) {
	state := driver.State{Waiting: -1}
	pair, _, err := s.read(ctx, name, true)
	switch {
	case err != nil || pair == nil:
		return state, err
	case pair.Flags != api.LockFlagValue:
		return state, foreign(pair)
	case pair.Session == "":
		return state, nil
	}
	acquisition, identity, ours := strings.Cut(string(pair.Value), "\n")
	if !ours {
		acquisition, identity = pair.Session, ""
	}
	state.Holders = []driver.Claim{{
		Acquisition: acquisition, Identity: identity, Party: locks.Party{Token: pair.ModifyIndex},
	}}
	return state, nil
}

// watch notifies one waiter.
type watch struct {
	adapter.Bell
	end context.CancelFunc
}

func (w *watch) Close() { w.end() }

// Watch reads the key, and begins to wait for its next change.
func (s *store) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	_, meta, err := s.read(ctx, id.Name, false)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(s.life)
	w := &watch{adapter.NewBell(), end}
	if !s.jobs.Go(func() { s.follow(life, id.Name, meta.LastIndex, w.Bell) }) {
		end()
		return nil, locks.ErrClosed
	}
	return w, nil
}

// follow notifies a waiter each time that the key becomes free, until life ends.
func (s *store) follow(life context.Context, name string, index uint64, bell adapter.Bell) {
	for life.Err() == nil {
		var pair *api.KVPair
		err := s.await(life, &index, func(q *api.QueryOptions) (meta *api.QueryMeta, err error) {
			pair, meta, err = s.client.KV().Get(s.key(name), q)
			return meta, err
		})
		if err == nil && (pair == nil || pair.Session == "") {
			bell.Ring()
		}
	}
}
