package leader_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var errNetwork = errors.New("network down")

// server is a store of one lock in memory. Its clock is the clock of the test.
type server struct {
	mu     sync.Mutex
	holder string // acquisition
	ends   time.Time
	token  uint64
}

// evict frees the lock behind its holder's back.
func (s *server) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder = ""
}

func (s *server) held() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder != "" && time.Now().Before(s.ends)
}

// link is the connection of one process to the server. It can be cut.
type link struct {
	*server
	down bool // with server.mu
}

var _ driver.Store = (*link)(nil)

func (l *link) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// call runs f on the server, if the link is up. held is true while acquisition holds the lock.
func (l *link) call(acquisition string, f func(held bool)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return driver.Mark(errNetwork, driver.ErrRefused, driver.ErrUnavailable)
	}
	if !time.Now().Before(l.ends) {
		l.holder = ""
	}
	f(l.holder == acquisition)
	return nil
}

func (l *link) Acquire(_ context.Context, req driver.Request) (r driver.Reply, err error) {
	err = l.call(req.Acquisition, func(bool) {
		if l.holder != "" {
			r.Wait = time.Until(l.ends)
			return
		}
		l.token++
		l.holder, l.ends = req.Acquisition, time.Now().Add(req.TTL)
		r = driver.Reply{Held: true, Token: l.token}
	})
	return r, err
}

func (l *link) Lookup(_ context.Context, req driver.Request) (r driver.Reply, err error) {
	err = l.call(req.Acquisition, func(held bool) { r = driver.Reply{Held: held, Token: l.token} })
	return r, err
}

func (l *link) Renew(_ context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	renewed := make([]bool, len(holds))
	for i, id := range holds {
		err := l.call(id.Acquisition, func(held bool) {
			if renewed[i] = held; held {
				l.ends = time.Now().Add(d)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return renewed, nil
}

func (l *link) Release(_ context.Context, id driver.HoldID) (r driver.Released, err error) {
	err = l.call(id.Acquisition, func(held bool) {
		if r = (driver.Released{Held: held, Awaited: true}); held {
			l.holder = ""
		}
	})
	return r, err
}

func (l *link) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

// ttl is the lease of the tests. The processes renew three times in that time.
const ttl = 3 * time.Second

// process is one process with a client of its own.
type process struct {
	*link
	client *lease.Client
	lock   *lease.Mutex
}

// start returns a new process. Its client is closed at the end of the test.
func (s *server) start(t *testing.T) *process {
	t.Helper()
	p := &process{link: &link{server: s}}
	var err error
	p.client, err = lease.New(p.link,
		lease.WithTTL(ttl), driver.WithErrorPrefix("test"), lease.WithRetry(lease.RetryNever))
	if err != nil {
		t.Fatal(err)
	}
	p.lock = p.client.Mutex("cron")
	return p
}

func (p *process) close(t *testing.T) {
	t.Helper()
	p.cut(false)
	if err := p.client.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
