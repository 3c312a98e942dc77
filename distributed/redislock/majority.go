package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The state of a lock of Redlock: on more than half of the servers a plain lock, under the same
// name and with the same owner.

// driftOf is by how much longer than d the servers keep a lock, whose clocks may be faster than
// ours.
func driftOf(d time.Duration) time.Duration { return d/100 + 2*time.Millisecond }

// majority is the [lease.Store] over stores of plain locks on independent servers.
//
// What the engine calls owner is the name of one acquisition with all its tries. Here each try is
// a [vote] with a name of its own on the servers, so that what is still under way from one try
// does nothing to the next.
type majority struct {
	nodes   []*single
	quorum  int
	timeout time.Duration // 0: by the lease
	restore bool
	lost    func(lease.HoldID, error) // tells the engine

	life    context.Context
	end     context.CancelFunc
	closing sync.Once
	serial  atomic.Uint64

	mu    sync.Mutex
	jobs  int
	idle  chan struct{}    // closed when there are no jobs any more, if not nil
	votes map[string]*vote // by the engine's owner
	sweep int              // how many there have to be for those to be looked for that are over
}

var (
	_ lease.Store        = (*majority)(nil)
	_ lease.LossNotifier = (*majority)(nil)
)

func newMajority(ports []port, o options) *majority {
	m := &majority{
		quorum:  len(ports)/2 + 1,
		timeout: o.node,
		restore: o.restore,
		votes:   make(map[string]*vote),
		sweep:   1024,
	}
	m.life, m.end = context.WithCancel(context.Background())
	for _, p := range ports {
		m.nodes = append(m.nodes, newPlain(&core{p: p, hub: newHub(p), pubsub: o.pubsub}))
	}
	return m
}

func (m *majority) NotifyLoss(lost func(lease.HoldID, error)) { m.lost = lost }

// patience is how long one server is waited for.
func (m *majority) patience(d time.Duration) time.Duration {
	if m.timeout > 0 {
		return m.timeout
	}
	return min(max(d/10, 100*time.Millisecond), time.Second)
}

// spawn runs job in a goroutine for which close waits.
func (m *majority) spawn(job func()) {
	m.mu.Lock()
	m.jobs++
	m.mu.Unlock()
	go func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.jobs--; m.jobs == 0 && m.idle != nil {
				close(m.idle)
				m.idle = nil
			}
		}()
		job()
	}()
}

// vote is one try to get the lock, and the hold that comes of it.
//
//	open    requests may create it on servers     Acquire, and Renew with WithRestore
//	ended   none may any more                     free; for good
//
// A request that creates it on a server runs under the mutex of the server's seat, and looks at
// ended first. Those that delete it are sent when ended is set, under the same mutex. So on each
// server the last request to be sent is one that deletes, and no creation is under way any more
// when it is: for as long as the client under us waits for answers.
type vote struct {
	name  string
	owner string // on the servers
	lease time.Duration
	tries int // for which nobody had a majority
	ended atomic.Bool
	seats []seat

	mu      sync.Mutex
	until   time.Time     // no server has it then, whatever has happened
	noted   int           // servers that surely don't have it any more
	held    int           // of these, those which had
	awaited bool          // somebody heard of that
	changed chan struct{} // closed and replaced when one is noted
}

// seat is what is known of a vote on one server.
type seat struct {
	mu    sync.Mutex // held while a request is under way that creates or deletes it
	dirty bool       // it may be there
	asked bool       // it may have been deleted

	// Guarded by vote.mu.
	clearing bool // somebody sees to its deletion
	gone     bool // it was noted
}

// begin returns a new vote of the engine's owner.
func (m *majority) begin(name, owner string, d time.Duration) *vote {
	v := &vote{
		name:    name,
		lease:   d,
		seats:   make([]seat, len(m.nodes)),
		changed: make(chan struct{}),
		until:   time.Now().Add(d + driftOf(d) + m.patience(d)),
	}
	// Redisson's form. The engine's owners are not in use on the servers themselves.
	id := owner[:strings.LastIndexByte(owner, ':')+1]
	v.owner = id + strconv.FormatUint(m.serial.Add(1), 10)
	m.mu.Lock()
	defer m.mu.Unlock()
	if before := m.votes[owner]; before != nil {
		v.tries = before.tries
	}
	if len(m.votes) >= m.sweep { // of holds that were lost, and acquisitions that were given up
		now := time.Now()
		for o, old := range m.votes {
			if old.over(now) {
				delete(m.votes, o)
			}
		}
		m.sweep = max(1024, 2*len(m.votes))
	}
	m.votes[owner] = v
	return v
}

func (v *vote) over(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.After(v.until)
}

