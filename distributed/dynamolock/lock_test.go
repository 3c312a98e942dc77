package dynamolock_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	for server, start := range servers {
		t.Run(server, func(t *testing.T) { conform(t, start(t)) })
	}
}

func conform(t *testing.T, addr string) {
	direct := dynamodb.New(options(addr, &http.Transport{DisableKeepAlives: true})) // the suite counts goroutines
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			return open(tb, dial(tb, addr), dynamolock.WithTTL(testbed.ConformanceLease(tb))).Mutex(unused())
		},
		Owned: true, Reentrant: true, Leased: true,
		SpuriousTry: true, // while another attempt fails
		FIFO:        true,
		Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Lose:        func(l locks.TryLocker) { remove(t, direct, l.(*lease.Mutex).Name()) },
		Rounds:      40, Goroutines: 4, Settle: 20 * time.Millisecond, Timeout: long,
	})
}

func TestASemaphoreIsOneRow(t *testing.T) {
	t.Parallel()
	direct, name := dial(t, startMoto(t)), unused()
	a, b := open(t, direct).Semaphore(name, 3), open(t, direct).Semaphore(name, 3)
	p, err := a.AcquireContext(background, 2)
	require.NoError(t, err)
	_, ok, err := b.TryAcquireContext(background, 2)
	require.NoError(t, err)
	require.False(t, ok)
	q, ok, err := b.TryAcquireContext(background, 1)
	require.NoError(t, err)
	require.True(t, ok)
	data, _ := attribute(read(t, direct, name+".semaphore"), "lock")
	require.Contains(t, data, `{"cassemaphore":1,"token":2,"holders":[{`)
	require.NoError(t, p.ReleaseContext(background))
	require.NoError(t, q.ReleaseContext(background))
}

// holding starts a process that holds the lock it, and returns it with its token.
func holding(t *testing.T, addr string) (*testbed.Process, uint64) {
	t.Helper()
	p := testbed.Child(t, "hold", addr)
	token, err := strconv.ParseUint(p.Line(), 10, 64)
	require.NoError(t, err)
	return p, token
}

func TestAKilledProcessFreesItsLockByLease(t *testing.T) {
	t.Parallel()
	addr := startMoto(t)
	p, first := holding(t, addr)
	l := open(t, dial(t, addr)).Mutex("it")
	held, err := l.TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.False(t, held)
	p.Kill()
	require.Greater(t, token(t, l), first)
}

func TestAPausedHolderFirstLearnsOfItsLoss(t *testing.T) {
	t.Parallel()
	addr := startMoto(t)
	p, first := holding(t, addr)
	p.Say("")
	require.Equal(t, "false", p.Line())
	p.Pause()
	require.Greater(t, token(t, open(t, dial(t, addr)).Mutex("it")), first)
	p.Say("") // it is there when the process goes on
	p.Resume()
	require.Equal(t, "true", p.Line(), "the first thing that the holder finds out")
}

func TestBrokenConnectionsSellNoTicketTwice(t *testing.T) {
	t.Parallel()
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			p := leasetest.NewProxy(t, start(t))
			testbed.Tickets{
				Role: "buy", Args: []string{p.Addr()}, Buyers: 60, Processes: 3,
				Trouble: func() {
					p.Reset()
					time.Sleep(300 * time.Millisecond)
				},
			}.Run(t)
		})
	}
}

func TestAHoldLostInAPauseStaysLost(t *testing.T) {
	t.Parallel()
	p, addr := newMoto(t)
	l, owner := open(t, dial(t, addr), dynamolock.WithTTL(3*time.Second)).Mutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(t, err)
	p.Pause()
	soon(t, h.Lost(), "the loss")
	p.Resume()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	require.Greater(t, token(t, l), h.Token())
}

func TestATryOfASilentServerReturns(t *testing.T) {
	t.Parallel()
	p, addr := newMoto(t)
	c := open(t, dial(t, addr))
	p.Pause()
	_, err := c.Mutex("it").TryLockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "of the caller's context")
	_, err = c.Names(background, "")
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.ErrorIs(t, dynamolock.CheckTable(background, dial(t, addr), table), lease.ErrUnreachable)
}
