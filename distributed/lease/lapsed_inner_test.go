package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/leases"
)

// lasting returns a grant by a lease of a minute, which lasts for d from now.
func lasting(t *testing.T, d time.Duration) *grant {
	t.Helper()
	c, err := New(giving{})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return &grant{
		s: &c.schedule, id: driver.HoldID{Name: "it"}, ttl: time.Minute, until: c.now().Add(d), index: -1,
	}
}

// An extension by an hour is not answered. The answer to a later extension does not say whether the
// store will still carry out the first extension.
func TestAnAnsweredExtensionLeavesAnEarlierOneInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lasting(t, time.Minute)
		g.noteNoAnswer(g.request(time.Hour))
		require.True(t, g.noteAnswer(g.request(time.Minute)))
		require.True(t, g.lose(nil))
		require.False(t, g.atMost().Before(g.over().Add(time.Hour)))
		g.noteDenial()
		require.Equal(t, g.over(), g.atMost(), "the store has no such hold")
	})
}

// holdsAsked is the error of a store whose text needs the state of a hold.
type holdsAsked struct{ g *grant }

func (e holdsAsked) Error() string {
	if !e.g.mu.TryLock() {
		return "the hold is locked"
	}
	defer e.g.mu.Unlock()
	return "gone"
}

func TestTheTextOfALossIsMadeWithoutTheMutexOfTheHold(t *testing.T) {
	g := lasting(t, time.Minute)
	require.True(t, g.lose(holdsAsked{g}))
	require.EqualError(t, g.err(), "lease lost: gone")
	require.ErrorIs(t, g.err(), locks.ErrLost)
	var l leases.Lease
	g.describe(&l, g.s.now(), 0)
	require.Equal(t, "lease lost: gone", l.Cause)
}

// An extension by an hour without an answer may be carried out at the end of the time for which a
// request may be on its way.
func TestAnExtensionThatCameAtTheLastMomentCounts(t *testing.T) {
	for _, s := range []struct {
		what  string
		after func(*grant)
	}{
		{"no other request", func(*grant) {}},
		{"a request without an answer", func(g *grant) { g.noteNoAnswer(g.request(time.Minute)) }},
	} {
		t.Run(s.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := lasting(t, 10*time.Minute)
				g.noteNoAnswer(g.request(time.Hour))
				carriedOut := g.s.now().Add(latest)
				time.Sleep(time.Second)
				before := g.request(20 * time.Minute)
				time.Sleep(latest)
				s.after(g)
				require.False(t, g.atMost().Before(carriedOut.Add(time.Hour)))
				require.True(t, g.noteAnswer(before))
				require.False(t, g.atMost().Before(carriedOut.Add(time.Hour)), "it was sent before")
				require.True(t, g.noteAnswer(g.request(time.Second)))
				require.Less(t, g.atMost().Sub(g.s.now()), 10*time.Minute, "it was sent after")
			})
		})
	}
}

func TestAnAnsweredRequestEndsADoubtThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lasting(t, 10*time.Minute)
		g.noteNoAnswer(g.request(time.Hour))
		time.Sleep(latest)
		require.True(t, g.noteAnswer(g.request(time.Minute)))
		require.Less(t, g.atMost().Sub(g.s.now()), 2*time.Minute)
	})
}

// The store may carry out the longer one of two requests last, whichever of them it answers first.
func TestTheLongerOfTwoAnsweredRequestsMayBeTheLast(t *testing.T) {
	for _, sent := range [][]time.Duration{{time.Minute, time.Second}, {time.Second, time.Minute}} {
		for what, reversed := range map[string]bool{"answers in order": false, "answers in reverse": true} {
			t.Run(fmt.Sprint(sent, ", ", what), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := lasting(t, time.Minute)
					p, q := g.request(sent[0]), g.request(sent[1])
					if reversed {
						p, q = q, p
					}
					time.Sleep(500 * time.Millisecond)
					require.True(t, g.noteAnswer(p))
					require.True(t, g.noteAnswer(q))
					require.Equal(t, g.s.now().Add(time.Minute), g.atMost())
					require.True(t, g.noteAnswer(g.request(2*time.Second)))
					require.Less(t, g.atMost().Sub(g.s.now()), 5*time.Second, "the others had their answers")
				})
			})
		}
	}
}

// The second renewal is sent after the first renewal, and answered before the first.
func TestASlowAnswerCountsToTheEndOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := lasting(t, time.Minute)
		slow := g.request(time.Minute)
		time.Sleep(time.Second)
		require.True(t, g.noteAnswer(g.request(time.Minute)))
		time.Sleep(10 * time.Second)
		require.True(t, g.noteAnswer(slow))
		require.Equal(t, g.s.now().Add(time.Minute), g.atMost())
	})
}

// cutOff is a store that gives its locks, and then cannot be reached.
type cutOff struct{ free }

var errCutOff = errors.New("network down")

func (cutOff) Renew(context.Context, []driver.HoldID, time.Duration) ([]bool, error) {
	return nil, errCutOff
}

func (cutOff) Release(context.Context, driver.HoldID) (driver.Released, error) {
	return driver.Released{}, errCutOff
}

// The client closes after the unlock has taken the hold off its queue, and before there is a sweep.
func TestCloseWaitsForAnUnlockOfALapsedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		var look atomic.Pointer[func()] // at the clock
		suspended := func(time.Time) time.Duration {
			if f := look.Load(); f != nil {
				(*f)()
			}
			return time.Duration(slept.Load())
		}
		c, err := newClient(cutOff{}, suspended, WithTTL(30*time.Second))
		require.NoError(t, err)
		l, ctx := c.Mutex("it"), locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, l.LockContext(ctx))
		time.Sleep(11 * time.Second) // a renewal has no answer
		slept.Store(int64(18500 * time.Millisecond))

		q, closed := c.queues.find("it"), make(chan error, 1)
		closes := func() {
			if !q.mu.TryLock() {
				return
			}
			unlocked := q.hold == nil
			q.mu.Unlock()
			if unlocked && look.Swap(nil) != nil {
				go func() { closed <- c.Close(t.Context()) }()
				synctest.Wait()
				require.Empty(t, closed, "Close does not wait for the unlock")
			}
		}
		look.Store(&closes)
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
		require.Nil(t, look.Load(), "the unlock looks at the clock")
		require.ErrorContains(t, <-closed, "acquisitions in doubt: 1")
	})
}
