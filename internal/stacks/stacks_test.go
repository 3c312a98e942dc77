package stacks

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/goid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllHasEachGoroutinesStateAndStack(t *testing.T) {
	stop, started := make(chan struct{}), make(chan int64)
	go func() {
		started <- goid.Get()
		<-stop
	}()
	other := <-started
	defer close(stop)
	require.Eventually(t, func() bool {
		all, _ := All()
		return all[other].State == "chan receive"
	}, 30e9, 1e6)
	all, stopped := All()
	require.Positive(t, stopped)
	require.Contains(t, all[other].Frames, "stacks_test.go:")
	require.Equal(t, "running", all[goid.Get()].State)
	require.Contains(t, all[goid.Get()].Frames, "TestAllHasEachGoroutinesStateAndStack")
	require.NotRegexp(t, "^goroutine ", all[other].Frames)
}

func TestFormatBeginsAtTheCallerOfTheLock(t *testing.T) {
	stack := make([]uintptr, 16)
	stack = stack[:runtime.Callers(1, stack)] // begins in this package, which is internal
	require.Regexp(t, `^testing\.tRunner\(\)\n\t\S+:\d+\n`, Format(stack))
	require.Empty(t, Format(nil))
}
