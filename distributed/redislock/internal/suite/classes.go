package suite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// moody is a server that refuses scripts with an error reply, as long as there is one.
type moody struct {
	*miniredis.Miniredis
	adaptertest.Refuser[string] // of scripts
}

func startMoody(tb testing.TB) *moody {
	m := &moody{Miniredis: miniredis.RunT(tb)}
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "EVAL" && cmd != "EVALSHA" {
			return false
		}
		text := m.Answer()
		if text != "" {
			c.WriteError(text)
		}
		return text != ""
	})
	return m
}

// reactions are the client's reactions to an error reply of a class. Without goesOn the client
// returns the error.
var reactions = map[classes.Class]struct {
	is                   error // what the error of a first request matches
	firstGoesOn          bool
	waitGoesOn           bool
	releaseWaits         bool // for the end of the refusals
	releasedNevertheless bool
}{
	classes.Request:    {driver.ErrRefused, false, false, false, true},
	redisport.Topology: {redisport.ErrCluster, false, false, false, true},
	classes.Connection: {driver.ErrLogin, false, true, false, true},
	classes.Moment:     {driver.ErrUnavailable, true, true, true, true},
	redisport.Foreign:  {locks.ErrForeign, false, false, false, false},
	classes.Unclear:    {nil, false, true, true, true},
}

// inEachMood runs f for each error reply that is known.
func inEachMood(
	t *testing.T, on Driver, f func(t *testing.T, m *moody, l *lease.Mutex, text string, class classes.Class)) {
	t.Parallel()
	prefixes := []string{"NOPERM ", "WRONGTYPE ", "value is not an integer"} // not listed
	for _, r := range redisport.Refusals {
		prefixes = append(prefixes, r.Code)
	}
	classOf := func(prefix string) classes.Class { return redisport.ClassOf(prefix+"of the test", false) }
	require.Len(t, adaptertest.OneOfEach(prefixes, classOf), len(reactions))
	for _, prefix := range prefixes {
		text, class := prefix+"of the test", classOf(prefix)
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			m := startMoody(t)
			c := on.Open(t, m.Addr(), redislock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
			f(t, m, c.FencedMutex("it"), text, class)
		})
	}
}

func AFirstRequestFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	inEachMood(t, on, func(t *testing.T, m *moody, l *lease.Mutex, text string, class classes.Class) {
		want := reactions[class]
		ctx, cancel := context.WithTimeout(Someone(), Hang)
		defer cancel()
		m.Refuse(text)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		if want.firstGoesOn {
			m.Refuses(t, 2)
			m.Refuse("")
			require.NoError(t, <-got)
			require.NoError(t, l.UnlockContext(ctx))
			return
		}
		err := <-got
		require.ErrorContains(t, err, text)
		if want.is != nil {
			require.ErrorIs(t, err, want.is)
		}
		require.Equal(t, class == classes.Connection, errors.Is(err, driver.ErrLogin))
		require.Equal(t, class == classes.Unclear || class == redisport.Foreign, !errors.Is(err, driver.ErrRefused))
		m.Refuse("")
	})
}

func AWaitFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	inEachMood(t, on, func(t *testing.T, m *moody, l *lease.Mutex, text string, class classes.Class) {
		rival := on.Open(t, m.Addr()).FencedMutex("it")
		a, b := Someone(), Someone()
		Hold(t, rival, a)
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		require.Eventually(t, func() bool { return m.Exists("locks_waiting:{it}") }, Hang, time.Millisecond)
		m.Refuse(text)
		if !reactions[class].waitGoesOn {
			require.ErrorContains(t, <-got, text)
			m.Refuse("")
			return
		}
		m.Refuses(t, 2)
		m.Refuse("")
		require.NoError(t, rival.UnlockContext(a))
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(b))
	})
}

func NoErrorReplyToARenewalIsALoss(t *testing.T, on Driver) {
	inEachMood(t, on, func(t *testing.T, m *moody, _ *lease.Mutex, text string, class classes.Class) {
		l := on.Open(t, m.Addr(), Term(Long)).FencedMutex("it")
		a := Someone()
		h := adaptertest.Patiently(t, l, a)
		before, _ := h.Deadline()
		m.Refuse(text)
		m.Refuses(t, 1)
		m.Refuse("")
		require.Eventually(t, func() bool { now, _ := h.Deadline(); return now.After(before) }, Hang, time.Millisecond)
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
	})
}

func AReleaseFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	inEachMood(t, on, func(t *testing.T, m *moody, l *lease.Mutex, text string, class classes.Class) {
		want := reactions[class]
		a := Someone()
		Hold(t, l, a)
		m.Refuse(text)
		got := make(chan error, 1)
		go func() { got <- l.UnlockContext(a) }()
		if want.releaseWaits {
			m.Refuses(t, 2)
			m.Refuse("")
			require.NoError(t, <-got)
		} else {
			err := <-got
			require.ErrorIs(t, err, locks.ErrLost)
			require.ErrorContains(t, err, text)
			m.Refuse("")
		}
		if want.releasedNevertheless { // long before the end of the lease
			require.Eventually(t, func() bool { return !m.Exists("it") }, Hang, time.Millisecond)
		}
	})
}

// EachKindFollowsTheClassOfAnErrorReply is for the kinds that the situations above do not test.
func EachKindFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	t.Parallel()
	adaptertest.TestKinds(t, []adaptertest.Outage[string]{
		{Answer: "LOADING of the test", Class: classes.Moment},
		{Answer: "READONLY of the test", Class: classes.Moment},
		{Answer: "WRONGPASS of the test", Class: classes.Connection},
		{Answer: "NOPERM of the test", Class: classes.Request},
	}, func(t *testing.T) (*adaptertest.Refuser[string], []adaptertest.Kind) {
		m := startMoody(t)
		often := redislock.WithLeaseOptions(lease.WithPoll(50 * time.Millisecond))
		c, rival := on.Open(t, m.Addr(), often, Term(time.Hour)), on.Open(t, m.Addr(), Term(time.Hour))
		var all []adaptertest.Kind
		for name, lock := range AllKinds {
			against := AllKinds[Against(name)]
			all = append(all, adaptertest.Kind{
				Name:  name,
				Lock:  func(name string) adaptertest.Lock { return lock(c, name).(*lease.Mutex) },
				Rival: func(name string) adaptertest.Lock { return against(rival, name).(*lease.Mutex) },
			})
		}
		return &m.Refuser, append(all, adaptertest.Kind{
			Name:  "semaphore",
			Lock:  func(name string) adaptertest.Lock { return adaptertest.Permit(c.Semaphore(name, 1)) },
			Rival: func(name string) adaptertest.Lock { return adaptertest.Permit(rival.Semaphore(name, 1)) },
		}, adaptertest.Kind{
			Name: "expirable",
			Lock: func(name string) adaptertest.Lock {
				s := c.RedissonExpirableSemaphore(name)
				require.NoError(t, s.SetPermits(Background, 1))
				return adaptertest.Permit(s)
			},
			Rival: func(name string) adaptertest.Lock {
				return adaptertest.Permit(rival.RedissonExpirableSemaphore(name))
			},
		})
	})
}
