package lockstest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func inspectAnswers(s *suite) {
	l, ok := s.l.(locks.Inspector)
	if !ok {
		s.Log("the lock cannot be inspected, and need not be")
		return
	}
	if _, err := l.Inspect(s.ctx); errors.Is(err, errors.ErrUnsupported) {
		s.Log("the lock cannot be inspected in this place")
		return
	}
	inspect := func() locks.Info {
		i, err := l.Inspect(s.ctx)
		require.NoError(s, err)
		if i.Waiting >= 0 {
			require.GreaterOrEqual(s, i.Waiting, len(i.Waiters))
		}
		return i
	}
	a, b := s.party(), s.party()
	free := inspect()
	require.False(s, free.Held, "nobody has acquired the lock")
	require.Empty(s, free.Holders)
	require.LessOrEqual(s, free.Waiting, 0)

	a.mustLock(s.l)
	held := inspect()
	require.True(s, held.Held, "LockContext has returned nil")
	require.Equal(s, s.cfg.shared(), held.Shared)
	for _, h := range held.Holders {
		require.Contains(s, []locks.Owner{0, a.id}, h.Owner, "the holder is in this process")
	}
	if s.cfg.Leased {
		s.requireHolder(held, a)
	}
	waiter := b.startLock(s.x, s.ctx)
	s.mustWait(waiter, s.x, 1)
	if waiting := inspect(); s.cfg.Waiting != nil && waiting.Waiting >= 0 {
		require.Equal(s, 1, waiting.Waiting)
		for _, w := range waiting.Waiters {
			require.Contains(s, []locks.Owner{0, b.id}, w.Owner)
		}
	}
	leaving, leave := context.WithCancel(s.ctx)
	gone := s.party().startLock(s.x, leaving)
	s.mustWait(gone, s.x, 2)
	leave()
	s.await(gone, "LockContext")
	require.ErrorIs(s, gone.err, context.Canceled)
	if waiting := inspect(); s.cfg.Waiting != nil && waiting.Waiting >= 0 {
		require.Equal(s, 1, waiting.Waiting, "one of two waiters has left")
	}
	a.mustUnlock(s.l)
	s.await(waiter, "LockContext")
	require.NoError(s, waiter.err)
	b.mustUnlock(s.x)
	require.False(s, inspect().Held, "every hold was given back")

	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := l.Inspect(ended)
	require.ErrorIs(s, err, context.Canceled)
	_, err = l.Inspect(nil) //lint:ignore SA1012 that is what is tested
	require.ErrorIs(s, err, locks.ErrNilContext)
}

// requireHolder fails if i says something wrong of p, which holds the lock.
func (s *suite) requireHolder(i locks.Info, p *party) {
	h := p.mustHold()
	for _, holder := range i.Holders {
		if holder.Owner != p.id {
			continue
		}
		if holder.Token != 0 {
			require.Equal(s, h.Token(), holder.Token, "the token of the hold")
		}
		if !holder.Since.IsZero() {
			require.WithinDuration(s, time.Now(), holder.Since, s.cfg.Timeout, "the hold has just begun")
		}
		_, ends := h.Deadline()
		require.False(s, holder.Left > 0 && !ends, "the hold has no deadline")
	}
}
