package redislock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// The state of Redisson's RSemaphore is the number of free permits under its name. Redis does not
// know who holds the other permits. RPermitExpirableSemaphore uses the same channel.

// RedissonSemaphore is Redisson's RSemaphore: processes in Go and in Java share its permits. The
// semaphore is a number in Redis, which is 0 before the first call of TrySetPermits or AddPermits.
// An acquisition of more permits than are free waits for more.
//
// Permits come without owner and lease. They are never lost and never renewed: if a process dies,
// its permits are gone until a call of AddPermits. A request without an answer is not repeated,
// because Redis cannot tell afterwards whether it was carried out. After such an error, an
// acquisition may have taken its permits, and a release may have returned them. Use
// [Client.RedissonExpirableSemaphore] or [Client.Semaphore] unless Java's processes need a
// RSemaphore.
//
// Waiters are served in no order. After a release, all waiters in Go ask. redlock.WithReplicas has
// no effect on a RedissonSemaphore.
type RedissonSemaphore struct {
	c    *Client
	name string
}

var _ locks.Semaphore = (*RedissonSemaphore)(nil)

// RedissonSemaphore returns Redisson's RSemaphore called name.
func (c *Client) RedissonSemaphore(name string) *RedissonSemaphore {
	return &RedissonSemaphore{c, name}
}

// Name returns the name of the semaphore.
func (s *RedissonSemaphore) Name() string { return s.name }

// AcquireContext acquires n permits, and waits for them until ctx ends. An error without an answer
// may leave the permits taken, see [RedissonSemaphore].
func (s *RedissonSemaphore) AcquireContext(ctx context.Context, n int64) (locks.Permits, error) {
	const op = "acquire"
	p, ok, err := s.TryAcquireContext(ctx, n)
	if ok || err != nil && (!untouched(err) || errors.Is(err, driver.ErrUnreachable)) {
		return p, err
	}
	w, err := s.c.core.watchFree(ctx, s.name)
	if errors.Is(err, errHubClosed) {
		err = locks.ErrClosed
	}
	if err != nil {
		return nil, s.fail(op, err)
	}
	defer w.Close()
	var refusal error // of the last request that the server has answered
	for {
		p, ok, err := s.TryAcquireContext(ctx, n)
		switch {
		case ok:
			return p, nil
		case err == nil, untouched(err), errors.Is(err, driver.ErrLogin): // a refused login says nothing of the permits
			refusal = err
		case ctx.Err() != nil:
			return nil, withRefusal(err, refusal)
		default:
			return nil, err
		}
		err = nil
		poll := time.NewTimer(lease.DefaultPoll)
		select {
		case <-w.C():
		case <-poll.C:
		case <-ctx.Done():
			err = adapter.Ended(ctx)
		case <-s.c.core.hub.life.Done():
			err = locks.ErrClosed
		}
		poll.Stop()
		if err != nil {
			return nil, s.fail(op, withRefusal(err, refusal))
		}
	}
}

// withRefusal adds to err, which ends a wait, why the last request was refused, or nothing if
// refusal is nil.
func withRefusal(err, refusal error) error {
	if refusal == nil {
		return err
	}
	return fmt.Errorf("%w; the store was not available: %w", err, refusal)
}

// untouched reports whether a request that failed with err was not carried out, for a reason that
// passes.
func untouched(err error) bool {
	return errors.Is(err, driver.ErrRefused) && errors.Is(err, driver.ErrUnavailable)
}

// TryAcquireContext acquires n permits if they are free. It waits for the server's answer until
// ctx ends. If the answer comes later, the permits are given back in the background.
func (s *RedissonSemaphore) TryAcquireContext(
	ctx context.Context, n int64,
) (p locks.Permits, ok bool, err error) {
	const op = "try acquire"
	if n < 1 || n > maxNumber {
		err := fmt.Errorf("%d permits, it must be from 1 to %d", n, maxNumber)
		return nil, false, s.fail(op, driver.Mark(err, fs.ErrInvalid))
	}
	if err := adapter.Check(ctx); err != nil {
		return nil, false, s.fail(op, err)
	}
	type answer struct {
		got int64
		err error
	}
	answers := make(chan answer)
	end := adapter.EndOf(ctx) // no method of ctx but Value is called once the permits may be taken
	open := s.c.core.jobs.Go(func() {
		// A client that sees the end of ctx, or a deadline, may drop the answer.
		got, err := s.c.core.number(context.WithoutCancel(ctx), op, semaphoreAcquire, false, s.name, n)
		select {
		case answers <- answer{got, err}:
		case <-end.Done():
			if got == 1 {
				(&counted{s: s, n: n}).ReleaseContext(ctx)
			}
		}
	})
	if !open {
		return nil, false, s.fail(op, locks.ErrClosed)
	}
	select {
	case a := <-answers:
		if a.got != 1 || a.err != nil {
			return nil, false, a.err
		}
		return &counted{s: s, n: n}, true, nil
	case <-end.Done():
		return nil, false, s.fail(op, adapter.Ended(ctx))
	}
}

