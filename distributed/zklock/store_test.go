package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAnAcquisitionThatWasLeftAsksNothing(t *testing.T) {
	c := new(core)
	c.life, c.end = context.WithCancelCause(t.Context())
	defer c.end(nil)
	st := newStore(c, queue{mutexMode})
	id := driver.HoldID{Name: "/it", Acquisition: "acquisition"}
	a := st.begin(driver.Request{HoldID: id})
	require.NoError(t, st.Leave(t.Context(), id))
	reply, err := a.ask(func(context.Context) (bool, error) {
		t.Error("it asks the server")
		return false, nil
	})
	require.NoError(t, err)
	require.False(t, reply.Held)
}

func TestTwoEndsOfAnAcquisitionDoNotRace(t *testing.T) {
	a := &acquisition{listener: listener{on: &session{}, at: target{"/it", false}}}
	var wg sync.WaitGroup
	for range 2 { // a Leave and a Release
		wg.Go(func() { a.end() })
	}
	wg.Wait()
	require.Nil(t, a.listener.on)
}

// newClient returns a client of a new server, which is closed with the test.
func newClient(t *testing.T) *Client {
	t.Helper()
	c, err := New(t.Context(), []string{LendServer(t).Addr()}, WithSessionTimeout(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	for k := range kinds { // each is told where to report losses
		_, err := c.kind(k)
		require.NoError(t, err)
	}
	return c
}

// nodes returns the nodes of the lock called name, of any kind.
func (c *Client) nodes(t *testing.T, name string) (all []string) {
	t.Helper()
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	for _, dir := range []string{name, name + locksDir, name + leasesDir} {
		children, err := childrenIf(t.Context(), s, dir)
		require.NoError(t, err)
		all = append(all, paths(dir, placesIn(children))...)
	}
	if st, err := s.get(t.Context(), name); err == nil && st.EphemeralOwner != 0 {
		all = append(all, name)
	}
	return all
}

// answered repeats a request until there is an answer, as package lease does it. On a busy machine
// an answer may take longer than one request waits for it.
func answered[T any](request func() (T, error)) (answer T, err error) {
	for end := time.Now().Add(testbed.Hang); ; {
		answer, err = request()
		if !errors.Is(err, errNoAnswer) || time.Now().After(end) {
			return answer, err
		}
	}
}

// release is an answered Release.
func (st *store) release(t *testing.T, id driver.HoldID) driver.Released {
	t.Helper()
	released, err := answered(func() (driver.Released, error) { return st.Release(t.Context(), id) })
	require.NoError(t, err)
	return released
}

// acquire is an answered Acquire.
func (st *store) acquire(t *testing.T, id driver.HoldID) (driver.Reply, error) {
	return answered(func() (driver.Reply, error) { return st.Acquire(t.Context(), requestOf(id)) })
}

// remain checks that a lock has the nodes want after requests that began at the time began. A
// request waits for its deletions for the time patience. After that they may still be under way.
func (c *Client) remain(t *testing.T, name string, began time.Time, want []string) {
	t.Helper()
	if time.Since(began) < patience {
		require.Equal(t, want, c.nodes(t, name))
		return
	}
	require.Eventually(t, func() bool { return slices.Equal(want, c.nodes(t, name)) }, time.Minute, time.Millisecond)
}

// releases checks that an acquisition has the lock, by one node, and releases it.
func (c *Client) releases(t *testing.T, st *store, id driver.HoldID) {
	t.Helper()
	reply, err := st.Lookup(t.Context(), driver.Request{HoldID: id})
	require.NoError(t, err)
	require.True(t, reply.Held)
	require.Len(t, c.nodes(t, id.Name), 1)
	released := st.release(t, id)
	require.True(t, released.Held)
	require.Empty(t, c.nodes(t, id.Name))
}

func idOf(name string, acquisition any) driver.HoldID {
	return driver.HoldID{Name: name, Acquisition: fmt.Sprint(acquisition)}
}

func requestOf(id driver.HoldID) driver.Request { return driver.Request{HoldID: id, TTL: time.Second} }

func TestTwoRequestsOfAnAcquisitionHaveOneNode(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for k := range kinds {
		st, name := c.stores[k], fmt.Sprint("/it", k)
		for i := range 40 {
			id, replies := idOf(name, i), make([]driver.Reply, 2)
			var wg sync.WaitGroup
			for n := range replies {
				wg.Go(func() {
					reply, err := answered(func() (driver.Reply, error) { return st.Enqueue(t.Context(), requestOf(id)) })
					assert.NoError(t, err)
					replies[n] = reply
				})
			}
			wg.Wait()
			require.True(t, replies[0].Held)
			require.True(t, replies[1].Held)
			require.Equal(t, replies[0].Token, replies[1].Token)
			c.releases(t, st, id)
		}
	}
}

func TestTwoTriesOfAnAcquisitionHaveOneOutcome(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for k := range kinds {
		st, name := c.stores[k], fmt.Sprint("/it", k)
		for i := range 40 {
			holder, id := idOf(name, "holder"), idOf(name, i)
			reply, err := st.acquire(t, holder)
			require.NoError(t, err)
			require.True(t, reply.Held)
			held, began := make([]bool, 2), time.Now()
			var wg sync.WaitGroup
			for n := range held {
				wg.Go(func() {
					reply, err := st.acquire(t, id)
					assert.NoError(t, err)
					held[n] = reply.Held
				})
			}
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			st.release(t, holder)
			wg.Wait()
			if held[0] || held[1] {
				c.releases(t, st, id)
			}
			c.remain(t, name, began, nil)
		}
	}
}

func TestARefusedTryKeepsThePlaceOfAWaiter(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, k := range []kind{mutexes, writers, semaphores} {
		st, name := c.stores[k], fmt.Sprint("/it", k)
		holder, id := idOf(name, "holder"), idOf(name, "waiter")
		_, err := st.Enqueue(t.Context(), requestOf(holder))
		require.NoError(t, err)
		_, err = st.Enqueue(t.Context(), requestOf(id))
		require.NoError(t, err)
		before, began := c.nodes(t, name), time.Now()
		reply, err := st.Acquire(t.Context(), requestOf(id))
		require.NoError(t, err)
		require.False(t, reply.Held)
		c.remain(t, name, began, before)
		st.release(t, holder)
		reply, err = st.Enqueue(t.Context(), requestOf(id))
		require.NoError(t, err)
		require.True(t, reply.Held)
		c.releases(t, st, id)
	}
}

func TestATryCountsLeasesMadeMeanwhile(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	st := c.stores[semaphores]
	two := requestOf(idOf("/it", "two"))
	two.Permits, two.Size = 2, 3
	reply, err := st.Acquire(t.Context(), two)
	require.NoError(t, err)
	require.True(t, reply.Held)
	before, began := c.nodes(t, "/it"), time.Now()
	late := requestOf(idOf("/it", "late"))
	late.Permits, late.Size = 2, 3
	reply, err = st.request(t.Context(), late, func(ctx context.Context, a *acquisition) (bool, error) {
		return st.recipe.step(ctx, a, false) // it has found the semaphore free before
	}, func(error) bool { return false })
	require.NoError(t, err)
	require.False(t, reply.Held)
	c.remain(t, "/it", began, before)
	released := st.release(t, two.HoldID)
	require.True(t, released.Held)
}

func TestARefusedTryAfterALostHoldKeepsNoPlace(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	st, name := c.stores[mutexes], "/it"
	id, holder := idOf(name, "lost"), idOf(name, "holder")
	_, err := st.Enqueue(t.Context(), requestOf(id))
	require.NoError(t, err)
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.delete(t.Context(), c.nodes(t, name)[0]))
	reply, err := st.Enqueue(t.Context(), requestOf(holder))
	require.NoError(t, err)
	require.True(t, reply.Held)
	before, began := c.nodes(t, name), time.Now()
	reply, err = st.Acquire(t.Context(), requestOf(id))
	require.NoError(t, err)
	require.False(t, reply.Held)
	require.Nil(t, st.find(id))
	c.remain(t, name, began, before)
	c.releases(t, st, holder)
}

func TestAFailedRequestKeepsThePlaceOfAWaiter(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	st, holder, id := c.stores[mutexes], idOf("/it", "holder"), idOf("/it", "waiter")
	_, err := st.Enqueue(t.Context(), requestOf(holder))
	require.NoError(t, err)
	_, err = st.Enqueue(t.Context(), requestOf(id))
	require.NoError(t, err)
	before := c.nodes(t, "/it")
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	other, err := s.create(t.Context(), "/it/"+readPrefix, nil, zk.FlagEphemeral|zk.FlagSequence)
	require.NoError(t, err)
	_, err = st.Enqueue(t.Context(), requestOf(id))
	require.ErrorIs(t, err, locks.ErrForeign)
	require.NoError(t, s.delete(t.Context(), other))
	require.Equal(t, before, c.nodes(t, "/it"))
	st.release(t, holder)
	reply, err := st.Enqueue(t.Context(), requestOf(id))
	require.NoError(t, err)
	require.True(t, reply.Held)
	c.releases(t, st, id)
}

func TestAFailedRequestLeavesNoNodeOfItsOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.makeContainer(t.Context(), "/it"))
	_, err = s.create(t.Context(), "/it/"+readPrefix, nil, zk.FlagEphemeral|zk.FlagSequence)
	require.NoError(t, err)
	before, began := c.nodes(t, "/it"), time.Now()
	require.Len(t, before, 1)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := c.stores[mutexes].Enqueue(t.Context(), requestOf(idOf("/it", "a")))
			assert.ErrorIs(t, err, locks.ErrForeign)
		})
	}
	wg.Wait()
	c.remain(t, "/it", began, before)
	require.Empty(t, c.stores[mutexes].acquisitions)
}

