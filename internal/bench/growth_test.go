//go:build unix

package bench

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowToStart is a mutex whose first Lock, which Contend calls before the contest, takes long.
type slowToStart struct {
	sync.Mutex
	once sync.Once
}

const startsFor = 200 * time.Millisecond

func (s *slowToStart) Lock() {
	s.once.Do(func() {
		for start, _ := processorTime(); ; {
			if now, known := processorTime(); !known || now-start > startsFor {
				return
			}
		}
	})
	s.Mutex.Lock()
}

func TestAContestsProcessorTimeExcludesItsStart(t *testing.T) {
	cost, err := contendInProcessorTime(new(slowToStart), Contest{Goroutines: 2, Ops: 10})
	require.NoError(t, err)
	require.Less(t, cost, float64(startsFor/10), "of the start, each of ten acquisitions would have a tenth")
}
