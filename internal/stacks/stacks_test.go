package stacks

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
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

func TestLabelsAndDescriptorsAreNoState(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // the default of a program with go 1.27 in its go.mod
	debug.SetTraceback("system")             // with the addresses of the descriptors
	defer debug.SetTraceback("single")
	pprof.Do(t.Context(), pprof.Labels("query", "a[1], synctest bubble 2]"), func(context.Context) {
		all, _ := All()
		require.Equal(t, "running", all[goid.Get()].State)
	})
}

func TestFormatBeginsAtTheCallerOfTheLock(t *testing.T) {
	stack := make([]uintptr, 16)
	stack = stack[:runtime.Callers(1, stack)] // begins in this package, which is internal
	require.Regexp(t, `^testing\.tRunner\(\)\n\t\S+:\d+\n`, Format(stack))
	require.Empty(t, Format(nil))
}

func TestProgramKeepsTheFunctionThatTheProgramCalled(t *testing.T) {
	const library = `sync.runtime_notifyListWait(0x1, 0x0)
	/usr/local/go/src/runtime/sema.go:617 +0x1b3
github.com/jucgo/locks/internal/park.(*Place).Park(...)
	/src/locks/internal/park/place.go:101
`
	const called = `github.com/jucgo/locks/fair.(*Mutex).LockContext(0x1, {0x2, 0x3})
	/src/locks/fair/mutex.go:81 +0x25
main.transfer(0x1)
	/src/main.go:12 +0x34
created by main.main in goroutine 1
	/src/main.go:7 +0x73
`
	require.Equal(t, called, Program(library+called))
	require.Equal(t, called, Program(called))
	require.Equal(t, library, Program(library), "all of it is the library's")
	require.Empty(t, Program(""))
	require.True(t, Goroutine{Frames: library + called}.WaitsInLibrary())
	require.False(t, Goroutine{Frames: "sync.(*Cond).Wait(0x1)\n\t/go/cond.go:71\nmain.wait()\n\t/src/main.go:3\n"}.WaitsInLibrary())
}

func TestAStoresClientIsLeftOut(t *testing.T) {
	const client = `internal/poll.runtime_pollWait(0x1, 0x72)
	/usr/local/go/src/runtime/netpoll.go:351 +0x85
net.(*conn).Read(0x1)
	/usr/local/go/src/net/net.go:196 +0x45
github.com/redis/go-redis/v9.(*Client).Process(0x1)
	/src/redis.go:7 +0x1
github.com/jucgo/locks/distributed/redislock.(*store).Acquire(0x1)
	/src/locks/distributed/redislock/store.go:31 +0x45
github.com/jucgo/locks/distributed/lease.question.request(0x1)
	/src/locks/distributed/lease/acquire.go:416 +0x45
`
	const called = `github.com/jucgo/locks/distributed/lease.(*Mutex).LockContext(0x1, {0x2, 0x3})
	/src/locks/distributed/lease/mutex.go:81 +0x25
main.transfer(0x1)
	/src/main.go:12 +0x34
`
	require.Equal(t, called, Program(client+called))
	require.True(t, Goroutine{Frames: client + called}.WaitsInLibrary())

	// The callees of the library are the program's: a Store, a function of locks.Do, a leader.
	for _, caller := range []string{"/distributed/lease.question.request", ".Do", "/distributed/leader.(*Election).Run"} {
		frames := "net.(*conn).Read(0x1)\n\t/go/net.go:1\nmain.work(0x1)\n\t/src/main.go:3\n" +
			"github.com/jucgo/locks" + caller + "(0x1)\n\t/src/locks/x.go:5\n" + called
		require.Equal(t, frames, Program(frames))
		require.False(t, Goroutine{Frames: frames}.WaitsInLibrary())
	}
}
