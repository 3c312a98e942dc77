package redlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// inquiry is one request to all servers about some votes.
type inquiry struct {
	m      *majority
	votes  []*vote
	sent   time.Time
	limit  time.Duration // how long the client waits for a server
	d      time.Duration // for which the servers shall renew the votes, or 0
	course *course

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
func (m *majority) inquire(ctx context.Context, votes []*vote, d, limit time.Duration,
	ask func(context.Context, node, []driver.HoldID) ([]bool, error)) *inquiry {
	r := &inquiry{m: m, votes: votes, sent: time.Now(), limit: limit, d: d, answers: make(chan told, len(m.nodes)),
		course: newCourse(len(m.nodes)), yes: make([]int, len(votes)), no: make([]int, len(votes))}
	ids := make([]driver.HoldID, len(votes))
	for k, v := range votes {
		ids[k] = driver.HoldID{Name: v.name, Acquisition: v.id}
	}
	for i, node := range m.nodes {
		asked := m.jobs.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
			defer cancel()
			held, err := ask(ctx, node, ids)
			r.course.end(i, err)
			r.answers <- told{i, held, err}
		})
		if !asked {
			r.course.end(i, nil)
			r.answers <- told{i, nil, locks.ErrClosed}
		}
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
	errs := r.errs
	if silent := len(r.m.nodes) - len(r.came); silent > 0 {
		errs = append(slices.Clone(errs), fmt.Errorf("%d servers have not answered within %v",
			silent, time.Since(r.sent).Round(time.Millisecond)))
	}
	return fmt.Errorf("%d of %d servers answered to the %s: %w",
		len(r.came)-len(r.errs), len(r.m.nodes), what, adapter.Join(errs...))
}

func (r *inquiry) count(a told) {
	r.came = append(r.came, a)
	if a.err != nil {
		r.errs = append(r.errs, fmt.Errorf("server %d: %w", a.node, a.err))
	}
	short := false
	for k, v := range r.votes[:len(a.held)] {
		switch {
		case a.held[k] && !v.lasts(a.node, r.d):
			short = true
		case a.held[k]:
			r.yes[k]++
		case a.err == nil:
			r.no[k]++
		}
	}
	if short && a.err == nil {
		r.errs = append(r.errs, fmt.Errorf("server %d: %w", a.node, errStraggler))
	}
}

// confirmed reports whether a majority has confirmed vote k. denied reports whether no majority can
// confirm it any more.
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

// leave notes the requests that may renew confirmed votes later. A vote without a majority is in
// doubt for the caller in any case.
func (r *inquiry) leave() {
	var confirmed []*vote
	for k, v := range r.votes {
		if r.confirmed(k) {
			confirmed = append(confirmed, v)
		}
	}
	r.course.leave(confirmed, r.d)
}

// restore creates confirmed votes on the servers that lack them, when all servers have answered.
func (r *inquiry) restore(d time.Duration) {
	for len(r.came) < len(r.m.nodes) {
		r.came = append(r.came, <-r.answers) // within r.limit, if the client of Redis obeys contexts
	}
	if time.Since(r.sent) > d {
		return // the hold may be lost
	}
	for _, a := range r.came {
		for k := range a.held {
			if a.err != nil || a.held[k] || !r.confirmed(k) {
				continue
			}
			r.m.jobs.Go(func() {
				ctx, cancel := context.WithTimeout(r.m.life, r.limit)
				defer cancel()
				v := r.votes[k]
				s := v.straggle(a.node, d)
				v.catchUp(a.node, s, r.m.ask(ctx, a.node, v, d).err)
			})
		}
	}
}
