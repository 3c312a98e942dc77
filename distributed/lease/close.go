package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/internal/closing"
)

// ending is the end of a client, in two steps: first all holders learn of their losses, and then
// the store gets its locks back. See [closing.Together] for the clients of a group.
type ending struct {
	c      *Client
	held   []*grant    // the grants that were held until now
	sweeps []*sweeping // the sweeps that were under way, see releaser.takeOver
	busy   []busyQueue // the queues whose requests were under way
}

// busyQueue is a local queue that was busy when its client was closed.
type busyQueue struct {
	name string
	idle <-chan struct{} // closed when the queue is no longer busy
}

// beginClose makes the client's methods fail and its holds lost. It returns nil if that was done
// before.
func (c *Client) beginClose() *ending {
	if !c.jobs.close() {
		return nil
	}
	queues := c.queues.close()
	e := &ending{c: c, sweeps: c.releaser.takeOver()}
	c.shut()
	c.unlist()
	c.schedule.wait()
	for _, q := range queues {
		g := e.grantOf(q)
		if g == nil {
			continue
		}
		if c.releaser.close(g) {
			e.held = append(e.held, g)
		} else if s := c.releaser.sweepOf(g); s != nil {
			c.releaser.note(s)
			e.sweeps = append(e.sweeps, s)
		}
		e.grantOf(q) // an unlock may have made q busy meanwhile
	}
	return e
}

// grantOf returns the grant of q, or nil. If q is busy, grantOf returns nil, and the end waits for
// q: an unlock that begins now is not counted as a job.
func (e *ending) grantOf(q *localQueue) *grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		e.busy = append(e.busy, busyQueue{q.name, q.whenIdle()})
		return nil
	}
	return q.grant
}

// finish releases the holds, waits for the client's jobs, and returns what may be held after that.
func (e *ending) finish(ctx context.Context) *closing.Unreleased {
	c := e.c
	stop := context.AfterFunc(ctx, c.end)
	defer stop()
	stalled := time.AfterFunc(c.patience, c.end)
	defer stalled.Stop()
	ids := make([]driver.HoldID, 0, len(e.held)+len(e.sweeps))
	for _, g := range e.held {
		ids = append(ids, g.id)
	}
	for _, s := range e.sweeps {
		ids = append(ids, s.id)
	}
	left, why := c.releaser.releaseAll(ids, func() { stalled.Reset(c.patience) })
	for _, s := range e.sweeps {
		if _, ok := left[s.id]; !ok {
			c.releaser.settle(s)
		}
	}
	for _, q := range e.busy {
		select {
		case <-q.idle:
		case <-c.life.Done():
		}
	}
	select {
	case <-c.drained:
	case <-c.life.Done():
	}
	silent := c.life.Err() != nil
	c.end()
	u := e.countLeft(left)
	if why == nil {
		why = c.releaser.lastFailure()
	}
	switch {
	case ctx.Err() != nil && why != nil:
		why = fmt.Errorf("%w; %w", adapter.Ended(ctx), why)
	case ctx.Err() != nil:
		why = adapter.Ended(ctx)
	case why == nil && silent:
		why = fmt.Errorf("no answer within %v", c.patience)
	case why == nil:
		why = errInDoubt
	}
	u.Why = adapter.OfStore(ctx, why)
	return u
}

// lastFailure returns why a sweep has failed while Close waited, or nil.
func (r *releaser) lastFailure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

var errInDoubt = errors.New("a request without an answer may still be carried out")

