package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Lock is the part of a lock that [TestKinds] needs.
type Lock interface {
	LockContext(ctx context.Context) error
	UnlockContext(ctx context.Context) error
	Hold(ctx context.Context) (locks.Hold, error)
}

// Kind is a kind of lock of an adapter, on a server that runs in the time of the machine.
type Kind struct {
	Name  string
	Lock  func(name string) Lock // of the client whose requests are refused
	Rival func(name string) Lock // excludes Lock, and is of another client
}

// Outage is an error answer to all requests of a client. Its class is Request, Connection or
// Moment.
type Outage[E comparable] struct {
	Answer E
	Class  classes.Class
}

var special = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// TestKinds checks how each kind of lock reacts to an error answer: at a first request, a renewal,
// a release and a wait. The class of the answer demands the reaction. open returns the mood of a
// server, and the kinds of a client that has asked before. The waiters of the client ask often, and
// its leases last for minutes.
func TestKinds[E comparable](t *testing.T, outages []Outage[E], open func(t *testing.T) (*Refuser[E], []Kind)) {
	t.Helper()
	for _, o := range outages {
		t.Run(fmt.Sprint(o.Answer), func(t *testing.T) {
			t.Parallel()
			r, kinds := open(t)
			for _, k := range kinds {
				t.Run(k.Name, func(t *testing.T) {
					var none E
					defer r.Refuse(none)
					o.meets(t, r, k)
				})
			}
		})
	}
}

// meets answers each kind of request of a lock of kind k with o.
func (o Outage[E]) meets(t *testing.T, r *Refuser[E], k Kind) {
	var none E
	name := special.ReplaceAllString(t.Name(), "-")
	l, rival, a, b := k.Lock(name), k.Rival(name), Owner(), Owner()
	start := func(f func() error) <-chan error {
		done := make(chan error, 1)
		go func() { done <- f() }()
		return done
	}
	lock := func() error { return l.LockContext(a) }

	r.Refuse(o.Answer) // a first request
	got := start(lock)
	if o.Class == classes.Moment {
		r.Refuses(t, 2)
		r.Refuse(none)
		require.NoError(t, Result(t, got))
	} else {
		err := Result(t, got)
		require.ErrorIs(t, err, driver.ErrRefused)
		assert.Equal(t, o.Class == classes.Connection, errors.Is(err, driver.ErrLogin), "%v", err)
		r.Refuse(none)
		require.NoError(t, lock())
	}

	h, err := l.Hold(a) // a renewal
	require.NoError(t, err)
	r.Refuse(o.Answer)
	extended := start(func() error { return h.Extend(a, 10*time.Minute) })
	r.Refuses(t, 1)
	r.Refuse(none)
	<-extended
	require.NoError(t, h.Err())

	end, leased := h.Deadline()
	require.True(t, leased)
	r.Refuse(o.Answer) // a release
	released := start(func() error { return l.UnlockContext(a) })
	if o.Class == classes.Moment {
		r.Refuses(t, 2)
		r.Refuse(none)
		require.NoError(t, Result(t, released))
	} else {
		require.ErrorIs(t, Result(t, released), locks.ErrLost)
		r.Refuse(none)
	}
	ctx, cancel := context.WithDeadline(b, end) // the store's lease ends later
	defer cancel()
	require.NoError(t, rival.LockContext(ctx))

	got = start(lock) // a wait
	r.Asks(t, 16)
	r.Refuse(o.Answer)
	if o.Class == classes.Request {
		require.ErrorIs(t, Result(t, got), driver.ErrRefused)
		r.Refuse(none)
		require.NoError(t, rival.UnlockContext(b))
		return
	}
	r.Refuses(t, 2)
	r.Refuse(none)
	require.NoError(t, rival.UnlockContext(b))
	require.NoError(t, Result(t, got))
	require.NoError(t, l.UnlockContext(a))
}

// Permit returns one permit of s as a lock.
func Permit(s locks.Semaphore) Lock { return &permit{s: s} }

type permit struct {
	s  locks.Semaphore
	mu sync.Mutex
	p  locks.Permits
}

func (l *permit) LockContext(ctx context.Context) error {
	p, err := l.s.AcquireContext(ctx, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.p = p
	return err
}

func (l *permit) held() locks.Permits {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.p
}

func (l *permit) UnlockContext(ctx context.Context) error { return l.held().ReleaseContext(ctx) }

func (l *permit) Hold(context.Context) (locks.Hold, error) { return l.held(), nil }
