package lease

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// scheduler renews the grants of a client, and tells of their loss: one goroutine, with one timer
// for the next thing to do, whatever the number of grants.
type scheduler struct {
	c    *Client
	wake chan struct{}
	done chan struct{}

	mu     sync.Mutex
	grants grantHeap
	owners map[string]*grant // the same by their owners, if the store is a [Herald]
	early  map[string]*early // by owners who may be given a grant just now, if the store is a Herald
	next   time.Time         // when the goroutine will look by itself; zero: never
}

// batch is how many grants one renewal has at most.
const batch = 100

// grantHeap has the grant first for which there is something to do first.
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
	if until := g.deadline(); g.renewAt.IsZero() || until.Before(g.renewAt) {
		return until
	}
	return g.renewAt
}

func (s *scheduler) init(c *Client) {
	s.c = c
	s.wake = make(chan struct{}, 1)
	s.done = make(chan struct{})
	go s.run()
}

// wait returns when the scheduler's goroutine has ended, which it does as Close begins.
func (s *scheduler) wait() { <-s.done }

// add begins to look after g.
func (s *scheduler) add(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan(g)
	g.at = g.due()
	heap.Push(&s.grants, g)
	if s.owners != nil {
		s.owners[g.ref.Acquisition] = g
	}
	s.rouse()
}

// update looks after g, which was prolonged, as is right now.
func (s *scheduler) update(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index < 0 {
		return
	}
	s.plan(g)
	s.fix(g)
	s.rouse()
}

// early is the loss of a grant of which the store tells before the grant is looked after: the store knows that it has given it
// before its answer gets here.
//
//	expected  told    the loss is noted, and watched ends with it: the grant is lost
//	expected  added   as told: whoever adds a grant asks afterwards, and who tells of a loss from then on finds the grant
//	neither           there is no hold, and the loss is no news
type early struct {
	told  bool
	cause error
}

// expect says that owner may be given a grant from now on. watched has to be called in the end.
func (s *scheduler) expect(owner string) {
	if s.owners == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early[owner] = new(early)
}

// watched ends what expect has begun, and returns the loss that was told of since, or nil.
func (s *scheduler) watched(owner string) *early {
	if s.owners == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.early[owner]
	delete(s.early, owner)
	if e == nil || !e.told {
		return nil
	}
	return e
}

// holder returns owner's grant, or notes its loss for when there is one.
func (s *scheduler) holder(owner string, cause error) *grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.owners[owner]
	if e := s.early[owner]; g == nil && e != nil && !e.told {
		e.told, e.cause = true, cause
	}
	return g
}

// remove ends to look after g.
func (s *scheduler) remove(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index >= 0 {
		heap.Remove(&s.grants, g.index)
	}
	delete(s.owners, g.ref.Acquisition)
}

// fix puts g in its place in the heap, after what is due for it has changed. s.mu is held.
func (s *scheduler) fix(g *grant) {
	g.at = g.due()
	heap.Fix(&s.grants, g.index)
}

// plan says when g is renewed: when two thirds of a lease are left of it, and not before the next time
// that was planned, unless it would be over by then. s.mu is held.
func (s *scheduler) plan(g *grant) {
	until := g.deadline()
	at := until.Add(s.c.marginOf(g.lease) - g.lease*2/3)
	if !g.fixed && (at.After(g.renewAt) || !until.After(g.renewAt)) {
		g.renewAt = at
	}
}

// sooner looks after g, which may be over sooner than it was.
func (s *scheduler) sooner(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.index >= 0 {
		s.fix(g)
		s.rouse()
	}
}

// rouse has the goroutine look again if it would do so too late. s.mu is held.
func (s *scheduler) rouse() {
	if !s.next.IsZero() && !s.grants[0].at.Before(s.next) {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *scheduler) run() {
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
		case <-s.wake:
		case <-timer.C:
		case <-s.c.open.Done():
			return
		}
	}
}

// step does what is due, and returns how long there will be nothing to do, or false for ever.
func (s *scheduler) step() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var over []*grant
	for len(s.grants) > 0 && !s.grants[0].at.After(now) {
		g := s.grants[0]
		switch {
		case !g.deadline().After(now):
			heap.Pop(&s.grants)
			over = append(over, g)
		case g.due().After(now): // prolonged meanwhile
			s.fix(g)
		default:
			s.renew(now, g.lease)
		}
	}
	if len(over) > 0 {
		s.mu.Unlock()
		for _, g := range over {
			s.c.lost(g, nil)
		}
		s.mu.Lock()
	}
	if len(s.grants) == 0 {
		s.next = time.Time{}
		return 0, false
	}
	s.next = s.grants[0].at
	return max(time.Until(s.next), 0), true
}

// renew sends renewals for all grants of lease that are due within a tenth of it from now. The next ones
// follow after a third of it, whether the replies have come or not: if these take long, several are
// on their way, and the hold stays. s.mu is held.
func (s *scheduler) renew(now time.Time, lease time.Duration) {
	var due []*grant
	for _, g := range s.grants {
		if g.lease == lease && !g.renewAt.IsZero() && !g.renewAt.After(now.Add(lease/10)) {
			due = append(due, g)
		}
	}
	for _, g := range due {
		g.renewAt = now.Add(lease / 3)
		s.fix(g)
	}
	for len(due) > 0 {
		n := min(len(due), batch)
		gs := due[:n]
		due = due[n:]
		s.c.spawn(func() { s.send(gs, lease) })
	}
}

// send has gs renewed. The request is given up when its success would no longer say anything. The
// holds end in time all the same: their ends are looked after apart from it.
func (s *scheduler) send(gs []*grant, lease time.Duration) {
	var refs []HoldID
	var sent []*pending
	gs = slices.DeleteFunc(slices.Clone(gs), func(g *grant) bool {
		p := g.renewal(s.c)
		if p == nil { // extended meanwhile
			s.update(g)
			return true
		}
		refs, sent = append(refs, g.ref), append(sent, p)
		return false
	})
	if len(gs) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(s.c.life, time.Now().Add(lease-s.c.marginOf(lease)))
	defer cancel()
	ok, err := s.c.store.Renew(ctx, refs, lease)
	failed := err != nil || len(ok) != len(gs)
	if failed {
		var again []*grant
		for i, g := range gs {
			if i >= len(ok) || !ok[i] {
				g.unanswered(sent[i])
				again = append(again, g)
			}
		}
		s.retry(again, lease)
	}
	for i, g := range gs[:min(len(ok), len(gs))] {
		switch {
		case !ok[i] && failed: // unknown
		case !ok[i]:
			s.c.lost(g, nil)
		case g.answered(s.c, sent[i]):
			s.update(g)
		}
	}
}

// retry plans the next renewal after one that failed.
func (s *scheduler) retry(gs []*grant, lease time.Duration) {
	at := time.Now().Add(max(lease/30, time.Millisecond))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range gs {
		if g.index >= 0 && g.renewAt.After(at) {
			g.renewAt = at
			s.fix(g)
		}
	}
	if len(s.grants) > 0 {
		s.rouse()
	}
}
