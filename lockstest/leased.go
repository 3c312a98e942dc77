package lockstest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func leasedAsDeclared(s *suite) {
	_, ok := s.l.(locks.Leased)
	require.Equal(s, s.cfg.Leased, ok, "whether the lock is a locks.Leased")
}

// hold returns the hold of p.
func (p *party) hold(ctx context.Context) (h locks.Hold, err error) {
	p.s.Helper()
	l, ok := p.s.l.(locks.Leased)
	require.True(p.s, ok, "the lock is declared Leased")
	err = p.do("Hold", func(c *call) { h, c.err = l.Hold(ctx) }).err
	return h, err
}

func (p *party) mustHold() locks.Hold {
	p.s.Helper()
	h, err := p.hold(p.s.ctx)
	require.NoError(p.s, err, "Hold")
	require.NotNil(p.s, h, "Hold")
	return h
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func holdIsForHolder(s *suite) {
	a, b := s.party(), s.party()
	_, err := a.hold(s.ctx)
	require.ErrorIs(s, err, locks.ErrNotHeld, "Hold of a free lock")
	a.mustLock(s.l)
	a.mustHold()
	_, err = b.hold(s.ctx)
	require.ErrorIs(s, err, locks.ErrNotHeld, "Hold by another one")
	a.mustUnlock(s.l)
	_, err = a.hold(s.ctx)
	require.ErrorIs(s, err, locks.ErrNotHeld, "Hold after the release")
	if !s.cfg.Owned {
		return
	}
	ctx := locks.WithOwner(s.ctx, locks.NewOwner())
	require.NoError(s, a.lock(s.l, ctx))
	_, err = b.hold(ctx)
	require.NoError(s, err, "Hold by the owner in another goroutine")
	_, err = a.hold(s.ctx)
	require.ErrorIs(s, err, locks.ErrNotHeld, "Hold by another owner in the same goroutine")
	require.NoError(s, a.unlock(s.l, ctx))
}

func holdLasts(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	h := a.mustHold()
	alive := func(when string) {
		s.Helper()
		require.NoError(s, h.Err(), when)
		require.False(s, isClosed(h.Lost()), "Lost is closed %s", when)
		if deadline, ok := h.Deadline(); ok {
			require.True(s, time.Now().Before(deadline), "the deadline is over %s", when)
		}
	}
	alive("while held")
	earlier, _ := h.Deadline()
	later, ends := h.Deadline()
	require.False(s, later.Before(earlier), "the deadline moves backwards, from %v to %v", earlier, later)
	if s.cfg.Reentrant {
		token := h.Token()
		a.mustLock(s.l)
		require.Equal(s, token, a.mustHold().Token(), "the token after re-entry")
		a.mustUnlock(s.l)
		alive("after the release of a re-entry")
	}
	require.NoError(s, a.do("Extend", func(c *call) { c.err = h.Extend(s.ctx, time.Minute) }).err)
	alive("after Extend")
	before, _ := h.Deadline()
	begun, longer := time.Now(), max(time.Minute, 2*time.Until(before))
	require.NoError(s, a.do("Extend", func(c *call) { c.err = h.Extend(s.ctx, longer) }).err)
	alive("after the second Extend")
	extended, _ := h.Deadline()
	// A session lasts as long as its store allows, but it is new after Extend. Where the deadline
	// is not later, the hold has the whole time already. The clocks may differ a little.
	if ends && !extended.After(before) {
		require.False(s, extended.Before(begun.Add(longer*3/4)), "Extend by %v leaves %v", longer, extended.Sub(begun))
	}
	a.mustUnlock(s.l)
	err := a.do("Extend", func(c *call) { c.err = h.Extend(s.ctx, time.Minute) }).err
	require.ErrorIs(s, err, locks.ErrLost, "Extend after the release")
	require.False(s, isClosed(h.Lost()), "Lost is closed by a release")
	s.mustBeFree("Extend does not take the lock anew")
}

// tokensIncrease makes holders acquire a free lock, try it, and wait for it in turn. A holder
// that waited in the process of the previous holder may have the previous holder's token. See
// lease.WithMaxLocalHandoffs. Readers do not wait for each other.
func tokensIncrease(s *suite) {
	var (
		last  uint64
		first locks.Hold
		p     = s.party()
	)
	p.mustLock(s.l)
	for i := range s.crowd() {
		h := p.mustHold()
		token := h.Token()
		if i == 0 && token == 0 {
			p.mustUnlock(s.l)
			s.Log("the store has no tokens, and need not have")
			return
		}
		if i == 0 {
			first = h
		}
		if waited := i%3 == 2 && !s.cfg.shared(); waited {
			require.GreaterOrEqual(s, token, last, "the token of a holder that waited")
		} else {
			require.Greater(s, token, last, "the token of a later holder")
		}
		last = token
		next := s.party()
		switch way := i % 3; {
		case way == 0:
			p.mustUnlock(s.l)
			next.mustTry(s.l)
		case way == 1 && !s.cfg.shared():
			c := next.startLock(s.l, s.ctx)
			s.mustWait(c, s.l, 1)
			p.mustUnlock(s.l)
			s.await(c, "LockContext")
			require.NoError(s, c.err)
		default:
			p.mustUnlock(s.l)
			next.mustLock(s.l)
		}
		p = next
	}
	require.Less(s, first.Token(), last, "the token of a hold that is over")
	p.mustUnlock(s.l)
}

// lossIsReported makes another goroutine acquire the lock as soon as it can, and then look
// whether the loser can know of its loss. It does not do so for a read view, because writers may
// wait in the store. If Lose removes a hold there, the writers can learn of it first.
func lossIsReported(s *suite) {
	a, b := s.party(), s.party()
	a.mustLock(s.l)
	h := a.mustHold()
	next := &call{done: make(chan struct{})}
	if !s.cfg.shared() {
		next = b.start(func(c *call) {
			c.err = s.l.LockContext(s.ctx)
			c.ok = isClosed(h.Lost()) && h.Err() != nil
		})
		s.mustWait(next, s.l, 1)
	}
	s.cfg.Lose(s.l)
	select {
	case <-h.Lost():
	case <-next.done:
		require.True(s, next.ok, "another one has the lock, but Lost is not closed or Err is nil")
	case <-time.After(s.cfg.Timeout):
		s.Fatalf("Lost is not closed %v after the loss", s.cfg.Timeout)
	}
	require.ErrorIs(s, h.Err(), locks.ErrLost)
	require.ErrorIs(s, a.mustHold().Err(), locks.ErrLost, "a lost hold is current until it is unlocked")
	err := a.do("Extend", func(c *call) { c.err = h.Extend(s.ctx, time.Minute) }).err
	require.ErrorIs(s, err, locks.ErrLost, "Extend")
	if s.cfg.Reentrant {
		require.ErrorIs(s, a.lock(s.l, s.ctx), locks.ErrLost, "re-entry")
	}
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrLost, "UnlockContext")
	if !s.cfg.shared() {
		s.await(next, "LockContext of a lock that was lost")
		require.NoError(s, next.err)
		require.True(s, next.ok, "another one has the lock, but Lost is not closed or Err is nil")
		b.mustUnlock(s.l)
	}
	a.mustLock(s.l)
	require.NoError(s, a.mustHold().Err(), "a new hold")
	a.mustUnlock(s.l)
	s.mustBeFree("the loser has given it up")
}

func doReportsLoss(s *suite) {
	a := s.party()
	c := a.do("Do", func(c *call) {
		c.err = locks.Do(s.ctx, s.l, func(ctx context.Context) error {
			s.cfg.Lose(s.l)
			select {
			case <-ctx.Done():
				c.ok = context.Cause(ctx) == locks.ErrLost
			case <-time.After(s.cfg.Timeout):
			}
			return nil
		})
	})
	require.True(s, c.ok, "fn's ctx was not cancelled with the cause ErrLost")
	require.ErrorIs(s, c.err, locks.ErrLost)
	s.mustBeFree("the loser has given it up")
}
