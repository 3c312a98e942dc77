package adaptertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/lockstest"
)

// Opener makes a client of one store of documents. The client is closed with the test.
type Opener func(tb testing.TB, opts ...lease.Option) *caslock.Client

// Conformance tells package lockstest about locks that are documents. The tests take locks away
// from their holders by direct, a client of the same store.
func Conformance(open func(tb testing.TB) *caslock.Client, direct *caslock.Client) lockstest.Config {
	var n atomic.Int64
	return lockstest.Config{
		New:         func(tb testing.TB) locks.TryLocker { return open(tb).Mutex(fmt.Sprint("it", n.Add(1))) },
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true, // while another attempt fails
		Lose: func(l locks.TryLocker) {
			held := direct.Mutex(l.(*lease.Mutex).Name())
			if freed, err := held.ForceUnlock(context.Background()); err != nil || !freed {
				panic(fmt.Sprint(freed, err))
			}
		},
		Waiting:    func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Rounds:     20,
		Goroutines: 4,
		Settle:     10 * time.Millisecond,
		Timeout:    hang,
	}
}

// TestTokens checks that two clients exclude each other, and that each holder has a larger token.
func TestTokens(t *testing.T, open Opener) {
	a, b := open(t).Mutex("it"), open(t).Mutex("it")
	for i := range uint64(3) {
		owner := Owner()
		require.NoError(t, a.LockContext(owner))
		require.Equal(t, 2*i+1, Token(t, a, owner))
		require.False(t, Try(t, b, Owner()))
		require.NoError(t, a.UnlockContext(owner))
		Pair(t, b)
	}
}

// TestSemaphore checks that two clients share the permits of a semaphore, which is one document.
func TestSemaphore(t *testing.T, open Opener) {
	a, b := open(t), open(t)
	p, err := a.Semaphore("it", 3).AcquireContext(t.Context(), 2)
	require.NoError(t, err)
	_, ok, err := b.Semaphore("it", 3).TryAcquireContext(t.Context(), 2)
	require.NoError(t, err)
	require.False(t, ok)
	q, ok, err := b.Semaphore("it", 3).TryAcquireContext(t.Context(), 1)
	require.NoError(t, err)
	require.True(t, ok)
	names, err := a.Names(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []string{"it.semaphore"}, names)
	require.NoError(t, p.ReleaseContext(t.Context()))
	require.NoError(t, q.ReleaseContext(t.Context()))
}

// TestInspection checks that a client sees the holder of another client.
func TestInspection(t *testing.T, open Opener) {
	require.NoError(t, open(t, lease.WithLabel("first")).Mutex("it").LockContext(Owner()))
	info, err := open(t).Mutex("it").Inspect(t.Context())
	require.NoError(t, err)
	require.True(t, info.Held)
	require.Equal(t, "first", info.Holders[0].Label)
	require.EqualValues(t, 1, info.Holders[0].Token)
}

// TestNewDocument checks that a client makes the document of its lock again after another client
// has swept it.
func TestNewDocument(t *testing.T, open Opener) {
	l, other := open(t).Mutex("it"), open(t)
	Pair(t, l)
	_, err := other.Sweep(t.Context(), "", 0)
	require.NoError(t, err)
	owner := Owner()
	require.NoError(t, l.LockContext(owner)) // it writes to the version that it knows, in vain
	require.EqualValues(t, 1, Token(t, l, owner))
	require.NoError(t, l.UnlockContext(owner))
}

// TestRestart checks that a hold survives a restart of its server.
func TestRestart(t *testing.T, open Opener, server interface {
	Kill()
	Restart()
}) {
	l, owner := open(t, lease.WithTTL(time.Minute)).Mutex("it"), Owner()
	require.NoError(t, l.LockContext(owner))
	server.Kill()
	server.Restart()
	require.False(t, Try(t, open(t).Mutex("it"), Owner()))
	require.NoError(t, l.UnlockContext(owner))
}

// A Holder is a process that holds the lock it, with a lease of two seconds. It says its token, and
// then at each line whether it has lost the lock.
type Holder interface {
	Line() string
	Say(line string)
	Kill()
	Pause()
	Resume()
}

// TestKilledHolder checks that l, another client's lock, is free a lease after its holder has died.
func TestKilledHolder(t *testing.T, holder Holder, l locks.Leased) {
	require.Equal(t, "1", holder.Line())
	holder.Kill()
	owner, began := Owner(), time.Now()
	require.NoError(t, l.LockContext(owner))
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "since this client saw it first")
	require.EqualValues(t, 2, Token(t, l, owner))
	require.NoError(t, l.UnlockContext(owner))
}

// TestPausedHolder checks that a holder that was paused learns that another client has l.
func TestPausedHolder(t *testing.T, holder Holder, l locks.Leased) {
	require.Equal(t, "1", holder.Line())
	holder.Pause()
	owner := Owner()
	require.NoError(t, l.LockContext(owner))
	holder.Resume()
	holder.Say("lost?")
	require.Equal(t, "true", holder.Line())
	require.NoError(t, l.UnlockContext(owner))
}

// TestConflicts checks which answers in table are conflicts: the answers about the document. swap
// returns the error of a write that is answered by the row called code.
func TestConflicts(t *testing.T, table classes.Table, swap func(code string) error) {
	for _, r := range table {
		err := swap(r.Code)
		require.Error(t, err, r.Code)
		require.NotEmpty(t, r.Why, r.Code)
		if r.Class == classes.Stored {
			require.ErrorIs(t, err, caslock.ErrConflict, r.Code)
		} else {
			require.NotErrorIs(t, err, caslock.ErrConflict, r.Code)
		}
	}
}
