package gcslock_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	c := open(t, newFake().client())
	l := c.Mutex("it")
	err := l.UnlockContext(adaptertest.Owner())
	require.EqualError(t, err, `gcslock: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.NoError(t, c.Close(context.Background()))
	require.EqualError(t, l.LockContext(adaptertest.Owner()), `gcslock: lock "it": client closed`)
}

func TestTokensGrowFromHolderToHolder(t *testing.T) { adaptertest.TestTokens(t, at(start(t))) }

func TestASemaphoreIsOneObject(t *testing.T) { adaptertest.TestSemaphore(t, at(start(t))) }

func TestInspectTellsTheHolder(t *testing.T) { adaptertest.TestInspection(t, at(start(t))) }

func TestALockWithoutItsObjectBeginsAnew(t *testing.T) { adaptertest.TestNewDocument(t, at(start(t))) }

func TestAnOldVersionNeverComesAgain(t *testing.T) {
	s := start(t)
	seen := make(map[string]bool)
	for range 5 {
		c := openAt(t, s)
		l, owner := c.Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner), "the document is new")
		_, held := get(t, s, "locks/it.json")
		require.NoError(t, l.UnlockContext(owner))
		_, free := get(t, s, "locks/it.json")
		require.False(t, seen[held] || seen[free])
		seen[held], seen[free] = true, true
		swept, err := c.Sweep(t.Context(), "", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"it"}, swept)
	}
}

func TestAServerThatIsAwayIsUnreachable(t *testing.T) {
	s := start(t)
	client := connect(t)
	l := open(t, client, gcslock.WithEndpoint(s.URL()),
		gcslock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))).Mutex("it")
	adaptertest.Pair(t, l)
	s.Kill()
	client.CloseIdleConnections() // a write to one of them would be in doubt
	_, err := l.TryLockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

func TestAHoldSurvivesARestartOfTheServer(t *testing.T) {
	s := testbed.StartFakeGCS(t, bucketName, t.TempDir())
	adaptertest.TestRestart(t, at(s), s)
}

func TestCostsAndFaultsOfObjects(t *testing.T) {
	adaptertest.TestObjects(t, func() adaptertest.Objects {
		f := newFake()
		return adaptertest.Objects{
			Fake: &f.Fake, Len: f.has,
			Open:    func(tb testing.TB) *caslock.Client { return open(tb, f.client()) },
			Fail:    func() *http.Response { return refusal(http.StatusInternalServerError, "internalError") },
			Failure: "internalError",
			Clear:   func() { f.Set(func() { clear(f.objects) }) },
		}
	})
}
