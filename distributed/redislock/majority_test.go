package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

// The goroutine that begins a vote asks all other votes whether they are over, with the mutex of
// the majority held. A vote that keeps its own mutex, while it waits for that of the majority,
// stops both.
func TestAVoteIsFreedWithoutWaitingUnderItsMutex(t *testing.T) {
	m := newMajority(nil, options{})
	defer m.end()
	v := &vote{seats: make([]seat, 1), changed: make(chan struct{})}
	freed := make(chan struct{})

	m.mu.Lock()
	go func() {
		defer close(freed)
		m.free(v, false)
	}()
	free := func() bool {
		if !v.mu.TryLock() {
			return false
		}
		defer v.mu.Unlock()
		return v.seats[0].clearing
	}
	require.Eventually(t, free, 30*time.Second, time.Millisecond, "free waits with the mutex of the vote")
	m.mu.Unlock()

	<-freed
	idle := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.jobs == 0
	}
	require.Eventually(t, idle, 30*time.Second, time.Millisecond)
}

func TestVotesBeginWhileOthersAreReleased(t *testing.T) {
	m := newMajority(nil, options{})
	defer m.end()
	m.quorum = 0 // of no servers
	const votes = 2000
	begun, done := make(chan string, votes), make(chan struct{})
	go func() {
		defer close(begun)
		for i := range votes {
			m.mu.Lock()
			m.sweep = 0 // each begin asks the other votes
			m.mu.Unlock()
			acquisition := fmt.Sprintf("client:%d", i)
			m.begin("it", acquisition, time.Minute)
			begun <- acquisition
		}
	}()
	var err error
	go func() {
		defer close(done)
		for acquisition := range begun {
			_, released := m.Release(context.Background(), lease.HoldID{Name: "it", Acquisition: acquisition})
			err = errors.Join(err, released)
		}
	}()
	select {
	case <-done:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("a begin and a release wait for each other")
	}
}

// member is a server of a majority that keeps one vote, without time limits.
type member struct {
	port
	mu     sync.Mutex
	vote   any           // the holder's name, or nil
	silent chan struct{} // if not nil, requests to vote get no answer until it is closed
	failed error         // of requests to vote, if not nil
}

