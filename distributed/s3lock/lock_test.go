package s3lock_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	c := open(t, newFake().client())
	l := c.Mutex("it")
	err := l.UnlockContext(adaptertest.Owner())
	require.EqualError(t, err, `s3lock: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.NoError(t, c.Close(context.Background()))
	require.EqualError(t, l.LockContext(adaptertest.Owner()), `s3lock: lock "it": client closed`)
}

func TestTokensGrowFromHolderToHolder(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		a, b := open(t, connect(t, s)).Mutex("it"), open(t, connect(t, s)).Mutex("it")
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
	})
}

func TestASemaphoreIsOneObject(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		a, b := open(t, connect(t, s)), open(t, connect(t, s))
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
	})
}

func TestInspectTellsTheHolder(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		owner := adaptertest.Owner()
		require.NoError(t, open(t, connect(t, s), s3lock.WithLabel("first")).Mutex("it").LockContext(owner))
		info, err := open(t, connect(t, s)).Mutex("it").Inspect(t.Context())
		require.NoError(t, err)
		require.True(t, info.Held)
		require.Equal(t, "first", info.Holders[0].Label)
		require.EqualValues(t, 1, info.Holders[0].Token)
	})
}

func TestAnOldVersionNeverComesAgain(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		client := connect(t, s)
		head := func() string {
			out, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{
				Bucket: aws.String(bucketName), Key: aws.String("locks/it.json"),
			})
			require.NoError(t, err)
			return *out.ETag
		}
		seen := make(map[string]bool)
		for range 5 {
			c := open(t, client)
			l, owner := c.Mutex("it"), adaptertest.Owner()
			require.NoError(t, l.LockContext(owner))
			require.EqualValues(t, 1, adaptertest.Token(t, l, owner), "the document is new")
			held := head()
			require.NoError(t, l.UnlockContext(owner))
			free := head()
			require.False(t, seen[held] || seen[free])
			seen[held], seen[free] = true, true
			swept, err := c.Sweep(t.Context(), "", 0)
			require.NoError(t, err)
			require.Equal(t, []string{"it"}, swept)
		}
	})
}

func TestAStoreThatDeletesBlindlySweepsNothing(t *testing.T) {
	f := newFake()
	f.before = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			r.Header.Del("If-Match")
		}
		return nil, nil
	}
	err := s3lock.Probe(t.Context(), f.client(), bucketName)
	require.NoError(t, err, "locks need no deletion")
	f.after = func(r *http.Request, answer *http.Response) (*http.Response, error) {
		if r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2" {
			return answered(http.StatusOK, "<ListBucketResult><IsTruncated>false</IsTruncated>"+
				"<Contents><Key>locks/it.json</Key></Contents></ListBucketResult>", ""), nil
		}
		return answer, nil
	}
	c := open(t, f.client())
	adaptertest.Pair(t, c.Mutex("it"))
	swept, err := c.Sweep(t.Context(), "", 0)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, swept)
	require.Equal(t, 1, f.has())
}

// loseReply makes the nth write from now succeed without an answer.
func loseReply(f *fake, nth int64) {
	var n atomic.Int64
	f.after = func(r *http.Request, answer *http.Response) (*http.Response, error) {
		if r.Method == http.MethodPut && n.Add(1) == nth {
			return nil, errNetwork
		}
		return answer, nil
	}
}

func TestALostReplyToAnAcquisitionIsNoConflict(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it")
		loseReply(f, 1)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestALostReplyToAReleaseIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it")
		loseReply(f, 2)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.NoError(t, l.UnlockContext(owner))
		held, err := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestALostReplyToARenewalIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		l := open(t, f.client(), s3lock.WithoutProbe()).Mutex("it")
		loseReply(f, 2)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		time.Sleep(10 * lease.DefaultLease)
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestTheLibraryRepeatsNoRequest(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.before = func(*http.Request) (*http.Response, error) {
			return refusal(http.StatusInternalServerError, "InternalError"), nil
		}
		c := open(t, f.client(), s3lock.WithoutProbe())
		_, err := c.Mutex("it").Inspect(t.Context())
		require.ErrorContains(t, err, "InternalError")
		reads, _, _ := f.counts()
		require.Equal(t, 1, reads)
	})
}

func TestAServerThatIsAwayIsUnreachable(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	transport := new(http.Transport)
	client := clientOf(&http.Client{Transport: transport}, s.Addr())
	l := open(t, client, s3lock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))).Mutex("it")
	adaptertest.Pair(t, l)
	s.Kill()
	transport.CloseIdleConnections() // a write to one of them would be in doubt
	_, err := l.TryLockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

func TestAHoldSurvivesARestartOfTheServer(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	l := open(t, connect(t, s), s3lock.WithTTL(time.Minute)).Mutex("it")
	owner := adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	s.Kill()
	s.Restart()
	held, err := open(t, connect(t, s)).Mutex("it").TryLockContext(adaptertest.Owner())
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
	onEach(t, func(t *testing.T, s *testbed.S3) {
		l, other := open(t, connect(t, s)).Mutex("it"), open(t, connect(t, s))
		adaptertest.Pair(t, l)
		_, err := other.Sweep(t.Context(), "", 0)
		require.NoError(t, err)
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner)) // it writes to the version that it knows
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
		require.NoError(t, l.UnlockContext(owner))
	})
}
