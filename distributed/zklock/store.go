package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// revoked is the data by which Curator asks who holds a lock to give it back.
const revoked = "__REVOKE__"

// request is what an acquisition brings along in its context.
type request struct {
	revoke func(token uint64) // called when the hold is asked for, if not nil
	under  *node              // of the write lock that the owner holds, for the read lock
}

type requestKey struct{}

// store is the [lease.Store] of the locks of one kind: what is the same for all of them. It knows the nodes of each acquisition.
type store struct {
	*core
	lost func(lease.HoldID, error)

	mu      sync.Mutex
	records map[string]*record // by owner

	turns turns
}

// record is what an acquisition, and the hold that comes of it, has in ZooKeeper. The engine asks one thing after the other
// for it; only events,
// renewals and losses come at any time.
type record struct {
	st   *store
	ref  lease.HoldID
	req  request
	wake chan struct{} // the watch of who waits

	// Of who acquires and releases.
	own     *node         // the place in the queue, or the lock
	gate    *node         // the place among those who acquire, of a semaphore
	checked time.Time     // when the server was asked last
	span    time.Duration // for how long it asks, of a queue
	since   time.Time     // from when on the server counts the time of the hold, if it did not ask for it
	queued  time.Time     // when it stood behind others for the first time
	ahead   int           // how many those were
	looks   int           // how often it has been foreseen

	ears      sync.Mutex
	at        place // where it listens, while it waits
	listening *session
	foreseen  *time.Timer // see foresee

	mu     sync.Mutex
	asking bool  // own and gate are those of who asks
	left   bool  // nobody wants it any more: who asks has its nodes deleted at the end
	dirty  bool  // something has happened since
	held   *node // the own one, from the grant to the end
	gone   *node // an own one that was deleted
	heir   heir
	look   *look // asked for when the node before went
	asked  bool  // to give it back
	called bool  // and told so
}

func (st *store) init(c *core) *store {
	st.core = c
	st.records = make(map[string]*record)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = append(c.stores, st)
	return st
}

func (st *store) NotifyLoss(lost func(lease.HoldID, error)) { st.lost = lost }

// record returns the record of owner, which it makes if there is none.
func (st *store) record(ctx context.Context, name, owner string) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.records[owner]
	if r == nil {
		r = &record{st: st, ref: lease.HoldID{Name: name, Acquisition: owner}, wake: make(chan struct{}, 1), dirty: true}
		if q, ok := ctx.Value(requestKey{}).(*request); ok {
			r.req = *q
		}
		st.records[owner] = r
	}
	return r
}

func (st *store) find(owner string) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.records[owner]
}

// keep knows r again, if its watch ended before its acquisition did.
func (st *store) keep(r *record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.records[r.ref.Acquisition] = r
}

// take returns the record of owner and forgets it.
func (st *store) take(owner string) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.records[owner]
	delete(st.records, owner)
	return r
}

// forget undoes keep.
func (st *store) forget(r *record) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.records[r.ref.Acquisition] == r {
		delete(st.records, r.ref.Acquisition)
	}
}

// nodeOf returns the node by which a lock is held whose token it is.
func (st *store) nodeOf(name string, token uint64) *node {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range st.records {
		if r.ref.Name != name {
			continue
		}
		if n := r.holding(); n != nil {
			if _, t := n.known(); t == token {
				return n
			}
		}
	}
	return nil
}

// holding returns the node by which r is held, or nil.
func (r *record) holding() *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// hold notes that r is held by its own node, or is not, and reports whether that node is there still as far as is known.
func (r *record) hold(n *node) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = n
	return n != nil && n != r.gone && !n.s.isOver()
}

// drop ends what depends on s, which is over: holds are lost, and who waits begins anew.
func (st *store) drop(s *session, why error) {
	st.mu.Lock()
	var all []*record
	for _, r := range st.records {
		all = append(all, r)
	}
	st.mu.Unlock()
	for _, r := range all {
		if n := r.holding(); n == nil {
			r.rouse()
		} else if n.s == s {
			st.lost(r.ref, why)
		}
	}
}

