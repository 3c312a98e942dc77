package gcslock_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

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

func TestTokensGrowFromHolderToHolder(t *testing.T) {
	s := start(t)
	a, b := openAt(t, s).Mutex("it"), openAt(t, s).Mutex("it")
	for i := range uint64(3) {
		owner := adaptertest.Owner()
		require.NoError(t, a.LockContext(owner))
		require.Equal(t, 2*i+1, adaptertest.Token(t, a, owner))
		held, err := b.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
		require.NoError(t, a.UnlockContext(owner))
		adaptertest.Pair(t, b)
	}
}

func TestASemaphoreIsOneObject(t *testing.T) {
	s := start(t)
	a, b := openAt(t, s), openAt(t, s)
	p, err := a.Semaphore("it", 3).AcquireContext(t.Context(), 2)
	require.NoError(t, err)
	_, ok, err := b.Semaphore("it", 3).TryAcquireContext(t.Context(), 2)
	require.NoError(t, err)
	require.False(t, ok)
	q, ok, err := b.Semaphore("it", 3).TryAcquireContext(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, ok)
	names, err := a.Names(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"it.semaphore"}, names)
	require.NoError(t, p.ReleaseContext(t.Context()))
	require.NoError(t, q.ReleaseContext(t.Context()))
}

func TestInspectTellsTheHolder(t *testing.T) {
	s := start(t)
	owner := adaptertest.Owner()
	require.NoError(t, openAt(t, s, gcslock.WithLabel("first")).Mutex("it").LockContext(owner))
	info, err := openAt(t, s).Mutex("it").Inspect(t.Context())
	require.NoError(t, err)
	require.True(t, info.Held)
	require.Equal(t, "first", info.Holders[0].Label)
	require.EqualValues(t, 1, info.Holders[0].Token)
}

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

// loseReply makes the nth write from now succeed without an answer.
func loseReply(f *fake, nth int64) {
	var n atomic.Int64
	f.after = func(r *http.Request, answer *http.Response) (*http.Response, error) {
		if r.Method == http.MethodPost && n.Add(1) == nth {
			return nil, errNetwork
		}
		return answer, nil
	}
}

func TestALostReplyToAnAcquisitionIsNoConflict(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client()).Mutex("it")
		loseReply(f, 1)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestALostReplyToAReleaseIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client()).Mutex("it")
		loseReply(f, 2)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.NoError(t, l.UnlockContext(owner))
		held, err := open(t, f.client()).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestALostReplyToARenewalIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client()).Mutex("it")
		loseReply(f, 2)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		time.Sleep(10 * lease.DefaultLease)
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestNoRequestIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.before = func(*http.Request) (*http.Response, error) {
			return refusal(http.StatusInternalServerError, "internalError"), nil
		}
		c := open(t, f.client())
		_, err := c.Mutex("it").Inspect(t.Context())
		require.ErrorContains(t, err, "internalError")
		reads, _, _ := f.counts()
		require.Equal(t, 1, reads)
	})
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
	l := openAt(t, s, gcslock.WithTTL(time.Minute)).Mutex("it")
	owner := adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	s.Kill()
	s.Restart()
	held, err := openAt(t, s).Mutex("it").TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.False(t, held)
	require.NoError(t, l.UnlockContext(owner))
}

func TestCostsAndFaultsOfObjects(t *testing.T) {
	adaptertest.TestObjects(t, func() adaptertest.Objects {
		f := newFake()
		hang := func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return adaptertest.Objects{
			Open:   func(tb testing.TB) *caslock.Client { return open(tb, f.client()) },
			Counts: f.counts, Len: f.has,
			Clear: func() { f.set(func() { clear(f.objects) }) },
			Hang: func(hangs bool) {
				f.set(func() {
					if f.before = nil; hangs {
						f.before = hang
					}
				})
			},
		}
	})
}

func TestALockWithoutItsObjectBeginsAnew(t *testing.T) {
	s := start(t)
	l, other := openAt(t, s).Mutex("it"), openAt(t, s)
	adaptertest.Pair(t, l)
	_, err := other.Sweep(t.Context(), "", 0)
	require.NoError(t, err)
	owner := adaptertest.Owner()
	require.NoError(t, l.LockContext(owner)) // it writes to the version that it knows
	require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
	require.NoError(t, l.UnlockContext(owner))
}
