package s3lock_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	client := newFake().client()
	try := func(client *s3.Client, bucket string, opts ...s3lock.Option) error {
		_, err := s3lock.New(client, bucket, opts...)
		return err
	}
	for why, err := range map[string]error{
		"s3lock: nil client":                       try(nil, bucketName),
		"s3lock: the name of the bucket is empty":  try(client, ""),
		"an access point of several regions":       try(client, "arn:aws:s3::1:accesspoint/m.mrap"),
		`s3lock: the prefix "/": what is between`:  try(client, "b", s3lock.WithPrefix("/")),
		"s3lock: pauses from 0s to 1s":             try(client, "b", s3lock.WithPolling(0, time.Second)),
		"s3lock: probe: the name of the bucket is": s3lock.Probe(t.Context(), client, ""),
	} {
		require.ErrorContains(t, err, why)
	}
}

// names are some that a bucket can have.
var names = []string{
	"it", "a", "a/b", "a/b/c", "50%", "%2F", "a b", "a+b", "x*y", "[x]", "{x}", "a&b=c;d", "a:b@c,d", "…", "日本",
	"don't!",
	"~x", "a.b", "..a", strings.Repeat("n", 200),
}

func TestNamesAreKeysOfTheBucket(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		client := connect(t, s)
		c := open(t, client, s3lock.WithoutProbe())
		for _, name := range names {
			adaptertest.Pair(t, c.Mutex(name))
			_, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{
				Bucket: aws.String(bucketName), Key: aws.String("locks/" + name + ".json"),
			})
			require.NoError(t, err, name)
		}
		put(t, client, "locks/readme.txt", "no lock") // is none of them
		listed, err := c.Names(t.Context(), "")
		require.NoError(t, err)
		require.ElementsMatch(t, names, listed)
	})
}

func put(tb testing.TB, client *s3.Client, key, data string) {
	tb.Helper()
	_, err := client.PutObject(context.Background(), &s3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: &key, Body: bytes.NewReader([]byte(data)),
	})
	require.NoError(tb, err)
}

func TestNamesThatNoKeyCanHaveAreRefused(t *testing.T) {
	c := open(t, newFake().client())
	const parts = `what is between the slashes of a key must not be empty, "." or ".."`
	for name, why := range map[string]string{
		"": "the name is empty", "/": parts, "/a": parts, "a/": parts, "a//b": parts, "./a": parts, "a/../b": parts,
		"a\nb": "a key must have no control characters", "\ufffe": "a key must have no control characters",
		"\xff":                    "a key must be valid UTF-8",
		strings.Repeat("n", 201):  "a part of its key has 201 bytes, at most 200 are allowed between slashes",
		strings.Repeat("n/", 507): "its key has 1025 bytes, at most 1024 are allowed",
	} {
		testbed.Refused(t, c.Mutex(name), why)
	}
}

func TestListedNamesHaveAllPages(t *testing.T) {
	t.Parallel()
	client := connect(t, testbed.StartVersitygw(t, bucketName))
	const n = 1005 // a page has 1000
	for i := range n {
		put(t, client, "locks/many/"+strings.Repeat("x", i/100)+string(rune('a'+i%100))+".json", "{}")
	}
	listed, err := open(t, client).Names(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, listed, n)
}

func TestOtherObjectsAreForeign(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		client := connect(t, s)
		put(t, client, "locks/it.json", "a photograph")
		l := open(t, client).Mutex("it")
		require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
		put(t, client, "locks/it.json", strings.Repeat("x", 1<<20))
		require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
	})
}

func TestAMissingBucketIsAClearError(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		c, err := s3lock.New(connect(t, s), "missing")
		require.NoError(t, err)
		defer c.Close(context.Background())
		require.ErrorContains(t, c.Mutex("it").LockContext(adaptertest.Owner()),
			`bucket "missing": the bucket does not exist: create it, by CreateBucket or aws s3 mb: `)
	})
}

func TestAWrongSecretIsAClearError(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	client := connect(t, s, func(o *s3.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: testbed.S3Access, SecretAccessKey: "another-secret"}, nil
		})
	})
	err := open(t, client).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, "SignatureDoesNotMatch")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.NotContains(t, err.Error(), "another-secret")
}

func TestMissingCredentialsAreRefusedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var missing error
		client := clientOf(f, "fake", func(o *s3.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, missing
			})
		})
		l := open(t, client, s3lock.WithoutProbe()).Mutex("it")
		adaptertest.Pair(t, l)
		f.Counts()
		missing = adaptertest.ErrNetwork
		err := l.LockContext(adaptertest.Owner()) // it begins with a write
		require.ErrorIs(t, err, lease.ErrRefused)
		synctest.Wait()
		reads, writes, _ := f.Counts()
		require.Zero(t, reads+writes)
	})
}

func TestAnUnlockWaitsForCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var missing atomic.Bool
		client := clientOf(f, "fake", func(o *s3.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				if missing.Load() {
					return aws.Credentials{}, adaptertest.ErrNetwork
				}
				return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
			})
		})
		l, owner := open(t, client).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		missing.Store(true)
		time.AfterFunc(time.Second, func() { missing.Store(false) })
		require.NoError(t, l.UnlockContext(owner))
		held, err := l.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

// answers are the answers of stores to writes, each with the known outcome.
func TestAnswersSayWhatIsKnown(t *testing.T) {
	for _, x := range []struct {
		status               int
		code                 string
		refused, unavailable bool
		words                string
	}{
		{403, "AccessDenied", true, false, "the right s3:PutObject is missing"},
		{403, "RequestTimeTooSkewed", true, false, "RequestTimeTooSkewed"},
		{400, "AuthorizationHeaderMalformed", true, false, "the bucket may be in another region"},
		{301, "PermanentRedirect", true, false, "the bucket may be in another region"},
		{404, "NoSuchBucket", true, false, "the bucket does not exist: create it, by CreateBucket or aws s3 mb: "},
		{501, "NotImplemented", true, false, "it has no conditional writes"},
		{503, "SlowDown", false, true, "SlowDown"},
		{429, "TooManyRequests", false, true, "TooManyRequests"},
		{500, "InternalError", false, true, "InternalError"},
		{400, "RequestTimeout", false, true, "RequestTimeout"},
		{400, "ExpiredToken", true, false, "the login of the client is not accepted"},
		{403, "InvalidAccessKeyId", true, false, "the login of the client is not accepted"},
		{403, "QuotaExceeded", true, true, "QuotaExceeded"},
		{507, "XMinioStorageFull", true, true, "XMinioStorageFull"},
	} {
		t.Run(x.code, func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				f.Before = func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPut {
						return refusal(x.status, x.code), nil
					}
					return nil, nil
				}
				once := s3lock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))
				l := open(t, f.client(), s3lock.WithoutProbe(), once).Mutex("it")
				_, err := l.TryLockContext(adaptertest.Owner())
				require.ErrorContains(t, err, x.words)
				require.ErrorContains(t, err, `s3lock: try lock "it": bucket "locks-bucket": `)
				require.Equal(t, x.refused, errors.Is(err, lease.ErrRefused), "refused")
				require.Equal(t, x.unavailable, errors.Is(err, lease.ErrUnavailable), "unavailable")
				login := strings.Contains(x.words, "login") || x.code == "RequestTimeTooSkewed"
				require.Equal(t, login, errors.Is(err, lease.ErrLogin), "login")
			})
		})
	}
}
