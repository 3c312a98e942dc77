package gcslock_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	client := newFake().client()
	try := func(client *http.Client, bucket string, opts ...gcslock.Option) error {
		_, err := gcslock.New(client, bucket, opts...)
		return err
	}
	for why, err := range map[string]error{
		"gcslock: nil client":                      try(nil, bucketName),
		"gcslock: the name of the bucket is empty": try(client, ""),
		`gcslock: the bucket "gs://b": a name`:     try(client, "gs://b"),
		`gcslock: the prefix "/": what is between`: try(client, "b", gcslock.WithPrefix("/")),
		"gcslock: pauses from 0s to 1s":            try(client, "b", gcslock.WithPolling(0, time.Second)),
	} {
		require.ErrorContains(t, err, why)
	}
	for _, endpoint := range []string{"localhost:8000", "https://", "ftp://host", "://"} {
		require.ErrorContains(t, try(client, "b", gcslock.WithEndpoint(endpoint)),
			"gcslock: the endpoint must be a URL, such as https://storage.googleapis.com")
	}
}

// names are some that a bucket can have.
var names = []string{
	"it", "a", "a/b", "a/b/c", "50%", "%2F", "a b", "a+b", "x*y", "[x]", "{x}", "a&b=c;d", "a:b@c,d", "…", "日本",
	"a?b#c", "don't!", `a"b\c`, "~x", "a.b", "..a", strings.Repeat("n", 1000),
}

func TestNamesAreObjectsOfTheBucket(t *testing.T) {
	s := start(t)
	c := openAt(t, s)
	for _, name := range names {
		adaptertest.Pair(t, c.Mutex(name))
		data, _ := get(t, s, "locks/"+name+".json")
		require.NotEmpty(t, data, name)
	}
	put(t, s, "locks/readme.txt", "no lock") // is none of them
	listed, err := c.Names(t.Context(), "")
	require.NoError(t, err)
	require.ElementsMatch(t, names, listed)
}

func TestNamesThatNoObjectCanHaveAreRefused(t *testing.T) {
	c := open(t, newFake().client())
	const parts = `what is between the slashes of an object's name must not be empty, "." or ".."`
	const control = "an object's name must have no control characters"
	for name, why := range map[string]string{
		"": "the name is empty", "/": parts, "/a": parts, "a/": parts, "a//b": parts, "./a": parts, "a/../b": parts,
		"a\nb": control, "\x7f": control, "\u0085": control,
		"\xff":                    "an object's name must be valid UTF-8",
		strings.Repeat("n", 1014): "its object's name has 1025 bytes, at most 1024 are allowed",
	} {
		testbed.Refused(t, c.Mutex(name), why)
	}
	bare := open(t, newFake().client(), gcslock.WithPrefix(""))
	testbed.Refused(t, bare.Mutex(".well-known/acme-challenge/x"),
		"names that begin with .well-known/acme-challenge/ are reserved")
}

func TestListedNamesHaveAllPages(t *testing.T) {
	s := start(t)
	const n = 1005 // a page has 1000
	for i := range n {
		put(t, s, fmt.Sprintf("locks/many/%d.json", i), "{}")
	}
	listed, err := openAt(t, s).Names(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, listed, n)
}

func TestOtherObjectsAreForeign(t *testing.T) {
	s := start(t)
	put(t, s, "locks/it.json", "a photograph")
	l := openAt(t, s).Mutex("it")
	require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
	put(t, s, "locks/it.json", strings.Repeat("x", 1<<20))
	require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
}

func TestADeletionComparesTheGeneration(t *testing.T) {
	d := documentsAt(t, start(t))
	old, err := d.Swap(t.Context(), "it", []byte("old"), "")
	require.NoError(t, err)
	newer, err := d.Swap(t.Context(), "it", []byte("new"), old)
	require.NoError(t, err)
	require.ErrorIs(t, d.(caslock.Deleter).Delete(t.Context(), "it", old), caslock.ErrConflict)
	require.NoError(t, d.(caslock.Deleter).Delete(t.Context(), "it", newer))
	require.ErrorIs(t, d.(caslock.Deleter).Delete(t.Context(), "it", newer), caslock.ErrConflict)
}

func TestAMissingBucketIsAClearError(t *testing.T) {
	c, err := gcslock.New(connect(t), "missing", gcslock.WithEndpoint(start(t).URL()))
	require.NoError(t, err)
	defer c.Close(t.Context())
	const why = `bucket "missing": the bucket does not exist: create it, by gcloud storage buckets create: `
	err = c.Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, `gcslock: lock "it": `+why)
	require.ErrorIs(t, err, lease.ErrRefused)
	_, err = c.Names(t.Context(), "")
	require.ErrorContains(t, err, why)
}

