package caslock_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestAPolledStorePassesTheKit(t *testing.T) {
	prove(t, func(r *rows) caslock.Documents { return r })
}

func TestAWatchedStorePassesTheKit(t *testing.T) {
	prove(t, func(r *rows) caslock.Documents { return watchedRows{r} })
}

// prove runs the kit on documents over HTTP.
func prove(t *testing.T, documents func(r *rows) caslock.Documents) {
	s := newServer()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	addr := strings.TrimPrefix(web.URL, "http://")
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			transport := &http.Transport{DialContext: link.DialContext}
			tb.Cleanup(transport.CloseIdleConnections)
			r := &rows{transport, "http://" + addr + "/"}
			c, err := caslock.New(documents(r), caslock.WithPolling(2*time.Millisecond, 50*time.Millisecond),
				caslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		},
		Foreign: func(_ testing.TB, name string) { s.put(name, "a photograph") },
		Rest: func(tb testing.TB, name string) {
			if data := s.data(name); strings.HasPrefix(data, `{"caslock"`) {
				r, err := caslock.JSON.Decode([]byte(data))
				require.NoError(tb, err)
				assert.NotZero(tb, r.Token)
			}
		},
	})
}
