package natslock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/natslock"
)

const reconnectWait = 20 * time.Millisecond

// openFake returns a client of a fake that is closed with the test.
func openFake(tb testing.TB, w *way, opts ...caslock.Option) *caslock.Client {
	tb.Helper()
	c, err := natslock.New(background, w.connect(tb), "locks", opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close(background)) })
	return c
}

func TestLocksFollowTheClassOfAnAnswer(t *testing.T) {
	t.Parallel()
	var cases []adaptertest.Case[string]
	for _, r := range natslock.Refusals {
		require.NotEmpty(t, r.Why)
		ofConnection := strings.HasPrefix(r.Code, "nats: ")
		if ofConnection || r.Class == classes.Stored {
			continue
		}
		cases = append(cases, adaptertest.Case[string]{Name: r.Code, Class: r.Class, Answer: r.Code, Text: "because"})
	}
	start := func(
		t *testing.T, c adaptertest.Case[string],
	) (client, rival *caslock.Client, set func(adaptertest.Mood)) {
		f := newFake()
		w := &way{f: f, answer: c.Answer}
		return openFake(t, w), openFake(t, &way{f: f}), w.Set
	}
	adaptertest.TestClasses(t, cases, adaptertest.Documents, start)
}

func TestASilentServerIsNoEndOfTheCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.leaderless = true
		_, err := natslock.New(t.Context(), (&way{f: f}).connect(t), "locks")
		require.EqualError(t, err, `natslock: bucket "locks": no answer in time`)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
}

// The library has timers that all its connections share. So tests of connections that end cannot
// have a clock of their own.
func TestARefusedConnectionIsNoAnswerAboutTheLock(t *testing.T) {
	t.Parallel()
	for _, r := range natslock.Refusals {
		if _, ok := protocolError[r.Code]; !ok {
			continue
		}
		t.Run(r.Code, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			w := &way{f: f, answer: r.Code, timeout: 300 * time.Millisecond}
			lasting := caslock.WithTTL(time.Hour) // the end of a lease is no release
			l, rival := openFake(t, w, lasting).Mutex("it"), openFake(t, &way{f: f}, lasting).Mutex("it")
			a, b := adaptertest.Owner(), adaptertest.Owner()

			adaptertest.Hold(t, l, a)
			w.Set(adaptertest.Refusing)
			released := make(chan error, 1)
			go func() { released <- l.UnlockContext(a) }()
			time.Sleep(time.Second)
			w.Set(adaptertest.Good)
			if err := adaptertest.Result(t, released); err != nil { // it is repeated in the background
				require.ErrorIs(t, err, locks.ErrLost)
			}
			require.NoError(t, adaptertest.Result(t, adaptertest.Start(rival, b)))

			got := f.wait(t, l, a)
			w.Set(adaptertest.Refusing)
			time.Sleep(time.Second)
			require.NoError(t, rival.UnlockContext(b))
			require.Empty(t, got, "a wait goes on")
			w.Set(adaptertest.Good)
			require.NoError(t, adaptertest.Result(t, got))
			require.NoError(t, l.UnlockContext(a))

			w.Set(adaptertest.Refusing)
			said := strings.TrimPrefix(r.Code, "nats: ")
			var err error
			require.Eventually(t, func() bool { // the library notices the end of its connection
				_, err = l.TryLockContext(adaptertest.Owner())
				return err != nil && strings.Contains(strings.ToLower(err.Error()), said)
			}, long, time.Millisecond)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.Equal(t, r.Class == classes.Connection, errors.Is(err, lease.ErrLogin))
			require.Equal(t, r.Class == classes.Moment, errors.Is(err, lease.ErrUnavailable))
			w.Set(adaptertest.Good)
		})
	}
}

func TestADeletedBucketIsALossAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l, owner := openFake(t, &way{f: f}).Mutex("it"), adaptertest.Owner()
		h := adaptertest.Hold(t, l, owner)
		f.set(func() { f.absent = true })
		time.Sleep(lease.DefaultLease/3 + time.Second)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	})
}

func TestABucketMadeAnewUnderAHolderIsALossAtTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l, owner := openFake(t, &way{f: f}).Mutex("it"), adaptertest.Owner()
		h := adaptertest.Hold(t, l, owner)
		f.set(f.remake)
		time.Sleep(lease.DefaultLease/3 + time.Second)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	})
}