func (m *majority) find(owner string) *vote {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.votes[owner]
}

func (m *majority) forget(owner string, v *vote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.votes[owner] == v {
		delete(m.votes, owner)
	}
}

// answer is what a server says to who asks for the lock.
type answer struct {
	node  int
	held  bool
	ttl   time.Duration // of another's hold
	rival string        // whose it is
	err   error
}

var errEnded = errors.New("redislock: the attempt has ended")

// ask asks a server for its vote.
func (m *majority) ask(ctx context.Context, i int, v *vote) answer {
	s := &v.seats[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	a := answer{node: i}
	if v.ended.Load() {
		a.err = errEnded
		return a
	}
	before := s.dirty
	s.dirty = true
	args := []any{head - 1: nil, v.name, millis(v.lease + driftOf(v.lease)), v.owner}
	r, err := m.nodes[i].c.p.Eval(ctx, voteAcquire, 1, args)
	if err != nil {
		a.err = err
		var op *net.OpError
		if errors.Is(err, lease.ErrRefused) || errors.Is(err, locks.ErrForeign) || errors.As(err, &op) && op.Op == "dial" {
			s.dirty = before // nothing has happened
		}
		return a
	}
	switch r := r.(type) {
	case int64:
		a.held = true
		return a
	case []any:
		if len(r) == 2 {
			ttl, ok1 := r[0].(int64)
			rival, ok2 := r[1].(string)
			if ok1 && ok2 {
				s.dirty = false
				a.ttl, a.rival = time.Duration(max(ttl, 0))*time.Millisecond, rival
				return a
			}
		}
	}
	a.err = unexpected(r)
	return a
}

// Acquire never leaves open what has happened: whatever there may be on a server is taken back.
func (m *majority) Acquire(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	n := len(m.nodes)
	v := m.begin(name, owner, d)
	limit := m.patience(d)
	answers := make(chan answer, n)
	began := time.Now()
	for i := range n {
		m.spawn(func() {
			// It goes on when a majority is there without it.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			answers <- m.ask(ctx, i, v)
		})
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var votes, refusals []answer
	var errs []error
	out := n
	hopeless := false
collect:
	for out > 0 {
		select {
		case a := <-answers:
			out--
			switch {
			case a.held:
				votes = append(votes, a)
			case a.err != nil:
				errs = append(errs, fmt.Errorf("server %d: %w", a.node, a.err))
			default:
				refusals = append(refusals, a)
			}
			if len(votes) >= m.quorum {
				break collect
			}
			if !hopeless && len(votes)+out < m.quorum {
				// The others are waited for a little, since who waits acts on what they say.
				hopeless = true
				timer.Reset(min(2*time.Since(began)+time.Millisecond, limit))
			}
		case <-timer.C:
			break collect
		case <-ctx.Done():
			break collect
		}
	}
	took := time.Since(began)
	if len(votes) >= m.quorum && took < d/2 {
		return lease.Reply{Held: true}, nil
	}
	// What was granted is given back before anybody hears of it. The rest takes its time.
	m.free(v, false)
	v.await(ctx, limit, func() bool {
		for _, a := range votes {
			if !v.seats[a.node].gone {
				return false
			}
		}
		return true
	})
	// Those that were not waited for, because others have refused, may be well.
	if failed := len(errs); failed > n-m.quorum || !hopeless && failed+out > n-m.quorum || ctx.Err() != nil {
		m.forget(owner, v)
		if ctx.Err() != nil {
			errs = append(errs, context.Cause(ctx))
		}
		if out > 0 {
			errs = append(errs, fmt.Errorf("%d servers have not answered within %v", out, took.Round(time.Millisecond)))
		}
		return lease.Reply{}, fmt.Errorf("redislock: %d of %d servers answered: %w: %w",
			len(votes)+len(refusals), n, lease.ErrRefused, errors.Join(errs...))
	}
	return lease.Reply{Wait: m.wait(v, len(votes), refusals, took)}, nil
}

// wait returns how long to wait after a refusal if nobody tells of a release. If somebody has the
// majority, that is until as many servers can be free. Otherwise it is a random time, for the
// contenders to get out of step; then nobody tells of anything.
func (m *majority) wait(v *vote, free int, refusals []answer, took time.Duration) time.Duration {
	count := make(map[string]int)
	most := 0
	ttls := make([]time.Duration, free, free+len(refusals))
	for _, a := range refusals {
		ttls = append(ttls, a.ttl)
		count[a.rival]++
		most = max(most, count[a.rival])
	}
	slices.Sort(ttls)
	var until time.Duration // 0: unknown
	if len(ttls) >= m.quorum {
		until = ttls[m.quorum-1]
	}
	if most >= m.quorum {
		v.tries = 0
		return until
	}
	v.tries++
	window := min(min(max(2*took, 2*time.Millisecond), 50*time.Millisecond)<<min(v.tries-1, 5), 500*time.Millisecond)
	pause := window/8 + rand.N(window)
	if until > 0 && until < pause {
		return until
	}
	return pause
}

// free ends v, and has it deleted on all servers that may have it: each is asked until it has
// answered, but not for long. tell is whether that is published. It may be called again.
func (m *majority) free(v *vote, tell bool) {
	v.ended.Store(true)
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.seats {
		if s := &v.seats[i]; !s.clearing && !s.gone {
			s.clearing = true
			m.spawn(func() { m.clear(i, v, tell) })
		}
	}
}

func (m *majority) clear(i int, v *vote, tell bool) {
	s := &v.seats[i]
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		s.clearing = false
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty {
		v.note(s, lease.Released{})
		return
	}
	node := m.nodes[i]
	stop := time.Now().Add(lease.DefaultReleaseTimeout)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		ctx, cancel := context.WithTimeout(m.life, m.patience(v.lease))
		var r lease.Released
		var err error
		if tell {
			r, err = node.Release(ctx, v.name, v.owner)
		} else {
			args := []any{head - 1: nil, v.name, prefixed(node.channel, v.name), v.owner, node.payload}
			var reply any
			reply, err = node.c.p.Eval(ctx, hashRelease, 2, args)
			r.Held = reply != nil
		}
		cancel()
		if err == nil {
			s.dirty = false
			r.Held = r.Held || s.asked // an earlier request did it, perhaps
			v.note(s, r)
			return
		}
		s.asked = true
		if time.Now().Add(pause).After(stop) {
			return
		}
		select {
		case <-time.After(pause):
		case <-m.life.Done():
			return
		}
	}
}

// note notes that a server does not have v any more.
func (v *vote) note(s *seat, r lease.Released) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.gone = true
	v.noted++
	if r.Held {
		v.held++
	}
	v.awaited = v.awaited || r.Held && r.Awaited
	close(v.changed)
	v.changed = make(chan struct{})
}

