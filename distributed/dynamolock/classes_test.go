package dynamolock_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// fake is a table in memory. Clients reach it without connections, so that tests can have a clock
// of their own.
type fake struct {
	mu   sync.Mutex
	rows map[string]row // by name
}

// row has attributes that are texts.
type row map[string]struct{ S string }

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	var in struct {
		Key, Item                 row
		ExpressionAttributeValues row
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out struct{ Item row }
	if in.Item == nil {
		out.Item = f.rows[in.Key["name"].S]
	} else {
		name := in.Item["name"].S
		if in.ExpressionAttributeValues[":version"].S != f.rows[name]["version"].S {
			return refusal(http.StatusBadRequest, "ConditionalCheckFailedException"), nil
		}
		f.rows[name] = in.Item
	}
	body, err := json.Marshal(out)
	return reply(http.StatusOK, string(body)), err
}

// deaf gets requests and answers none.
type deaf struct{}

func (deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestASilentServerIsNoEndOfTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := dynamolock.CheckTable(t.Context(), dynamodb.New(options("fake", deaf{})), "locks")
		require.ErrorContains(t, err, "dynamolock: check table: ")
		require.ErrorContains(t, err, "no answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "context deadline exceeded")
	})
}

// refusalOf returns the answer that a row of the table is about.
func refusalOf(code string) *http.Response {
	switch status, err := strconv.Atoi(strings.ReplaceAll(code, "xx", "77")); {
	case err == nil:
		return refusal(status, "")
	case code == "4xx with a code":
		code = "SomethingNewException"
	}
	return refusal(http.StatusBadRequest, code)
}

// It is not parallel: beside it, the server of the other tests would be slow.
func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	var cases []adaptertest.Case[string]
	for _, r := range dynamolock.Refusals {
		if r.Class != classes.Stored {
			cases = append(cases, adaptertest.Case[string]{Name: r.Code, Class: r.Class, Answer: r.Code, Text: `table "locks": `})
		}
	}
	start := func(
		t *testing.T, c adaptertest.Case[string],
	) (client, rival *caslock.Client, set func(adaptertest.Mood)) {
		f := &fake{rows: make(map[string]row)}
		way := &adaptertest.Transport{
			Server: f, Answer: func(*http.Request) (*http.Response, error) { return refusalOf(c.Answer), nil },
			IsWrite: func(r *http.Request) bool { return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "PutItem") },
		}
		rival, client = open(t, dynamodb.New(options("fake", f))), open(t, dynamodb.New(options("fake", way)))
		return client, rival, way.Set
	}
	adaptertest.TestClasses(t, cases, adaptertest.Documents, start)
}

func TestAnswersAboutTheRowAreConflicts(t *testing.T) {
	t.Parallel()
	f := newFront()
	d, err := dynamolock.NewDocuments(dynamodb.New(options("fake", f)), table)
	require.NoError(t, err)
	adaptertest.TestConflicts(t, dynamolock.Refusals, func(code string) error {
		f.answers(func(string, func() *http.Response) *http.Response { return refusalOf(code) })
		_, err := d.Swap(background, "it", nil, "")
		return err
	})
}

func TestAnAnswerThatIsNotListedHasTheClassOfItsStatus(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"AccessDeniedException", "ResourceNotFoundException", "ValidationException"} {
		require.Equal(t, classes.Request, dynamolock.ClassOf(code, 400), code)
	}
	for code, status := range map[string]int{"InternalServerError": 500, "ServiceUnavailable": 503, "": 502} {
		require.Equal(t, classes.Doubt, dynamolock.ClassOf(code, status), code)
	}
	require.Equal(t, classes.Unclear, dynamolock.ClassOf("", 400))
}
