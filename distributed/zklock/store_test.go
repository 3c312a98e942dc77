package zklock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAnAcquisitionThatWasLeftAsksNothing(t *testing.T) {
	c := new(core)
	c.life, c.end = context.WithCancelCause(t.Context())
	defer c.end(nil)
	st := newStore(c, queue{mutexMode})
	id := lease.HoldID{Name: "/it", Acquisition: "acquisition"}
	a := st.begin(lease.Request{HoldID: id})
	require.NoError(t, st.Leave(t.Context(), id))
	reply, err := a.ask(func(context.Context) (bool, error) {
		t.Error("it asks the server")
		return false, nil
	}, time.Second)
	require.NoError(t, err)
	require.False(t, reply.Held)
}

func TestTwoEndsOfAnAcquisitionDoNotRace(t *testing.T) {
	a := &acquisition{on: &session{}, at: place{"/it", false}}
	var wg sync.WaitGroup
	for range 2 { // a Leave and a Release
		wg.Go(func() { a.end() })
	}
	wg.Wait()
	require.Nil(t, a.on)
}

// newClient returns a client of a new server, which is closed with the test.
func newClient(t *testing.T) *Client {
	t.Helper()
	c, err := New(t.Context(), []string{testbed.StartZooKeeper(t).Addr()})
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
		all = append(all, paths(dir, arrived(children))...)
	}
	if st, err := s.get(t.Context(), name); err == nil && st.EphemeralOwner != 0 {
		all = append(all, name)
	}
	return all
}

// releases checks that an acquisition has the lock, by one node, and releases it.
func (c *Client) releases(t *testing.T, st *store, id lease.HoldID) {
	t.Helper()
	reply, err := st.Lookup(t.Context(), lease.Request{HoldID: id})
	require.NoError(t, err)
	require.True(t, reply.Held)
	require.Len(t, c.nodes(t, id.Name), 1)
	released, err := st.Release(t.Context(), id)
	require.NoError(t, err)
	require.True(t, released.Held)
	require.Empty(t, c.nodes(t, id.Name))
}

func idOf(name string, acquisition any) lease.HoldID {
	return lease.HoldID{Name: name, Acquisition: fmt.Sprint(acquisition)}
}

func requestOf(id lease.HoldID) lease.Request { return lease.Request{HoldID: id, TTL: time.Second} }

func TestTwoRequestsOfAnAcquisitionHaveOneNode(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for k := range kinds {
		st, name := c.stores[k], fmt.Sprint("/it", k)
		for i := range 40 {
			id, replies := idOf(name, i), make([]lease.Reply, 2)
			var wg sync.WaitGroup
			for n := range replies {
				wg.Go(func() {
					reply, err := st.Enqueue(t.Context(), requestOf(id))
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
			reply, err := st.Acquire(t.Context(), requestOf(holder))
			require.NoError(t, err)
			require.True(t, reply.Held)
			held := make([]bool, 2)
			var wg sync.WaitGroup
			for n := range held {
				wg.Go(func() {
					reply, err := st.Acquire(t.Context(), requestOf(id))
					assert.NoError(t, err)
					held[n] = reply.Held
				})
			}
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			_, err = st.Release(t.Context(), holder)
			assert.NoError(t, err)
			wg.Wait()
			if held[0] || held[1] {
				c.releases(t, st, id)
			}
			require.Empty(t, c.nodes(t, name))
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
		before := c.nodes(t, name)
		reply, err := st.Acquire(t.Context(), requestOf(id))
		require.NoError(t, err)
		require.False(t, reply.Held)
		require.Equal(t, before, c.nodes(t, name))
		_, err = st.Release(t.Context(), holder)
		require.NoError(t, err)
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
	before := c.nodes(t, "/it")
	late := requestOf(idOf("/it", "late"))
	late.Permits, late.Size = 2, 3
	reply, err = st.request(t.Context(), late, func(ctx context.Context, a *acquisition) (bool, error) {
		return st.recipe.step(ctx, a, false) // it has found the semaphore free before
	}, func(error) bool { return false })
	require.NoError(t, err)
	require.False(t, reply.Held)
	require.Equal(t, before, c.nodes(t, "/it"))
	released, err := st.Release(t.Context(), two.HoldID)
	require.NoError(t, err)
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
	reply, err = st.Acquire(t.Context(), requestOf(id))
	require.NoError(t, err)
	require.False(t, reply.Held)
	require.Nil(t, st.find(id))
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
	_, err = st.Release(t.Context(), holder)
	require.NoError(t, err)
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
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := c.stores[mutexes].Enqueue(t.Context(), requestOf(idOf("/it", "a")))
			assert.ErrorIs(t, err, locks.ErrForeign)
		})
	}
	wg.Wait()
	require.Len(t, c.nodes(t, "/it"), 1)
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
	_, err := c.stores[mutexes].Release(t.Context(), idOf("/a", 1))
	require.NoError(t, err)
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
	own := &node{c: c.core, s: s, dir: "/it", uuid: newUUID(), kind: lockPrefix}
	for _, other := range []string{
		protection + own.uuid + "-" + readPrefix, protection + newUUID() + "-" + lockPrefix,
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
	_, err = st.Release(t.Context(), idOf("/it", 1))
	require.NoError(t, err)
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
		id := lease.HoldID{Name: name, Acquisition: fmt.Sprint(i)}
		var wg sync.WaitGroup
		for range 2 { // one of them is late
			wg.Go(func() {
				_, err := st.Enqueue(ctx, lease.Request{HoldID: id, TTL: time.Second})
				assert.NoError(t, err)
			})
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		_, err := st.Release(ctx, id)
		assert.NoError(t, err)
		wg.Wait()
		_, err = st.Release(ctx, id) // of the one that came after the first release
		require.NoError(t, err)
		for _, dir := range []string{name, name + locksDir, name + leasesDir} {
			require.Eventually(t, func() bool {
				s, err := c.core.session(ctx)
				require.NoError(t, err)
				children, err := childrenIf(ctx, s, dir)
				require.NoError(t, err)
				return len(arrived(children)) == 0
			}, 20*time.Second, time.Millisecond)
		}
	}
}