// TrySetPermits is [RedissonExpirableSemaphore.TrySetPermits].
func (s *RedissonSemaphore) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	did, err := s.c.core.setSize(ctx, "TrySetPermits", semaphoreInit, false, s.name, 0, n)
	return did == 1, err
}

// AddPermits is [RedissonExpirableSemaphore.AddPermits].
func (s *RedissonSemaphore) AddPermits(ctx context.Context, n int64) error {
	_, err := s.c.core.setSize(ctx, "AddPermits", semaphoreAdd, false, s.name, -maxNumber, n)
	return err
}

// AvailablePermits returns how many permits are free.
func (s *RedissonSemaphore) AvailablePermits(ctx context.Context) (int64, error) {
	return s.c.core.number(ctx, "AvailablePermits", semaphoreFree, false, s.name)
}

// DrainPermits takes all free permits, for ever, and returns how many these were.
func (s *RedissonSemaphore) DrainPermits(ctx context.Context) (int64, error) {
	return s.c.core.number(ctx, "DrainPermits", semaphoreDrain, false, s.name)
}

func (s *RedissonSemaphore) fail(op string, err error) error {
	return semaphoreError(op, s.name, err)
}

// counted is permits without a lease.
type counted struct {
	s        *RedissonSemaphore
	n        int64
	released atomic.Bool // also while a release is under way

	mu      sync.Mutex // of a release
	repeats bool       // a refused release is repeated in the background, guarded by mu
	given   bool       // the repetition succeeded, and no call has returned its success yet, guarded by mu
}

var errReleased = adapter.Released("the permits are")

func (p *counted) Count() int64 { return p.n }

// releasePause is about the time between two requests of a release.
const releasePause = 100 * time.Millisecond

// ReleaseContext gives the permits back. A request that the server refuses for a passing reason is
// repeated until [lease.DefaultReleaseTimeout]. If all were refused, the permits are held as
// before. The release is then repeated in the background, with growing pauses, until the client is
// closed. A further call may be faster, and returns nil if the permits have returned meanwhile. An
// error matching [locks.ErrLost] says that an answer is missing: the permits may have been returned
// or not, and a further call is [locks.ErrNotHeld]. ReleaseContext works also if ctx has ended.
func (p *counted) ReleaseContext(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given {
		p.given = false
		return nil
	}
	err := p.release(ctx)
	if err != nil && !p.released.Load() && !p.repeats {
		p.repeats = p.s.c.core.jobs.Go(p.repeat)
	}
	return err
}

// maxReleasePause is the longest time between two requests of a release in the background.
const maxReleasePause = 5 * time.Second

// repeat repeats a refused release.
func (p *counted) repeat() {
	life := p.s.c.core.closing
	for pause := releasePause; adapter.Sleep(life, adapter.Jitter(pause)); pause = min(2*pause, maxReleasePause) {
		p.mu.Lock()
		if !p.released.Load() {
			p.given = p.release(life) == nil
		}
		done := p.released.Load()
		p.mu.Unlock()
		if done {
			return
		}
	}
}

// release sends the requests of a release. p.mu is held.
func (p *counted) release(ctx context.Context) error {
	const op = "release"
	if p.released.Swap(true) {
		return p.s.fail(op, errReleased)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease.DefaultReleaseTimeout)
	defer cancel()
	for {
		_, err := p.s.c.core.count(ctx, semaphoreAdd, false, p.s.name, p.n)
		switch {
		case err == nil:
			return nil
		case !redisport.NothingDone(err):
			return p.s.fail(op, fmt.Errorf("%w: %w", locks.ErrLost, adapter.OfStore(nil, err)))
		case !errors.Is(err, driver.ErrUnavailable) || !adapter.Sleep(ctx, adapter.Jitter(releasePause)):
			p.released.Store(false)
			return p.s.fail(op, adapter.OfStore(nil, err))
		}
	}
}

func (p *counted) Lost() <-chan struct{} { return nil }

func (p *counted) Err() error {
	if p.released.Load() {
		return errReleased
	}
	return nil
}

func (p *counted) Token() uint64 { return 0 }

func (p *counted) Deadline() (time.Time, bool) { return time.Time{}, false }

// Extend changes nothing.
func (p *counted) Extend(ctx context.Context, _ time.Duration) error {
	err := p.Err()
	if err == nil {
		err = adapter.Check(ctx)
	}
	if err != nil {
		return p.s.fail("extend", err)
	}
	return nil
}
