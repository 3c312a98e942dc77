package bench

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManyEndsWithAllProcessors(t *testing.T) {
	require.Equal(t, []int{1}, powers(1))
	require.Equal(t, []int{1, 2, 4, 8, 12}, powers(12))
	require.Equal(t, []int{1, 2, 4, 8}, powers(8))
}

func TestASubjectRunsOnSoManyProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var during int
	s := onProcessors(before+1, Cost("it", func(int) (float64, error) {
		during = runtime.GOMAXPROCS(0)
		return 0, nil
	}))
	_, err := s.New()(1)
	require.NoError(t, err)
	require.Equal(t, before+1, during)
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}

func TestMeasuredLocksStandBesideTheirPrediction(t *testing.T) {
	for _, w := range Many(2) {
		var names []string
		for _, s := range w.Subjects {
			names = append(names, s.Name)
		}
		if w.Series == "read" {
			require.Contains(t, names, "rwlock.RWMutex.R")
			require.Contains(t, names, "reads, rwlock.RWMutex"+Predicted)
			continue
		}
		for _, name := range many[1:] {
			require.Contains(t, names, name)
			require.Contains(t, names, name+Predicted)
		}
	}
}