// await waits until ready, which is called with v.mu held, returns true, but neither for longer
// than limit nor after ctx has ended.
func (v *vote) await(ctx context.Context, limit time.Duration, ready func() bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		v.mu.Lock()
		done, changed := ready(), v.changed
		v.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Lookup is for outcomes that are unknown, which those of [majority.Acquire] are not.
func (m *majority) Lookup(_ context.Context, _, owner string) (lease.Reply, error) {
	if v := m.find(owner); v != nil {
		m.free(v, false)
	}
	return lease.Reply{}, nil
}

// Release returns when a majority can have the lock that we had, or is known not to have been
// ours. The other servers are seen to in the background.
func (m *majority) Release(ctx context.Context, _, owner string) (lease.Released, error) {
	v := m.find(owner)
	if v == nil {
		return lease.Released{}, nil
	}
	n := len(m.nodes)
	m.free(v, true)
	v.await(ctx, m.patience(v.lease), func() bool {
		return v.noted == n || v.held >= m.quorum || v.noted-v.held > n-m.quorum
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.noted < m.quorum {
		return lease.Released{}, fmt.Errorf("redislock: %d of %d servers answered to the release", v.noted, n)
	}
	m.forget(owner, v)
	return lease.Released{Held: v.held+n-v.noted >= m.quorum, Awaited: v.awaited}, nil
}

// renewal is one request to all servers to prolong some holds.
type renewal struct {
	m     *majority
	votes []*vote
	index []int // of each vote, in the holds that were asked for
	sent  time.Time
	limit time.Duration // for which a server is waited for

	answers chan renewed
	came    []renewed
	yes, no []int // of each vote
	errs    []error
}

// renewed is what one server says to a renewal.
type renewed struct {
	node int
	held []bool
	err  error
}

// Renew reports the holds that a majority has prolonged. Of one that a majority denies it tells
// at once, and has the rest of it deleted.
func (m *majority) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	r := &renewal{m: m, sent: time.Now(), limit: m.patience(d)}
	if !r.send(ctx, holds, d) {
		return held, nil
	}
	r.collect(ctx)
	open := r.settle(held, holds)
	if m.restore {
		m.spawn(func() { r.restore(d) })
	}
	if open {
		return held, fmt.Errorf("redislock: %d of %d servers answered to the renewal: %w",
			len(r.came)-len(r.errs), len(m.nodes), errors.Join(r.errs...))
	}
	return held, nil
}

// send asks all servers, and reports whether there is anything to ask for.
func (r *renewal) send(ctx context.Context, holds []lease.HoldID, d time.Duration) bool {
	m, long := r.m, d+driftOf(d)
	var ids []lease.HoldID
	for i, h := range holds {
		v := m.find(h.Acquisition)
		if v == nil {
			continue
		}
		v.mu.Lock()
		if until := r.sent.Add(long + r.limit); until.After(v.until) {
			v.until = until
		}
		v.mu.Unlock()
		r.votes = append(r.votes, v)
		ids = append(ids, lease.HoldID{Name: v.name, Acquisition: v.owner})
		r.index = append(r.index, i)
	}
	if len(ids) == 0 {
		return false
	}
	r.yes, r.no = make([]int, len(ids)), make([]int, len(ids))
	r.answers = make(chan renewed, len(m.nodes))
	for i, node := range m.nodes {
		m.spawn(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.limit)
			defer cancel()
			held, err := node.Renew(ctx, ids, long)
			r.answers <- renewed{i, held, err}
		})
	}
	return true
}

