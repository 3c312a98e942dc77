package redlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// freer is a server that answers requests to vote at once, and deletions as its fields say.
type freer struct {
	redisport.Plain
	redisport.Port

	mu     sync.Mutex
	votes  map[driver.HoldID]bool
	late   bool  // the next vote is given a second after the client has given up its request
	why    error // of deletions, if not nil
	silent bool  // deletions have no answer
	calls  int   // of ReleaseAll
}

func (f *freer) Eval(_ context.Context, _ *redisport.Script, _ int, args []any) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := driver.HoldID{Name: args[redisport.Head].(string), Acquisition: args[redisport.Head+2].(string)}
	if f.late {
		f.late = false
		time.AfterFunc(time.Second, func() { f.set(func() { f.votes[id] = true }) })
		return nil, context.DeadlineExceeded
	}
	f.votes[id] = true
	return int64(0), nil
}

func (f *freer) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	had, err := f.free(ctx, id)
	return driver.Released{Held: had[0]}, err
}

func (f *freer) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	f.set(func() { f.calls++ })
	done := make([]bool, len(ids))
	_, err := f.free(ctx, ids...)
	for k := range done {
		done[k] = err == nil
	}
	return done, err
}

// free deletes votes, and returns which of these votes the server had.
func (f *freer) free(ctx context.Context, ids ...driver.HoldID) ([]bool, error) {
	f.mu.Lock()
	silent, err := f.silent, f.why
	f.mu.Unlock()
	had := make([]bool, len(ids))
	if silent {
		<-ctx.Done()
		return had, ctx.Err()
	}
	if err != nil {
		return had, err
	}
	f.set(func() {
		for k, id := range ids {
			had[k] = f.votes[id]
			delete(f.votes, id)
		}
	})
	return had, nil
}

func (f *freer) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *freer) count() (n int) {
	f.set(func() { n = len(f.votes) })
	return n
}

func (*freer) Close(context.Context) {}

// withFreers runs f in a bubble with a majority of three servers, which have a minute to answer.
func withFreers(t *testing.T, f func(t *testing.T, m *majority, servers []*freer)) {
	synctest.Test(t, func(t *testing.T) {
		var servers []*freer
		var nodes []node
		for range 3 {
			s := &freer{votes: make(map[driver.HoldID]bool)}
			servers, nodes = append(servers, s), append(nodes, node{s, s})
		}
		m := newMajority(nodes, &redisport.Options{NodeTimeout: time.Minute})
		defer m.close(context.Background())
		f(t, m, servers)
	})
}

// hold acquires the lock called name, and waits until all servers have answered.
func hold(t *testing.T, m *majority, name, acquisition string) driver.HoldID {
	id := driver.HoldID{Name: name, Acquisition: acquisition}
	r, err := m.Acquire(t.Context(), driver.Request{HoldID: id, TTL: time.Hour})
	require.NoError(t, err)
	require.True(t, r.Held)
	synctest.Wait()
	return id
}

func TestABatchDeletesAVoteThatComesLate(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		late := servers[2]
		late.late = true
		ids := []driver.HoldID{hold(t, m, "it", "client:1"), hold(t, m, "other", "client:2")}
		require.Equal(t, 1, late.count())
		began := time.Now()

		done, err := m.ReleaseAll(t.Context(), ids)

		require.NoError(t, err)
		require.Equal(t, []bool{true, true}, done)
		require.Zero(t, time.Since(began), "a majority has answered")
		time.Sleep(2 * time.Second) // meanwhile the vote comes
		for i, s := range servers {
			require.Zero(t, s.count(), "server %d", i)
		}
	})
}

func TestABatchFreesEachHoldOfAName(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		first, second := hold(t, m, "it", "client:1"), hold(t, m, "it", "client:2")

		done, err := m.ReleaseAll(t.Context(), []driver.HoldID{first, second, first})

		require.NoError(t, err)
		require.Equal(t, []bool{true, true, true}, done)
		synctest.Wait()
		for i, s := range servers {
			require.Zero(t, s.count(), "server %d", i)
			require.Equal(t, 1, s.calls, "server %d", i)
		}
		done, err = m.ReleaseAll(t.Context(), []driver.HoldID{first})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, done, "it was released before")
	})
}

func TestAVoteThatABatchHasDeletedIsNotCreatedAgain(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		v := m.find(id.Name, id.Acquisition)
		require.NoError(t, releaseAlone(t.Context(), m, id))
		synctest.Wait()
		a := m.ask(t.Context(), 0, v, time.Hour) // such as for WithRestore
		require.ErrorIs(t, a.err, errEnded)
		require.Zero(t, servers[0].count())
		require.Nil(t, m.find(id.Name, id.Acquisition))
	})
}

func TestAReleaseGoesOnAfterServersHaveRefusedForLong(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		for _, s := range servers {
			s.why = errLogin
		}
		require.Error(t, releaseAlone(t.Context(), m, id))
		time.Sleep(lease.DefaultReleaseTimeout + time.Second) // no server is asked any more
		for _, s := range servers {
			s.set(func() { s.why = nil })
		}
		require.NoError(t, releaseAlone(t.Context(), m, id))
		synctest.Wait()
		require.Zero(t, servers[0].count())
	})
}

var errLogin = driver.Mark(errors.New("WRONGPASS of the test"), driver.ErrRefused, driver.ErrLogin)

func TestARefusedReleaseReturnsAtOnceAndSaysWhy(t *testing.T) {
	for name, release := range map[string]func(context.Context, *majority, driver.HoldID) error{
		"one": func(ctx context.Context, m *majority, id driver.HoldID) error {
			_, err := m.Release(ctx, id)
			return err
		},
		"batch": func(ctx context.Context, m *majority, id driver.HoldID) error { return releaseAlone(ctx, m, id) },
	} {
		t.Run(name, func(t *testing.T) {
			withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
				id := hold(t, m, "it", "client:1")
				servers[0].why, servers[1].why, servers[2].silent = errLogin, errLogin, true
				began := time.Now()

				err := release(t.Context(), m, id)

				require.EqualError(t, err, "0 of 3 servers answered to the release: server 0: WRONGPASS of the test; "+
					"server 1: WRONGPASS of the test; 1 servers have not answered")
				require.ErrorIs(t, err, driver.ErrRefused)
				require.ErrorIs(t, err, driver.ErrLogin)
				require.Zero(t, time.Since(began))
				servers[0].set(func() { servers[0].why = nil })
				servers[1].set(func() { servers[1].why = nil })
				require.NoError(t, release(t.Context(), m, id), "the servers are asked again")
			})
		})
	}
}

func releaseAlone(ctx context.Context, m *majority, id driver.HoldID) error {
	_, err := m.ReleaseAll(ctx, []driver.HoldID{id})
	return err
}

func TestAReleaseThatAMinorityRefusesIsNotRefused(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		servers[0].why, servers[1].silent, servers[2].silent = errLogin, true, true
		began := time.Now()
		_, err := m.Release(t.Context(), id)
		require.ErrorIs(t, err, driver.ErrLogin)
		require.NotErrorIs(t, err, driver.ErrRefused)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestAReleaseFindsSomethingElseOnAMajority(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		servers[0].why, servers[1].why = locks.ErrForeign, locks.ErrForeign
		began := time.Now()
		r, err := m.Release(t.Context(), id)
		require.NoError(t, err)
		require.False(t, r.Held)
		require.Zero(t, time.Since(began))
	})
}
