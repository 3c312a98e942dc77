package rwlock_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// raw runs f with three fresh locks of each policy. The first was never read. The second was read
// once, and has a table. The third is biased to readers at first.
func raw(t *testing.T, f func(t *testing.T, rw *rwlock.RWMutex)) {
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) { f(t, rwlock.New(p)) })
		t.Run(p.String()+" after one read", func(t *testing.T) {
			rw := rwlock.New(p)
			rw.RLock()
			rw.RUnlock()
			f(t, rw)
		})
		t.Run(p.String()+" after reads", func(t *testing.T) {
			rw := rwlock.New(p)
			readsUntilTheBias(t, rw)
			f(t, rw)
		})
	}
}

// readMeanwhile lets another owner read rw until the returned function is called.
func readMeanwhile(t testing.TB, rw *rwlock.RWMutex) (end func()) {
	other := locks.WithOwner(context.Background(), locks.NewOwner())
	require.NoError(t, rw.RLockContext(other))
	return func() { require.NoError(t, rw.RUnlockContext(other)) }
}

// readsUntilTheBias reads while another owner does, until rw is biased to readers. It returns how
// many reads that took.
func readsUntilTheBias(t testing.TB, rw *rwlock.RWMutex) (n int) {
	defer readMeanwhile(t, rw)()
	for !rwlock.IsBiased(rw) {
		require.Less(t, n, 1000)
		rw.RLock()
		rw.RUnlock()
		n++
	}
	return n
}

// policies is raw in a bubble, and checks that the lock works at the end.
func policies(t *testing.T, f func(t *testing.T, rw *rwlock.RWMutex)) {
	raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
		synctest.Test(t, func(t *testing.T) {
			f(t, rw)
			synctest.Wait()
			isFree(t, rw)
		})
	})
}

// procs runs f on one, two and eight processors.
func procs(t *testing.T, f func(t *testing.T)) {
	for _, n := range []int{1, 2, 8} {
		t.Run(map[int]string{1: "one processor", 2: "two processors", 8: "eight processors"}[n], func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			f(t)
		})
	}
}

// isFree checks that nobody holds rw or waits for it, and that either side can be taken, on
// every way.
func isFree(t testing.TB, rw *rwlock.RWMutex) {
	t.Helper()
	for range 2 {
		require.Zero(t, rw.ReadLockCount(), "read holds")
		require.Empty(t, rw.Readers())
		require.False(t, rw.IsWriteLocked())
		require.False(t, rw.HasQueued())
		require.Zero(t, rw.QueueLength())
		require.True(t, rw.TryLock(), "write")
		rw.Unlock()
		require.True(t, rw.TryRLock(), "read")
		rw.RUnlock()
		require.True(t, rw.TryLockFor(0), "fairly")
		rw.Unlock()
		require.True(t, rw.TryRLockFor(0), "fairly")
		rw.RUnlock()
		rw.Lock()
		rw.Downgrade()
		rw.RUnlock()
	}
}

// within waits for wg, but not for ever.
func within(t *testing.T, wg *sync.WaitGroup, rw *rwlock.RWMutex) {
	t.Helper()
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("stuck: %v, queued %v, readers %v", rw, rw.Queued(), rw.Readers())
	}
}

// holder is a goroutine that holds the lock, in a bubble, until it is told to end.
type holder struct {
	*locktest.Waiter
	release chan struct{}
}

// end returns when the holder has released, and all goroutines block again.
func (h holder) end() {
	close(h.release)
	synctest.Wait()
}

// hold starts a goroutine that calls acquire, and release when it is told to.
func hold(acquire func() (bool, error), release func()) holder {
	h := holder{release: make(chan struct{})}
	h.Waiter = locktest.Start(acquire, func() {
		<-h.release
		release()
	})
	return h
}

func reads(rw *rwlock.RWMutex) holder  { return hold(locktest.Calling(rw.RLock), rw.RUnlock) }
func writes(rw *rwlock.RWMutex) holder { return hold(locktest.Calling(rw.Lock), rw.Unlock) }

// locking is a method with a context as an argument of locktest.Start.
func locking(lock func(context.Context) error, ctx context.Context) func() (bool, error) {
	return func() (bool, error) { err := lock(ctx); return err == nil, err }
}
