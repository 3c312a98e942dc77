package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
	"github.com/jucgo/locks/internal/test/testbed"
)

// The goroutine that begins a vote asks all other votes whether they are over, with the mutex of
// the majority held. A vote that keeps its own mutex, while it waits for the mutex of the majority,
// stops both.
func TestAVotesMutexIsFreeDuringItsDeletion(t *testing.T) {
	m := newMajority(nil, new(redisport.Options))
	defer m.end()
	v := &vote{seats: make([]seat, 1), changed: make(chan struct{})}
	m.mu.Lock()
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		m.free(v, false)
	}()
	select {
	case <-freed:
	case <-time.After(testbed.Hang):
		t.Fatal("free waits for the mutex of the majority, with that of the vote")
	}
	m.mu.Unlock()
	m.jobs.Close(context.Background())
}

func TestVotesBeginWhileOthersAreReleased(t *testing.T) {
	m := newMajority(nil, new(redisport.Options))
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
			_, released := m.Release(context.Background(), driver.HoldID{Name: "it", Acquisition: acquisition})
			err = errors.Join(err, released)
		}
	}()
	select {
	case <-done:
		require.NoError(t, err)
	case <-time.After(testbed.Hang):
		t.Fatal("a begin and a release wait for each other")
	}
}

// server keeps one vote, without time limits.
type server struct {
	redisport.Plain
	redisport.Port
	mu     sync.Mutex
	vote   any           // the holder's name, or nil
	silent chan struct{} // if not nil, requests to vote get no answer until silent is closed
	failed error         // of requests to vote, if not nil
}

func (s *server) Eval(_ context.Context, sc *redisport.Script, _ int, args []any) (any, error) {
	if sc == voteRelease {
		return s.release(args[redisport.Head+1]), nil
	}
	s.mu.Lock()
	silent := s.silent
	s.mu.Unlock()
	if silent != nil {
		<-silent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := args[redisport.Head+2]
	switch {
	case s.failed != nil:
		return nil, s.failed
	case s.vote != nil && s.vote != id:
		return []any{int64(-1), s.vote}, nil
	}
	s.vote = id
	return int64(0), nil
}

func (s *server) release(id any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vote != id {
		return int64(0)
	}
	s.vote = nil
	return int64(1)
}

func (s *server) Lookup(_ context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return driver.Reply{Held: s.vote == req.Acquisition}, nil
}

func (*server) Close(context.Context) {}

// change changes s under its mutex.
func (s *server) change(f func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// three returns a majority of three servers. A server whose number is in silent does not answer
// requests to vote until hear is called.
func three(t *testing.T, silent ...int) (m *majority, servers []*server, hear func()) {
	gate := make(chan struct{})
	hear = sync.OnceFunc(func() { close(gate) })
	var nodes []node
	for range 3 {
		s := &server{}
		servers, nodes = append(servers, s), append(nodes, node{s, s})
	}
	for _, i := range silent {
		servers[i].silent = gate
	}
	m = newMajority(nodes, &redisport.Options{NodeTimeout: time.Minute})
	t.Cleanup(func() {
		hear()
		m.close(context.Background())
	})
	return m, servers, hear
}

var request1 = driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: "client:1"}, TTL: time.Hour}

// acquire requests the lock in the background.
func acquire(ctx context.Context, m *majority) <-chan driver.Reply {
	replies := make(chan driver.Reply, 1)
	go func() {
		r, _ := m.Acquire(ctx, request1)
		replies <- r
	}()
	return replies
}

// underWay waits until n requests to acquire are under way, and the last request has asked.
func underWay(t *testing.T, m *majority, n int) {
	require.Eventually(t, func() bool {
		v := m.find(request1.Name, request1.Acquisition)
		if v == nil {
			return false
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.asking == n
	}, testbed.Hang, time.Millisecond)
}

// votes returns how many of servers have a vote.
func votes(servers []*server) (n int) {
	for _, s := range servers {
		s.change(func(s *server) {
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
	require.Eventually(t, func() bool { return votes(servers) == 3 }, testbed.Hang, time.Millisecond)

	for _, s := range servers[:2] {
		s.change(func(s *server) { s.failed = errors.New("no answer") })
	}
	_, err = m.Acquire(context.Background(), request1)

	require.Error(t, err)
	require.NotErrorIs(t, err, driver.ErrRefused, "the outcome is unknown")
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
	require.Eventually(t, func() bool { return votes(servers) == 3 }, testbed.Hang, time.Millisecond)
}

func TestTheLastRequestThatFailsDeletesAllVotes(t *testing.T) {
	m, servers, hear := three(t, 1, 2)
	ctx, cancel := context.WithCancel(context.Background())
	first, second := acquire(ctx, m), acquire(ctx, m)
	underWay(t, m, 2)
	require.Eventually(t, func() bool { return votes(servers) == 1 }, testbed.Hang, time.Millisecond)

	cancel()
	require.False(t, (<-first).Held)
	require.False(t, (<-second).Held)
	hear()

	require.Eventually(t, func() bool { return votes(servers) == 0 }, testbed.Hang, time.Millisecond)
}

func TestALookupKeepsAFailingRequestsVotes(t *testing.T) {
	m, servers, _ := three(t, 2)
	servers[1].failed = errors.New("the reply is lost")
	ctx, cancel := context.WithCancel(context.Background())
	last := acquire(ctx, m)
	underWay(t, m, 1)
	v := m.find(request1.Name, request1.Acquisition)
	servers[1].change(func(s *server) { s.vote = v.id })
	require.Eventually(t, func() bool { return votes(servers) == 2 }, testbed.Hang, time.Millisecond)

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
	require.Eventually(t, func() bool { return votes(servers) == 0 }, testbed.Hang, time.Millisecond)
}

// lagging is a server to which a request to create a vote comes a second late, after the client has
// given it up.
type lagging struct {
	redisport.Port
	mu        sync.Mutex
	has       bool // the vote
	deletions int  // requests to delete the vote
}

func (l *lagging) Eval(ctx context.Context, s *redisport.Script, _ int, _ []any) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == voteAcquire {
		time.AfterFunc(time.Second, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.has = true
		})
		return nil, context.DeadlineExceeded
	}
	l.deletions++
	if l.has {
		l.has = false
		return int64(1), nil
	}
	return int64(0), nil
}

func TestAVoteThatComesAfterItsDeletionIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers [3]lagging
		nodes := make([]node, len(servers))
		for i := range servers {
			nodes[i].port = &servers[i]
		}
		m := newMajority(nodes, new(redisport.Options))
		defer m.end()
		req := driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: "a:1"}, TTL: time.Hour}
		began := time.Now()
		_, err := m.Acquire(t.Context(), req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, time.Since(began), "the caller does not wait for late requests")
		time.Sleep(time.Second + 300*time.Millisecond)
		for i := range servers {
			s := &servers[i]
			s.mu.Lock()
			require.False(t, s.has, "server %d", i)
			s.mu.Unlock()
		}
		synctest.Wait()
		m.jobs.Close(t.Context())
		require.Less(t, servers[0].deletions, 12, "the pauses grow")
	})
}
