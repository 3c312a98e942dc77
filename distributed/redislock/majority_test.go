package redislock

import (
	"context"
	"errors"
	"fmt"
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
