package redislock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startHolder starts a process that holds the lock called it, and returns its token.
func startHolder(t *testing.T, kind, addr string, d time.Duration) (*testbed.Process, uint64) {
	t.Helper()
	p := testbed.Child(t, "hold", kind, addr, d.String())
	word, number, _ := strings.Cut(p.Line(), " ")
	require.Equal(t, "held", word)
	token, err := strconv.ParseUint(number, 10, 64)
	require.NoError(t, err)
	return p, token
}

func TestAPausedHolderSeesItsLossFirst(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, stale := startHolder(t, "fenced", s.Addr, 4*short) // it has to hold until it is paused
	p.Say("?")
	require.Equal(t, "valid", p.Line())
	rival := open(t, connect(t, s.Addr)).FencedMutex("it")
	b := someone()
	p.Pause()
	token := hold(t, rival, b).Token()
	p.Say("?")
	p.Resume()
	require.Equal(t, "lost", p.Line(), "the first thing it asks after the pause")
	require.Greater(t, token, stale, "a resource that has seen the rival refuses the token of the holder")
	require.NoError(t, rival.UnlockContext(b))
}

func TestALeaseFreesADeadHoldersLock(t *testing.T) {
	t.Parallel()
	for kind, lock := range anyKind {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p, _ := startHolder(t, kind, s.Addr, 4*short)
			opts := []redislock.Option{rarely}
			if kind == "fair" {
				opts = nil // who waits there has to ask
			}
			rival := lock(open(t, connect(t, s.Addr), opts...), "it")
			b := someone()
			ok, err := rival.TryLockContext(b)
			require.NoError(t, err)
			require.False(t, ok)
			got := make(chan error, 1)
			go func() { got <- rival.LockContext(b) }()
			p.Kill()
			died := time.Now()
			require.NoError(t, <-got)
			// The time to live that it was told brings the rival back, not the poll in its turn.
			require.Less(t, time.Since(died), hang)
			require.NoError(t, rival.UnlockContext(b))
		})
	}
}

func TestAKilledFairWaiterIsSkippedInTime(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0, term(long))
	p := testbed.Child(t, "hold", "fair", l.addr, short.String()) // it waits: its fair wait is three seconds
	l.queued(1)
	l.join(0, someone())
	l.queued(2)
	p.Kill()
	// It counts as dead when what the holder's lease had left as it asked last, and its fair
	// wait, are over.
	score := l.direct.ZRangeWithScores(background, fairTimes, 0, 0).Val()[0].Score
	require.LessOrEqual(t, score, float64(time.Now().Add(long+3*time.Second).UnixMilli()))
	require.Less(t, l.finish(), hang)
	require.Equal(t, []int{0}, l.order)
}

func TestAStarvedHolderHoldsOrKnowsItsLoss(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	const d = 500 * time.Millisecond
	p := testbed.Child(t, "starve", "plain", s.Addr, d.String(), (20 * d).String())
	require.Equal(t, "held", p.Line())
	rival := open(t, connect(t, s.Addr)).Mutex("it")
	b := someone()
	require.NoError(t, rival.LockContext(b))
	granted := time.Now()
	valid, err := strconv.ParseInt(p.Line(), 10, 64)
	require.NoError(t, err)
	state := p.Line()
	require.LessOrEqual(t, time.Unix(0, valid).Sub(granted), time.Duration(0),
		"it believed to hold the lock while a rival had it (%s)", state)
	require.Contains(t, []string{"held", "lost"}, state)
	require.NoError(t, rival.UnlockContext(b))
}

func TestTicketsAreSoldOnceByProcessesInTrouble(t *testing.T) {
	t.Parallel()
	for kind := range anyKind {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			p := leasetest.NewProxy(t, s.Addr)
			direct := connect(t, s.Addr)
			n := 0
			testbed.Tickets{
				Role: "buy",
				Args: []string{kind, p.Addr(), "20s"},
				Trouble: func() {
					onGoRedis.Trouble(p, direct, n)
					n++
				},
			}.Run(t)
			require.Zero(t, direct.Exists(background, "it").Val())
			require.Positive(t, n, "there was trouble")
		})
	}
}
