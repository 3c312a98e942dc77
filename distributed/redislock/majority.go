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
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// The state of a lock of Redlock is a plain lock on more than half of the servers, under the same
// name and with the same holder.

// driftOf returns how much longer than d the servers keep a lock. Their clocks may be faster than
// the client's.
func driftOf(d time.Duration) time.Duration { return d/100 + 2*time.Millisecond }

// majority is the [lease.Store] over stores of plain locks on independent servers.
//
// An acquisition of package lease is several tries here. Each try is a [vote], with a name of its
// own on the servers. So a late request of one try has no effect on the next.
type majority struct {
	nodes   []*single
	quorum  int
	timeout time.Duration // 0: by the lease
	restore bool
	lost    func(lease.HoldID, error) // notifies package lease

	life    context.Context
	end     context.CancelFunc
	closing sync.Once

	mu     sync.Mutex
	serial int64 // of the last vote: the time in microseconds since 1970, or the next number
	jobs   int
	idle   chan struct{}    // closed when no job is at work, if not nil
	votes  map[string]*vote // by acquisition
	sweep  int              // with so many votes, those that are over are deleted
}

var (
	_ store              = (*majority)(nil)
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

// patience returns how long the client waits for one server.
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

// vote is one try to acquire the lock, and the hold that it leads to.
//
//	open    requests may create it on servers     Acquire, and Renew with WithRestore
//	won     the same, and the lock is held        Acquire or Lookup, by a majority
//	ended   no request may create it any more     leave, or free; for good
//
// Several requests of one acquisition may be under way at once, because a request may be repeated.
// All of them count the same votes: a server that has the vote grants it again. So a request
// without a majority leaves the votes to the other requests. Only the last request under way
// deletes them. If the vote is won, no request to acquire does: a release, or a renewal that the
// majority denies, deletes the votes of a hold. A vote is won and ended under one mutex, so a
// majority that was counted while another request deleted votes is no win.
//
// A request that creates the vote on a server runs under the mutex of the server's seat, and
// checks ended first. Requests that delete the vote are sent after ended was set, under the same
// mutex. So the last request to each server is one that deletes. No creation is under way then,
// as long as the client below waits for answers.
type vote struct {
	name  string
	id    string // the holder's name on the servers
	lease time.Duration
	ended atomic.Bool // set under mu
	seats []seat

	mu      sync.Mutex
	asking  int           // requests to acquire that are under way
	won     bool          // a request has reported a majority
	tries   int           // so far, without a majority for any client
	until   time.Time     // when it has expired on all servers, whatever happens
	noted   int           // servers that surely do not have it any more
	held    int           // of these, servers that had it
	awaited bool          // the deletion was heard by a waiter
	changed chan struct{} // closed and replaced when a server is noted
}

// seat is what is known of a vote on one server.
type seat struct {
	mu    sync.Mutex // held while a request that creates or deletes the vote is under way
	dirty bool       // the vote may be there
	asked bool       // the vote may have been deleted

	// Guarded by vote.mu.
	clearing bool // a goroutine deletes the vote
	gone     bool // the server was noted
}

// begin returns a new vote of an acquisition, or the one that it has, if that has not ended. It
// counts the request of the caller, which calls win or leave later.
func (m *majority) begin(name, acquisition string, d time.Duration) *vote {
	v := &vote{
		name:    name,
		lease:   d,
		seats:   make([]seat, len(m.nodes)),
		changed: make(chan struct{}),
		asking:  1,
		until:   time.Now().Add(d + driftOf(d) + m.patience(d)),
	}
	// A name in Redisson's form. The names of acquisitions themselves are not used on servers.
	client := acquisition
	if end := strings.LastIndexByte(acquisition, ':'); end >= 0 {
		client = acquisition[:end]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial = max(time.Now().UnixMicro(), m.serial+1)
	v.id = client + ":" + strconv.FormatInt(m.serial, 10)
	if before := m.votes[acquisition]; before != nil {
		if before.join(v) { // the request is repeated
			return before
		}
	}
	if len(m.votes) >= m.sweep { // there are votes of lost holds and abandoned acquisitions
		now := time.Now()
		for o, old := range m.votes {
			if old.over(now) {
				delete(m.votes, o)
			}
		}
		m.sweep = max(1024, 2*len(m.votes))
	}
	m.votes[acquisition] = v
	return v
}

// join counts another request, next, of the same acquisition. If v has ended, it lets next go on
// with its tries instead, and returns false.
func (v *vote) join(next *vote) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.Load() {
		next.tries = v.tries
		return false
	}
	v.asking++
	if next.until.After(v.until) {
		v.until = next.until
	}
	return true
}

// win makes the votes those of a hold. It returns false if v has ended.
func (v *vote) win() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.Load() {
		return false
	}
	v.won = true
	return true
}

