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
	"github.com/jucgo/locks/distributed/redislock/redlock"
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
	prefixes := append([]string{"NOPERM ", "WRONGTYPE ", "value is not an integer"}, codes()...) // three are not listed
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
	adaptertest.TestKinds(t, outages(), func(t *testing.T) (*adaptertest.Refuser[string], []adaptertest.Kind) {
		m := startMoody(t)
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

// often makes waiters ask often. A busy machine may need long for the second request of a release.
var often = redislock.WithLeaseOptions(lease.WithPoll(5*time.Millisecond), lease.WithReleaseTimeout(Hang))

// outages are the error replies that all kinds meet: the replies of the table by which a server
// refuses the moment or the connection, and a refused request.
func outages() (all []adaptertest.Outage[string]) {
	for _, prefix := range append([]string{"NOPERM "}, codes()...) {
		text := prefix + "of the test"
		switch class := redisport.ClassOf(text, false); class {
		case classes.Moment, classes.Connection, classes.Request:
			all = append(all, adaptertest.Outage[string]{Answer: text, Class: class})
		}
	}
	return all
}

// codes are the beginnings of the error replies that are listed.
func codes() (all []string) {
	for _, r := range redisport.Refusals {
		all = append(all, r.Code)
	}
	return all
}

// ARedlockFollowsTheClassOfAnErrorReply has one server. Of several servers, one may answer later
// than the client waits for it once the others have failed: then the outcome is in doubt.
func ARedlockFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	t.Parallel()
	adaptertest.TestKinds(t, outages(), func(t *testing.T) (*adaptertest.Refuser[string], []adaptertest.Kind) {
		m := startMoody(t)
		to := []Way{{Addrs: []string{m.Addr()}, Reply: reply}}
		open := func(opts ...redislock.Option) *redlock.Client {
			// No request is given up on a busy machine. The server answers each failing request, so
			// no test waits for this timeout.
			c := on.Redlock(t, to, append(opts, Term(time.Hour), redlock.WithNodeTimeout(Hang))...)
			t.Cleanup(func() { adaptertest.Close(t, c) })
			return c
		}
		c, rival := open(often), open()
		return &m.Refuser, []adaptertest.Kind{{
			Name:  "redlock",
			Lock:  func(name string) adaptertest.Lock { return c.Mutex(name) },
			Rival: func(name string) adaptertest.Lock { return rival.Mutex(name) },
		}}
	})
}

// ANumberFollowsTheClassOfAnErrorReply is for a RedissonSemaphore, whose permits have no lease.
func ANumberFollowsTheClassOfAnErrorReply(t *testing.T, on Driver) {
	t.Parallel()
	for _, o := range outages() {
		t.Run(o.Answer, func(t *testing.T) {
			t.Parallel()
			m := startMoody(t)
			s := on.Open(t, m.Addr()).RedissonSemaphore("it")
			free := func() { require.NoError(t, s.AddPermits(Background, 1)) }
			free()
			type result struct {
				p   locks.Permits
				err error
			}
			acquire := func() <-chan result {
				got := make(chan result, 1)
				go func() {
					p, err := s.AcquireContext(Background, 1)
					got <- result{p, err}
				}()
				return got
			}
			refused := func(err error) {
				require.ErrorIs(t, err, driver.ErrRefused)
				require.ErrorContains(t, err, o.Answer)
				require.Equal(t, o.Class == classes.Connection, errors.Is(err, driver.ErrLogin), "%v", err)
			}

			m.Refuse(o.Answer) // a first request
			got := acquire()
			if o.Class == classes.Moment {
				m.Refuses(t, 2)
				m.Refuse("")
				free() // wakes the waiter
			} else {
				refused((<-got).err)
				m.Refuse("")
				got = acquire()
			}
			r := <-got
			require.NoError(t, r.err)

			before, err := s.AvailablePermits(Background)
			require.NoError(t, err)
			m.Refuse(o.Answer) // a release
			released := make(chan error, 1)
			go func() { released <- r.p.ReleaseContext(Background) }()
			if o.Class == classes.Moment {
				m.Refuses(t, 2)
				m.Refuse("")
				require.NoError(t, <-released)
			} else {
				refused(<-released)
				require.NoError(t, r.p.Err(), "the permits are held as before")
				m.Refuse("")
			}
			require.Eventually(t, func() bool {
				n, err := s.AvailablePermits(Background)
				return err == nil && n == before+1
			}, Hang, time.Millisecond)

			_, err = s.DrainPermits(Background)
			require.NoError(t, err)
			got = acquire() // a wait
			const channel = "redisson_sc:{it}"
			require.Eventually(t, func() bool { return m.PubSubNumSub(channel)[channel] > 0 }, Hang, time.Millisecond)
			m.Refuse(o.Answer)
			m.Publish(channel, "1")
			if o.Class == classes.Request {
				refused((<-got).err)
				m.Refuse("")
				return
			}
			m.Refuses(t, 1)
			m.Refuse("")
			free()
			require.NoError(t, (<-got).err)
		})
	}
}
