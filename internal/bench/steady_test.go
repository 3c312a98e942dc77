package bench

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/rwlock"
)

func TestSteadyContestCountsReadsAndWrites(t *testing.T) {
	for name, l := range map[string]ReadWriter{
		"sync": new(sync.RWMutex), "rwlock": new(rwlock.RWMutex), "FIFO": rwlock.New(locks.FIFO),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ContendSteadily(l, 2, 5, 0)
			require.NoError(t, err)
			require.Equal(t, 5, s.Writes)
			require.EqualValues(t, 5, s.Waits.Count())
			require.Positive(t, s.Elapsed)
			l.Lock() // nobody has kept it
			l.Unlock()
		})
	}
}

func TestSteadyContestEndsWithItsTime(t *testing.T) {
	s, err := ContendSteadily(new(sync.RWMutex), 2, 0, 20*time.Millisecond)
	require.NoError(t, err)
	require.Positive(t, s.Writes+s.Reads)
}

func TestSteadyContestNeedsALimit(t *testing.T) {
	_, err := ContendSteadily(new(sync.RWMutex), 2, 0, 0)
	require.Error(t, err)
}