func TestAcquisitionsOfOneNumberAreTwoOfTwoLocks(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for _, of := range []struct {
		kind kind
		name string
	}{{mutexes, "/a"}, {mutexes, "/b"}, {writers, "/c"}, {semaphores, "/d"}} {
		reply, err := c.stores[of.kind].Enqueue(t.Context(), requestOf(idOf(of.name, 1)))
		require.NoError(t, err)
		require.True(t, reply.Held)
		require.Len(t, c.nodes(t, of.name), 1)
	}
	for _, k := range []kind{readers, ephemerals} {
		reply, err := c.stores[k].Lookup(t.Context(), requestOf(idOf("/a", 1)))
		require.NoError(t, err)
		require.False(t, reply.Held)
	}
	c.stores[mutexes].release(t, idOf("/a", 1))
	c.releases(t, c.stores[mutexes], idOf("/b", 1))
}

func TestALateReleaseForgetsNoLaterAcquisition(t *testing.T) {
	st := newStore(new(core), queue{mutexMode})
	req := requestOf(idOf("/it", 1))
	former := st.begin(req)
	st.forget(former)
	later := st.begin(req)
	st.forget(former)
	require.Same(t, later, st.find(req.HoldID))
}

func TestTheNodeOfAnotherKindIsNotTakenForTheOwn(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.makeContainer(t.Context(), "/it"))
	own := &node{c: c.core, s: s, dir: "/it", uuid: adapter.NewUUID(4), infix: lockPrefix}
	for _, other := range []string{
		protection + own.uuid + "-" + readPrefix, protection + adapter.NewUUID(4) + "-" + lockPrefix,
		protection + own.uuid + "0-" + lockPrefix, "x" + own.prefix(), lockPrefix,
	} {
		_, err := s.create(t.Context(), "/it/"+other, nil, zk.FlagEphemeral|zk.FlagSequence)
		require.NoError(t, err)
	}
	require.ErrorIs(t, own.locate(t.Context()), zk.ErrNoNode)
	path, err := s.create(t.Context(), "/it/"+own.prefix(), nil, zk.FlagEphemeral|zk.FlagSequence)
	require.NoError(t, err)
	require.NoError(t, own.locate(t.Context()))
	require.Equal(t, path, own.path())
}

