package onrueidis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// lanes sends the requests to one server. Each of a few lanes has one request under way, or several
// that are sent together.
//
//	a lane is free     the request is sent at once, by itself
//	no lane is free    the request waits. The next lane that becomes free sends those that wait
//	                   then, at most maxTogether
//
// So a request that is alone costs the same as without lanes. Many requests share their round trips
// and system calls. A lane sends nothing before it has all replies. If all lanes wait for replies
// for long, as on connections that are dead, a request is sent without a lane.
type lanes struct {
	c         sender
	limitTime func(ctx context.Context) context.Context // ends after the reply timeout, if ctx has no deadline
	laneless  func(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error)
	patience  time.Duration // how long a request waits for a lane

	mu    sync.Mutex
	free  int
	queue []*call // in order of arrival
}

// sender is the part of a [rueidis.Client] that lanes need.
type sender interface {
	Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult
	DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult
}

// call is a request that waits for a lane.
type call struct {
	ctx   context.Context // for its values
	cmd   rueidis.Completed
	until time.Time // its deadline, or zero
	reply rueidis.RedisResult
	turn  chan []*call // gets the calls to send, among them this one; or nil if there is a reply
}

// lanesPerProcessor is so small that requests are sent together on a busy machine. It is so large
// that a slow reply does not keep all others waiting.
const lanesPerProcessor = 2

// maxTogether is how many requests are sent together. Their replies have room in the buffers of a
// connection.
const maxTogether = 64

func newLanes(c sender, n int) *lanes { return &lanes{c: c, free: n, patience: replyTimeout / 10} }

// do sends a request once, and returns the reply. An error matching lease.ErrUnavailable says that
// the request was surely not sent.
func (l *lanes) do(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error) {
	limit := l.limitTime(ctx)
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		defer l.next()
		return l.c.Do(limit, cmd), nil
	}
	until, _ := limit.Deadline()
	q := &call{ctx: ctx, cmd: cmd, until: until, turn: make(chan []*call, 1)}
	l.queue = append(l.queue, q)
	l.mu.Unlock()
	late := time.NewTimer(l.patience)
	defer late.Stop()
	for {
		var ended context.Context
		select {
		case all := <-q.turn:
			return l.finish(q, all), nil
		case <-late.C:
			if l.leave(q) {
				return l.laneless(ctx, cmd)
			}
			continue // it is being sent
		case <-ctx.Done():
			ended = ctx
		case <-limit.Done():
			ended = limit
		}
		if l.leave(q) {
			return rueidis.RedisResult{}, redisport.Unavailable(context.Cause(ended))
		}
		select {
		case all := <-q.turn:
			return l.finish(q, all), nil
		default: // another call sends it
			return rueidis.RedisResult{}, context.Cause(ended)
		}
	}
}

// finish returns the reply to q, after it has sent all calls if there are any.
func (l *lanes) finish(q *call, all []*call) rueidis.RedisResult {
	if all != nil {
		l.send(q, all)
	}
	return q.reply
}

// leave removes q from the queue. It reports false if q is not there any more.
func (l *lanes) leave(q *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, q)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// send sends all calls together, in the goroutine of own. The calls have replies by own's deadline.
// The client's hooks see own's context.
func (l *lanes) send(own *call, all []*call) {
	ctx, cancel := context.WithDeadline(adapter.Detach(context.Background(), own.ctx), own.until)
	defer cancel()
	cmds := make([]rueidis.Completed, len(all))
	for i, q := range all {
		cmds[i] = q.cmd
	}
	defer l.next()
	for i, reply := range l.c.DoMulti(ctx, cmds...) {
		q := all[i]
		q.reply = reply
		if q != own {
			q.turn <- nil
		}
	}
}

// next frees a lane, or makes a call in the queue send the next calls.
func (l *lanes) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		l.free++
		return
	}
	n := min(len(l.queue), maxTogether)
	all := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	// The call with the latest deadline sends them. A renewal may take as long as its lease, but no
	// other request waits that long for a dead connection.
	last := slices.MaxFunc(all, func(a, b *call) int { return a.until.Compare(b.until) })
	if limit := time.Now().Add(2 * replyTimeout); last.until.IsZero() || last.until.After(limit) {
		last.until = limit
	}
	last.turn <- all // the channel has room: each call is in the queue once
}