func TestTokensDoNotGoBackInABucketMadeAnew(t *testing.T) {
	for name, written := range map[string][]string{
		"with keys of another client": {"it", "another"},
		"without a key":               nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				c, owner := openFake(t, &way{f: f}), adaptertest.Owner()
				l, other := c.Mutex("it"), c.Mutex("other")
				for _, l := range []*lease.Mutex{l, l, other, l} {
					adaptertest.Hold(t, l, owner)
					require.NoError(t, l.UnlockContext(owner))
				}
				held := adaptertest.Hold(t, other, owner)
				f.set(f.remake)
				rival := openFake(t, &way{f: f})
				for _, name := range written {
					l := rival.Mutex(name)
					adaptertest.Hold(t, l, owner)
					require.NoError(t, l.UnlockContext(owner))
				}
				for range 2 {
					err := l.LockContext(owner)
					require.ErrorIs(t, err, lease.ErrRefused)
					require.ErrorContains(t, err, "made anew")
				}
				sent := f.sent()
				require.Error(t, c.Mutex("another").LockContext(owner))
				require.Equal(t, sent, f.sent(), "a client that knows it writes nothing")
				time.Sleep(lease.DefaultLease/3 + time.Second)
				require.ErrorIs(t, held.Err(), locks.ErrLost, "at the next renewal")
				require.ErrorIs(t, other.UnlockContext(owner), locks.ErrLost)
			})
		})
	}
}

func TestTokensDoNotGoBackInABucketWhoseKeysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l, owner := openFake(t, &way{f: f}).Mutex("it"), adaptertest.Owner()
		adaptertest.Hold(t, l, owner)
		require.NoError(t, l.UnlockContext(owner))
		f.set(func() { f.limits = true; f.expire("it") })
		for range 2 {
			err := l.LockContext(owner)
			require.ErrorIs(t, err, lease.ErrRefused)
			require.ErrorContains(t, err, "the bucket was changed: locks are not safe in it: its keys expire (TTL)")
		}
	})
}

func TestAnUnlockInADeletedBucketIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l, owner := openFake(t, &way{f: f}).Mutex("it"), adaptertest.Owner()
		adaptertest.Hold(t, l, owner)
		f.set(func() { f.absent = true })
		began := time.Now()
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
		require.Less(t, time.Since(began), time.Second)
	})
}

func TestADeletedBucketIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := openFake(t, &way{f: f})
		f.set(func() { f.absent = true })
		err := c.Mutex("it").LockContext(adaptertest.Owner())
		require.ErrorContains(t, err, `natslock: lock "it": the bucket was deleted: `)
		require.ErrorIs(t, err, lease.ErrRefused)
		require.NotErrorIs(t, err, lease.ErrUnavailable)
		require.NotErrorIs(t, err, locks.ErrLost)
	})
}

func TestAClosedConnectionEndsAWaitAndSaysWhy(t *testing.T) {
	t.Parallel()
	f := newFake()
	w := &way{f: f, answer: "nats: authorization violation"}
	js := w.connect(t, func(o *nats.Options) error { o.IgnoreAuthErrorAbort = false; return nil })
	c, err := natslock.New(background, js, "locks")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(background) })
	rival := openFake(t, &way{f: f}).Mutex("it")
	owner := adaptertest.Owner()
	adaptertest.Hold(t, rival, owner)
	got := f.wait(t, c.Mutex("it"), adaptertest.Owner())
	w.Set(adaptertest.Refusing)
	err = adaptertest.Result(t, got)
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
	require.ErrorContains(t, err, "nats: Authorization Violation: see nats.IgnoreAuthErrorAbort")
	require.NoError(t, rival.UnlockContext(owner))
}

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	for servers, want := range map[string]string{
		"nats://127.0.0.1:4222":                        "127.0.0.1:4222",
		"nats://ann:geheim@127.0.0.1:1,127.0.0.2:2":    "127.0.0.1:1,127.0.0.2:2",
		"nats://127.0.0.2:2,nats://geheim@127.0.0.1:1": "127.0.0.1:1,127.0.0.2:2",
	} {
		for range 2 { // each client has an id of its own
			c := openFake(t, &way{f: newFake(), servers: servers})
			require.Equal(t, "it\x00nats "+want+" $JS.API.KV_locks", c.Mutex("it").LockKey())
			require.NoError(t, c.Close(background))
		}
	}
}

func TestAnAnswerThatIsNotListedHasTheClassOfItsStatus(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"10059", "10060", "10054", "10109"} { // deleted, another stream, too large, sealed
		require.Equal(t, classes.Request, natslock.Refusals.Answer(400, code, "because"), code)
	}
	for _, code := range []string{"10008", "10009", "10006", "10004", "10077"} { // no leader, not stored
		require.Equal(t, classes.Doubt, natslock.Refusals.Answer(503, code, "because"), code)
	}
}
