package caslock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// repeated is a store behind a proxy that sends each write twice, and passes on the second answer.
type repeated struct {
	*server
	between func() // two writes
	rest    time.Duration
}

func (r *repeated) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if _, err := r.server.Swap(ctx, name, data, version); err != nil {
		return "", err
	}
	if r.between != nil {
		r.between()
	}
	time.Sleep(r.rest)
	return r.server.Swap(ctx, name, data, version)
}

func TestARepeatedReleaseIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		r := &repeated{server: s}
		l, rival := open(t, r).Mutex("it"), open(t, s).Mutex("it")
		a, b := adaptertest.Owner(), adaptertest.Owner()
		require.NoError(t, l.LockContext(a))
		r.between = func() { require.NoError(t, rival.LockContext(b)) }
		s.requests()
		require.NoError(t, l.UnlockContext(a))
		loads, swaps := s.requests()
		require.Equal(t, []int{2, 3}, []int{loads, swaps}, "of both clients and the proxy")
		require.NoError(t, rival.UnlockContext(b))
	})
}

func TestASecondReleaseFindsNoHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, inner := openInner(t, s)
		_, err := inner.Acquire(t.Context(), request1)
		require.NoError(t, err)
		for _, want := range []bool{true, false} {
			r, err := inner.Release(t.Context(), request1.HoldID)
			require.NoError(t, err)
			require.Equal(t, want, r.Held)
		}
	})
}

func TestARepeatedReleaseOfPermitsIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		r := &repeated{server: s}
		c, rival := open(t, r).Semaphore("it", 3), open(t, s).Semaphore("it", 3)
		p, err := c.AcquireContext(t.Context(), 2)
		require.NoError(t, err)
		r.between = func() { // several holders come and go
			for range 3 {
				q, err := rival.AcquireContext(t.Context(), 2)
				require.NoError(t, err)
				require.NoError(t, q.ReleaseContext(t.Context()))
			}
		}
		require.NoError(t, p.ReleaseContext(t.Context()))
	})
}

func TestARepeatedReleaseAfterALossIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, a := open(t, &repeated{server: s}).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(a))
		_, err := open(t, s).Mutex("it").ForceUnlock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	})
}

func TestABusyLockLosesNothingByRepetitions(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		lost, releases := 0, 0
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for range 4 {
			polling := caslock.WithPolling(time.Millisecond, 5*time.Millisecond)
			l := open(t, &repeated{server: s, rest: 3 * time.Millisecond}, polling).Mutex("it")
			go func() {
				for owner := adaptertest.Owner(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
					if err := l.LockContext(owner); err != nil {
						return
					}
					time.Sleep(10 * time.Millisecond)
					err := l.UnlockContext(owner)
					s.mu.Lock()
					releases++
					if errors.Is(err, locks.ErrLost) {
						lost++
					}
					s.mu.Unlock()
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
		time.Sleep(time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Greater(t, releases, 500)
		require.Zero(t, lost, "of %d", releases)
	})
}
