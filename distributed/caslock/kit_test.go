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
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAPolledStorePassesTheKit(t *testing.T) {
	newBed(t, polled).prove(t)
}

func TestAWatchedStorePassesTheKit(t *testing.T) {
	newBed(t, watched).prove(t)
}

func TestSemaphoresPassTheKit(t *testing.T) {
	newBed(t, polled).proveSemaphores(t)
}

func TestSemaphoresOfAWatchedStorePassTheKit(t *testing.T) {
	newBed(t, watched).proveSemaphores(t)
}

func polled(r *rows) caslock.Documents  { return r }
func watched(r *rows) caslock.Documents { return watchedRows{r} }

// bed is a server of documents over HTTP.
type bed struct {
	*server
	addr      string
	documents func(r *rows) caslock.Documents
}

func newBed(t *testing.T, documents func(r *rows) caslock.Documents) bed {
	s := newServer()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	return bed{s, strings.TrimPrefix(web.URL, "http://"), documents}
}

// open returns a client whose requests go through link.
func (b bed) open(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
	transport := &http.Transport{DialContext: link.DialContext}
	tb.Cleanup(transport.CloseIdleConnections)
	r := &rows{transport, "http://" + b.addr + "/"}
	c, err := caslock.New(b.documents(r), caslock.WithPolling(2*time.Millisecond, 50*time.Millisecond),
		caslock.WithLeaseOptions(opts...))
	require.NoError(tb, err)
	closeWith(tb, c)
	return c
}

// closeWith closes c with the test.
func closeWith(tb testing.TB, c interface {
	Close(ctx context.Context) error
}) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // it fails for a client that has died
	})
}

// prove runs the kit on locks.
func (b bed) prove(t *testing.T) {
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			return b.open(tb, link, opts...)
		},
		Foreign: func(_ testing.TB, name string) { b.put(name, "a photograph") },
		Rest: func(tb testing.TB, name string) {
			if data := b.data(name); strings.HasPrefix(data, `{"caslock"`) {
				r, err := caslock.JSON.Decode([]byte(data))
				require.NoError(tb, err)
				assert.NotZero(tb, r.Token)
			}
		},
	})
}

// proveSemaphores runs the kit on semaphores.
func (b bed) proveSemaphores(t *testing.T) {
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var inner lease.Store
			c := b.open(tb, link, lease.WithWrapper(func(of lease.Store) lease.Store {
				inner = of
				return of
			}))
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			closeWith(tb, lc)
			return lc
		},
		Semaphore: leasetest.Semaphores,
		Foreign:   func(_ testing.TB, name string) { b.put(name+".semaphore", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			data := b.data(name + ".semaphore")
			if !strings.HasPrefix(data, `{"cassemaphore"`) {
				return
			}
			if strings.Contains(data, "holders") { // a client that died may have written last
				testbed.TakeAll(tb, b.open(tb, leasetest.NewLink(tb)).Semaphore(name, 1<<30))
				data = b.data(name + ".semaphore")
			}
			assert.NotContains(tb, data, "holders")
		},
	})
}
