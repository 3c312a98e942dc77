package lockstest

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/joined"
)

// beyondByte and beyondWord are more than 8 and 16 bits count.
const (
	beyondByte = 1<<8 + 32
	beyondWord = 1<<16 + 1
)

// often calls f most times and returns the number of calls. If the calls take longer than a
// quarter of Timeout, or than 100 times Settle for a lock in a store, it stops after at least
// least calls. It ends the check if f fails.
func (s *suite) often(p *party, least, most int, what string, f func(i int) error) (n int) {
	s.Helper()
	budget := s.cfg.Timeout / 4
	if s.cfg.Leased {
		budget = min(budget, 100*s.cfg.Settle)
	}
	begun := time.Now()
	for n < most && (n < least || time.Since(begun) < budget) {
		c := p.do(what, func(c *call) {
			for range 32 {
				if c.err = f(n); c.err != nil {
					return
				}
				n++
			}
		})
		require.NoError(s, c.err, "%s, call %d", what, n+1)
	}
	return n
}

var errFree = errors.New("lockstest: TryLockContext returned false")

// acquireNow takes l in the i-th of two ways. It need not wait.
func (s *suite) acquireNow(l locks.TryLocker, ctx context.Context, i int) error {
	if i%2 == 0 || s.cfg.SpuriousTry {
		return l.LockContext(ctx)
	}
	ok, err := l.TryLockContext(ctx)
	if err == nil && !ok {
		return errFree
	}
	return err
}

func holdsAreCounted(s *suite) {
	a, other := s.party(), s.party()
	held := func() {
		s.Helper()
		ok, err := other.try(s.x, s.ctx)
		require.NoError(s, err)
		require.False(s, ok, "the lock is free, but its owner has holds left")
	}
	const checked = 256 // after each of the first ones, the lock is tried
	n := 0
	for ; n < 8; n++ {
		a.mustLock(s.l)
		held()
	}
	n += s.often(a, checked, beyondWord, "re-entry", func(i int) error { return s.acquireNow(s.l, s.ctx, i) })
	held()
	for ; n > 1; n -= 32 {
		some := min(32, n-1)
		c := a.do("UnlockContext", func(c *call) {
			for range some {
				if c.err = s.l.UnlockContext(s.ctx); c.err != nil {
					return
				}
			}
		})
		require.NoError(s, c.err, "one of the last %d holds", n)
		held()
	}
	a.mustUnlock(s.l)
	s.mustBeFree("the owner has released every hold")
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "one more than there were holds")
}

func wearsNotOut(s *suite) {
	a := s.party()
	s.often(a, 32, beyondWord, "an acquisition of a free lock", func(i int) error {
		if err := s.acquireNow(s.l, s.ctx, i); err != nil {
			return err
		}
		return s.l.UnlockContext(s.ctx)
	})
	tryIsFalse(s)
	lockWaits(s)
}

// retainsNothing measures until one measurement shows no growth. A lock that keeps memory for a
// purpose stops growing soon. A single measurement has noise. On a busy machine, several
// measurements in a row have noise. A lock that leaks grows in all measurements.
func retainsNothing(s *suite) {
	const measurements = 25
	a, b := s.party(), s.party()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	grows := func(p *party, what string, n int, f func() error) {
		s.Helper()
		least, limit := int64(math.MaxInt64), int64(16*n)
		for i := 0; i < measurements && least >= limit; i++ {
			before := heap()
			c := p.do(what, func(c *call) {
				for range n {
					if c.err = f(); c.err != nil {
						return
					}
				}
			})
			require.NoError(s, c.err, what)
			least = min(least, heap()-before)
		}
		require.Less(s, least, limit, "bytes that %d times %s retain, each time", n, what)
	}
	grows(a, "an acquisition", 10*s.cfg.Rounds, func() error {
		if err := s.l.LockContext(s.ctx); err != nil {
			return err
		}
		return s.l.UnlockContext(s.ctx)
	})
	a.mustLock(s.x)
	grows(b, "a timeout", max(s.cfg.Rounds/2, 1), func() error {
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Microsecond)
		defer cancel()
		if err := s.l.LockContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
			return joined.Errors(errors.New("want a deadline error"), err)
		}
		return nil
	})
	a.mustUnlock(s.x)
}

// keyed is a lock that has a name. Two locks of one type with the same name are the same lock.
type keyed interface{ LockKey() string }

func independent(s *suite) {
	a, b := s.party(), s.party()
	other := s.cfg.New(s.TB)
	if named, ok := s.l.(keyed); ok {
		key := named.LockKey()
		a.mustLock(s.l)
		require.Equal(s, key, named.LockKey(), "LockKey of a held lock")
		a.mustUnlock(s.l)
		if alike, ok := other.(keyed); ok && key != "" && key == alike.LockKey() {
			a.mustLock(s.x)
			ok, err := b.try(other, s.ctx)
			require.NoError(s, err)
			require.False(s, ok, "two locks have the LockKey %q, but do not exclude each other", key)
			a.mustUnlock(s.x)
			return
		}
	}
	if reflect.ValueOf(other).Comparable() && other == s.l {
		s.Log("New returns the same lock again")
		return
	}
	a.mustLock(s.x)
	b.mustTry(other)
	b.mustUnlock(other)
	s.mustBeHeld("another lock was released")
	a.mustUnlock(s.x)
	s.mustBeFree("it was released")
}
