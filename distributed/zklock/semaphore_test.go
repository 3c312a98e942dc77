package zklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// semaphore returns the semaphore it, of a client of its own that never polls.
func semaphore(t *testing.T, s *testbed.ZooKeeper, size int64) *lease.Semaphore {
	return open(t, s.Addr(), zklock.WithLeaseOptions(lease.WithPoll(time.Hour))).Semaphore("it", size)
}

// tries asks for n permits without waiting for them.
func tries(t *testing.T, s *lease.Semaphore, n int64) locks.Permits {
	t.Helper()
	p, _, err := s.TryAcquireContext(background, n)
	require.NoError(t, err)
	return p
}

// got is the result of an acquisition.
type got struct {
	locks.Permits
	err error
}

// acquire waits for n permits in a goroutine of its own.
func acquire(s *lease.Semaphore, n int64) <-chan got {
	c := make(chan got, 1)
	go func() {
		p, err := s.AcquireContext(background, n)
		c <- got{p, err}
	}()
	return c
}

// gives waits for the acquisition that acquire has begun, and releases it.
func gives(t *testing.T, c <-chan got) {
	t.Helper()
	select {
	case g := <-c:
		require.NoError(t, g.err)
		release(t, g.Permits)
	case <-time.After(testbed.Hang):
		t.Fatal("it still waits")
	}
}

func release(t *testing.T, p locks.Permits) {
	t.Helper()
	require.NoError(t, p.ReleaseContext(background))
}

func TestEachPermitIsALease(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	sem := semaphore(t, s, 200)
	p := tries(t, sem, 150)
	require.NotNil(t, p)
	nodes := direct.list("/it/leases")
	require.Len(t, nodes, 150)
	require.Empty(t, direct.list("/it/locks"))
	for _, n := range nodes {
		if strings.HasSuffix(n, "-lease-0000000000") {
			_, st, err := direct.Get("/it/leases/" + n)
			require.NoError(t, err)
			require.Equal(t, uint64(st.Czxid), p.Token())
		}
	}
	require.Nil(t, tries(t, sem, 51))
	release(t, p)
	require.Empty(t, direct.list("/it/leases"))
}

func TestAWaiterForManyPermitsKeepsBackLaterOnes(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	a, b, c := semaphore(t, s, 3), semaphore(t, s, 3), semaphore(t, s, 3)
	p := tries(t, a, 1)
	all := acquire(b, 3)
	direct.queued("/it/leases", 4)
	require.Nil(t, tries(t, c, 1))
	late := acquire(c, 1)
	direct.queued("/it/locks", 2)
	info, err := a.Inspect(background)
	require.NoError(t, err)
	require.Len(t, info.Holders, 1)
	require.Equal(t, int64(1), info.Holders[0].Permits)
	require.Equal(t, p.Token(), info.Holders[0].Token)
	require.Equal(t, 2, info.Waiting)
	release(t, p)
	gives(t, all)
	gives(t, late)
}

func TestALostLeaseLosesAllPermitsAtOnce(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	sem := open(t, s.Addr()).Semaphore("it", 3)
	for i := range 2 {
		p := tries(t, sem, 3)
		require.NotNil(t, p)
		node := ""
		for _, n := range direct.list("/it/leases") {
			if node == "" || n[len(n)-10:] > node[len(node)-10:] {
				node = n // one of the further leases
			}
		}
		if i > 0 {
			direct.watched(s, "/it/leases/"+node, 1)
		}
		require.NoError(t, direct.Delete("/it/leases/"+node, -1))
		select {
		case <-p.Lost():
		case <-time.After(long / 3): // when the renewal comes
			t.Fatal("it did not hear of it")
		}
		require.ErrorIs(t, p.ReleaseContext(background), locks.ErrLost)
		direct.queued("/it/leases", 0)
	}
}

func TestASemaphoreMutexIsASemaphoreOfOne(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	c := open(t, s.Addr())
	one, l, o := c.Semaphore("it", 1), c.SemaphoreMutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, c.Mutex("it"), o) // which has other nodes
	p := tries(t, one, 1)
	require.NotNil(t, p)
	ok, err := l.TryLockContext(o)
	require.NoError(t, err)
	require.False(t, ok)
	release(t, p)
	adaptertest.Hold(t, l, o)
	require.Nil(t, tries(t, one, 1))
	release(t, tries(t, c.Semaphore("it", 2), 1))
	require.NoError(t, l.UnlockContext(o))
	require.NoError(t, c.Mutex("it").UnlockContext(o))
}

func TestWrongSemaphoresAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t, zklock.LendServer(t).Addr())
	for _, sem := range []*lease.Semaphore{c.Semaphore("", 1), c.Semaphore("a//b", 1), c.Semaphore("it", 0)} {
		_, ok, err := sem.TryAcquireContext(background, 1)
		require.False(t, ok)
		require.Error(t, err)
	}
	_, err := c.Semaphore("it", 2).AcquireContext(background, 3)
	require.ErrorIs(t, err, locks.ErrTooLarge)
}
