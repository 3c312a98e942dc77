package gcslock_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// refused is an answer of Google.
type refused struct {
	status int
	reason string
}

// refusedAs returns the answer that a row of the table is about.
func refusedAs(code string) refused {
	status, reason, _ := strings.Cut(code, " ")
	n, err := strconv.Atoi(strings.ReplaceAll(status, "xx", "77")) // a status that no row has
	if err != nil {
		panic(err)
	}
	return refused{n, reason}
}

func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	t.Parallel()
	var cases []adaptertest.Case[refused]
	for _, r := range gcslock.Refusals {
		if r.Class != classes.Stored {
			cases = append(cases, adaptertest.Case[refused]{Name: r.Code, Class: r.Class, Answer: refusedAs(r.Code), Text: "because"})
		}
	}
	start := func(
		t *testing.T, c adaptertest.Case[refused],
	) (client, rival *caslock.Client, set func(adaptertest.Mood)) {
		f := newFake()
		front := &adaptertest.Transport{
			Server: f, IsWrite: func(r *http.Request) bool { return r.Method != http.MethodGet },
			Answer: func(*http.Request) (*http.Response, error) { return refusal(c.Answer.status, c.Answer.reason), nil },
		}
		return open(t, &http.Client{Transport: front}), open(t, f.client()), front.Set
	}
	adaptertest.TestClasses(t, cases, adaptertest.Documents, start)
}

func TestAnswersAboutTheObjectAreConflicts(t *testing.T) {
	t.Parallel()
	f := newFake()
	d := gcslock.Documents(f.client(), bucketName, gcslock.DefaultEndpoint)
	adaptertest.TestConflicts(t, gcslock.Refusals, func(code string) error {
		f.Before = func(*http.Request) (*http.Response, error) {
			return refusal(refusedAs(code).status, refusedAs(code).reason), nil
		}
		_, err := d.Swap(context.Background(), "it", nil, "")
		return err
	})
}

func TestAnAnswerThatIsNotListedHasTheClassOfItsStatus(t *testing.T) {
	t.Parallel()
	for class, codes := range map[classes.Class][]string{
		classes.Request:    {"400 invalid", "403 forbidden", "403 insufficientPermissions", "404 notFound", "413", "416"},
		classes.Connection: {"401 authError", "401 required"},
		classes.Doubt:      {"500 internalError", "502", "503 backendError", "504"},
		classes.Unclear:    {"307"},
	} {
		for _, code := range codes {
			answer := refusedAs(code)
			require.Equal(t, class, gcslock.Refusals.Answer(answer.status, answer.reason, "because"), code)
		}
	}
}
