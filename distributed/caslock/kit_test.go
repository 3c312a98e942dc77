package caslock_test

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestAPolledStorePassesTheKit(t *testing.T) {
	t.Parallel()
	leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config { return newBed(tb, polled).locks() })
}

func TestAWatchedStorePassesTheKit(t *testing.T) {
	t.Parallel()
	leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config { return newBed(tb, watched).locks() })
}

func TestSemaphoresPassTheKit(t *testing.T) {
	t.Parallel()
	leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config { return newBed(tb, polled).semaphores() })
}

func TestSemaphoresOfAWatchedStorePassTheKit(t *testing.T) {
	t.Parallel()
	leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config { return newBed(tb, watched).semaphores() })
}

func polled(r *rows) caslock.Documents  { return r }
func watched(r *rows) caslock.Documents { return watchedRows{r} }

// bed is a server of documents over HTTP, in memory.
type bed struct {
	*server
	web       pipes
	documents func(r *rows) caslock.Documents
}

func newBed(tb testing.TB, documents func(r *rows) caslock.Documents) bed {
	b := bed{newServer(), pipes{make(chan net.Conn), make(chan struct{})}, documents}
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(rand.IntN(5000)) * time.Microsecond) // so long an object store takes
		b.ServeHTTP(w, r)
	})}
	go web.Serve(b.web)
	tb.Cleanup(func() { web.Close() })
	return b
}

// pipes is a net.Listener whose connections come from memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// connect makes Accept return conn.
func (p pipes) connect(conn net.Conn) {
	select {
	case p.conns <- conn:
	case <-p.closed:
		conn.Close()
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// open returns a client whose requests go through link.
func (b bed) open(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return link.Pipe(b.web.connect), nil
	}}
	tb.Cleanup(transport.CloseIdleConnections)
	d := &judged{Documents: b.documents(&rows{transport, "http://memory/"}), tb: tb, views: make(map[string]*view)}
	c, err := caslock.New(d.documents(), caslock.WithPolling(2*time.Millisecond, 50*time.Millisecond),
		caslock.WithLeaseOptions(opts...), caslock.WithLeaseOptions(d.wrap))
	require.NoError(tb, err)
	c.RememberFew()
	adaptertest.CloseWith(tb, c)
	return c
}

// locks is a configuration for locks.
func (b bed) locks() leasetest.Config {
	return leasetest.Config{
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
	}
}

// semaphores is a configuration for semaphores.
func (b bed) semaphores() leasetest.Config {
	return leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var inner driver.Store
			c := b.open(tb, link, lease.WithWrapper(func(of driver.Store) driver.Store {
				inner = of
				return of
			}))
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			adaptertest.CloseWith(tb, lc)
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
				adaptertest.TakeAll(tb, b.open(tb, leasetest.NewLink(tb)).Semaphore(name, 1<<30))
				data = b.data(name + ".semaphore")
			}
			assert.NotContains(tb, data, "holders")
		},
	}
}
