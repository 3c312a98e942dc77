package caslock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestALateWriteOfAnAcquisitionChangesNothing(t *testing.T) {
	for what, prepare := range map[string]func(t *testing.T, s *server, l *lease.Mutex){
		"no document": func(*testing.T, *server, *lease.Mutex) {},
		"a free lock": func(t *testing.T, s *server, _ *lease.Mutex) { adaptertest.Pair(t, open(t, s).Mutex("it")) },
		"a dead holder": func(t *testing.T, s *server, l *lease.Mutex) {
			die(t, s, "it")
			l.TryLockContext(adaptertest.Owner())
			time.Sleep(2 * term)
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				c := s.connect(late)
				l := open(t, c).Mutex("it")
				prepare(t, s, l)
				s.requests()
				_, err := l.TryLockContext(adaptertest.Owner())
				require.ErrorIs(t, err, errNetwork)
				time.Sleep(10 * term)
				costs(t, s, 2, 1, "an acquisition without an answer")
				require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
				held, err := open(t, s).Mutex("it").TryLockContext(adaptertest.Owner())
				require.NoError(t, err)
				require.True(t, held)
			})
		})
	}
}

// The request by which Lookup would make sure is not answered either.
func TestAReleaseMakesALateWriteFailThatLookupHasNot(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect(late, lostRequest)
		client := open(t, c)
		_, err := client.Mutex("it").TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, errNetwork)
		synctest.Wait()
		require.NoError(t, client.Close(t.Context()))
		require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
	})
}

func TestALostReplyStillGivesTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect(lostReply)).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		costs(t, s, 2, 1, "an acquisition whose reply is lost")
		require.NoError(t, l.UnlockContext(owner))
		costs(t, s, 0, 1, "its release")
	})
}

func TestALostReplyOfAReleaseIsASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect("", lostReply)
		adaptertest.Pair(t, open(t, c).Mutex("it"))
		adaptertest.Pair(t, open(t, s).Mutex("it"))
	})
}

func TestALostRenewalIsRepeated(t *testing.T) {
	for _, f := range []fault{lostRequest, lostReply, late} {
		bubble(t, func(t *testing.T, s *server) {
			c := s.connect("", f)
			l := open(t, c).Mutex("it")
			owner := adaptertest.Owner()
			require.NoError(t, l.LockContext(owner))
			time.Sleep(2 * term)
			c.deliver()
			time.Sleep(2 * term)
			require.NoError(t, l.UnlockContext(owner))
		})
	}
}

func TestAWriteThatIsSentTwiceSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect(twice, twice, twice)).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		time.Sleep(term / 2)
		require.NoError(t, l.UnlockContext(owner))
		costs(t, s, 4, 6, "three writes that are sent twice")
	})
}

func TestAFailedReadIsNotUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		l := open(t, c).Mutex("it")
		c.loadErr = errNetwork
		err := l.LockContext(adaptertest.Owner())
		require.ErrorIs(t, err, errNetwork)
		require.ErrorIs(t, err, driver.ErrRefused)
		require.ErrorIs(t, err, driver.ErrUnreachable)
		c.set(func() { c.loadErr = nil })
		time.Sleep(term)
		costs(t, s, 0, 0, "an acquisition that could not read")
	})
}

func TestAWaiterGoesOnAfterAFailedRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		holder := open(t, s).Mutex("it")
		require.NoError(t, holder.LockContext(owner))
		c := s.connect()
		l := open(t, c).Mutex("it")
		got := make(chan error, 1)
		go func() { got <- l.LockContext(adaptertest.Owner()) }()
		time.Sleep(time.Minute)
		c.set(func() { c.loadErr = errNetwork })
		time.Sleep(time.Minute)
		c.set(func() { c.loadErr = nil })
		require.NoError(t, holder.UnlockContext(owner))
		require.NoError(t, <-got)
	})
}

func TestAnUnavailableStoreIsAskedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		c.loadErr = driver.Mark(errors.New("slow down"), driver.ErrUnavailable)
		time.AfterFunc(time.Minute, func() { c.set(func() { c.loadErr = nil }) })
		require.NoError(t, open(t, c).Mutex("it").LockContext(adaptertest.Owner()))
	})
}

func TestAnUnavailableStoreIsNotUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		c.loadErr = driver.Mark(errors.New("slow down"), driver.ErrUnavailable)
		_, err := open(t, c, caslock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))).Mutex("it").
			TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, driver.ErrRefused)
		require.ErrorIs(t, err, driver.ErrUnavailable)
		require.NotErrorIs(t, err, driver.ErrUnreachable)
	})
}

func TestARefusedWriteLeavesNoDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		c.swapErr = driver.Mark(errors.New("slow down"), driver.ErrRefused, driver.ErrUnavailable)
		time.AfterFunc(time.Minute, func() { c.set(func() { c.swapErr = nil }) })
		l, owner := open(t, c).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		s.requests()
		require.NoError(t, l.UnlockContext(owner))
		costs(t, s, 0, 1, "a release")
	})
}

// proxied is a store behind a proxy that sends each write twice, and then fails a read.
type proxied struct {
	*server
	fails bool
}

func (p *proxied) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	p.fails = true
	p.server.Swap(ctx, name, data, version)
	return p.server.Swap(ctx, name, data, version)
}

func (p *proxied) Load(ctx context.Context, name string) ([]byte, string, error) {
	if p.fails {
		p.fails = false
		return nil, "", errNetwork
	}
	return p.server.Load(ctx, name)
}

func TestAReadThatFailsAfterAConflictLeavesADoubt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		once := caslock.WithLeaseOptions(lease.WithRetry(lease.RetryNever))
		held, err := open(t, &proxied{server: s}, once).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

var request1 = driver.Request{HoldID: driver.HoldID{Name: "it", Acquisition: "a:1"}, TTL: term}

func TestALateWriteIsSettledIfAnotherClientCame(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect(late)
		_, inner := openInner(t, c)
		_, err := inner.Acquire(t.Context(), request1)
		require.ErrorIs(t, err, errNetwork)
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		s.requests()
		r, err := inner.Lookup(t.Context(), request1)
		require.NoError(t, err)
		require.Equal(t, driver.Reply{Settled: true}, r)
		costs(t, s, 1, 0, "a lookup")
		require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
	})
}

func TestALookupWithoutADoubtSettlesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, inner := openInner(t, s)
		r, err := inner.Lookup(t.Context(), request1)
		require.NoError(t, err)
		require.Equal(t, driver.Reply{}, r)
		costs(t, s, 1, 0, "a lookup")
	})
}

func TestAReleaseFreesAnAcquisitionWhoseReplyIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		_, inner := openInner(t, s.connect(lostReply))
		_, err := inner.Acquire(t.Context(), request1)
		require.ErrorIs(t, err, errNetwork)
		r, err := inner.Release(t.Context(), request1.HoldID)
		require.NoError(t, err)
		require.True(t, r.Held)
		held, err := open(t, s).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestAReleaseThatCannotSettleFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect(late)
		_, inner := openInner(t, c)
		_, err := inner.Acquire(t.Context(), request1)
		require.ErrorIs(t, err, errNetwork)
		c.set(func() { c.loadErr = errNetwork })
		_, err = inner.Release(t.Context(), request1.HoldID)
		require.ErrorIs(t, err, errNetwork)
		c.set(func() { c.loadErr = nil })
		r, err := inner.Release(t.Context(), request1.HoldID)
		require.NoError(t, err)
		require.Equal(t, driver.Released{Settled: true}, r)
		require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
	})
}

func TestARefusedWriteIsReturned(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		c.swapErr = driver.Mark(errors.New("access denied"), driver.ErrRefused)
		require.ErrorContains(t, open(t, c).Mutex("it").LockContext(adaptertest.Owner()), `caslock: lock "it": access denied`)
		time.Sleep(term)
		costs(t, s, 1, 0, "a refused acquisition")
	})
}

