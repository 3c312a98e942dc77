package etcdlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

const permitKeys = "it%sem/"

// semaphore returns the semaphore it, of a client of its own that never polls.
func semaphore(t *testing.T, s *server, size int64) *lease.Semaphore {
	return open(t, connect(t, s.addr), etcdlock.WithLeaseOptions(lease.WithPoll(time.Hour))).Semaphore("it", size)
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

// soon returns what came of acquire, which must have come soon.
func soon(t *testing.T, c <-chan got) locks.Permits {
	t.Helper()
	select {
	case g := <-c:
		require.NoError(t, g.err)
		return g.Permits
	case <-time.After(long):
		t.Fatal("it still waits")
		return nil
	}
}

// take returns n permits, which are free.
func take(t *testing.T, s *lease.Semaphore, n int64) locks.Permits {
	t.Helper()
	p, ok, err := s.TryAcquireContext(background, n)
	require.NoError(t, err)
	require.True(t, ok)
	return p
}

func giveBack(t *testing.T, p locks.Permits) {
	t.Helper()
	require.NoError(t, p.ReleaseContext(background))
}

func lacks(t *testing.T, s *lease.Semaphore, n int64) {
	t.Helper()
	_, ok, err := s.TryAcquireContext(background, n)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestAnAcquisitionOfPermitsIsOneKey(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr))
	l := c.Mutex("it")
	adaptertest.Hold(t, l, background)
	p := take(t, c.Semaphore("it", 3), 2)
	require.Equal(t, int64(2), p.Count())
	require.Len(t, keys(t, direct, "it/"), 1, "the lock")
	require.Len(t, keys(t, direct, permitKeys), 1)
	resp, err := direct.Get(background, keys(t, direct, permitKeys)[0])
	require.NoError(t, err)
	require.Contains(t, string(resp.Kvs[0].Value), "2/3\n")
	require.Equal(t, uint64(resp.Kvs[0].CreateRevision), p.Token())
	require.NoError(t, l.UnlockContext(background))
	names, err := c.Names(background, "")
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, p.Err())
	giveBack(t, p)
	require.Empty(t, keys(t, direct, "it"))
}

func TestOneReleaseWakesAllWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	many, few := semaphore(t, s, 3), semaphore(t, s, 3)
	p, q := take(t, many, 2), take(t, few, 1)
	first := acquire(semaphore(t, s, 3), 1)
	queued(t, direct, permitKeys, 3)
	second := acquire(semaphore(t, s, 3), 1)
	queued(t, direct, permitKeys, 4)
	third := acquire(semaphore(t, s, 3), 1)
	queued(t, direct, permitKeys, 5)
	giveBack(t, p)
	defer giveBack(t, soon(t, first))
	defer giveBack(t, soon(t, second))
	require.Empty(t, third)
	giveBack(t, q) // which is not the key before the third one's
	giveBack(t, soon(t, third))
}

func TestAWaiterForManyPermitsKeepsBackLaterOnes(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	a, b := semaphore(t, s, 3), semaphore(t, s, 3)
	p := take(t, a, 2)
	all := acquire(b, 3)
	queued(t, direct, permitKeys, 2)
	lacks(t, a, 1)
	late := acquire(a, 1)
	queued(t, direct, permitKeys, 3)
	giveBack(t, p)
	p = soon(t, all)
	require.Empty(t, late)
	giveBack(t, p)
	giveBack(t, soon(t, late))
}

func TestAWaiterThatLeavesLetsLaterOnesPass(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, _, err := p.client.Semaphore("it", 3).TryAcquireContext(background, 2)
	require.NoError(t, err)
	st := p.stores[len(p.stores)-1]
	many, few := permits("many", 3, 3), permits("few", 1, 3)
	for _, req := range []driver.Request{many, few} {
		r, err := st.Enqueue(background, req)
		require.NoError(t, err)
		require.False(t, r.Held)
	}
	w, err := st.Watch(background, few.HoldID)
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, st.Leave(background, many.HoldID))
	select {
	case <-w.C():
	case <-time.After(long):
		t.Fatal("the later waiter is not woken")
	}
	r, err := st.Enqueue(background, few)
	require.NoError(t, err)
	require.True(t, r.Held)
}

// permits is a request for n of size permits.
func permits(acquisition string, n, size int64) driver.Request {
	req := asks("it%sem", acquisition)
	req.Permits, req.Size = n, size
	return req
}

func TestATryCountsPermitsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	sem := p.client.Semaphore("it", 3)
	take(t, sem, 1)
	st := p.stores[len(p.stores)-1]
	p.next(txn, func(send func() error) error { // which finds two free
		err := send()
		take(t, sem, 1)
		return err
	})
	r, err := st.Acquire(background, permits("late", 2, 3))
	require.NoError(t, err)
	require.False(t, r.Held)
	require.Len(t, keys(t, p.direct, permitKeys), 2)
	r, err = st.Acquire(background, permits("small", 1, 3))
	require.NoError(t, err)
	require.True(t, r.Held)
}

func TestARefusedTryForPermitsWritesNothing(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	sem := semaphore(t, s, 3)
	take(t, sem, 2)
	revision := func() int64 {
		resp, err := direct.Get(background, "it")
		require.NoError(t, err)
		return resp.Header.Revision
	}
	before := revision()
	lacks(t, sem, 2)
	require.Equal(t, before, revision())
}

func TestAtMostTheGreatestSizeIsHeld(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	small, great := semaphore(t, s, 2), semaphore(t, s, 4)
	p := take(t, small, 2)
	waits := acquire(small, 1)
	queued(t, direct, permitKeys, 2)
	q := take(t, great, 1) // counts the waiter
	lacks(t, great, 1)
	info, err := great.Inspect(background)
	require.NoError(t, err)
	require.Len(t, info.Holders, 2)
	require.Equal(t, q.Token(), info.Holders[1].Token)
	require.Equal(t, 1, info.Waiting)
	require.Equal(t, int64(1), info.Waiters[0].Permits)
	giveBack(t, p)
	giveBack(t, soon(t, waits))
	giveBack(t, q)
}

func TestKeysThatAreNoPermitsAreForeign(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	granted, err := direct.Grant(background, 60)
	require.NoError(t, err)
	for value, opts := range map[string][]clientv3.OpOption{
		"1/3\n": nil, "3\n": {clientv3.WithLease(granted.ID)}, "0/3\n": {clientv3.WithLease(granted.ID)},
	} {
		_, err := direct.Put(background, permitKeys+"data", value, opts...)
		require.NoError(t, err)
		sem := semaphore(t, s, 3)
		_, _, err = sem.TryAcquireContext(background, 1)
		require.ErrorIs(t, err, locks.ErrForeign, "%q", value)
		_, err = sem.AcquireContext(background, 1)
		require.ErrorIs(t, err, locks.ErrForeign, "%q", value)
		_, err = sem.Inspect(background)
		require.ErrorIs(t, err, locks.ErrForeign, "%q", value)
		queued(t, direct, permitKeys, 1)
		_, err = direct.Delete(background, permitKeys+"data")
		require.NoError(t, err)
	}
}

func TestWrongSemaphoresAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t, connect(t, lendServer(t).addr))
	for _, sem := range []*lease.Semaphore{c.Semaphore("", 1), c.Semaphore("it", 0)} {
		_, ok, err := sem.TryAcquireContext(background, 1)
		require.False(t, ok)
		require.Error(t, err)
	}
	_, err := c.Semaphore("it", 2).AcquireContext(background, 3)
	require.ErrorIs(t, err, locks.ErrTooLarge)
}
