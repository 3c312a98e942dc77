package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// waitOf requests the lock, which is refused, and returns the time to wait.
func waitOf(t *testing.T, m *majority) time.Duration {
	t.Helper()
	r, err := m.Acquire(t.Context(), request1)
	require.NoError(t, err)
	require.False(t, r.Held)
	return r.Wait
}

// refuse lets a server refuse its vote for a time.
func (f *freer) refuse(rival string, left time.Duration) {
	f.set(func() { f.rival, f.left = rival, left })
}

func TestAWaiterWaitsUntilAMajorityCanBeFree(t *testing.T) {
	for name, c := range map[string]struct {
		hours []time.Duration // of the rival's lease on each server
		want  time.Duration
	}{
		"all servers refuse": {[]time.Duration{5, 1, 4, 2, 3}, 3 * time.Hour},
		"two servers vote":   {[]time.Duration{0, 3, 0, 1, 2}, time.Hour},
		"two servers fail":   {[]time.Duration{-1, 3, 1, -1, 2}, 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			withManyFreers(t, len(c.hours), func(t *testing.T, m *majority, servers []*freer) {
				for i, h := range c.hours {
					if h > 0 {
						servers[i].refuse("rival:1", h*time.Hour)
					} else if h < 0 {
						servers[i].fails = errReset
					}
				}
				require.Equal(t, c.want, waitOf(t, m))
			})
		})
	}
}

func TestPausesGrowWhileNoClientHasAMajority(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		for i, s := range servers {
			s.refuse(string(rune('a'+i)), time.Hour)
		}
		require.Less(t, waitOf(t, m), 3*time.Millisecond)
		for range 4 {
			waitOf(t, m)
		}
		require.GreaterOrEqual(t, waitOf(t, m), 8*time.Millisecond, "after six tries")
		for _, s := range servers {
			s.set(func() { s.left = time.Millisecond })
		}
		require.Equal(t, time.Millisecond, waitOf(t, m), "the leases end before")
		servers[0].refuse("a", time.Hour)
		servers[1].refuse("a", time.Hour)
		require.Equal(t, time.Hour, waitOf(t, m), "a rival has a majority")
		servers[1].refuse("b", time.Hour)
		servers[2].refuse("c", time.Hour)
		require.Less(t, waitOf(t, m), 3*time.Millisecond, "the tries are counted anew")
	})
}

func TestAServerThatRefusedItsVoteIsAskedForNoDeletion(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		servers[0].refuse("rival:1", time.Hour)
		servers[1].refuse("rival:1", time.Hour)
		waitOf(t, m)
		synctest.Wait()
		require.Equal(t, []int{0, 0, 1}, []int{servers[0].asked, servers[1].asked, servers[2].asked})
		require.Zero(t, servers[2].count())
	})
}

// The first request to a server has no answer, and the server carries it out late. Before that, the
// server refuses the second request.
func TestARefusalKeepsTheDoubtAboutAnEarlierRequest(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		late := servers[2]
		late.late = true
		id := hold(t, m, "it", "client:1")
		late.refuse("rival:1", time.Hour)
		a := m.ask(t.Context(), 2, m.find(id.Name, id.Acquisition), time.Hour) // such as for WithRestore
		require.Equal(t, "rival:1", a.rival)

		_, err := m.Release(t.Context(), id)

		require.NoError(t, err)
		time.Sleep(2 * time.Second) // meanwhile the vote comes
		require.Zero(t, late.count())
	})
}

func TestTheLastAnswerEndsARequestAtOnce(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		for _, s := range servers {
			s.refuse("rival:1", time.Hour)
		}
		began := time.Now()
		waitOf(t, m)
		require.Zero(t, time.Since(began))
	})
}

// Three of five servers refuse at once. From then on, the client waits for a millisecond.
func TestALateRefusalMakesNoRequestLonger(t *testing.T) {
	withManyFreers(t, 5, func(t *testing.T, m *majority, servers []*freer) {
		for _, s := range servers {
			s.refuse("rival:1", time.Hour)
		}
		servers[3].after, servers[4].after = 900*time.Microsecond, 2*time.Second
		began := time.Now()
		require.Equal(t, time.Hour, waitOf(t, m))
		require.Equal(t, time.Millisecond, time.Since(began))
	})
}

