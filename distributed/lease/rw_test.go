package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// readers is a store of read halves. It remembers the last request.
type readers struct {
	openToAll
	last *driver.Request
}

func (r readers) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	*r.last = req
	return r.openToAll.Acquire(ctx, req)
}

func halves(t *testing.T, s *server) (read, write *lease.Mutex, last *driver.Request) {
	last = new(driver.Request)
	store := readers{openToAll{newServer().connect()}, last}
	read = open(t, store).Mutex("it", lease.WithShared(), driver.WithData("mine"))
	write = open(t, s.connect()).Mutex("it")
	lease.NewRWMutex(read, write)
	return read, write, last
}

func TestAReadingWriterPassesItsHoldToNobody(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		read, write, last := halves(t, s)
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, read, b)
		require.Empty(t, last.Writer)
		require.Equal(t, "mine", last.Data)
		require.NoError(t, read.UnlockContext(b))

		hold(t, write, a)
		hold(t, read, a)
		acquisition := s.holder("it")
		require.Equal(t, acquisition, last.Writer)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, write.LockContext(b)) })
		synctest.Wait()
		require.NoError(t, write.UnlockContext(a))
		wg.Wait()
		require.NotEqual(t, acquisition, s.holder("it"))
		require.Equal(t, 2, s.count("acquire"))
		require.NoError(t, read.UnlockContext(a))
		require.NoError(t, write.UnlockContext(b))
	})
}

func TestAWriterWhoseHoldIsLostCannotRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		read, write, _ := halves(t, s)
		a := as(locks.NewOwner())
		h := hold(t, write, a)
		s.evict("it")
		<-h.Lost()
		require.ErrorIs(t, read.LockContext(a), locks.ErrLost)
		_, err := read.TryLockContext(a)
		require.ErrorIs(t, err, locks.ErrLost)
		require.ErrorIs(t, write.UnlockContext(a), locks.ErrLost)
		require.NoError(t, read.LockContext(a))
		require.NoError(t, read.UnlockContext(a))
	})
}

func TestAReaderCannotWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		read, write, _ := halves(t, s)
		a := as(locks.NewOwner())
		hold(t, read, a)
		require.ErrorIs(t, write.LockContext(a), locks.ErrUpgrade)
		_, err := write.TryLockContext(a)
		require.ErrorIs(t, err, locks.ErrUpgrade)
		require.Zero(t, s.count("acquire"))
		require.NoError(t, read.UnlockContext(a))
	})
}
