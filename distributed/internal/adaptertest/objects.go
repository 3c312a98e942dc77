package adaptertest

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
)

// Objects is a simulated store of objects.
type Objects struct {
	*Fake
	Open func(tb testing.TB) *caslock.Client // a client that is closed with the test
	// Fail returns an answer by which the server fails. The errors of locks contain Failure.
	Fail    func() *http.Response
	Failure string
	Clear   func()     // deletes all objects
	Len     func() int // the number of objects
}

// TestObjects tests, in virtual time, the costs of a client of objects, and its behaviour without
// answers, after a lost reply, and without its object. An hour has 360 renewals of a lease of 30
// seconds.
func TestObjects(t *testing.T, simulate func() Objects) {
	for name, test := range map[string]func(t *testing.T, o Objects){
		"a pair takes three requests, or two":           testObjectPairs,
		"an hour of holding takes 360 writes":           testObjectHold,
		"an hour of waiting takes 1440 reads at most":   testObjectWait,
		"a request that hangs ends by itself":           testObjectHang,
		"a holder without its object learns of it":      testObjectLoss,
		"a lost reply to an acquisition is no conflict": testLostAcquisition,
		"a lost reply to a release is no loss":          testLostRelease,
		"a lost reply to a renewal is no loss":          testLostRenewal,
		"no request is repeated":                        testOneRequest,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, simulate()) })
		})
	}
}

// requireCosts fails unless the store has had these requests since the last call.
func (o Objects) requireCosts(t *testing.T, reads, writes int, what string) {
	t.Helper()
	r, w, d := o.Counts()
	require.Equal(t, []int{reads, writes, 0}, []int{r, w, d}, "reads, writes and deletions of %s", what)
}

// ready returns a client that has written already. Before its first write, a client may ask the
// store whether the store is safe.
func (o Objects) ready(t *testing.T) *caslock.Client {
	c := o.Open(t)
	Pair(t, c.Mutex("another"))
	o.Counts()
	return c
}

func testObjectPairs(t *testing.T, o Objects) {
	c := o.ready(t)
	Pair(t, c.Mutex("it"))
	o.requireCosts(t, 1, 2, "the first pair")
	Pair(t, c.Mutex("it"))
	o.requireCosts(t, 0, 2, "a pair whose version is known")
}

func testObjectHold(t *testing.T, o Objects) {
	require.NoError(t, o.Open(t).Mutex("it").LockContext(Owner()))
	o.Counts()
	time.Sleep(time.Hour + time.Second)
	o.requireCosts(t, 0, 360, "an hour")
}

func testObjectWait(t *testing.T, o Objects) {
	require.NoError(t, o.Open(t).Mutex("it").LockContext(Owner()))
	l := o.Open(t).Mutex("it")
	ctx, cancel := context.WithCancel(Owner())
	defer synctest.Wait()
	defer cancel()
	go l.LockContext(ctx)
	time.Sleep(20 * time.Second)
	o.Counts()
	time.Sleep(time.Hour)
	reads, writes, _ := o.Counts()
	require.GreaterOrEqual(t, reads, 720)
	require.LessOrEqual(t, reads, 1440)
	require.LessOrEqual(t, writes, 361, "of the holder")
}

func testObjectHang(t *testing.T, o Objects) {
	l := o.Open(t).Mutex("it")
	Pair(t, l)
	o.hang(true)
	began := time.Now()
	_, err := l.Inspect(context.Background())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "no context of the caller")
	require.Equal(t, 10*time.Second, time.Since(began))
	_, err = l.TryLockContext(Owner())
	require.Error(t, err)
	o.hang(false)
}

func testObjectLoss(t *testing.T, o Objects) {
	l, owner := o.Open(t).Mutex("it"), Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	o.Clear()
	time.Sleep(lease.DefaultLease / 2)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	require.Zero(t, o.Len(), "it writes nothing")
}

func testLostAcquisition(t *testing.T, o Objects) {
	l, owner := o.ready(t).Mutex("it"), Owner()
	lost := o.loseReply(1)
	require.NoError(t, l.LockContext(owner))
	require.True(t, lost())
	require.EqualValues(t, 1, Token(t, l, owner))
	require.NoError(t, l.UnlockContext(owner))
}

func testLostRelease(t *testing.T, o Objects) {
	l, owner := o.ready(t).Mutex("it"), Owner()
	lost := o.loseReply(2)
	require.NoError(t, l.LockContext(owner))
	require.NoError(t, l.UnlockContext(owner))
	require.True(t, lost())
	require.True(t, Try(t, o.Open(t).Mutex("it"), Owner()))
}

func testLostRenewal(t *testing.T, o Objects) {
	l, owner := o.ready(t).Mutex("it"), Owner()
	lost := o.loseReply(2)
	require.NoError(t, l.LockContext(owner))
	time.Sleep(10 * lease.DefaultLease)
	require.True(t, lost())
	require.NoError(t, l.UnlockContext(owner))
}

func testOneRequest(t *testing.T, o Objects) {
	o.Set(func() { o.Before = func(*http.Request) (*http.Response, error) { return o.Fail(), nil } })
	_, err := o.Open(t).Mutex("it").Inspect(context.Background())
	require.ErrorContains(t, err, o.Failure)
	reads, _, _ := o.Counts()
	require.Equal(t, 1, reads)
}
