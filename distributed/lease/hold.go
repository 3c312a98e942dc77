package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

// hold is a grant in the hands of one owner.
type hold struct {
	g        *grant
	released atomic.Bool
}

var _ locks.Hold = (*hold)(nil)

// Lost returns a channel that is closed when the hold is lost.
func (h *hold) Lost() <-chan struct{} { return h.g.lossChan() }

// Err compares the end of the hold with the clock. On Linux, a suspension of the machine counts.
func (h *hold) Err() error {
	if h.released.Load() {
		return errReleased
	}
	return h.g.err()
}

// Token returns the fencing token, or 0 if the store does not give tokens.
func (h *hold) Token() uint64 { return h.g.token }

// Deadline returns when the hold ends unless it is prolonged, by the clock of time.Now.
func (h *hold) Deadline() (time.Time, bool) {
	return h.g.end().Add(-h.g.s.suspended(time.Now())), true
}

// Extend makes the hold last for d from now, at least 1ms. It waits for the store until ctx or
// the hold ends.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	s := h.g.s
	fail := func(err error) error { return s.fail(ctx, "extend", h.g.id.Name, err) }
	if err := adapter.Check(ctx); err != nil {
		return fail(err)
	}
	if d < time.Millisecond { // a number without a unit must not end the hold
		return fail(fmt.Errorf("extension by %v, at least 1ms is needed", d))
	}
	if err := h.Err(); err != nil {
		if !errors.Is(err, locks.ErrLost) {
			err = fmt.Errorf("%w: the hold is released already", locks.ErrLost)
		}
		return fail(err)
	}
	d = s.longest(d)
	for range extensions {
		whole, err := h.extend(ctx, d)
		s.update(h.g)
		if err != nil {
			return fail(err)
		}
		if whole {
			break
		}
	}
	return nil
}

// extensions is how often an extension is sent if a renewal may have overtaken it.
const extensions = 3

// request is grant.request, but returns nil if the hold is released: the grant may then be the next
// owner's.
func (h *hold) request(d time.Duration) *pending {
	now := h.g.s.now()
	h.g.mu.Lock()
	defer h.g.mu.Unlock()
	if h.released.Load() {
		return nil
	}
	return h.g.requestLocked(&pending{sent: now, d: d, least: d})
}

// extend prolongs the hold, and reports whether it surely lasts for d.
func (h *hold) extend(ctx context.Context, d time.Duration) (whole bool, err error) {
	s := h.g.s
	ctx, cancel := context.WithTimeout(ctx, h.g.end().Sub(s.now()))
	defer cancel()
	p := h.request(d)
	if p == nil {
		return false, locks.ErrLost
	}
	s.sooner(h.g)
	ok, err := s.renewOne(ctx, h.g, p)
	switch {
	case err != nil:
		h.g.noteNoAnswer(p)
		if h.Err() != nil {
			s.late(h.g, p)
			err = fmt.Errorf("%w: %w", locks.ErrLost, err)
		}
		return false, err
	case !ok:
		h.g.noteDenial()
		s.lose(h.g, nil)
		return false, locks.ErrLost
	case !h.g.noteAnswer(p) || h.released.Load():
		s.late(h.g, p)
		return false, locks.ErrLost
	}
	return p.least == d, nil
}