func TestANameThatReadsLikeAnErrorIsNone(t *testing.T) {
	adaptertest.Pair(t, open(t, newFake().client()).Mutex("the bucket does not exist"))
}

func TestAReadSaysThatTheBucketIsMissing(t *testing.T) {
	f := newFake()
	f.Before = func(*http.Request) (*http.Response, error) { // for a read Google has a text, not JSON
		return adaptertest.Answered(http.StatusNotFound, "The specified bucket does not exist."), nil
	}
	_, err := open(t, f.client()).Mutex("it").Inspect(t.Context())
	require.ErrorContains(t, err, `bucket "locks-bucket": the bucket does not exist`)
}

// answers are the answers of Google to writes, each with the known outcome.
func TestAnswersSayWhatIsKnown(t *testing.T) {
	for _, x := range []struct {
		status               int
		reason               string
		refused, unavailable bool
		words                string
	}{
		{400, "invalid", true, false, "400 invalid: because"},
		{401, "authError", true, false, "the login of the client is not accepted: 401 authError: because"},
		{403, "forbidden", true, false, "the right storage.objects.create or storage.objects.delete is missing"},
		{403, "retentionPolicyNotMet", true, false, `bucket "locks-bucket": 403 retentionPolicyNotMet`},
		{403, "rateLimitExceeded", true, true, "403 rateLimitExceeded"},
		{403, "userRateLimitExceeded", true, true, "403 userRateLimitExceeded"},
		{404, "notFound", true, false, "the bucket does not exist"},
		{412, "orgPolicyConstraintFailed", true, false, "412 orgPolicyConstraintFailed"},
		{418, "teapot", true, false, "418 teapot"},
		{408, "requestTimeout", false, true, "408 requestTimeout"},
		{429, "rateLimitExceeded", true, true, "429 rateLimitExceeded"},
		{500, "internalError", false, true, "500 internalError"},
		{503, "backendError", false, true, "503 backendError"},
		{307, "temporaryRedirect", false, false, "307 temporaryRedirect"},
		{206, "partial", false, false, "206 partial"},
	} {
		t.Run(fmt.Sprint(x.status, x.reason), func(t *testing.T) {
			bubble(t, func(t *testing.T, f *fake) {
				f.Before = func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodPost {
						return nil, nil
					}
					answer := refusal(x.status, x.reason)
					answer.Header.Set("Location", "https://elsewhere.example/")
					return answer, nil
				}
				d := gcslock.Documents(f.client(), bucketName, gcslock.DefaultEndpoint)
				_, err := d.Swap(t.Context(), "it", nil, "")
				require.ErrorContains(t, err, x.words)
				require.ErrorContains(t, err, `bucket "locks-bucket": `)
				require.Equal(t, x.refused, errors.Is(err, lease.ErrRefused), "refused")
				require.Equal(t, x.unavailable, errors.Is(err, lease.ErrUnavailable), "unavailable")
				require.Equal(t, x.status == http.StatusUnauthorized, errors.Is(err, lease.ErrLogin), "login")
				require.NotErrorIs(t, err, caslock.ErrConflict)
				_, writes, _ := f.Counts()
				require.Equal(t, 1, writes, "no redirect is followed")
			})
		})
	}
}

func TestAReadWithoutItsRightSaysWhich(t *testing.T) {
	f := newFake()
	f.Before = func(*http.Request) (*http.Response, error) {
		return adaptertest.Answered(http.StatusForbidden, "ada@example.com does not have storage.objects.get access"), nil
	}
	c := open(t, f.client())
	err := c.Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorContains(t, err, `gcslock: lock "it": bucket "locks-bucket": the right storage.objects.get or `+
		`storage.objects.list is missing: 403 Forbidden: ada@example.com does not have`)
	require.ErrorIs(t, err, lease.ErrRefused)
	_, err = c.Names(t.Context(), "")
	require.ErrorContains(t, err, "the right storage.objects.list is missing")
}

func TestASweepWithoutItsRightSaysWhich(t *testing.T) {
	f := newFake()
	d := gcslock.Documents(f.client(), bucketName, gcslock.DefaultEndpoint)
	f.Before = func(*http.Request) (*http.Response, error) { return refusal(http.StatusForbidden, "forbidden"), nil }
	err := d.(caslock.Deleter).Delete(t.Context(), "it", "1")
	require.ErrorContains(t, err, "the right storage.objects.delete is missing")
}

func TestAPageForPeopleIsNoPartOfAnError(t *testing.T) {
	f := newFake()
	f.Before = func(*http.Request) (*http.Response, error) {
		return adaptertest.Answered(http.StatusBadGateway, "<html>"+strings.Repeat("sorry", 100)), nil
	}
	_, err := open(t, f.client()).Mutex("it").Inspect(t.Context())
	require.ErrorContains(t, err, "502 Bad Gateway")
	require.NotContains(t, err.Error(), "sorry")
}

