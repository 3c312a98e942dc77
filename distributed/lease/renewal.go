package lease

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// schedule renews the grants of a client and ends them in time. Any number of grants share one
// goroutine with one timer.
type schedule struct {
	*base
	wakeUp adapter.Bell
	done   chan struct{}
	sweep  func(*sweeping) // releaser.sweep

	mu     sync.Mutex
	grants grantHeap
	byName map[string]*grant // by acquisition, if the store is a LossNotifier
	early  map[string]early  // by acquisition that may be given a grant just now, if the store is a LossNotifier
	next   time.Time         // when the goroutine will look by itself; zero: never
}

// batch is how many grants one renewal has at most.
const batch = 100

// renewers is how many renewals are under way at a time while the store is quick. A pool of
// connections may have no limit, and a server may refuse a thousand connections.
const renewers = 16

// grantHeap is a heap whose first grant is due first.
type grantHeap []*grant

func (h grantHeap) Len() int           { return len(h) }
func (h grantHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h grantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *grantHeap) Push(x any) {
	g := x.(*grant)
	g.index = len(*h)
	*h = append(*h, g)
}
func (h *grantHeap) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	g.index = -1
	return g
}

// due returns when there is something to do for g: its renewal, or its end.
func (g *grant) due() time.Time {
	if until := g.end(); g.renewAt.IsZero() || until.Before(g.renewAt) {
		return until
	}
	return g.renewAt
}

func (s *schedule) init(b *base) {
	s.base = b
	s.wakeUp = adapter.NewBell()
	s.done = make(chan struct{})
	go s.run()
}

// listen prepares for the losses that the store reports.
func (s *schedule) listen() {
	s.byName = make(map[string]*grant)
	s.early = make(map[string]early)
}

// wait returns when the schedule's goroutine has ended, which it does as Close begins.
func (s *schedule) wait() { <-s.done }

// add schedules g.
func (s *schedule) add(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan(g)
	g.at = g.due()
	heap.Push(&s.grants, g)
	if s.byName != nil {
		s.byName[g.id.Acquisition] = g
	}
	s.wake()
}

// update schedules g anew after g was prolonged.
func (s *schedule) update(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index < 0 {
		return
	}
	s.plan(g)
	s.fix(g)
	s.wake()
}

// early is a loss that the store reports before the grant is in the schedule. The report of a
// loss can arrive before the answer that grants the lock.
//
//	expected, notified   the loss is noted; expected returns it, and the grant is lost
//	expected, added      the same: the loss is looked for after the grant is added, and a
//	                     notification from then on finds the grant
//	neither              the loss is known already, or concerns no grant
type early struct {
	notified bool
	cause    error
}

// expect says that id may be given a grant from now on. The caller calls endExpect in the end.
func (s *schedule) expect(id string) {
	if s.byName == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early[id] = early{}
}

// endExpect ends what expect has begun, and returns the loss notified since.
func (s *schedule) endExpect(id string) early {
	if s.byName == nil {
		return early{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.early[id]
	delete(s.early, id)
	return e
}

// holder returns id's grant, or notes its loss in case one is added.
func (s *schedule) holder(id string, cause error) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.byName[id]
	if e, ok := s.early[id]; g == nil && ok && !e.notified {
		s.early[id] = early{true, cause}
	}
	return g
}

// remove ends the scheduling of g.
func (s *schedule) remove(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index >= 0 {
		heap.Remove(&s.grants, g.index)
	}
	delete(s.byName, g.id.Acquisition)
}

// fix moves g to its place in the heap, after its due time has changed. s.mu is held.
func (s *schedule) fix(g *grant) {
	g.at = g.due()
	heap.Fix(&s.grants, g.index)
}

// plan sets when g is renewed: when two thirds of a lease are left of it. The new time is never
// earlier than the last plan, unless g would end before the planned time. A request of unknown
// outcome may keep g short whatever is answered later. Then the time between two renewals is at
// least a thirtieth of a lease, or half of the remaining time if less. s.mu is held.
func (s *schedule) plan(g *grant) {
	until, renewed := g.span()
	at := until.Add(s.marginOf(g.ttl) - g.ttl*2/3)
	if soonest := renewed.Add(min(g.ttl/30, until.Sub(renewed)/2)); at.Before(soonest) {
		at = soonest
	}
	if !g.fixed && (at.After(g.renewAt) || !until.After(g.renewAt)) {
		g.renewAt = at
	}
}

// sooner schedules g anew because g may end sooner than before.
func (s *schedule) sooner(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index >= 0 {
		s.fix(g)
		s.wake()
	}
}

// wake makes the goroutine look again if it would do so too late. s.mu is held.
func (s *schedule) wake() {
	if !s.next.IsZero() && !s.grants[0].at.Before(s.next) {
		return
	}
	s.wakeUp.Ring()
}

func (s *schedule) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if d, ok := s.step(); ok {
			timer.Reset(d)
		} else {
			timer.Stop()
		}
		select {
		case <-s.wakeUp:
		case <-timer.C:
		case <-s.open.Done():
			return
		}
	}
}

