package suite

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
)

// act is a call of a party.
type act struct {
	party int
	read  bool
	free  bool // a release
}

// state is the state of a read-write lock with parties whose holds count.
type state struct {
	writer int // the party, from 1
	writes int
	reads  [parties]int
}

const parties = 8

// oneLock is the model of a lock, for any number of processes, and for connections that break.
var oneLock = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, _ any) (bool, any) {
		s, in := before.(state), input.(act)
		me := in.party + 1
		switch {
		case in.free && in.read:
			s.reads[in.party]--
			return s.reads[in.party] >= 0, s
		case in.free:
			s.writes--
			if s.writes == 0 {
				s.writer = 0
			}
			return s.writes >= 0 && before.(state).writer == me, s
		case in.read:
			s.reads[in.party]++
			return s.writer == 0 || s.writer == me, s
		}
		for _, n := range s.reads {
			if n > 0 {
				return false, s
			}
		}
		s.writes++
		s.writer = me
		return before.(state).writer == 0 || before.(state).writer == me, s
	},
}

func TheModelOfHistoriesRefusesWhatNoLockDoes(t *testing.T) {
	t.Parallel()
	op := func(in act, call, ret int64) porcupine.Operation {
		return porcupine.Operation{ClientId: in.party, Input: in, Call: call, Return: ret}
	}
	for name, wrong := range map[string][]porcupine.Operation{
		"two holders":        {op(act{party: 0}, 1, 2), op(act{party: 1}, 3, 4)},
		"a reader beside":    {op(act{party: 0}, 1, 2), op(act{party: 1, read: true}, 3, 4)},
		"a release too many": {op(act{party: 0}, 1, 2), op(act{party: 1, free: true}, 3, 4)},
	} {
		require.False(t, porcupine.CheckOperations(oneLock, wrong), name)
	}
	require.True(t, porcupine.CheckOperations(oneLock, []porcupine.Operation{
		op(act{party: 0}, 1, 2), op(act{party: 0, read: true}, 3, 4), op(act{party: 0, free: true}, 5, 6),
		op(act{party: 1, read: true}, 7, 8),
	}))
}

// log is the history of the parties' calls.
type log struct {
	t       *testing.T
	clock   atomic.Int64
	mu      sync.Mutex
	history []porcupine.Operation
}

func (l *log) add(in act, call, ret int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history = append(l.history, porcupine.Operation{ClientId: in.party, Input: in, Call: call, Return: ret})
}

func (l *log) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.history)
}

// take acquires lock, and records an acquisition that succeeded. A failed acquisition leaves
// nothing, now or later.
func (l *log) take(ctx context.Context, lock locks.TryLocker, in act, wait bool) bool {
	call := l.clock.Add(1)
	ok, err := true, error(nil)
	if wait {
		err = lock.LockContext(ctx)
	} else {
		ok, err = lock.TryLockContext(ctx)
	}
	if err != nil || !ok {
		return false
	}
	l.add(in, call, l.clock.Add(1))
	return true
}

// give releases lock, and records it. A release whose outcome is unknown may have its effect at
// any later time.
func (l *log) give(ctx context.Context, lock locks.TryLocker, in act) {
	in.free = true
	call := l.clock.Add(1)
	err := lock.UnlockContext(ctx)
	ret := l.clock.Add(1)
	if err != nil {
		if errors.Is(err, locks.ErrLost) || errors.Is(err, locks.ErrNotHeld) {
			l.t.Errorf("party %d: %v", in.party, err)
		}
		ret = math.MaxInt64
	}
	l.add(in, call, ret)
}

// use acquires and releases write and read for a party until over ends.
func (l *log) use(over context.Context, party int, write, read locks.TryLocker) {
	rng := rand.New(rand.NewPCG(uint64(party), uint64(time.Now().UnixNano())))
	owner := Someone()
	for over.Err() == nil {
		ctx, stop := context.WithTimeout(owner, time.Duration(1+rng.IntN(2000))*time.Millisecond)
		in := act{party: party, read: rng.IntN(2) == 0}
		lock := write
		if in.read {
			lock = read
		}
		if l.take(ctx, lock, in, rng.IntN(4) > 0) {
			if rng.IntN(3) == 0 && l.take(ctx, lock, in, true) {
				l.give(owner, lock, in)
			}
			if !in.read && rng.IntN(2) == 0 { // a downgrade
				r := act{party: party, read: true}
				if l.take(ctx, read, r, true) {
					l.give(owner, write, in)
					lock, in = read, r
				}
			}
			time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			l.give(owner, lock, in)
		}
		stop()
		time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond)
	}
}

// ReadWriteHistoriesInTroubleFitOneLock disturbs the connections of clients that
// share a lock, and compares what their calls returned with oneLock. The kit does so with other
// locks.
func ReadWriteHistoriesInTroubleFitOneLock(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	p := leasetest.NewProxy(t, addr)
	direct := Connect(t, addr)
	l := &log{t: t}
	var wg sync.WaitGroup
	over, cancel := context.WithCancel(Background)
	defer cancel()
	var c *redislock.Client
	for i := range parties {
		if i%4 == 0 { // four parties share a client
			c = on.Open(t, p.Addr())
		}
		rw := c.RWMutex("it")
		wg.Go(func() { l.use(over, i, rw.WriteLocker(), rw.ReadLocker()) })
	}
	// The next trouble waits for some calls to return, however slow the machine is.
	const troubles, calls = 18, 7
	for n := range troubles {
		on.Trouble(p, direct, n)
		require.Eventually(t, func() bool { return l.len() >= calls*(n+1) }, Hang, time.Millisecond)
	}
	cancel()
	wg.Wait()
	slices.SortFunc(l.history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	result := porcupine.CheckOperationsTimeout(oneLock, l.history, Hang)
	require.Equal(t, porcupine.Ok, result, "no order of %d calls explains what they returned", len(l.history))
}

// Trouble disturbs the connections of clients, or a server, in a way that must not cost a hold. The
// way depends on n.
func (on Driver) Trouble(p *leasetest.Proxy, direct *redis.Client, n int) {
	switch n % 6 {
	case 0:
		p.Reset()
	case 1:
		direct.ClientKillByFilter(Background, "TYPE", "pubsub")
	case 2:
		direct.ScriptFlush(Background)
	case 3:
		p.Cut()
		time.Sleep(50 * time.Millisecond)
		p.Heal()
		p.Reset() // else the clients wait for swallowed replies until their time limit
	case 4:
		p.ResetReply(on.Eval, 1)
	case 5:
		p.CutReplies()
		time.Sleep(20 * time.Millisecond)
		p.Heal()
		p.Reset()
	}
	time.Sleep(50 * time.Millisecond)
}
