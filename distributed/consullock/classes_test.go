package consullock_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
)

// refusalOf returns the answer that a row of the table is about.
func refusalOf(code string) *http.Response {
	number, text, _ := strings.Cut(code, ": ")
	status, err := strconv.Atoi(strings.ReplaceAll(number, "xx", "77"))
	if err != nil {
		panic(err)
	}
	return answered(status, "because "+text, 0)
}

// dialFake returns Consul's client of a fake.
func dialFake(tb testing.TB, rt http.RoundTripper) *api.Client {
	tb.Helper()
	c, err := api.NewClient(&api.Config{Address: "fake", HttpClient: &http.Client{Transport: rt}})
	require.NoError(tb, err)
	return c
}

func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	t.Parallel()
	var cases []adaptertest.Case[string]
	for _, r := range consullock.Refusals {
		require.NotEmpty(t, r.Why)
		if r.Class != classes.Stored {
			cases = append(cases, adaptertest.Case[string]{Name: r.Code, Class: r.Class, Answer: r.Code, Text: "because"})
		}
	}
	kinds := adaptertest.Kinds[*consullock.Client]{
		Mutex: func(c *consullock.Client) adaptertest.Lock { return c.Mutex("it") },
	}
	start := func(
		t *testing.T, c adaptertest.Case[string],
	) (client, rival *consullock.Client, set func(adaptertest.Mood)) {
		f := newFake()
		way := &adaptertest.Transport{
			Server: f, IsWrite: f.writes,
			Answer: func(*http.Request) (*http.Response, error) { return refusalOf(c.Answer), nil },
		}
		return openAs(t, dialFake(t, way)), openAs(t, dialFake(t, f)), way.Set
	}
	adaptertest.TestClasses(t, cases, kinds, start)
}

// openAs is open with the default of each option.
func openAs(tb testing.TB, client *api.Client) *consullock.Client {
	tb.Helper()
	c, err := consullock.New(client)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close(background)) })
	return c
}

func TestAnAnswerThatIsNotListedHasTheClassOfItsStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 403, 404, 405, 413} {
		require.Equal(t, classes.Request, consullock.Refusals.Answer(status, "", "because"), status)
	}
	for _, text := range []string{"No cluster leader", "leadership lost", "raft apply failed", "rpc error: EOF"} {
		require.Equal(t, classes.Doubt, consullock.Refusals.Answer(500, "", text), text)
	}
}
