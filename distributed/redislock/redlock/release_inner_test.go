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
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// freer is a server that answers requests to vote and deletions as its fields say, by default at
// once and with a vote.
type freer struct {
	redisport.Plain
	redisport.Port

	mu    sync.Mutex
	votes map[driver.HoldID]bool
	late  bool // the next vote is given a second after the client has given up its request

	after time.Duration // before an answer to a request to vote
	rival string        // has the server's vote, if not empty
	left  time.Duration // of the rival's lease
	fails error         // of requests to vote, if not nil

	why      error // of deletions, if not nil
	silent   bool  // deletions have no answer
	lose     bool  // the next deletion is carried out, and its answer is lost
	stumbles bool  // the next deletion is lost
	awaited  bool  // other clients wait for the release
	calls    int   // of ReleaseAll
	asked    int   // for deletions of one vote
}

func (f *freer) Eval(ctx context.Context, s *redisport.Script, _ int, args []any) (any, error) {
	name := args[redisport.Head].(string)
	if s == voteRelease {
		r, err := f.Release(ctx, driver.HoldID{Name: name, Acquisition: args[redisport.Head+1].(string)})
		if r.Held {
			return int64(1), err
		}
		return int64(0), err
	}
	if f.wait(ctx); ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := driver.HoldID{Name: name, Acquisition: args[redisport.Head+2].(string)}
	switch {
	case f.late:
		f.late = false
		time.AfterFunc(time.Second, func() { f.set(func() { f.votes[id] = true }) })
		return nil, context.DeadlineExceeded
	case f.fails != nil:
		return nil, f.fails
	case f.rival != "":
		return []any{f.left.Milliseconds(), f.rival}, nil
	}
	f.votes[id] = true
	return int64(0), nil
}

// wait waits for the time before an answer, or until ctx ends.
func (f *freer) wait(ctx context.Context) {
	f.mu.Lock()
	after := f.after
	f.mu.Unlock()
	if after > 0 {
		adapter.Sleep(ctx, after)
	}
}

func (f *freer) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	f.set(func() { f.asked++ })
	had, err := f.free(ctx, id)
	return driver.Released{Held: had[0], Awaited: had[0] && f.awaited}, err
}

func (f *freer) Lookup(_ context.Context, req driver.Request) (r driver.Reply, err error) {
	f.set(func() { r.Held = f.votes[req.HoldID] })
	return r, nil
}

func (f *freer) Renew(_ context.Context, ids []driver.HoldID, _ time.Duration) ([]bool, error) {
	held := make([]bool, len(ids))
	f.set(func() {
		for k, id := range ids {
			held[k] = f.votes[id]
		}
	})
	return held, nil
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
	silent, lose, err := f.silent, f.lose, f.why
	if f.lose = false; f.stumbles {
		f.stumbles, err = false, errReset
	}
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
	if lose {
		return make([]bool, len(ids)), errReset
	}
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

// errReset is the error of a request whose answer is lost.
var errReset = errors.New("connection reset")

// withFreers runs f in a bubble with a majority of three servers, which have a minute to answer.
func withFreers(t *testing.T, f func(t *testing.T, m *majority, servers []*freer)) {
	withManyFreers(t, 3, f)
}

// withManyFreers is withFreers with n servers.
func withManyFreers(t *testing.T, n int, f func(t *testing.T, m *majority, servers []*freer)) {
	synctest.Test(t, func(t *testing.T) {
		var servers []*freer
		var nodes []node
		for range n {
			s := &freer{votes: make(map[driver.HoldID]bool)}
			servers, nodes = append(servers, s), append(nodes, node{s, s})
		}
		m := newMajority(nodes, &redisport.Options{NodeTimeout: time.Minute})
		defer time.Sleep(time.Minute) // then the last requests end
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

func TestAReleaseOfWhichTheAnswerIsLostWasAHold(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		servers[0].lose, servers[1].lose, servers[2].awaited = true, true, true
		_, err := m.Release(t.Context(), id)
		require.ErrorIs(t, err, errReset)
		require.NotErrorIs(t, err, driver.ErrRefused)

		r, err := m.Release(t.Context(), id)

		require.NoError(t, err)
		require.Equal(t, driver.Released{Held: true, Awaited: true}, r)
	})
}

// The first deletion is lost, and the second one finds no vote yet.
func TestAVoteThatComesAfterALostDeletionIsDeleted(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		late := servers[2]
		late.late = true
		id := hold(t, m, "it", "client:1")
		late.stumbles = true
		_, err := m.Release(t.Context(), id)
		require.NoError(t, err)
		time.Sleep(2 * time.Second) // meanwhile the vote comes
		require.Zero(t, late.count())
	})
}

func TestAMajorityDecidesAReleaseAtOnce(t *testing.T) {
	for name, gone := range map[string]bool{"a hold": false, "no hold": true} {
		t.Run(name, func(t *testing.T) {
			withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
				id := hold(t, m, "it", "client:1")
				if servers[2].silent = true; gone {
					clear(servers[0].votes)
					clear(servers[1].votes)
				}
				began := time.Now()
				r, err := m.Release(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, !gone, r.Held)
				require.Zero(t, time.Since(began))
			})
		})
	}
}

func TestAReleaseWithoutADecisionWasAHold(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		servers[2].silent = true
		clear(servers[0].votes)
		began := time.Now()
		r, err := m.Release(t.Context(), id)
		require.NoError(t, err)
		require.True(t, r.Held, "the third server may have had it")
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestAReleaseUnderAnotherNameFreesNothing(t *testing.T) {
	withFreers(t, func(t *testing.T, m *majority, servers []*freer) {
		id := hold(t, m, "it", "client:1")
		other := driver.HoldID{Name: "other", Acquisition: id.Acquisition}
		r, err := m.Release(t.Context(), other)
		require.NoError(t, err)
		require.False(t, r.Held)
		require.NoError(t, releaseAlone(t.Context(), m, other))
		looked, err := m.Lookup(t.Context(), driver.Request{HoldID: other, TTL: time.Hour})
		require.NoError(t, err)
		require.False(t, looked.Held)
		synctest.Wait()
		require.Equal(t, 1, servers[0].count())
	})
}