// step renews and ends the grants that are due. It returns the time until the next grant is due, or
// false without grants.
func (s *schedule) step() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var over []*grant
	for len(s.grants) > 0 && !s.grants[0].at.After(now) {
		g := s.grants[0]
		switch {
		case !g.end().After(now):
			heap.Pop(&s.grants)
			over = append(over, g)
		case g.due().After(now): // g was prolonged meanwhile
			s.fix(g)
		default:
			s.renew(now, g.ttl)
		}
	}
	if len(over) > 0 {
		s.mu.Unlock()
		for _, g := range over {
			s.lose(g, nil)
		}
		s.mu.Lock()
	}
	if len(s.grants) == 0 {
		s.next = time.Time{}
		return 0, false
	}
	s.next = s.grants[0].at
	return max(s.next.Sub(s.now()), 0), true
}

// renew sends renewals for all grants of this ttl that are due within a tenth of ttl from now. The
// next renewal follows after a third of ttl, with or without a reply. While replies take long,
// several renewals are on their way, and the hold stays. s.mu is held.
func (s *schedule) renew(now time.Time, ttl time.Duration) {
	var due []*grant
	for _, g := range s.grants {
		if g.ttl == ttl && !g.renewAt.IsZero() && !g.renewAt.After(now.Add(ttl/10)) {
			due = append(due, g)
		}
	}
	for _, g := range due {
		g.renewAt = now.Add(ttl / 3)
		s.fix(g)
	}
	switch {
	case len(due) > batch:
		s.spawn(func() { s.sendAll(due, ttl) })
	case len(due) > 0:
		s.spawn(func() { s.send(due, ttl) })
	}
}

// sendAll renews due, which are grants of this ttl. It sends some renewals at a time. After a tenth
// of ttl it sends all that are left: the store is slow, or a connection is dead, and the other
// holds must not end because of it.
func (s *schedule) sendAll(due []*grant, ttl time.Duration) {
	turns := make(chan struct{}, renewers)
	slow := time.NewTimer(ttl / 10)
	defer slow.Stop()
	paced := true
	for gs := range slices.Chunk(due, batch) {
		if paced {
			select {
			case turns <- struct{}{}:
			case <-slow.C:
				paced = false
			case <-s.open.Done():
			}
		}
		if s.open.Err() != nil { // Close has ended the holds
			return
		}
		mine := paced
		s.spawn(func() {
			s.send(gs, ttl)
			if mine {
				<-turns
			}
		})
	}
}

