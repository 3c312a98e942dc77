package redlock

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// ticking is a server whose vote ends by the clock of the test.
type ticking struct {
	redisport.Plain
	redisport.Port

	mu    sync.Mutex
	ends  time.Time
	late  time.Duration // the next renewal is given up, and is carried out after this time
	fails bool          // renewals have no answer, and are not carried out
}

func (s *ticking) Eval(_ context.Context, _ *redisport.Script, _ int, args []any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = time.Now().Add(time.Duration(args[redisport.Head+1].(int64)) * time.Millisecond)
	return int64(0), nil
}

func (s *ticking) Renew(_ context.Context, ids []driver.HoldID, d time.Duration) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renew := func() bool {
		held := time.Now().Before(s.ends)
		if held {
			s.ends = time.Now().Add(d)
		}
		return held
	}
	switch {
	case s.late > 0:
		time.AfterFunc(s.late, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			renew()
		})
		s.late = 0
		return nil, context.DeadlineExceeded
	case s.fails:
		return nil, context.DeadlineExceeded
	}
	return []bool{renew()}, nil
}

func (s *ticking) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// left returns how long the vote lasts.
func (s *ticking) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.ends)
}

// withTicking runs test with a vote on three servers, in virtual time. renew renews the vote.
func withTicking(t *testing.T, test func(t *testing.T, servers []*ticking, renew func(d time.Duration) (bool, error))) {
	synctest.Test(t, func(t *testing.T) {
		servers := []*ticking{{}, {}, {}}
		var nodes []node
		for _, s := range servers {
			nodes = append(nodes, node{s, s})
		}
		m := newMajority(nodes, new(redisport.Options))
		defer m.end()
		r, err := m.Acquire(t.Context(), request1)
		require.NoError(t, err)
		require.True(t, r.Held)
		synctest.Wait()
		test(t, servers, func(d time.Duration) (bool, error) {
			held, err := m.Renew(t.Context(), []driver.HoldID{request1.HoldID}, d)
			synctest.Wait()
			return held[0], err
		})
		m.jobs.Close(t.Context())
	})
}

// A majority confirms a renewal without server 2. An extension then needs server 2, because server
// 1 fails. Server 2 carries both out, and the renewal last.
func TestALateRenewalOfOneServerShortensNoExtensionUnseen(t *testing.T) {
	withTicking(t, func(t *testing.T, servers []*ticking, renew func(d time.Duration) (bool, error)) {
		servers[2].set(func() { servers[2].late = 3 * time.Second })
		held, err := renew(time.Minute)
		require.NoError(t, err)
		require.True(t, held)
		servers[1].set(func() { servers[1].fails = true })

		held, err = renew(10 * time.Hour)
		require.ErrorContains(t, err, "server 2: an earlier request to renew for less time is without an answer")
		require.False(t, held)
		held, err = renew(time.Minute)
		require.NoError(t, err, "the late request does not shorten another of its time")
		require.True(t, held)

		_, _ = renew(10 * time.Hour)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Less(t, servers[2].left(), 2*time.Minute, "it came")
	})
}

func TestALateRenewalCountsUntilItCannotCome(t *testing.T) {
	withTicking(t, func(t *testing.T, servers []*ticking, renew func(d time.Duration) (bool, error)) {
		servers[2].set(func() { servers[2].late = latest })
		_, err := renew(20 * time.Minute)
		require.NoError(t, err)
		servers[1].set(func() { servers[1].fails = true })
		time.Sleep(latest)
		_, err = renew(10 * time.Hour)
		require.Error(t, err)
		time.Sleep(time.Millisecond)
		held, err := renew(10 * time.Hour)
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestAnAnswerThatComesAfterTheMajorityIsNoDoubt(t *testing.T) {
	withTicking(t, func(t *testing.T, servers []*ticking, renew func(d time.Duration) (bool, error)) {
		_, err := renew(time.Minute) // two answers are enough
		require.NoError(t, err)
		servers[0].set(func() { servers[0].fails = true })
		held, err := renew(10 * time.Hour)
		require.NoError(t, err)
		require.True(t, held)
	})
}