func (s *member) Eval(_ context.Context, sc *script, keys int, args []any) (any, error) {
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if sc == voteAcquire && silent != nil {
		<-silent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	arg := args[head+keys]
	switch sc {
	case voteAcquire:
		arg = args[head+keys+1]
		if s.failed != nil {
			return nil, s.failed
		}
		if s.vote != nil && s.vote != arg {
			return []any{int64(-1), s.vote}, nil
		}
		s.vote = arg
		return int64(0), nil
	case hashLookup:
		if s.vote == arg {
			return int64(0), nil
		}
	case hashRelease:
		if s.vote == arg {
			s.vote = nil
			return int64(0), nil
		}
	}
	return nil, nil
}

func (*member) Cluster() bool { return false }

// change changes s under its mutex.
func (s *member) change(f func(s *member)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// three returns a majority of three servers. A server whose number is in silent does not answer
// requests to vote until hear is called.
func three(t *testing.T, silent ...int) (m *majority, servers []*member, hear func()) {
	gate := make(chan struct{})
	hear = sync.OnceFunc(func() { close(gate) })
	var ports []port
	for range 3 {
		s := &member{}
		servers, ports = append(servers, s), append(ports, s)
	}
	for _, i := range silent {
		servers[i].silent = gate
	}
	m = newMajority(ports, options{node: time.Minute})
	t.Cleanup(func() {
		hear()
		m.close(context.Background())
	})
	return m, servers, hear
}

var request1 = lease.Request{HoldID: lease.HoldID{Name: "it", Acquisition: "client:1"}, TTL: time.Hour}

// acquire requests the lock in the background.
func acquire(ctx context.Context, m *majority) <-chan lease.Reply {
	replies := make(chan lease.Reply, 1)
	go func() {
		r, _ := m.Acquire(ctx, request1)
		replies <- r
	}()
	return replies
}

// underWay waits until n requests to acquire are under way, and the last one has asked.
func underWay(t *testing.T, m *majority, n int) {
	require.Eventually(t, func() bool {
		v := m.find(request1.Name, request1.Acquisition)
		if v == nil {
			return false
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.asking == n
	}, 30*time.Second, time.Millisecond)
}

// votes returns how many of servers have a vote.
func votes(servers []*member) (n int) {
	for _, s := range servers {
		s.change(func(s *member) {
			if s.vote != nil {
				n++
			}
		})
	}
	return n
}

func TestARepeatedRequestThatFailsKeepsTheHold(t *testing.T) {
	m, servers, _ := three(t)
	r, err := m.Acquire(context.Background(), request1)
	require.NoError(t, err)
	require.True(t, r.Held)
	require.Eventually(t, func() bool { return votes(servers) == 3 }, 30*time.Second, time.Millisecond)

	for _, s := range servers[:2] {
		s.change(func(s *member) { s.failed = errors.New("no answer") })
	}
	_, err = m.Acquire(context.Background(), request1)

	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrRefused, "the outcome is unknown")
	require.Equal(t, 3, votes(servers))
	r, err = m.Lookup(context.Background(), request1)
	require.NoError(t, err)
	require.True(t, r.Held)
}

func TestARequestLeavesItsVotesToAnother(t *testing.T) {
	m, servers, hear := three(t, 1, 2)
	ctx, cancel := context.WithCancel(context.Background())
	first := acquire(ctx, m)
	underWay(t, m, 1)
	second := acquire(context.Background(), m)
	underWay(t, m, 2)

	cancel()
	require.False(t, (<-first).Held)
	hear()

	require.True(t, (<-second).Held)
	require.Eventually(t, func() bool { return votes(servers) == 3 }, 30*time.Second, time.Millisecond)
}

func TestTheLastRequestThatFailsDeletesAllVotes(t *testing.T) {
	m, servers, hear := three(t, 1, 2)
	ctx, cancel := context.WithCancel(context.Background())
	first, second := acquire(ctx, m), acquire(ctx, m)
	underWay(t, m, 2)
	require.Eventually(t, func() bool { return votes(servers) == 1 }, 30*time.Second, time.Millisecond)

	cancel()
	require.False(t, (<-first).Held)
	require.False(t, (<-second).Held)
	hear()

	require.Eventually(t, func() bool { return votes(servers) == 0 }, 30*time.Second, time.Millisecond)
}

func TestALookupKeepsTheVotesOfAFailingRequest(t *testing.T) {
	m, servers, _ := three(t, 2)
	servers[1].failed = errors.New("the reply is lost")
	ctx, cancel := context.WithCancel(context.Background())
	last := acquire(ctx, m)
	underWay(t, m, 1)
	v := m.find(request1.Name, request1.Acquisition)
	servers[1].change(func(s *member) { s.vote = v.id })
	require.Eventually(t, func() bool { return votes(servers) == 2 }, 30*time.Second, time.Millisecond)

	r, err := m.Lookup(context.Background(), request1)
	require.NoError(t, err)
	require.True(t, r.Held)
	cancel()
	require.False(t, (<-last).Held)

	require.Equal(t, 2, votes(servers))
	require.False(t, v.ended.Load())
}

func TestAReleaseDuringARequestLeavesNoHold(t *testing.T) {
	m, servers, hear := three(t, 1, 2)
	reply := acquire(context.Background(), m)
	underWay(t, m, 1)
	m.free(m.find(request1.Name, request1.Acquisition), false)
	hear()
	require.False(t, (<-reply).Held)
	require.Eventually(t, func() bool { return votes(servers) == 0 }, 30*time.Second, time.Millisecond)
}