// collect waits for answers until all votes are decided.
func (r *renewal) collect(ctx context.Context) {
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	for len(r.came) < len(r.m.nodes) && !r.decided() {
		select {
		case a := <-r.answers:
			r.count(a)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (r *renewal) count(a renewed) {
	r.came = append(r.came, a)
	if a.err != nil {
		r.errs = append(r.errs, fmt.Errorf("server %d: %w", a.node, a.err))
	}
	for k := range a.held {
		switch {
		case a.held[k]:
			r.yes[k]++
		case a.err == nil:
			r.no[k]++
		}
	}
}

// confirmed reports whether a majority has prolonged vote k, and denied whether a majority is out
// of reach.
func (r *renewal) confirmed(k int) bool { return r.yes[k] >= r.m.quorum }
func (r *renewal) denied(k int) bool    { return r.no[k] > len(r.m.nodes)-r.m.quorum }

func (r *renewal) decided() bool {
	for k := range r.votes {
		if !r.confirmed(k) && !r.denied(k) {
			return false
		}
	}
	return true
}

// settle notes which holds are confirmed, ends those that are denied, and reports whether any is
// undecided.
func (r *renewal) settle(held []bool, holds []lease.HoldID) (open bool) {
	open = !r.decided()
	for k, v := range r.votes {
		held[r.index[k]] = r.confirmed(k)
		if !r.denied(k) {
			continue
		}
		r.m.free(v, true)
		if open { // and so an error; otherwise the result says it
			r.m.lost(holds[r.index[k]], nil)
		}
	}
	return open
}

// restore gives confirmed votes to the servers that lack them, when all have answered.
func (r *renewal) restore(d time.Duration) {
	for len(r.came) < len(r.m.nodes) {
		r.came = append(r.came, <-r.answers) // at the node timeout at the latest, if the client heeds that
	}
	if time.Since(r.sent) > d {
		return // it may be lost
	}
	for _, a := range r.came {
		for k := range a.held {
			if a.err != nil || a.held[k] || !r.confirmed(k) {
				continue
			}
			r.m.spawn(func() {
				ctx, cancel := context.WithTimeout(r.m.life, r.limit)
				defer cancel()
				r.m.ask(ctx, a.node, r.votes[k])
			})
		}
	}
}

// Watch hears of releases on all servers, and counts as begun when it does on so many that every
// majority has one of them.
func (m *majority) Watch(ctx context.Context, name, _ string) (lease.Watch, error) {
	n := len(m.nodes)
	w := &watches{c: make(chan struct{}, 1)}
	results := make(chan bool, n)
	for _, node := range m.nodes {
		m.spawn(func() {
			active := false
			sub := &watch{c: w.c}
			if how, err := node.c.mode(ctx); err == nil {
				active, err = node.c.hub.attach(ctx, sub, how, prefixed(node.channel, name))
				if err == nil {
					w.add(sub)
				} else {
					sub.Close()
				}
			}
			results <- active
		})
	}
	for need := n - m.quorum + 1; need > 0 && n > 0; n-- {
		if <-results { // each within confirmTimeout
			need--
		}
	}
	return w, nil
}

// watches is a [lease.Watch] on several servers, with one channel.
type watches struct {
	c      chan struct{}
	mu     sync.Mutex
	closed bool
	subs   []*watch
}

func (w *watches) C() <-chan struct{} { return w.c }

func (w *watches) add(sub *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		sub.Close()
		return
	}
	w.subs = append(w.subs, sub)
}

func (w *watches) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, sub := range w.subs {
		sub.Close()
	}
	w.subs = nil
}
