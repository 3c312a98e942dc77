package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A contest that measures nothing is short.
func TestEveryWorkloadRuns(t *testing.T) {
	was := fewest
	defer func() { fewest = was }()
	fewest.each, fewest.limit = 1, time.Millisecond
	for _, w := range Workloads() {
		t.Run(w.Name, func(t *testing.T) {
			for _, s := range w.Subjects {
				run := s.New()
				for _, n := range []int{1, 60} { // the second time on a lock that was used
					cost, err := run(n)
					require.NoError(t, err, s.Name)
					assert.GreaterOrEqual(t, cost, 0.0, s.Name)
				}
			}
		})
	}
}

func TestWorkloadsAreComplete(t *testing.T) {
	foreign := map[string]bool{"fifomu.Mutex": true, "moby/locker": true} // see bench/compare
	names := map[string]bool{}
	for _, w := range Workloads() {
		require.False(t, names[w.Name], "%s is there twice", w.Name)
		names[w.Name] = true
		require.NotEmpty(t, w.About, w.Name)
		require.NotEmpty(t, w.Unit, w.Name)
		ours := 0
		for _, s := range w.Subjects {
			if s.Ours() {
				ours++
			}
		}
		require.Positive(t, ours, "%s has no subject of ours", w.Name)
		require.Less(t, ours, len(w.Subjects), "%s has nothing to compare with", w.Name)
		require.NotEmpty(t, w.Targets, w.Name)
		for _, target := range w.Targets {
			require.True(t, w.Has(target.Subject), "%s has no %s", w.Name, target.Subject)
			require.True(t, w.Has(target.Peer) || foreign[target.Peer], "%s has no %s", w.Name, target.Peer)
			require.Positive(t, target.Ratio)
		}
	}
}

func TestTextbookLockIsReentrant(t *testing.T) {
	var m Textbook
	m.Lock()
	m.Lock()
	m.Unlock()
	done := make(chan struct{})
	go func() { defer close(done); m.Lock(); m.Unlock() }()
	select {
	case <-done:
		t.Fatal("the lock was held")
	default:
	}
	m.Unlock()
	<-done
	require.Panics(t, m.Unlock)
}

func TestCountedMapForgetsFreeLocks(t *testing.T) {
	var m CountedMap[int]
	m.Lock(1)
	m.Lock(2)
	m.Unlock(1)
	require.Len(t, m.m, 1)
	m.Unlock(2)
	require.Empty(t, m.m)
}
