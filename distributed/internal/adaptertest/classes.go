package adaptertest

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Case is one answer of a server.
type Case[A any] struct {
	Name   string
	Class  classes.Class
	Answer A      // as the adapter's Open needs it
	Text   string // is part of the error
}

// Mood says which requests are answered with an error.
type Mood int32

const (
	Good     Mood = iota // none
	Refusing             // all, and none of them is carried out
	NoWrites             // requests that change something. None of them is carried out
	Muddled              // requests that change something, although they are carried out
)

// Kinds makes a lock of each kind that an adapter has. The locks of a kind exclude each other.
type Kinds[C any] struct {
	Mutex  func(c C) Lock
	Permit func(c C) Lock // or nil
}

// Documents are the kinds of an adapter whose locks are documents.
var Documents = Kinds[*caslock.Client]{
	Mutex:  func(c *caslock.Client) Lock { return c.Mutex("it") },
	Permit: func(c *caslock.Client) Lock { return Permit(c.Semaphore("it", 1)) },
}

// bed has two locks of one name, by two clients of a server.
type bed struct {
	lock, rival Lock
	set         func(Mood) // of the server towards the client of lock
}

const (
	outage = 10 * time.Second
	// soon is less than a lease, and more than a waiter needs to poll.
	soon = 12 * time.Second
)

// TestClasses checks that the locks of an adapter do what the class of an error answer demands: see
// the table in package lease. It gives each answer to a first request, to a wait, to a renewal and
// to a release. It checks each case in all situations with the mutex, and the first case of each
// class in all moods with all kinds. Time is virtual, by package synctest: open starts a server in
// memory. It returns two clients, and a function that sets the mood of the server towards client.
func TestClasses[A, C any](
	t *testing.T, cases []Case[A], kinds Kinds[C],
	open func(t *testing.T, c Case[A]) (client, rival C, set func(Mood)),
) {
	situations := map[string]func(*testing.T, bed, situation){
		"first request": firstRequest, "wait": wait, "renewal": renewal, "release": release,
	}
	seen := make(map[classes.Class]bool)
	for _, c := range cases {
		moods, locks := map[string]Mood{"writes": NoWrites}, map[string]func(C) Lock{"mutex": kinds.Mutex}
		if !seen[c.Class] {
			seen[c.Class] = true
			moods["every request"] = Refusing
			if c.Class == classes.Doubt || c.Class == classes.Unclear {
				moods["writes that are carried out"] = Muddled
			}
			if kinds.Permit != nil {
				locks["permit"] = kinds.Permit
			}
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for kind, lock := range locks {
				for name, mood := range moods {
					for what, check := range situations {
						t.Run(kind+", "+what+" of "+name, func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) {
								client, rival, set := open(t, c)
								check(t, bed{lock(client), lock(rival), set}, situation{c.Class, c.Text, mood})
							})
						})
					}
				}
			}
		})
	}
}

type situation struct {
	class classes.Class
	text  string
	mood  Mood
}

// passes reports whether a first request waits for the end of the refusals.
func (s situation) passes() bool { return s.class == classes.Moment || s.class == classes.Doubt }

// result returns the outcome of an acquisition, which comes soon.
func result(t *testing.T, got <-chan error) error {
	t.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(soon):
		require.Fail(t, "the acquisition goes on")
		return nil
	}
}

// marked checks the error of an answer that ends an acquisition.
func (s situation) marked(t *testing.T, err error) {
	t.Helper()
	require.ErrorContains(t, err, s.text)
	assert.Equal(t, s.class == classes.Connection, errors.Is(err, driver.ErrLogin), "a login: %v", err)
	if s.class != classes.Unclear { // after a read, nothing is in doubt
		assert.ErrorIs(t, err, driver.ErrRefused)
		assert.NotErrorIs(t, err, driver.ErrUnavailable)
	}
}

func firstRequest(t *testing.T, b bed, s situation) {
	a := Owner()
	got := make(chan error, 1)
	b.set(s.mood)
	began := time.Now()
	go func() { got <- b.lock.LockContext(a) }()
	if !s.passes() && s.mood != Muddled {
		s.marked(t, result(t, got))
		assert.Less(t, time.Since(began), outage)
		b.set(Good)
		return
	}
	if s.mood != Muddled {
		time.Sleep(outage)
		require.Empty(t, got)
	}
	time.AfterFunc(outage, func() { b.set(Good) })
	require.NoError(t, result(t, got))
	b.set(Good)
	require.NoError(t, b.lock.UnlockContext(a))
}

func wait(t *testing.T, b bed, s situation) {
	a, r := Owner(), Owner()
	Hold(t, b.rival, r)
	got := make(chan error, 1)
	go func() { got <- b.lock.LockContext(a) }()
	time.Sleep(outage)
	b.set(s.mood)
	time.Sleep(outage)
	require.NoError(t, b.rival.UnlockContext(r))
	time.Sleep(outage)
	b.set(Good)
	err := result(t, got)
	if s.class == classes.Request {
		s.marked(t, err)
		return
	}
	require.NoError(t, err)
	require.NoError(t, b.lock.UnlockContext(a))
}

func renewal(t *testing.T, b bed, s situation) {
	a := Owner()
	h := Hold(t, b.lock, a)
	end, _ := h.Deadline()
	term := time.Until(end)
	for range 5 {
		b.set(s.mood)
		time.Sleep(term / 2)
		b.set(Good)
		time.Sleep(term / 4)
		require.NoError(t, h.Err())
	}
	require.NoError(t, b.lock.UnlockContext(a))
}

func release(t *testing.T, b bed, s situation) {
	a, r := Owner(), Owner()
	Hold(t, b.lock, a)
	got := make(chan error, 1)
	go func() { got <- b.rival.LockContext(r) }()
	time.Sleep(outage)
	b.set(s.mood)
	time.AfterFunc(500*time.Millisecond, func() { b.set(Good) })
	began := time.Now()
	err := b.lock.UnlockContext(a)
	if s.class == classes.Request || s.class == classes.Connection {
		require.ErrorIs(t, err, locks.ErrLost)
		require.ErrorContains(t, err, s.text)
		assert.Less(t, time.Since(began), 100*time.Millisecond, "the caller is answered at once")
	} else {
		require.NoError(t, err)
	}
	require.NoError(t, result(t, got))
	require.NoError(t, b.rival.UnlockContext(r))
}

// Moody is the mood of a server towards one client.
type Moody struct {
	mu   sync.Mutex
	mood Mood
}

// Set sets the mood.
func (m *Moody) Set(mood Mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mood = mood
}

// Now says whether a request is carried out, and whether its answer is the error.
func (m *Moody) Now(write bool) (carriedOut, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.mood {
	case Refusing:
		return false, true
	case NoWrites:
		return !write, write
	case Muddled:
		return true, write
	}
	return true, false
}