// leave ends a request. It ends v, and returns true, if no other request counts its votes and no
// hold has them.
func (v *vote) leave() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asking--
	if v.asking > 0 || v.won {
		return false
	}
	v.ended.Store(true)
	return true
}

func (v *vote) over(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.After(v.until)
}

// last notes that v has not expired until then.
func (v *vote) last(until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if until.After(v.until) {
		v.until = until
	}
}

func (m *majority) find(name, acquisition string) *vote {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.votes[acquisition]; v != nil && v.name == name {
		return v
	}
	return nil
}

func (m *majority) forget(acquisition string, v *vote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.votes[acquisition] == v {
		delete(m.votes, acquisition)
	}
}

// answer is a server's answer to a request for its vote.
type answer struct {
	node  int
	held  bool
	ttl   time.Duration // of a rival's hold
	rival string        // the holder
	err   error
	doubt bool // the server may have granted it in spite of err
}

var errEnded = errors.New("the attempt has ended")

// ask asks a server for its vote, for the time d.
func (m *majority) ask(ctx context.Context, i int, v *vote, d time.Duration) answer {
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
	args := []any{head - 1: nil, v.name, millis(d + driftOf(d)), v.id}
	r, err := m.nodes[i].c.p.Eval(ctx, voteAcquire, 1, args)
	if err != nil {
		a.err = err
		var op *net.OpError
		if nothingDone(err) || errors.As(err, &op) && op.Op == "dial" {
			s.dirty = before
		}
		a.doubt = s.dirty
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
	a.err, a.doubt = unexpected(r), true
	return a
}

// ballot is one request to all servers for their votes.
type ballot struct {
	m        *majority
	began    time.Time
	limit    time.Duration // how long the client waits for a server
	answers  chan answer
	votes    []answer
	refusals []answer
	errs     []error
	out      int  // servers that have not answered
	doubt    bool // a server that failed may have granted its vote
	hopeless bool // servers have refused so many votes that a majority is impossible
}

// ask asks all servers to vote for v, for the time d.
func (b *ballot) ask(ctx context.Context, v *vote, d time.Duration) {
	for i := range b.out {
		b.m.spawn(func() {
			// The request goes on when a majority is there without it.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.limit)
			defer cancel()
			b.answers <- b.m.ask(ctx, i, v, d)
		})
	}
}

// collect waits for answers until a majority has voted, or cannot vote any more.
func (b *ballot) collect(ctx context.Context) {
	timer := time.NewTimer(b.limit)
	defer timer.Stop()
	for b.out > 0 && len(b.votes) < b.m.quorum {
		select {
		case a := <-b.answers:
			b.count(a)
			if !b.hopeless && len(b.votes)+b.out < b.m.quorum {
				// Wait a little for the others, because the pause depends on their answers.
				b.hopeless = true
				timer.Reset(min(2*time.Since(b.began)+time.Millisecond, b.limit))
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (b *ballot) count(a answer) {
	b.out--
	switch {
	case a.held:
		b.votes = append(b.votes, a)
	case a.err != nil:
		b.errs = append(b.errs, fmt.Errorf("server %d: %w", a.node, a.err))
		b.doubt = b.doubt || a.doubt
	default:
		b.refusals = append(b.refusals, a)
	}
}

// deleted reports whether all votes of b for v are deleted.
func (b *ballot) deleted(v *vote) bool {
	for _, a := range b.votes {
		if !v.seats[a.node].gone {
			return false
		}
	}
	return true
}

// failure returns why b has no outcome after took, or nil if a majority was refused. Servers
// without an answer count as failed, unless others have refused before. If the votes are left to
// others, only refusals of so many servers count that nobody can have a majority. The error
// matches [lease.ErrRefused] if no server has v.
func (b *ballot) failure(ctx context.Context, v *vote, took time.Duration, left bool) error {
	n, failed := len(b.m.nodes), len(b.errs)
	if !b.hopeless {
		failed += b.out
	}
	decided := !left || len(b.refusals) > n-b.m.quorum
	if decided && failed <= n-b.m.quorum && ctx.Err() == nil {
		return nil
	}
	errs := b.errs
	if ctx.Err() != nil {
		errs = append(errs, context.Cause(ctx))
	}
	if b.out > 0 {
		errs = append(errs, fmt.Errorf("%d servers have not answered within %v", b.out, took.Round(time.Millisecond)))
	}
	err := fmt.Errorf("%d of %d servers answered: %w",
		len(b.votes)+len(b.refusals), n, errors.Join(errs...))
	v.mu.Lock()
	defer v.mu.Unlock()
	if (b.out > 0 || b.doubt || !b.deleted(v)) && !errors.Is(err, locks.ErrForeign) {
		return doubtful{err}
	}
	return driver.Never(err)
}

// doubtful matches what err matches, except for [lease.ErrRefused]: one of several servers has said
// that it did nothing.
type doubtful struct{ err error }

func (d doubtful) Error() string { return d.err.Error() }

func (d doubtful) Is(target error) bool {
	return target != lease.ErrRefused && errors.Is(d.err, target)
}

func (d doubtful) As(target any) bool { return errors.As(d.err, target) }

// Acquire deletes the vote wherever it may be if there is no majority, unless another request of
// the acquisition counts it, or a hold has it.
func (m *majority) Acquire(ctx context.Context, req lease.Request) (lease.Reply, error) {
	n := len(m.nodes)
	v := m.begin(req.Name, req.Acquisition, req.TTL)
	b := &ballot{m: m, began: time.Now(), limit: m.patience(req.TTL), answers: make(chan answer, n), out: n}
	b.ask(ctx, v, req.TTL)
	b.collect(ctx)
	took := time.Since(b.began)
	if len(b.votes) >= m.quorum && took < req.TTL/2 && v.win() {
		v.leave()
		return lease.Reply{Held: true}, nil
	}
	last := v.leave()
	if last {
		// Granted votes are deleted before the caller returns. The rest takes its time.
		m.free(v, false)
		v.await(ctx, b.limit, func() bool { return b.deleted(v) })
	}
	if err := b.failure(ctx, v, took, !last); err != nil {
		if last && nothingDone(err) {
			m.forget(req.Acquisition, v)
		}
		return lease.Reply{}, err
	}
	return lease.Reply{Wait: m.wait(v, len(b.votes), b.refusals, took)}, nil
}

// wait returns how long to wait after a refusal if no release is heard. If a rival has the
// majority, that is until a majority of the servers can be free. Otherwise no release will come,
// and it is a random time, so that the contenders get out of step.
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
	v.mu.Lock()
	v.tries++
	if most >= m.quorum {
		v.tries = 0
	}
	tries := v.tries
	v.mu.Unlock()
	if tries == 0 {
		return until
	}
	window := min(min(max(2*took, 2*time.Millisecond), 50*time.Millisecond)<<min(tries-1, 5), 500*time.Millisecond)
	pause := window/8 + rand.N(window)
	if until > 0 && until < pause {
		return until
	}
	return pause
}

// free ends v, and deletes it on all servers that may have it. Each server is asked until it has
// answered, for the release timeout at most. tell makes it publish the release. free may be
// called again.
func (m *majority) free(v *vote, tell bool) {
	var seats []int
	v.mu.Lock()
	v.ended.Store(true)
	for i := range v.seats {
		if s := &v.seats[i]; !s.clearing && !s.gone {
			s.clearing = true
			seats = append(seats, i)
		}
	}
	v.mu.Unlock() // begin acquires the mutexes of votes under that of m, which spawn needs
	for _, i := range seats {
		m.spawn(func() { m.clear(i, v, tell) })
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
			r, err = node.Release(ctx, lease.HoldID{Name: v.name, Acquisition: v.id})
		} else {
			args := []any{head - 1: nil, v.name, prefixed(node.channel, v.name), v.id, node.payload}
			var reply any
			reply, err = node.c.p.Eval(ctx, hashRelease, 2, args)
			r.Held = reply != nil
		}
		cancel()
		if err == nil {
			s.dirty = false
			r.Held = r.Held || s.asked // an earlier request may have deleted it
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

// note notes that a server no longer has v.
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

// await waits until ready returns true, until limit is over, or until ctx ends. It calls ready with
// v.mu held.
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

// Lookup asks all servers, unless the vote has ended.
func (m *majority) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	v := m.find(req.Name, req.Acquisition)
	if v == nil || v.ended.Load() {
		return lease.Reply{}, nil
	}
	q := m.inquire(ctx, []*vote{v}, m.patience(v.lease),
		func(ctx context.Context, node *single, ids []lease.HoldID) ([]bool, error) {
			r, err := node.Lookup(ctx, lease.Request{HoldID: ids[0]})
			return []bool{r.Held}, err
		})
	if !q.decided() {
		return lease.Reply{}, q.failure("lookup")
	}
	return lease.Reply{Held: q.confirmed(0) && v.win()}, nil
}

// Release returns when a majority of the servers has freed the lock, or is known not to have had
// it. It frees the other servers in the background.
func (m *majority) Release(ctx context.Context, id lease.HoldID) (lease.Released, error) {
	v := m.find(id.Name, id.Acquisition)
	if v == nil {
		return lease.Released{}, nil
	}
	n := len(m.nodes)
	m.free(v, true)
	v.await(ctx, m.patience(v.lease), func() bool {
		return v.noted == n || v.held >= m.quorum || v.noted-v.held > n-m.quorum
	})
	v.mu.Lock()
	noted, held, awaited := v.noted, v.held, v.awaited
	v.mu.Unlock() // before forget, as in free
	if noted < m.quorum {
		return lease.Released{}, fmt.Errorf("%d of %d servers answered to the release", noted, n)
	}
	m.forget(id.Acquisition, v)
	return lease.Released{Held: held+n-noted >= m.quorum, Awaited: awaited}, nil
}

// inquiry is one request to all servers about some votes.
type inquiry struct {
	m     *majority
	votes []*vote
	sent  time.Time
	limit time.Duration // how long the client waits for a server

	answers chan told
	came    []told
	yes, no []int // of each vote
	errs    []error
}

// told is one server's answer to an inquiry.
type told struct {
	node int
	held []bool
	err  error
}

// inquire asks all servers for the time limit at most, until all votes are decided.
func (m *majority) inquire(ctx context.Context, votes []*vote, limit time.Duration,
	ask func(context.Context, *single, []lease.HoldID) ([]bool, error)) *inquiry {
	r := &inquiry{m: m, votes: votes, sent: time.Now(), limit: limit, answers: make(chan told, len(m.nodes)),
		yes: make([]int, len(votes)), no: make([]int, len(votes))}
	ids := make([]lease.HoldID, len(votes))
	for k, v := range votes {
		ids[k] = lease.HoldID{Name: v.name, Acquisition: v.id}
	}
	for i, node := range m.nodes {
		m.spawn(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			held, err := ask(ctx, node, ids)
			r.answers <- told{i, held, err}
		})
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for len(r.came) < len(m.nodes) && !r.decided() {
		select {
		case a := <-r.answers:
			r.count(a)
		case <-timer.C:
			return r
		case <-ctx.Done():
			return r
		}
	}
	return r
}

// failure returns why r is not decided.
func (r *inquiry) failure(what string) error {
	return fmt.Errorf("%d of %d servers answered to the %s: %w",
		len(r.came)-len(r.errs), len(r.m.nodes), what, errors.Join(r.errs...))
}

// Renew reports the holds that a majority has renewed. A hold that a majority denies is lost at
// once, and its vote is deleted.
func (m *majority) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	long, limit := d+driftOf(d), m.patience(d)
	var votes []*vote
	var index []int // of each vote, in holds
	for i, h := range holds {
		if v := m.find(h.Name, h.Acquisition); v != nil {
			v.last(time.Now().Add(long + limit))
			votes, index = append(votes, v), append(index, i)
		}
	}
	if len(votes) == 0 {
		return held, nil
	}
	r := m.inquire(ctx, votes, limit, func(ctx context.Context, node *single, ids []lease.HoldID) ([]bool, error) {
		return node.Renew(ctx, ids, long)
	})
	open := !r.decided()
	for k, v := range votes {
		held[index[k]] = r.confirmed(k)
		if !r.denied(k) {
			continue
		}
		m.free(v, true)
		if open { // otherwise the result of Renew says it
			m.lost(holds[index[k]], nil)
		}
	}
	var err error
	if open {
		err = r.failure("renewal")
	}
	if m.restore {
		m.spawn(func() { r.restore(d) })
	}
	return held, err
}

func (r *inquiry) count(a told) {
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

// confirmed reports whether a majority has renewed vote k, and denied whether none can any more.
func (r *inquiry) confirmed(k int) bool { return r.yes[k] >= r.m.quorum }
func (r *inquiry) denied(k int) bool    { return r.no[k] > len(r.m.nodes)-r.m.quorum }

func (r *inquiry) decided() bool {
	for k := range r.votes {
		if !r.confirmed(k) && !r.denied(k) {
			return false
		}
	}
	return true
}

// restore creates confirmed votes on the servers that lack them, when all servers have answered.
func (r *inquiry) restore(d time.Duration) {
	for len(r.came) < len(r.m.nodes) {
		r.came = append(r.came, <-r.answers) // by the node timeout, if the client obeys it
	}
	if time.Since(r.sent) > d {
		return // the hold may be lost
	}
	for _, a := range r.came {
		for k := range a.held {
			if a.err != nil || a.held[k] || !r.confirmed(k) {
				continue
			}
			r.m.spawn(func() {
				ctx, cancel := context.WithTimeout(r.m.life, r.limit)
				defer cancel()
				r.m.ask(ctx, a.node, r.votes[k], d)
			})
		}
	}
}

// Watch hears releases on all servers. It returns when every majority has a server on which the
// subscription is confirmed, or after confirmTimeout.
func (m *majority) Watch(ctx context.Context, id lease.HoldID) (lease.Watch, error) {
	n := len(m.nodes)
	w := &watches{c: make(chan struct{}, 1)}
	results := make(chan bool, n)
	for _, node := range m.nodes {
		m.spawn(func() {
			active := false
			sub := &watch{c: w.c}
			if how, err := node.c.mode(ctx); err == nil {
				active, err = node.c.hub.attach(ctx, sub, how, prefixed(node.channel, id.Name))
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
