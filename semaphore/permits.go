package semaphore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/unheld"
)

var _ locks.Semaphore = (*Weighted)(nil)

// AcquireContext is [Weighted.Acquire] for code that is written against [locks.Semaphore]. Its
// errors are wrapped. A request for less than one permit is an error. AcquireContext allocates
// the Permits.
func (s *Weighted) AcquireContext(ctx context.Context, n int64) (locks.Permits, error) {
	const op = "semaphore: AcquireContext"
	if err := check(op, ctx, n); err != nil {
		return nil, err
	}
	switch err := s.Acquire(ctx, n); {
	case err == nil:
		return &held{s: s, n: n}, nil
	case errors.Is(err, ErrTooLarge):
		return nil, s.tooLarge(op, n)
	default:
		return nil, ctxerr.Ended(op, ctx)
	}
}

// TryAcquireContext is [Weighted.TryAcquire] for code that is written against [locks.Semaphore].
func (s *Weighted) TryAcquireContext(ctx context.Context, n int64) (p locks.Permits, ok bool, err error) {
	const op = "semaphore: TryAcquireContext"
	err = check(op, ctx, n)
	switch {
	case err != nil:
		return nil, false, err
	case n > s.Size():
		return nil, false, s.tooLarge(op, n)
	case !s.TryAcquire(n):
		return nil, false, nil
	}
	return &held{s: s, n: n}, true, nil
}

// tooLarge returns the error of an acquisition of n permits.
func (s *Weighted) tooLarge(op string, n int64) error {
	return ctxerr.Wrap(op, fmt.Errorf("%w: %d of %d", ErrTooLarge, n, s.Size()))
}

func check(op string, ctx context.Context, n int64) error {
	if n < 1 {
		return ctxerr.Wrap(op, fmt.Errorf("%w: %d permits, at least 1 is needed", fs.ErrInvalid, n))
	}
	return ctxerr.Check(op, ctx)
}

// held are the permits of one acquisition. They are without a lease.
type held struct {
	s        *Weighted
	n        int64
	released atomic.Bool
}

var errReleased = unheld.Because("the permits are released already")

func (h *held) Count() int64 { return h.n }

// ReleaseContext fails also if a call of Release has already given back the permits of h.
func (h *held) ReleaseContext(context.Context) error {
	if sched.On {
		defer sched.Enter(sched.Amount("ReleaseContext", h.n), h.s)()
	}
	if h.released.Swap(true) || h.s.releaseSlowly(h.n) < h.n {
		return ctxerr.Wrap("semaphore: ReleaseContext", errReleased)
	}
	return nil
}

func (h *held) Lost() <-chan struct{} { return nil }

func (h *held) Err() error {
	if h.released.Load() {
		return errReleased
	}
	return nil
}

func (h *held) Token() uint64 { return 0 }

func (h *held) Deadline() (time.Time, bool) { return time.Time{}, false }

func (h *held) Extend(ctx context.Context, d time.Duration) error {
	const op = "semaphore: Extend"
	err := ctxerr.Check(op, ctx)
	switch {
	case err != nil:
		return err
	case d < time.Millisecond:
		return ctxerr.Wrap(op, fmt.Errorf("extension by %v, at least 1ms is needed", d))
	case h.released.Load():
		return ctxerr.Wrap(op, locks.ErrLost)
	}
	return nil
}
