package adapter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// asked is a request whose answers take as long as the test says.
type asked struct {
	mu   sync.Mutex
	sent []time.Time
	take time.Duration
	err  error
}

// ask returns the number of the request.
func (a *asked) ask() (int, error) {
	a.mu.Lock()
	a.sent = append(a.sent, time.Now())
	n, take, err := len(a.sent), a.take, a.err
	a.mu.Unlock()
	time.Sleep(take)
	return n, err
}

// count returns how many requests were sent.
func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sent)
}

// at returns when the n-th request was sent.
func (a *asked) at(n int) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent[n-1]
}

// share runs test with a request that takes a second, and a gap of ten.
func share(t *testing.T, test func(t *testing.T, a *asked, s *Shared[int])) {
	synctest.Test(t, func(t *testing.T) {
		var jobs Jobs
		a := &asked{take: time.Second}
		test(t, a, NewShared(&jobs, 10*time.Second, a.ask))
		jobs.Close(t.Context())
	})
}

func TestCallersShareTheNextRequest(t *testing.T) {
	share(t, func(t *testing.T, a *asked, s *Shared[int]) {
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 5 * time.Millisecond)
				came := time.Now()
				n, err := s.Do(t.Context())
				assert.NoError(t, err)
				assert.False(t, a.at(n).Before(came), "sent after the caller asked")
			})
		}
		callers.Wait()
		require.Equal(t, 2, a.count(), "the first caller's, and the others'")
		n, err := s.Do(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, n, "an answer is used once")
	})
}

func TestASilentRequestDelaysTheNextOneByTheGap(t *testing.T) {
	share(t, func(t *testing.T, a *asked, s *Shared[int]) {
		a.take = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() {
				_, err := s.Do(ctx)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
			synctest.Wait() // so that the first caller's request is sent before the others ask
		}
		time.Sleep(9 * time.Second)
		require.Equal(t, 1, a.count())
		time.Sleep(2 * time.Second)
		require.Equal(t, 2, a.count())
		callers.Wait()
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, 2, a.count(), "nobody has asked since")
	})
}

func TestACallerThatLeavesEndsNoSharedRequest(t *testing.T) {
	share(t, func(t *testing.T, a *asked, s *Shared[int]) {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := s.Do(ctx)
			left <- err
		}()
		synctest.Wait()
		go func() {
			_, err := s.Do(ctx)
			left <- err
		}()
		synctest.Wait()
		stays := make(chan error)
		go func() {
			n, err := s.Do(t.Context())
			assert.Equal(t, 2, n)
			stays <- err
		}()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-left, context.Canceled)
		require.ErrorIs(t, <-left, context.Canceled)
		require.NoError(t, <-stays)
	})
}

func TestAllCallersGetTheErrorOfTheirRequest(t *testing.T) {
	share(t, func(t *testing.T, a *asked, s *Shared[int]) {
		a.err = errors.New("refused")
		errs := make(chan error)
		for range 3 {
			go func() {
				_, err := s.Do(t.Context())
				errs <- err
			}()
		}
		for range 3 {
			require.Equal(t, a.err, <-errs)
		}
	})
}

func TestAClosedClientSharesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var jobs Jobs
		a := &asked{take: time.Second}
		s := NewShared(&jobs, 10*time.Second, a.ask)
		first, second := make(chan error), make(chan error)
		for _, got := range []chan error{first, second} {
			go func() {
				_, err := s.Do(t.Context())
				got <- err
			}()
			synctest.Wait()
		}
		closed := make(chan struct{})
		go func() {
			jobs.Close(t.Context())
			close(closed)
		}()
		synctest.Wait()
		require.NoError(t, <-first)
		require.ErrorIs(t, <-second, locks.ErrClosed, "it waited to be sent")
		<-closed
		_, err := s.Do(t.Context())
		require.ErrorIs(t, err, locks.ErrClosed)
		require.Equal(t, 1, a.count())
	})
}
