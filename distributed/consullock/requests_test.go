package consullock

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestAMissingRightIsNoConflictWhateverTheKey(t *testing.T) {
	for _, key := range []string{"index", "exist", "held", "invalid session", "due to lock delay"} {
		refusal, err := refusalOf(api.TxnErrors{{What: `Permission denied: token with AccessorID '1' ` +
			`lacks permission 'key:write' on "locks/` + key + `"`}})
		require.NoError(t, refusal, key)
		require.ErrorIs(t, err, driver.ErrRefused, key)
		require.ErrorContains(t, err, "Permission denied", key)
	}
}

func TestAQueryWithoutAnIndexWaits(t *testing.T) {
	s := newStore(nil, options{ttl: DefaultTTL})
	defer s.stop()
	for _, last := range []uint64{0, 7, 3} { // none, more, and less than before
		index := uint64(5)
		require.NoError(t, s.await(context.Background(), &index, func(*api.QueryOptions) (*api.QueryMeta, error) {
			return &api.QueryMeta{LastIndex: last}, nil
		}))
		require.Equal(t, max(last, 1), index)
	}
}

func TestAnAnswerThatSaysNothingIsAnError(t *testing.T) {
	status, text := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	defer server.Close()
	client, err := api.NewClient(&api.Config{Address: server.URL, HttpClient: server.Client()})
	require.NoError(t, err)
	s := newStore(client, options{ttl: DefaultTTL})
	defer s.stop()
	for status, text = range map[int]string{http.StatusConflict: "{}", http.StatusOK: `{"Results": [{}]}`} {
		_, _, err := s.change(context.Background(), s.compare("it", 1))
		require.Error(t, err, text)
		require.NotErrorIs(t, err, driver.ErrRefused, text)
	}
}

// So the lease releases what the other session may have.
func TestAGrantOfAnotherSessionIsInDoubt(t *testing.T) {
	s := newStore(nil, options{ttl: DefaultTTL})
	defer s.stop()
	_, err := s.noteGrant(driver.HoldID{Name: "it", Acquisition: "1"}, &api.KVPair{ModifyIndex: 5}, &session{id: "1"})
	require.ErrorIs(t, err, driver.ErrUnavailable)
	require.NotErrorIs(t, err, driver.ErrRefused)
	require.NotErrorIs(t, err, ErrSessionExpired, "which only holders get")
}

// valued is a context of the program's own type.
type valued struct {
	context.Context
	asked func()
}

func (v valued) Value(key any) any { v.asked(); return v.Context.Value(key) }

func TestASessionBeginsWithoutTheCallersValues(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"ID": "1"}`)
	}))
	defer server.Close()
	client, err := api.NewClient(&api.Config{Address: server.URL, HttpClient: server.Client()})
	require.NoError(t, err)
	s := newStore(client, options{ttl: DefaultTTL})
	defer s.jobs.Close(context.Background())
	defer s.stop()
	_, err = s.enter(valued{context.Background(), func() {
		require.Empty(t, s.entering, "other acquisitions wait for this one")
	}})
	require.NoError(t, err)
}
