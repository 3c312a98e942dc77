package lease

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// base has the things that the parts of a client share: its store, its options, its clock and its
// jobs. Of these, only the jobs and the time of the last announcement change after New.
type base struct {
	jobs

	store driver.Store

	// The optional interfaces of the store, or nil.
	queue     driver.Queue
	prober    driver.ContentionProber
	session   driver.Session
	inspector driver.Inspector
	announcer driver.Announcer
	breaker   driver.Breaker
	batches   driver.BatchReleaser

	heedsDeadline bool         // the store is a [driver.ReleaseHeedsDeadline]
	announced     atomic.Int64 // until when the store has the identity, in nanoseconds since 1970

	prefix   string // of errors
	ttl      time.Duration
	margin   time.Duration
	poll     time.Duration
	patience time.Duration // the release timeout
	handoffs int
	retry    Retry
	log      *slog.Logger
	// suspended returns how long the machine was suspended between the start of the process and
	// now.
	suspended func(now time.Time) time.Duration
}

// now is [driver.Now].
func (b *base) now() time.Time {
	now := time.Now()
	return now.Add(b.suspended(now))
}

// marginOf returns how much earlier a hold for ttl ends here than in the store.
func (b *base) marginOf(ttl time.Duration) time.Duration {
	if b.margin >= 0 {
		return min(b.margin, ttl/2)
	}
	return min(ttl/20, time.Second)
}

// term returns how long a renewed hold lasts if it is acquired now.
func (b *base) term() time.Duration {
	if b.session != nil {
		return b.session.Term()
	}
	return b.ttl
}

// unknownUntil is for a request for ttl that was sent at the time sent, and has just failed without
// an answer. It returns until when the request may have an effect. The process may have stood still
// after that time and before the request left. A lease that the request takes then ends by itself.
// A session keeps the lock, so its time counts from now.
func (b *base) unknownUntil(sent time.Time, ttl time.Duration) time.Time {
	if b.session != nil {
		sent = b.now()
	}
	return sent.Add(ttl)
}

// longest returns how much of ttl a hold can have.
func (b *base) longest(ttl time.Duration) time.Duration {
	if b.session != nil {
		return min(ttl, b.session.Term())
	}
	return ttl
}

// fail returns err with the operation and the lock, or nil if err is nil. The result matches an
// error of a context, and says so, only if ctx has ended.
func (b *base) fail(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", b.prefix, op, shorten(name), adapter.OfStore(ctx, err))
}

// jobs counts the background work of a client, and has the client's two lives: open ends when
// Close begins, and life when Close is through. Requests live as long as life.
type jobs struct {
	open context.Context
	shut context.CancelFunc
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	closing bool
	running int
	drained chan struct{} // closed when no job is running any more, once the client is closing
}

func (j *jobs) init() {
	j.life, j.end = context.WithCancel(context.Background())
	j.open, j.shut = context.WithCancel(context.Background())
	j.drained = make(chan struct{})
}

// add counts a job for which Close waits, until done.
func (j *jobs) add() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running++
}

// spawn runs job in a goroutine for which Close waits.
func (j *jobs) spawn(job func()) {
	j.add()
	go func() {
		defer j.finish()
		job()
	}()
}

// begin is add, unless Close has begun: then it returns false.
func (j *jobs) begin() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closing {
		j.running++
	}
	return !j.closing
}

func (j *jobs) finish() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running--
	j.drain()
}

// background runs job in a goroutine for which Close waits, or in the caller's if Close has
// begun.
func (j *jobs) background(job func()) {
	if !j.begin() {
		job()
		return
	}
	go func() {
		defer j.finish()
		job()
	}()
}

// close makes begin return false, and reports whether it was the first call.
func (j *jobs) close() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := !j.closing
	j.closing = true
	j.drain()
	return first
}

// drain closes drained if the client is closing and no job is running. j.mu is held.
func (j *jobs) drain() {
	if j.running > 0 || !j.closing {
		return
	}
	select {
	case <-j.drained:
	default:
		close(j.drained)
	}
}