// Google permits one write of an object a second. The waiter writes again after a pause.
func TestAWriteTooManyIsRepeatedAfterAPause(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var n atomic.Int64
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && n.Add(1)%3 != 0 {
				return refusal(http.StatusTooManyRequests, "rateLimitExceeded"), nil
			}
			return nil, nil
		}
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		require.EqualValues(t, 1, adaptertest.Token(t, l, owner))
		_, writes, _ := f.Counts()
		require.Equal(t, 3, writes, "it writes nothing to find out what became of the first")
		require.NoError(t, l.UnlockContext(owner))
		_, writes, _ = f.Counts()
		require.Equal(t, 3, writes)
	})
}

func TestAnotherWriteUnderWayIsAConflict(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var n atomic.Int64
		f.Before = func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && n.Add(1) == 1 {
				return refusal(http.StatusConflict, "conflict"), nil
			}
			return nil, nil
		}
		adaptertest.Pair(t, open(t, f.client()).Mutex("it"))
	})
}

func TestAWriteWithoutAnswerIsInDoubt(t *testing.T) {
	f := newFake()
	f.After = func(*http.Request, *http.Response) (*http.Response, error) { return nil, adaptertest.ErrNetwork }
	d := gcslock.Documents(f.client(), bucketName, gcslock.DefaultEndpoint)
	_, err := d.Swap(t.Context(), "it", []byte("data"), "")
	require.ErrorIs(t, err, adaptertest.ErrNetwork)
	require.NotErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrUnavailable)
}

func TestAnAnswerCutOffIsNoForeignObject(t *testing.T) {
	f := newFake()
	adaptertest.Pair(t, open(t, f.client()).Mutex("it"))
	f.After = func(_ *http.Request, answer *http.Response) (*http.Response, error) {
		half := io.LimitReader(answer.Body, answer.ContentLength/2)
		answer.Body = io.NopCloser(io.MultiReader(half, iotest.ErrReader(adaptertest.ErrNetwork)))
		return answer, nil
	}
	_, err := open(t, f.client()).Mutex("it").Inspect(t.Context())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.ErrorIs(t, err, adaptertest.ErrNetwork)
}

func TestAnUnlockWaitsForCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var missing atomic.Bool
		f.Before = func(*http.Request) (*http.Response, error) { // as the transport of oauth2 does
			if missing.Load() {
				return nil, errors.New("oauth2: cannot fetch token")
			}
			return nil, nil
		}
		l, owner := open(t, f.client()).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		missing.Store(true)
		time.AfterFunc(time.Second, func() { missing.Store(false) })
		require.NoError(t, l.UnlockContext(owner))
		held, err := l.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestMissingCredentialsAreAnError(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.Before = func(*http.Request) (*http.Response, error) { return nil, errors.New("oauth2: cannot fetch token") }
		err := open(t, f.client()).Mutex("it").LockContext(adaptertest.Owner())
		require.ErrorContains(t, err, "oauth2: cannot fetch token")
		require.ErrorIs(t, err, lease.ErrUnreachable)
		synctest.Wait()
	})
}

func TestTheRequestsAreThoseOfGoogle(t *testing.T) {
	f := newFake()
	var seen []string
	f.Before = func(r *http.Request) (*http.Response, error) {
		query, _ := url.QueryUnescape(r.URL.RawQuery)
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.URL.Host+r.URL.EscapedPath()+"?"+query+" "+
			r.Header.Get("Content-Type")))
		return nil, nil
	}
	d := gcslock.Documents(f.client(), "my-bucket", gcslock.DefaultEndpoint+"/")
	version, err := d.Swap(t.Context(), "a/b", []byte("x"), "")
	require.NoError(t, err)
	_, _, err = d.Load(t.Context(), "a/b")
	require.NoError(t, err)
	_, err = d.Swap(t.Context(), "a/b", []byte("y"), version)
	require.NoError(t, err)
	require.NoError(t, d.(caslock.Deleter).Delete(t.Context(), "a/b", "2"))
	const of = "storage.googleapis.com"
	const upload = "POST " + of + "/upload/storage/v1/b/my-bucket/o?"
	require.Equal(t, []string{
		upload + "ifGenerationMatch=0&name=locks/a/b.json&uploadType=media application/json",
		"GET " + of + "/storage/v1/b/my-bucket/o/locks%2Fa%2Fb.json?alt=media",
		upload + "ifGenerationMatch=1&name=locks/a/b.json&uploadType=media application/json",
		"DELETE " + of + "/storage/v1/b/my-bucket/o/locks%2Fa%2Fb.json?generation=2&ifGenerationMatch=2",
	}, seen)
}
