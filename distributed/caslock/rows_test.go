package caslock_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

func TestARedirectedWriteIsNoSuccess(t *testing.T) {
	s := newServer()
	s.put("it", "old")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return
		}
		s.ServeHTTP(w, r)
	}))
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r := &rows{transport, web.URL + "/"}
	_, version, err := r.Load(t.Context(), "it")
	require.NoError(t, err)
	_, err = r.Swap(t.Context(), "it", []byte("new"), version)
	require.ErrorContains(t, err, "302 Found")
	require.NotErrorIs(t, err, lease.ErrRefused)
}

func TestOnlyABlamedRequestIsRefused(t *testing.T) {
	for status, want := range map[int]bool{202: false, 307: false, 403: true, 429: false, 500: false, 503: false} {
		err := failed(&http.Response{StatusCode: status})
		require.Equal(t, want, errors.Is(err, lease.ErrRefused), status)
	}
}