func TestAStoreThatAlwaysConflictsIsNotAskedForEver(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		c.swapErr = caslock.ErrConflict
		_, err := open(t, c).Mutex("it").TryLockContext(adaptertest.Owner())
		require.ErrorContains(t, err, "conflicts on a document that does not change")
		require.NotErrorIs(t, err, caslock.ErrConflict)
		costs(t, s, 10, 0, "a try")
	})
}

// hot is a server whose documents another client replaces before each write.
type hot struct{ *server }

func (s hot) Swap(_ context.Context, name string, _ []byte, _ string) (string, error) {
	data, err := caslock.JSON.Encode(caslock.Record{Token: 7, Nonce: rand.Text()})
	s.put(name, string(data))
	return "", errors.Join(err, caslock.ErrConflict)
}

func TestATryOfAHotLockIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		held, err := open(t, hot{s}).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
		costs(t, s, 10, 0, "a try")
	})
}

// taken is a server whose document another client holds, and renews before each write.
type taken struct{ *server }

func (s taken) Swap(context.Context, string, []byte, string) (string, error) {
	s.renew()
	return "", caslock.ErrConflict
}

func (s taken) renew() {
	data, _ := caslock.JSON.Encode(caslock.Record{Holder: "b:1", Token: 7, Lease: time.Hour, Nonce: rand.Text()})
	s.put("it", string(data))
}

func TestAForcedUnlockThatIsNeverFirstSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		taken{s}.renew()
		_, err := open(t, taken{s}).Mutex("it").ForceUnlock(t.Context())
		require.ErrorContains(t, err, "the document had another version at each attempt")
		require.ErrorIs(t, err, driver.ErrRefused)
		require.ErrorIs(t, err, driver.ErrUnavailable)
	})
}

func TestAnEndedContextUndoesTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, slow{s}).Mutex("it")
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), 1500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		other := open(t, s).Mutex("it")
		held, err := other.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

// slow answers after a second.
type slow struct{ caslock.Documents }

func (s slow) Load(ctx context.Context, name string) ([]byte, string, error) {
	time.Sleep(time.Second)
	return s.Documents.Load(ctx, name)
}

func (s slow) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	time.Sleep(time.Second)
	return s.Documents.Swap(ctx, name, data, version)
}

// touched is a server whose documents another program writes again, as they are.
type touched struct {
	*server
	times *atomic.Int64
}

func (d touched) suffix() string { return fmt.Sprint("-", d.times.Load()) }

func (d touched) Load(ctx context.Context, name string) ([]byte, string, error) {
	data, version, err := d.server.Load(ctx, name)
	if version != "" {
		version += d.suffix()
	}
	return data, version, err
}

func (d touched) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	next, err := d.server.Swap(ctx, name, data, strings.TrimSuffix(version, d.suffix()))
	return next + d.suffix(), err
}

func TestADocumentThatIsWrittenAgainHasANewVersion(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := touched{s, new(atomic.Int64)}
		l := open(t, d).Mutex("it")
		adaptertest.Pair(t, l)
		d.times.Add(1)
		adaptertest.Pair(t, l)
	})
}

// sole has one version only, so that each version comes again.
type sole struct{ *server }

func (s sole) Load(ctx context.Context, name string) ([]byte, string, error) {
	data, version, err := s.server.Load(ctx, name)
	return data, version[:min(1, len(version))], err
}

func (s sole) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if version != "" {
		version = versionOf(s.data(name))
	}
	return s.server.Swap(ctx, name, data, version)
}

func TestAVersionThatComesAgainIsSeenAnew(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		l := open(t, sole{s}).Mutex("it")
		_, err := l.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		s.remove("it")
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		time.Sleep(2 * term)
		held, err := l.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
	})
}