// rouse has who waits ask again.
func (r *record) rouse() {
	r.mu.Lock()
	r.dirty = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ear returns what is told of the own node n: that it is gone, or that its data has changed.
func (r *record) ear(n *node) func(gone bool) {
	return func(gone bool) {
		if gone {
			r.over(n)
			return
		}
		r.disinherit() // until it is looked for again, nobody would tell that it is gone
		r.st.spawn(func() {
			ctx, cancel := context.WithTimeout(r.st.life, n.s.term())
			defer cancel()
			if st, err := n.look(ctx); err == nil {
				r.read(st)
			} else if errors.Is(err, zk.ErrNoNode) {
				r.over(n)
			}
		})
	}
}

// over is told that the own node n was deleted.
func (r *record) over(n *node) {
	r.mu.Lock()
	r.gone = n
	lost := r.held == n
	r.mu.Unlock()
	if lost {
		r.st.lost(r.ref, fmt.Errorf("its node was deleted: %w", zk.ErrNoNode))
	} else {
		r.rouse()
	}
}

// read looks whether the data of the own node asks to give the lock back.
func (r *record) read(st stat) {
	if string(st.data) != revoked {
		return
	}
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	r.tell()
}

// tell has the holder told, once, if it is asked to give the lock back.
func (r *record) tell() {
	r.mu.Lock()
	held := r.held
	now := r.asked && held != nil && !r.called
	r.called = r.called || now
	r.mu.Unlock()
	if now && r.req.revoke != nil {
		_, token := held.known()
		go r.req.revoke(token) // the user's, for whom nobody waits
	}
}

// data returns what is in a node: like Curator, the address of the client, or nothing if the lock can be revoked.
func (r *record) data(s *session) []byte {
	if r.req.revoke != nil {
		return []byte{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wire != nil {
		return s.wire.host
	}
	return []byte{}
}

// listen has the record roused by what happens at a place, and at no other one. If queue is not "", it is the directory whose
// children decide what to do when the node there has gone.
func (r *record) listen(s *session, at place, queue string) {
	r.ears.Lock()
	defer r.ears.Unlock()
	if r.listening == s && r.at == at {
		return
	}
	r.close()
	r.listening, r.at = s, at
	s.points.listen(at, r, func(e zk.Event) {
		var l *look
		if e.Type == zk.EventNodeDeleted && !r.passed(e.Path) && queue != "" {
			l = r.hurry(s, queue)
		}
		if l == nil {
			r.rouse()
			return
		}
		go func() { // r is not woken before there is something for it to do
			l.ask()
			r.rouse()
		}()
	})
}

// deaf ends listen.
func (r *record) deaf() {
	r.ears.Lock()
	defer r.ears.Unlock()
	r.close()
}

// close is deaf. r.ears is held.
func (r *record) close() {
	if r.foreseen != nil {
		r.foreseen.Stop()
		r.foreseen = nil
	}
	if r.listening != nil {
		r.listening.points.ignore(r.at, r)
		r.listening = nil
	}
}

// fresh is how long a look at the queue counts if no event has come since, however often it is asked for.
const fresh = 500 * time.Millisecond

// begin notes that the server is asked now, or reports false if nothing can have changed since the last time.
func (r *record) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty && time.Since(r.checked) < fresh {
		return false
	}
	r.dirty = false
	r.checked = time.Now()
	return true
}

// ask goes on with step, which acquires, until the lock is held or has to be waited for. What can be tried again is, for half of
// the session timeout.
//
// own and gate are those of the goroutine that asks. Somebody else may give the record up meanwhile: an acquisition that was
// cancelled is not awaited for long. Then who asks has the nodes deleted, which may have come after that:
//
//	asking  left   who deletes the nodes
//	no      no     nobody
//	yes     no     nobody
//	no      yes    leave
//	yes     yes    ask, at its end
func (r *record) ask(step func(ctx context.Context) (held bool, err error)) (lease.Reply, error) {
	r.mu.Lock()
	r.asking = true
	r.mu.Unlock()
	reply, err := r.proceed(step)
	r.mu.Lock()
	r.asking = false
	left := r.left
	r.mu.Unlock()
	if left { // while it asked
		r.hold(nil)
		r.reset()
		r.st.forget(r)
		return lease.Reply{}, err
	}
	return reply, err
}

// leave ends what r has, or has who asks do so at the end, and returns what tells of the end of that. It is for good.
func (r *record) leave() (done []<-chan struct{}) {
	r.mu.Lock()
	r.left = true
	asking := r.asking
	r.mu.Unlock()
	if asking {
		return nil
	}
	r.deaf()
	return r.discard()
}

// removed reports whether it was we who deleted the own node, after leave.
func (r *record) removed() bool {
	r.mu.Lock()
	asking := r.asking
	r.mu.Unlock()
	return !asking && r.own != nil && r.own.removed()
}

func (r *record) isLeft() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// proceed is ask while r.asking is set.
func (r *record) proceed(step func(ctx context.Context) (held bool, err error)) (lease.Reply, error) {
	if !r.begin() {
		return lease.Reply{}, nil
	}
	began, term, ctx := time.Now(), r.st.Term(), r.st.patience()
	for {
		r.since = time.Time{}
		if r.own != nil && r.own.s.isOver() || r.gate != nil && r.gate.s.isOver() {
			r.reset()
		}
		held, err := step(ctx)
		switch {
		case err == nil && !held || r.isLeft():
			return lease.Reply{}, err
		case err == nil && time.Since(began) > term/3:
			// Whoever asks counts from when it began, and little would be left of that.
			r.rouse()
			return lease.Reply{}, nil
		case err == nil:
			r.deaf()
			r.learn()
			r.forgo()
			if !r.hold(r.own) { // whoever told of its end came too early to find it held
				r.hold(nil)
				r.reset()
				continue
			}
			r.st.keep(r)
			r.guard(r.own)
			_, token := r.own.known()
			r.tell()
			return lease.Reply{Held: true, Token: token, Since: r.since}, nil
		case errors.Is(err, errNoOwn):
			r.reset()
		case ctx.Err() != nil || !isTrouble(err) || errors.Is(err, locks.ErrForeign) || errors.Is(err, locks.ErrClosed) ||
			errors.Is(err, lease.ErrRefused) || errors.Is(err, errBroken):
			r.mu.Lock()
			r.dirty = true
			r.mu.Unlock()
			return lease.Reply{}, err
		default:
			pause(ctx, 5*time.Millisecond)
		}
	}
}

// errBroken is of a lock that cannot be acquired whatever is done.
var errBroken = errors.New("the lock cannot be used")

// reset has the record begin anew.
func (r *record) reset() {
	r.deaf()
	r.discard()
	r.own, r.gate = nil, nil
	r.ahead, r.looks = 0, 0
	r.forgo()
}

// forgo forgets what r knows of its place: that is over, or has come to its end. Should it be asked for once more, because the
// answer came too late, it is by what the server says then.
func (r *record) forgo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heir, r.look = heir{}, nil
}

// discard has the nodes of the record deleted, and returns what tells of the end of that.
func (r *record) discard() (done []<-chan struct{}) {
	for _, n := range []*node{r.own, r.gate} {
		if n != nil {
			done = append(done, n.discard())
		}
	}
	return done
}

// await waits until all are done, ctx ends, or time is up.
func await(ctx context.Context, done []<-chan struct{}, d time.Duration) error {
	done = slices.DeleteFunc(done, func(ch <-chan struct{}) bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	})
	if len(done) == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, ch := range done {
		select {
		case <-ch:
		case <-timer.C:
			return errTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// patience is for how long a call waits for the deletion of a node, which goes on without it.
const patience = time.Second

// Lookup is asked when an acquisition has failed. What it had made is deleted, or will be.
func (st *store) Lookup(_ context.Context, _, owner string) (lease.Reply, error) {
	if r := st.find(owner); r != nil {
		if n := r.holding(); n != nil {
			_, token := n.known()
			return lease.Reply{Held: true, Token: token}, nil
		}
	}
	return lease.Reply{}, nil
}

// Renew reads the nodes, and has the leader confirm the session: a server that has lost touch with it answers questions still.
func (st *store) Renew(ctx context.Context, holds []lease.HoldID, _ time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	confirmed := make(map[*session]bool)
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = errors.Join(failed, err)
	}
	var mine []*node
	for i, h := range holds {
		var n *node
		if r := st.find(h.Acquisition); r != nil {
			n = r.holding()
		}
		if n == nil || n.s.isOver() {
			mine = append(mine, nil)
			continue
		}
		mine = append(mine, n)
		if s := n.s; !confirmed[s] {
			confirmed[s] = true
			wg.Go(func() {
				err := persist(ctx, s, func() error { return s.sync(ctx, holds[i].Name) })
				if isTrouble(err) {
					fail(err)
				}
			})
		}
	}
	for i, n := range mine {
		if n == nil {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var st stat
			err := persist(ctx, n.s, func() (err error) {
				st, _, err = n.s.getWatched(ctx, n.path())
				return err
			})
			_, token := n.known()
			switch {
			case err == nil:
				held[i] = uint64(st.Czxid) == token
			case isTrouble(err) && !n.s.isOver():
				fail(err)
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return make([]bool, len(holds)), failed // without the leader's word nothing counts
	}
	return held, nil
}

// atOnce is how many requests the ZooKeeper client takes at once.
const atOnce = 16

// persist repeats a question until there is an answer, ctx ends, or the session does.
func persist(ctx context.Context, s *session, ask func() error) error {
	for {
		err := ask()
		if !isTrouble(err) || ctx.Err() != nil || s.isOver() {
			return err
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// Release deletes the nodes. While an acquisition is under way, which is not awaited any more then, that does so.
func (st *store) Release(ctx context.Context, _, owner string) (lease.Released, error) {
	r := st.find(owner)
	if r == nil {
		return lease.Released{}, nil
	}
	if n := r.holding(); n != nil {
		r.hold(nil)
		n.delete(ctx)
	}
	if err := await(ctx, r.leave(), patience); err != nil {
		return lease.Released{}, fmt.Errorf("delete of the node in %q: %w", r.ref.Name, err)
	}
	st.take(owner)
	return lease.Released{Held: r.removed()}, nil
}

// Leave deletes the nodes of who waited. If that takes longer, it goes on in the background.
func (st *store) Leave(ctx context.Context, _, owner string) error {
	if r := st.take(owner); r != nil {
		await(ctx, r.leave(), patience)
	}
	return nil
}

// Lost frees what was lost while the session lives on.
func (st *store) Lost(ref lease.HoldID) {
	if r := st.take(ref.Acquisition); r != nil {
		r.hold(nil)
		r.discard()
	}
}

// waiter is a [lease.Watch] of a record.
type waiter struct{ r *record }

func (w waiter) C() <-chan struct{} { return w.r.wake }

func (w waiter) Close() {}

func (st *store) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	return waiter{st.record(ctx, name, owner)}, nil
}