func TestTheEndOfANodeLeavesTheNameOfALaterOne(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	st := c.stores[ephemerals]
	_, err := st.Enqueue(t.Context(), requestOf(idOf("/it", 1)))
	require.NoError(t, err)
	s, err := c.core.session(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.delete(t.Context(), "/it")) // as if the deletion had no answer yet
	_, err = st.Enqueue(t.Context(), requestOf(idOf("/it", 2)))
	require.NoError(t, err)
	st.release(t, idOf("/it", 1))
	state, err := st.Inspect(t.Context(), "/it")
	require.NoError(t, err)
	require.Len(t, state.Holders, 1)
	require.Equal(t, "2", state.Holders[0].Acquisition)
}

func TestAReleaseBesideRequestsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ctx := t.Context()
	for i := range 100 {
		k := []kind{mutexes, semaphores}[i%2]
		st, name := c.stores[k], fmt.Sprint("/it", k)
		id := driver.HoldID{Name: name, Acquisition: fmt.Sprint(i)}
		var wg sync.WaitGroup
		for range 2 { // one of them is late
			wg.Go(func() {
				_, err := st.Enqueue(ctx, driver.Request{HoldID: id, TTL: time.Second})
				assert.NoError(t, err)
			})
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		st.release(t, id)
		wg.Wait()
		st.release(t, id) // of the request that came after the first release
		for _, dir := range []string{name, name + locksDir, name + leasesDir} {
			require.Eventually(t, func() bool {
				s, err := c.core.session(ctx)
				require.NoError(t, err)
				children, err := childrenIf(ctx, s, dir)
				require.NoError(t, err)
				return len(placesIn(children)) == 0
			}, 20*time.Second, time.Millisecond)
		}
	}
}