func TestSilentServersAreNoFailuresOnceOthersRefused(t *testing.T) {
	withManyFreers(t, 5, func(t *testing.T, m *majority, servers []*freer) {
		servers[0].fails = errReset
		servers[1].refuse("rival:1", time.Hour)
		servers[2].refuse("rival:1", time.Hour)
		servers[3].after, servers[4].after = time.Hour, time.Hour
		began := time.Now()
		waitOf(t, m)
		require.LessOrEqual(t, time.Since(began), time.Millisecond)
	})
}

func TestSilentServersAreFailuresIfNoneRefused(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		servers[1].after, servers[2].after = time.Hour, time.Hour
		_, err := m.Acquire(t.Context(), request1)
		require.ErrorContains(t, err, "1 of 3 servers answered: ")
		require.NotErrorIs(t, err, driver.ErrRefused)
	})
}

func TestARequestThatEndsWithItsContextIsNoRefusal(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		servers[1].refuse("rival:1", time.Hour)
		servers[2].after = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Acquire(ctx, request1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "2 of 3 servers answered, 1 of them by a refusal: ")
		require.NotErrorIs(t, err, driver.ErrRefused)
	})
}

func TestOnlyARequestWithoutAnyDoubtIsRefused(t *testing.T) {
	down := redisport.Unreachable(errors.New("no connection"))
	for name, c := range map[string]struct {
		set     func(servers []*freer)
		refused bool
		text    string
	}{
		"each server refused": {func(servers []*freer) { servers[2].fails = down }, true, "server 2: no connection"},
		"a vote is deleted":   {func([]*freer) {}, true, "1 of 3 servers answered: "},
		"a vote stays":        {func(servers []*freer) { servers[2].why = errReset }, false, "1 of 3 servers answered: "},
		"one answer is lost":  {func(servers []*freer) { servers[2].fails = errReset }, false, "server 2: connection reset"},
		"one server is silent": {func(servers []*freer) { servers[2].after = time.Hour }, false,
			"1 servers have not answered within 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
				servers[0].fails, servers[1].fails = down, down
				c.set(servers)
				_, err := m.Acquire(t.Context(), request1)
				require.Equal(t, c.refused, errors.Is(err, driver.ErrRefused), err)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, c.refused, m.find(request1.Name, request1.Acquisition) == nil,
					"a vote is forgotten if no server has it")
			})
		})
	}
}

// The servers vote after more than half of the lease.
func TestAMajorityThatComesTooLateIsNoHold(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		for _, s := range servers {
			s.after = 31 * time.Second
		}
		id := driver.HoldID{Name: "it", Acquisition: "client:1"}
		r, err := m.Acquire(t.Context(), driver.Request{HoldID: id, TTL: time.Minute})
		require.NoError(t, err)
		require.False(t, r.Held)
		released, err := m.Release(t.Context(), id)
		require.NoError(t, err)
		require.False(t, released.Held)
		synctest.Wait()
		require.Zero(t, servers[0].count()+servers[1].count()+servers[2].count())
	})
}

func TestALookupDuringARequestCountsAMajorityOnly(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		servers[1].after, servers[2].after = time.Second, time.Second
		replies := acquire(t.Context(), m)
		synctest.Wait()
		r, err := m.Lookup(t.Context(), request1)
		require.NoError(t, err)
		require.False(t, r.Held)
		require.True(t, (<-replies).Held)
		r, err = m.Lookup(t.Context(), request1)
		require.NoError(t, err)
		require.True(t, r.Held)
	})
}

func TestOnlyVotesThatAreOverAreForgotten(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		m.sweep = 0 // each new vote looks for votes that are over
		lost, held := hold(t, m, "lost", "client:1"), hold(t, m, "it", "client:2")
		time.Sleep(time.Hour - time.Second)
		renewed, err := m.Renew(t.Context(), []driver.HoldID{held}, time.Hour)
		require.NoError(t, err)
		require.Equal(t, []bool{true}, renewed)
		m.sweep = 0
		hold(t, m, "other", "client:3")
		require.NotNil(t, m.find(lost.Name, lost.Acquisition))

		time.Sleep(10 * time.Minute) // the drift of the clocks counts
		m.sweep = 0
		hold(t, m, "another", "client:4")

		require.Nil(t, m.find(lost.Name, lost.Acquisition))
		require.NotNil(t, m.find(held.Name, held.Acquisition))
	})
}
