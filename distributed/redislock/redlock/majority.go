package redlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// A lock of Redlock is a plain lock on more than half of the servers, under the same name and with
// the same holder.

// driftOf returns how much longer than d the servers keep a lock. Their clocks may be faster than
// the client's.
func driftOf(d time.Duration) time.Duration { return d/100 + 2*time.Millisecond }

// majority is the [driver.Store] over stores of plain locks on independent servers.
//
// An acquisition of package lease is several tries here. Each try is a [vote], with a name of its
// own on the servers. So a late request of one try does not affect the next try.
type majority struct {
	nodes   []node
	quorum  int
	timeout time.Duration // 0: by the lease
	restore bool
	lost    func(driver.HoldID, error) // notifies package lease

	jobs    adapter.Jobs
	life    context.Context
	end     context.CancelFunc
	closing sync.Once

	mu     sync.Mutex
	serial int64            // of the last vote: its time in microseconds since 1970, or the serial before plus one
	votes  map[string]*vote // by acquisition
	sweep  int              // the number of votes at which begin deletes the expired votes
}

var (
	_ driver.Store         = (*majority)(nil)
	_ driver.Inspector     = (*majority)(nil)
	_ driver.Announcer     = (*majority)(nil)
	_ driver.LossNotifier  = (*majority)(nil)
	_ driver.BatchReleaser = (*majority)(nil)
)

// node is one of the servers: its plain lock, and the methods that request votes.
type node struct {
	redisport.Plain
	port redisport.Port
}

func newMajority(nodes []node, o *redisport.Options) *majority {
	m := &majority{
		nodes:   nodes,
		quorum:  len(nodes)/2 + 1,
		timeout: o.NodeTimeout,
		restore: o.Restore,
		votes:   make(map[string]*vote),
		sweep:   1024,
	}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

func (m *majority) NotifyLoss(lost func(driver.HoldID, error)) { m.lost = lost }

// patience returns how long the client waits for one server.
func (m *majority) patience(d time.Duration) time.Duration {
	if m.timeout > 0 {
		return m.timeout
	}
	return min(max(d/10, 100*time.Millisecond), time.Second)
}

// Acquire asks all servers for a vote. Without a majority it deletes the vote on all servers,
// unless another request of the acquisition counts the vote, or a hold has it.
func (m *majority) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	n := len(m.nodes)
	v := m.begin(req.Name, req.Acquisition, req.TTL)
	b := &ballot{m: m, began: time.Now(), limit: m.patience(req.TTL), answers: make(chan answer, n), out: n}
	b.ask(ctx, v, req.TTL)
	b.collect(ctx)
	took := time.Since(b.began)
	if len(b.votes) >= m.quorum && took < req.TTL/2 && v.win() {
		v.leave()
		return driver.Reply{Held: true}, nil
	}
	last := v.leave()
	if last {
		// Granted votes are deleted before the caller returns. The other deletions go on in the
		// background.
		m.free(v, false)
		v.await(ctx, b.limit, func() bool { return b.deleted(v) })
	}
	if err := b.failure(ctx, v, took, !last); err != nil {
		if last && redisport.NothingDone(err) {
			m.forget(req.Acquisition, v)
		}
		return driver.Reply{}, err
	}
	return driver.Reply{Wait: m.wait(v, len(b.votes), b.refusals, took)}, nil
}

// wait returns how long to wait after a refusal if no release is heard. If a rival has the
// majority, the wait ends when a majority of the servers can be free. Otherwise no release will
// come, and the wait is random, so that the contenders get out of step.
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

// Lookup asks all servers, unless the vote has ended.
func (m *majority) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	v := m.find(req.Name, req.Acquisition)
	if v == nil || v.ended.Load() {
		return driver.Reply{}, nil
	}
	q := m.inquire(ctx, []*vote{v}, 0, m.patience(v.lease),
		func(ctx context.Context, node node, ids []driver.HoldID) ([]bool, error) {
			r, err := node.Lookup(ctx, driver.Request{HoldID: ids[0]})
			return []bool{r.Held}, err
		})
	if !q.decided() {
		return driver.Reply{}, q.failure("lookup")
	}
	return driver.Reply{Held: q.confirmed(0) && v.win()}, nil
}

// Release returns when a majority of the servers has freed the lock, when no majority can have had
// the lock, or when so many servers have failed that no majority is left. It frees the other
// servers in the background. A vote that was refused because the majority came too late was not a
// hold.
func (m *majority) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	v := m.find(id.Name, id.Acquisition)
	if v == nil {
		return driver.Released{}, nil
	}
	n := len(m.nodes)
	v.forgetFailures()
	m.free(v, true)
	v.await(ctx, m.patience(v.lease), func() bool {
		return v.held >= m.quorum || v.noted-v.held > n-m.quorum || v.failures() > n-m.quorum
	})
	v.mu.Lock()
	noted, held, awaited, won := v.noted, v.held, v.awaited, v.won
	var err error
	if noted < m.quorum {
		err = v.failure(m.quorum)
	}
	v.mu.Unlock() // before forget acquires m.mu: begin acquires the mutexes of votes with m.mu held
	if err != nil {
		return driver.Released{}, err
	}
	m.forget(id.Acquisition, v)
	return driver.Released{Held: won && held+n-noted >= m.quorum, Awaited: awaited}, nil
}

// Renew reports the holds that a majority has renewed. A hold that a majority denies is lost at
// once, and its vote is deleted.
func (m *majority) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
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
	r := m.inquire(ctx, votes, d, limit, func(ctx context.Context, node node, ids []driver.HoldID) ([]bool, error) {
		return node.Renew(ctx, ids, long)
	})
	open := !r.decided()
	r.leave()
	for k, v := range votes {
		held[index[k]] = r.confirmed(k)
		if !r.denied(k) {
			continue
		}
		m.free(v, true)
		if open { // otherwise the result of Renew reports the loss
			m.lost(holds[index[k]], nil)
		}
	}
	var err error
	if open {
		err = r.failure("renewal")
	}
	if m.restore {
		m.jobs.Go(func() { r.restore(d) })
	}
	return held, err
}

// Watch hears releases on all servers. It returns when every majority has a server on which the
// subscription is confirmed, or after a second.
func (m *majority) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	n := len(m.nodes)
	w := &watches{Bell: adapter.NewBell()}
	results := make(chan bool, n)
	for _, node := range m.nodes {
		asked := m.jobs.Go(func() {
			sub, active, err := node.Notify(ctx, id.Name, w.Bell)
			if err == nil {
				w.add(sub)
			}
			results <- active
		})
		if !asked {
			results <- false
		}
	}
	for need := n - m.quorum + 1; need > 0 && n > 0; n-- {
		if <-results { // each within a second
			need--
		}
	}
	return w, nil
}

// watches is a [driver.Watch] on several servers, with one channel.
type watches struct {
	adapter.Bell
	mu     sync.Mutex
	closed bool
	subs   []driver.Watch
}

func (w *watches) add(sub driver.Watch) {
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

// close ends the background goroutines. Only the first call does anything.
func (m *majority) close(ctx context.Context) {
	m.closing.Do(func() {
		patience, cancel := context.WithTimeout(ctx, lease.DefaultReleaseTimeout)
		m.jobs.Close(patience)
		cancel()
		m.end()
		var subscriptions sync.WaitGroup
		for _, node := range m.nodes {
			subscriptions.Go(func() { node.Close(ctx) })
		}
		subscriptions.Wait()
	})
}
