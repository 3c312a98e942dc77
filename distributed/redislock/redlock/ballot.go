package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// answer is a server's answer to a request for its vote.
type answer struct {
	node  int
	held  bool
	ttl   time.Duration // the rest of a rival's hold
	rival string        // the rival's name on the servers
	err   error
	doubt bool // the server may have granted its vote in spite of err
}

var errEnded = errors.New("the attempt has ended")

// ask asks server i to vote for v, for the time d.
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
	args := redisport.NewArgs(v.name, redisport.Millis(d+driftOf(d)), v.id)
	r, err := m.nodes[i].port.Eval(ctx, voteAcquire, 1, args)
	if err != nil {
		a.err = err
		var op *net.OpError
		if redisport.NothingDone(err) || errors.As(err, &op) && op.Op == "dial" {
			s.dirty = before
		} else {
			s.late = true
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
				s.dirty = s.late // an earlier request may still create it
				a.ttl, a.rival = time.Duration(max(ttl, 0))*time.Millisecond, rival
				return a
			}
		}
	}
	a.err, a.doubt = fmt.Errorf("unexpected reply of type %T", r), true
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
	hopeless bool // so many servers have refused or failed that a majority is impossible
}

// ask asks all servers to vote for v, for the time d.
func (b *ballot) ask(ctx context.Context, v *vote, d time.Duration) {
	for i := range b.out {
		asked := b.m.jobs.Go(func() {
			// The request goes on after a majority has voted without this server.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.limit)
			defer cancel()
			b.answers <- b.m.ask(ctx, i, v, d)
		})
		if !asked {
			b.answers <- answer{node: i, err: locks.ErrClosed}
		}
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

// failure returns why b is without an outcome after took, or nil if the outcome is that v has no
// majority. Servers without an answer count as failed, unless b is hopeless. If the votes are left
// to other requests, refusals count only if they rule out any majority. The error matches
// [driver.ErrRefused] if surely no server has v.
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
	err := fmt.Errorf("%d of %d servers answered", len(b.votes)+len(b.refusals), n)
	if len(b.refusals) > 0 {
		err = fmt.Errorf("%w, %d of them by a refusal", err, len(b.refusals))
	}
	if why := adapter.Join(errs...); why != nil {
		err = fmt.Errorf("%w: %w", err, why)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if (b.out > 0 || b.doubt || !b.deleted(v)) && !errors.Is(err, locks.ErrForeign) {
		return doubtful{err}
	}
	return redisport.Never(err)
}

// doubtful matches the same errors as err, except for [driver.ErrRefused]. A server has said that
// it did nothing, but other servers may have carried out the request.
type doubtful struct{ err error }

func (d doubtful) Error() string { return d.err.Error() }

func (d doubtful) Is(target error) bool {
	return target != driver.ErrRefused && errors.Is(d.err, target)
}

func (d doubtful) As(target any) bool { return errors.As(d.err, target) }
