package s3lock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

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

func TestTokensGrowFromHolderToHolder(t *testing.T) { onEachBucket(t, adaptertest.TestTokens) }

func TestASemaphoreIsOneObject(t *testing.T) { onEachBucket(t, adaptertest.TestSemaphore) }

func TestInspectTellsTheHolder(t *testing.T) { onEachBucket(t, adaptertest.TestInspection) }

func TestALockWithoutItsObjectBeginsAnew(t *testing.T) { onEachBucket(t, adaptertest.TestNewDocument) }

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
	f.Before = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete {
			r.Header.Del("If-Match")
		}
		return nil, nil
	}
	err := s3lock.Probe(t.Context(), f.client(), bucketName)
	require.NoError(t, err, "locks need no deletion")
	f.After = func(r *http.Request, answer *http.Response) (*http.Response, error) {
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
	adaptertest.TestRestart(t, at(s), s)
}

func TestCostsAndFaultsOfObjects(t *testing.T) {
	adaptertest.TestObjects(t, func() adaptertest.Objects {
		f := newFake()
		return adaptertest.Objects{
			Fake: &f.Fake, Len: f.has,
			Open:    func(tb testing.TB) *caslock.Client { return open(tb, f.client()) },
			Fail:    func() *http.Response { return refusal(http.StatusInternalServerError, "InternalError") },
			Failure: "InternalError",
			Clear:   func() { f.Set(func() { clear(f.objects) }) },
		}
	})
}
