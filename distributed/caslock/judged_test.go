package caslock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// judged is the documents of one client. It judges the writes and the answers of the client's
// Store:
//
//   - A request for a lock writes in the first third of its lease.
//   - A waiter counts the lease of a holder from the first look at a document, as long as it does
//     not change.
type judged struct {
	caslock.Documents
	tb testing.TB

	mu    sync.Mutex
	views map[string]*view // by name of a document
}

// view is the part of a document that the client has seen.
type view struct {
	version, data string
	changes       int       // how often another version was seen, or two requests met
	ends          time.Time // when the holder's lease is over, as the Store has said since the last change
	requests      int       // under way
}

// request is a request for a lock that is under way.
type request struct {
	driver.Request
	began   time.Time
	name    string // of the document, once it was read
	changes int    // of the view then
}

type requestKey struct{}

// documents returns d, with a Watch if the documents have one.
func (d *judged) documents() caslock.Documents {
	if w, ok := d.Documents.(caslock.Watcher); ok {
		return struct {
			*judged
			caslock.Watcher
		}{d, w}
	}
	return d
}

// begin begins a request about the document, until end is called. If two requests meet, nobody
// knows which answer the client sees first.
func (d *judged) begin(name string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.views[name]
	if v == nil {
		v = new(view)
		d.views[name] = v
	}
	if v.requests > 0 {
		v.change()
	}
	v.requests++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		v.requests--
	}
}

func (v *view) change() {
	v.changes++
	v.ends = time.Time{}
}

// see notes that the client has seen a version.
func (d *judged) see(ctx context.Context, name, version, data string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.views[name]
	if v.version != version {
		v.version, v.data = version, data
		v.change()
	}
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		r.name, r.changes = name, v.changes
	}
}

func (d *judged) Load(ctx context.Context, name string) ([]byte, string, error) {
	defer d.begin(name)()
	data, version, err := d.Documents.Load(ctx, name)
	if err == nil {
		d.see(ctx, name, version, string(data))
	}
	return data, version, err
}

func (d *judged) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		d.mu.Lock()
		v := d.views[name]
		has := v == nil || v.version != version || strings.Contains(v.data, r.Acquisition) // or perhaps
		d.mu.Unlock()
		if age := time.Since(r.began); age > r.TTL/3 && !has {
			d.tb.Errorf("the lock %q is taken by a request that began %v ago, for %v", name, age, r.TTL)
		}
	}
	defer d.begin(name)()
	next, err := d.Documents.Swap(ctx, name, data, version)
	if err == nil {
		d.see(ctx, name, next, string(data))
	}
	return next, err
}

// answer judges a refusal.
func (d *judged) answer(r *request, reply driver.Reply) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.views[r.name]
	if v == nil || v.changes != r.changes || reply.Held || reply.Wait <= 0 {
		return
	}
	now := time.Now()
	if ends := now.Add(reply.Wait); now.Before(v.ends) && ends.After(v.ends.Add(time.Millisecond)) {
		d.tb.Errorf("the holder of %q ends %v later than the waiter knew, without a renewal", r.name, ends.Sub(v.ends))
	} else {
		v.ends = ends
	}
}

// wrap is an option of package lease: it has the Store judged, below all other wrappers.
func (d *judged) wrap(c *driver.Config) {
	outer := c.Wrapper
	c.Wrapper = func(s driver.Store) driver.Store {
		j := &judgedStore{s.(inner), d}
		if outer == nil {
			return j
		}
		return outer(j)
	}
}

type inner interface {
	driver.Store
	driver.Breaker
	driver.Inspector
}

type judgedStore struct {
	inner
	d *judged
}

func (s *judgedStore) Unwrap() driver.Store { return s.inner }

func (s *judgedStore) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r := &request{Request: req, began: time.Now()}
	reply, err := s.inner.Acquire(context.WithValue(ctx, requestKey{}, r), req)
	if err == nil {
		s.d.answer(r, reply)
	}
	return reply, err
}
