package s3lock_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/s3lock"
)

// refusalOf returns the answer that a row of the table is about. With a code, the status says
// something else.
func refusalOf(code string) *http.Response {
	if status, err := strconv.Atoi(strings.ReplaceAll(code, "xx", "77")); err == nil {
		return refusal(status, "")
	}
	return refusal(http.StatusConflict, code)
}

// front is a client's way to the fake.
type front struct{ adaptertest.Transport }

func (f *front) Do(r *http.Request) (*http.Response, error) { return f.RoundTrip(r) }

type server struct{ *fake }

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s.Do(r) }

// It is not parallel: beside it, the server of the other tests would be slow.
func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	var cases []adaptertest.Case[string]
	for _, r := range s3lock.Refusals {
		if r.Class != classes.Stored {
			cases = append(cases, adaptertest.Case[string]{Name: r.Code, Class: r.Class, Answer: r.Code, Text: "because"})
		}
	}
	start := func(
		t *testing.T, c adaptertest.Case[string],
	) (client, rival *caslock.Client, set func(adaptertest.Mood)) {
		f := newFake()
		way := &front{adaptertest.Transport{
			Server: server{f}, IsWrite: func(r *http.Request) bool { return r.Method != http.MethodGet },
			Answer: func(*http.Request) (*http.Response, error) { return refusalOf(c.Answer), nil },
		}}
		rival = open(t, f.client(), s3lock.WithoutProbe())
		client = open(t, clientOf(way, "fake"), s3lock.WithoutProbe())
		return client, rival, way.Set
	}
	adaptertest.TestClasses(t, cases, adaptertest.Documents, start)
}

func TestAnswersAboutTheObjectAreConflicts(t *testing.T) {
	t.Parallel()
	f := newFake()
	d := s3lock.Documents(f.client(), bucketName)
	adaptertest.TestConflicts(t, s3lock.Refusals, func(code string) error {
		f.Before = func(q *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(q.URL.Path, "/it.json") { // it is the probe's
				return nil, nil
			}
			return refusalOf(code), nil
		}
		_, err := d.Swap(context.Background(), "it", nil, "")
		return err
	})
}

func TestAnAnswerThatIsNotListedHasTheClassOfItsStatus(t *testing.T) {
	t.Parallel()
	for code, status := range map[string]int{
		"AccessDenied": 403, "NoSuchBucket": 404, "InvalidBucketState": 409, "MissingContentLength": 411,
		"PermanentRedirect": 301, "NotImplemented": 501, "KMS.DisabledException": 400,
	} {
		require.Equal(t, classes.Request, s3lock.Refusals.Named(code, status), code)
	}
	for code, status := range map[string]int{"InternalError": 500, "ServiceUnavailable": 503, "SlowDownWrite": 503} {
		require.Equal(t, classes.Doubt, s3lock.Refusals.Named(code, status), code)
	}
}
