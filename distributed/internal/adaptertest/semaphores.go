package adaptertest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// Semaphores are the semaphores of an adapter whose locks are documents.
type Semaphores struct {
	// Open returns a client whose connections go through link. The client is closed with the test.
	Open func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client
	// Get returns the document called key, or "". Put writes a document.
	Get func(tb testing.TB, key string) string
	Put func(tb testing.TB, key, data string)
	// Names refuses the names that the adapter refuses, if not nil.
	Names caslock.NameChecker
}

// TestSemaphores runs the kit on s.
func TestSemaphores(t *testing.T, s Semaphores) {
	t.Helper()
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var inner driver.Store
			c := s.Open(tb, link, lease.WithWrapper(func(of driver.Store) driver.Store {
				inner = of
				return of
			}))
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			CloseWith(tb, lc)
			return documents{lc, s.Names}
		},
		Semaphore: func(p locks.Provider, name string, size int64) locks.Semaphore {
			return p.(documents).Semaphore(name, size)
		},
		Foreign: func(tb testing.TB, name string) { s.Put(tb, name+".semaphore", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			data := s.Get(tb, name+".semaphore")
			if !strings.HasPrefix(data, `{"cassemaphore"`) {
				return
			}
			if strings.Contains(data, "holders") { // a client that died may have written last
				TakeAll(tb, s.Open(tb, leasetest.NewLink(tb)).Semaphore(name, 1<<30))
				data = s.Get(tb, name+".semaphore")
			}
			assert.NotContains(tb, data, "holders")
		},
	})
}

// documents has the locks of a Store of semaphores, and refuses the names that the adapter refuses.
type documents struct {
	*lease.Client
	names caslock.NameChecker
}

func (d documents) Locker(name string) locks.TryLocker {
	var bad error
	if d.names != nil {
		bad = d.names.CheckName(name + ".semaphore")
	}
	return d.Mutex(name, driver.WithRefusal(bad))
}

// TakeAll acquires all permits of s and releases them. Thus the permits of dead clients are
// collected, which otherwise happens only when another client wants permits.
func TakeAll(tb testing.TB, s *lease.Semaphore) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(Owner(), hang)
	defer cancel()
	p, err := s.AcquireContext(ctx, s.Size())
	require.NoError(tb, err)
	require.NoError(tb, p.ReleaseContext(ctx))
}