// countLeft counts what the store may keep after the end: left are the holds that it may not have
// released. life has ended. An acquisition is in doubt for one of these reasons:
//
//	a sweep is not settled                      see sweeping
//	a local queue is still busy                 its request is cut off
//	a hold was released, and its doubt is not   an earlier request of the acquisition may still
//	over                                        take the lock
//
// An acquisition is under way, or given up, or held. If it is under way, its queue is busy. If it
// is given up, undo and leave have begun a sweep before the queue became idle, unless nothing is
// left to undo. And persist begins a sweep before the queue becomes idle, unless the release is
// answered. So does the unlock of a lost hold that the store may have prolonged.
func (e *ending) countLeft(left map[driver.HoldID]struct{}) *closing.Unreleased {
	c := e.c
	now := c.now()
	u := &closing.Unreleased{Prefix: c.prefix, Of: len(e.held)}
	counted, names := make(map[driver.HoldID]bool), make(map[string]bool)
	doubt := func(id driver.HoldID, over time.Time) {
		if !over.After(now) {
			return
		}
		if !counted[id] {
			u.Doubts++
		}
		counted[id], names[id.Name] = true, true
		u.Note(shorten(id.Name), over.Sub(now))
	}
	for _, g := range e.held {
		if _, ok := left[g.id]; ok {
			u.N++
			counted[g.id] = true
			u.Note(shorten(g.id.Name), g.atMost().Sub(now))
		}
		if !g.doubt.IsZero() {
			doubt(g.id, g.doubt.Add(g.ttl))
		}
	}
	busy := slices.DeleteFunc(e.busy, func(q busyQueue) bool { // before the sweeps: they begin before q becomes idle
		select {
		case <-q.idle:
			return true
		default:
			return false
		}
	})
	c.releaser.mu.Lock()
	defer c.releaser.mu.Unlock()
	for id, sweeps := range c.releaser.unsettled {
		for _, s := range sweeps {
			doubt(id, s.over())
		}
	}
	for _, q := range busy {
		if name, _, _ := strings.Cut(q.name, "\x00"); !names[name] { // else a sweep has begun
			doubt(driver.HoldID{Name: name, Acquisition: q.name}, now.Add(2*c.term()))
		}
	}
	return u
}

// closers is how many requests of releaseAll are under way at a time.
const closers = 16

// releaseAll asks the store to release all ids, whose holds are lost because the client is closed,
// or were released before. It repeats failed requests, and returns when life ends at the latest,
// even if the store ignores the end of life. It calls progress whenever the store has released some
// of ids. It returns the ids without an answer, and why the last request has failed, or nil.
func (r *releaser) releaseAll(ids []driver.HoldID, progress func()) (left map[driver.HoldID]struct{}, why error) {
	w := &releasing{r: r, progress: progress, done: make(chan struct{})}
	w.left = make(map[driver.HoldID]struct{}, len(ids))
	for _, id := range ids {
		w.left[id] = struct{}{}
	}
	size := 1
	if r.batches != nil {
		size = batch
	}
	work := make(chan releaseBatch, len(ids)/size+1)
	for some := range slices.Chunk(ids, size) {
		work <- releaseBatch{some, firstSweep}
	}
	if len(ids) > 0 {
		var workers sync.WaitGroup
		for range min(closers, len(work)) {
			workers.Go(func() { w.run(work) })
		}
		select {
		case <-w.done:
			workers.Wait() // no worker has anything left to do
		case <-r.life.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.left), w.why
}

// releaseBatch is holds that are released together, and the pause before the next attempt.
type releaseBatch struct {
	ids   []driver.HoldID
	pause time.Duration
}

// releasing is a call of releaseAll.
type releasing struct {
	r        *releaser
	progress func()
	done     chan struct{} // closed when nothing is left

	mu   sync.Mutex
	left map[driver.HoldID]struct{}
	why  error // of the last request that failed
}

// run releases batches of work until nothing is left, or life ends.
func (w *releasing) run(work chan releaseBatch) {
	for {
		select {
		case b := <-work:
			if b.ids = w.send(b.ids); len(b.ids) == 0 {
				continue
			}
			if !adapter.Sleep(w.r.life, b.pause) {
				return
			}
			b.pause = min(2*b.pause, 250*time.Millisecond)
			work <- b // which has room for all batches
		case <-w.done:
			return
		case <-w.r.life.Done():
			return
		}
	}
}

// send asks the store once to release ids, and returns the ids without an answer.
func (w *releasing) send(ids []driver.HoldID) (left []driver.HoldID) {
	r := w.r
	// Half of patience leaves time for another request.
	ctx, cancel := context.WithTimeout(r.life, max(r.patience/2, time.Millisecond))
	defer cancel()
	var done []bool
	var err error
	if r.batches != nil {
		done, err = r.batches.ReleaseAll(ctx, ids)
	} else {
		_, err = r.store.Release(ctx, ids[0])
		done = []bool{err == nil || final(err)}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, id := range ids {
		if i < len(done) && done[i] {
			delete(w.left, id)
		} else {
			left = append(left, id)
		}
	}
	if len(left) < len(ids) {
		w.progress()
	}
	if len(left) > 0 && err != nil && r.life.Err() == nil {
		w.why = err
	}
	if len(w.left) == 0 {
		select {
		case <-w.done:
		default:
			close(w.done)
		}
	}
	return left
}
