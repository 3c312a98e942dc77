package fakestore

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// term is the time of sessions.
const term = time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

func opened(t *testing.T, s *Server, kind Kind, dial Dial) *lease.Client {
	t.Helper()
	store, end := s.Client(kind, dial, term)
	c, err := lease.New(store, lease.WithTTL(time.Minute), lease.WithPoll(50*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = c.Close(background)
		end()
	})
	return c
}

func TestTwoClientsOfEachKindTakeTurns(t *testing.T) {
	for _, kind := range []Kind{Polled, Watched, Queued, Tied, Full} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewServer("")
				dial := func(context.Context) (net.Conn, error) {
					client, server := net.Pipe()
					go s.Serve(server)
					return client, nil
				}
				a, b := opened(t, s, kind, nil), opened(t, s, kind, dial)
				var inside, turns atomic.Int32
				done := make(chan error)
				for _, c := range []*lease.Client{a, b} {
					go func() {
						for range 10 {
							err := locks.Do(background, c.Mutex("it"), func(context.Context) error {
								if inside.Add(1) == 1 {
									turns.Add(1)
								}
								inside.Add(-1)
								return nil
							})
							if err != nil {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
				require.NoError(t, <-done)
				require.NoError(t, <-done)
				require.EqualValues(t, 20, turns.Load())
				require.Empty(t, s.Rest("it"))
			})
		})
	}
}

func request(acquisition string, ttl time.Duration) driver.Request {
	return driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: acquisition}, TTL: ttl}
}

func TestASessionEndsWithoutItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer("")
		store, end := s.Client(Tied, nil, term)
		began := driver.Now()
		reply, err := store.Acquire(background, request("a", time.Hour))
		require.NoError(t, err)
		require.True(t, reply.Held)
		require.False(t, reply.Since.Before(began.Add(-term)))
		time.Sleep(10 * term)
		alive := driver.Now()
		end()
		other, stop := s.Client(Tied, nil, term)
		defer stop()
		for held := false; !held; time.Sleep(time.Millisecond) {
			r, err := other.Acquire(background, request("b", time.Hour))
			require.NoError(t, err)
			held = r.Held
		}
		require.InDelta(t, term, driver.Now().Sub(alive), float64(term/5), "since its last sign of life")
	})
}

func TestAClientLearnsThatItsHoldIsBroken(t *testing.T) {
	s := NewServer("")
	a, b := opened(t, s, Full, nil), opened(t, s, Full, nil)
	require.NoError(t, a.Mutex("it").LockContext(background))
	hold, err := a.Mutex("it").Hold(background)
	require.NoError(t, err)
	info, err := b.Mutex("it").Inspect(background)
	require.NoError(t, err)
	require.Equal(t, hold.Token(), info.Holders[0].Token)
	broken, err := b.Mutex("it").ForceUnlock(background)
	require.NoError(t, err)
	require.True(t, broken)
	<-hold.Lost()
	require.ErrorIs(t, a.Mutex("it").UnlockContext(background), locks.ErrLost)
}

func TestReadersShareTheLock(t *testing.T) {
	s := NewServer("")
	reader, endReader := s.Client(Reading, nil, term)
	writer, endWriter := s.Client(Watched, nil, term)
	defer endReader()
	defer endWriter()
	for _, name := range []string{"a", "b"} {
		reply, err := reader.Acquire(background, request(name, time.Minute))
		require.NoError(t, err)
		require.True(t, reply.Held)
	}
	reply, err := writer.Acquire(background, request("c", time.Minute))
	require.NoError(t, err)
	require.False(t, reply.Held)
}

func TestAValueThatIsNoLockStays(t *testing.T) {
	s := NewServer("")
	s.Put("it")
	store, end := s.Client(Watched, nil, term)
	defer end()
	_, err := store.Acquire(background, request("a", time.Minute))
	require.ErrorIs(t, err, locks.ErrForeign)
}

// given says whether a Store gives the lock to a new acquisition for ten seconds.
func given(t *testing.T, store driver.Store, acquisition string) (held bool, token uint64) {
	t.Helper()
	r, err := store.Acquire(background, driver.Request{
		HoldID: driver.HoldID{Name: "it", Acquisition: acquisition}, TTL: 10 * time.Second,
	})
	require.NoError(t, err)
	return r.Held, r.Token
}

func TestARestartForgetsWhatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer("")
		forget := s.Storing(time.Second)
		store, end := s.Client(Watched, nil, term)
		defer end()
		held, first := given(t, store, "a:1")
		require.True(t, held)
		time.Sleep(500 * time.Millisecond)
		forget()
		held, again := given(t, store, "a:2")
		require.True(t, held, "the server has forgotten the first hold")
		require.Equal(t, first, again, "and its token")
		time.Sleep(time.Second)
		forget()
		held, _ = given(t, store, "a:3")
		require.False(t, held, "the second hold was stored")
	})
}

func TestARestartEndsSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer("")
		forget := s.Storing(time.Second)
		store, end := s.Client(Tied, nil, time.Minute)
		defer end()
		held, _ := given(t, store, "a:1")
		require.True(t, held)
		time.Sleep(2 * time.Second)
		forget()
		held, _ = given(t, store, "a:2")
		require.True(t, held)
	})
}

func TestTheClockOfAServerIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer("")
		store, end := s.Client(Watched, nil, term)
		defer end()
		held, _ := given(t, store, "a:1")
		require.True(t, held)
		s.SetClock(-5 * time.Second)
		time.Sleep(12 * time.Second)
		held, _ = given(t, store, "a:2")
		require.False(t, held, "the clock was set back")
		s.SetClock(5 * time.Second)
		held, _ = given(t, store, "a:3")
		require.True(t, held, "the clock was set forward")
	})
}