// send renews gs. The request is given up when its success could no longer prolong a hold. The
// holds end in time anyway: their ends are scheduled separately.
func (s *schedule) send(gs []*grant, ttl time.Duration) {
	var ids []driver.HoldID
	var sent []*pending
	gs = slices.DeleteFunc(slices.Clone(gs), func(g *grant) bool {
		p := g.renewal()
		if p == nil { // g was extended meanwhile
			s.update(g)
			return true
		}
		ids, sent = append(ids, g.id), append(sent, p)
		return false
	})
	if len(gs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, ttl-s.marginOf(ttl))
	defer cancel()
	s.announce(ttl)
	ok, err := s.store.Renew(ctx, ids, ttl)
	failed := err != nil || len(ok) != len(gs)
	for i, g := range gs[:min(len(ok), len(gs))] {
		if ok[i] && errors.Is(err, driver.ErrUnanswered) {
			g.noteDoubt(sent[i])
		}
	}
	if failed {
		var again []*grant
		for i, g := range gs {
			if i >= len(ok) || !ok[i] {
				g.noteNoAnswer(sent[i])
				again = append(again, g)
			}
		}
		s.retry(again, ttl)
	}
	for i, g := range gs[:min(len(ok), len(gs))] {
		switch {
		case !ok[i] && failed: // unknown
		case !ok[i]:
			g.noteDenial()
			s.lose(g, nil)
		case g.noteAnswer(sent[i]):
			s.update(g)
		default:
			s.late(g, sent[i])
		}
	}
}

// retry plans the next renewal after a failed renewal.
func (s *schedule) retry(gs []*grant, ttl time.Duration) {
	at := s.now().Add(max(ttl/30, time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range gs {
		if g.index >= 0 && g.renewAt.After(at) {
			g.renewAt = at
			s.fix(g)
		}
	}
	if len(s.grants) > 0 {
		s.wake()
	}
}

// complete extends g, which is not renewed, to its full time, because a part of that time was over
// when g was granted. If the extension fails, g stays shorter.
func (s *schedule) complete(ctx context.Context, g *grant) {
	ctx, cancel := context.WithTimeout(ctx, g.end().Sub(s.now()))
	defer cancel()
	p := g.request(g.ttl)
	ok, err := s.renewOne(ctx, g, p)
	switch {
	case err != nil:
		g.noteNoAnswer(p)
	case ok:
		g.noteAnswer(p)
	default:
		g.noteDenial()
		g.lose(nil)
	}
}

// renewOne sends p for g, and reports whether the store has prolonged g.
func (s *schedule) renewOne(ctx context.Context, g *grant, p *pending) (bool, error) {
	ok, err := s.store.Renew(ctx, []driver.HoldID{g.id}, p.d)
	renewed := len(ok) == 1 && ok[0]
	if renewed && errors.Is(err, driver.ErrUnanswered) {
		g.noteDoubt(p)
		err = nil
	}
	return renewed, err
}

// late asks the store to release g if g is lost. The request p to prolong g was carried out too
// late, or may have been if its outcome is unknown. Without a release, the store would keep the
// lock for p's time without an owner. After the release, p prolongs nothing.
func (s *schedule) late(g *grant, p *pending) {
	g.mu.Lock()
	lost := g.cause != nil
	g.mu.Unlock()
	if lost {
		s.sweep(&sweeping{id: g.id, until: s.now().Add(p.d)})
	}
}

// lose makes g lost, and no longer renewed.
func (s *schedule) lose(g *grant, cause error) {
	s.remove(g)
	if g.lose(cause) && s.log != nil {
		s.log.Warn("lock lost", "lock", g.id.Name, "acquisition", g.id.Acquisition)
	}
	s.tell(g)
}

// onLoss makes the grant of id lost, because the store has learned by itself that the hold has
// ended.
func (s *schedule) onLoss(id driver.HoldID, cause error) {
	if g := s.holder(id.Acquisition, cause); g != nil && g.id == id {
		g.noteDenial()
		s.lose(g, cause)
	}
}

// tell tells a [driver.Session], once, that g is lost. If g is not lost, tell does nothing. An
// earlier request of g's acquisition may still take the lock, without an owner: tell begins a sweep
// for that request.
func (s *schedule) tell(g *grant) {
	g.mu.Lock()
	first := g.cause != nil && !g.told
	g.told = g.told || first
	g.mu.Unlock()
	if !first {
		return
	}
	if s.session != nil {
		s.session.Lost(g.id)
	}
	if !g.doubt.IsZero() {
		s.sweep(&sweeping{id: g.id, queue: s.queue, until: g.doubt, late: true, ttl: g.ttl, several: true})
	}
}
