package caslock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// acquire returns n permits of s, which are free.
func acquire(t *testing.T, s *lease.Semaphore, n int64) locks.Permits {
	t.Helper()
	p, ok, err := s.TryAcquireContext(context.Background(), n)
	require.NoError(t, err)
	require.True(t, ok, "%d permits are free", n)
	return p
}

// refuse fails unless fewer than n permits are free.
func refuse(t *testing.T, s *lease.Semaphore, n int64) {
	t.Helper()
	_, ok, err := s.TryAcquireContext(context.Background(), n)
	require.NoError(t, err)
	require.False(t, ok, "fewer than %d permits are free", n)
}

func release(t *testing.T, p locks.Permits) {
	t.Helper()
	require.NoError(t, p.ReleaseContext(context.Background()))
}

func TestPermitsOfADeadHolderReturnDespiteRenewals(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		living := acquire(t, open(t, s, caslock.WithTTL(term/10)).Semaphore("it", 3), 1)
		c := s.connect()
		acquire(t, open(t, c).Semaphore("it", 3), 2)
		c.set(func() { c.loadErr, c.swapErr = errNetwork, errNetwork })
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 10*term)
		defer cancel()
		p, err := open(t, s).Semaphore("it", 3).AcquireContext(ctx, 2)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), term)
		require.LessOrEqual(t, time.Since(began), term+term/50)
		require.NoError(t, living.Err())
		release(t, p)
		release(t, living)
	})
}

func TestLivingHoldersKeepTheirPermits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var held []locks.Permits
		for range 3 {
			held = append(held, acquire(t, open(t, s).Semaphore("it", 3), 1))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*term)
		defer cancel()
		_, err := open(t, s).Semaphore("it", 3).AcquireContext(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for _, p := range held {
			release(t, p)
		}
	})
}

func TestALateWriteForPermitsChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		other := acquire(t, open(t, s).Semaphore("it", 3), 1)
		c := s.connect(late)
		_, _, err := open(t, c).Semaphore("it", 3).TryAcquireContext(context.Background(), 2)
		require.ErrorIs(t, err, errNetwork)
		require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
		release(t, acquire(t, open(t, s).Semaphore("it", 3), 2))
		release(t, other)
	})
}

func TestALateRenewalBringsNoPermitsBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect("", late)
		p := acquire(t, open(t, c).Semaphore("it", 3), 2)
		other := acquire(t, open(t, s).Semaphore("it", 3), 1)
		time.Sleep(term / 2) // its renewal is under way
		release(t, p)
		require.Equal(t, []error{caslock.ErrConflict}, c.deliver())
		release(t, acquire(t, open(t, s).Semaphore("it", 3), 2))
		release(t, other)
	})
}

func TestALostReplyStillGivesPermits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sem := open(t, s.connect(lostReply)).Semaphore("it", 2)
		p := acquire(t, sem, 2)
		refuse(t, sem, 1)
		release(t, p)
	})
}

func TestALockAndASemaphoreAreApart(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s)
		l, owner := c.Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		p := acquire(t, c.Semaphore("it", 1), 1)
		refuse(t, c.Semaphore("it", 1), 1)
		require.NoError(t, l.UnlockContext(owner))
		require.NoError(t, p.Err())
		release(t, p)
	})
}

func TestADocumentOfAnotherKindIsForeign(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s)
		adaptertest.Pair(t, c.Mutex("it.semaphore"))
		release(t, acquire(t, c.Semaphore("other", 1), 1))
		_, err := c.Mutex("other.semaphore").TryLockContext(adaptertest.Owner())
		require.ErrorIs(t, err, locks.ErrForeign)
		free := s.data("it.semaphore")
		for _, data := range []string{
			`{"caslock":1,"holder":"a","lease_ms":1}`, `{"caslock":1,"token":7,"write":"x"}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":1,"lease_ms":3153600000001}]}`,
			`{"cassemaphore":1,"holders":[{"permits":1,"lease_ms":1}]}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":1,"lease_ms":-9223372036854775807}]}`,
			free, "", "a photograph", "{}", `{"cassemaphore":2}`, `{"cassemaphore":1,"holders":[{}]}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":1}]}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":0,"lease_ms":1}]}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":1,"lease_ms":9223372036854775807}]}`,
			`{"cassemaphore":1,"holders":[{"holder":"a","permits":1,"lease_ms":1},` +
				`{"holder":"a","permits":1,"lease_ms":1}]}`,
		} {
			s.put("it.semaphore", data)
			_, _, err := c.Semaphore("it", 9).TryAcquireContext(context.Background(), 1)
			require.ErrorIs(t, err, locks.ErrForeign, data)
			require.Equal(t, data, s.data("it.semaphore"))
		}
	})
}

func TestAFullDocumentRefusesAcquisitions(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sem := open(t, s).Semaphore("it", 1_000_000)
		var held []locks.Permits
		var err error
		for err == nil {
			var p locks.Permits
			if p, _, err = sem.TryAcquireContext(context.Background(), 1); err == nil {
				held = append(held, p)
			}
		}
		require.ErrorContains(t, err, `caslock: try acquire "it": no room: the document of `)
		require.ErrorIs(t, err, lease.ErrRefused)
		require.Greater(t, len(held), 45)
		time.Sleep(100 * term) // the document grows
		require.Less(t, len(s.data("it.semaphore")), caslock.MaxData)
		for _, p := range held {
			release(t, p)
		}
	})
}

func TestOneWriteRenewsAllPermitsOfAClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sem := open(t, s).Semaphore("it", 10)
		for range 10 {
			acquire(t, sem, 1)
		}
		costs(t, s, 10, 10, "ten acquisitions")
		time.Sleep(time.Hour + time.Second)
		costs(t, s, 0, 360, "an hour")
	})
}

func TestAHolderAmongOthersReadsBeforeItWrites(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		p, other := acquire(t, open(t, s).Semaphore("it", 2), 1), acquire(t, open(t, s).Semaphore("it", 2), 1)
		time.Sleep(term / 2) // it has renewed once
		s.requests()
		release(t, p)
		costs(t, s, 1, 1, "a release")
		release(t, other)
	})
}

// several returns n permits of one client, each acquired alone.
func several(t *testing.T, d caslock.Documents, n int64) (held []locks.Permits) {
	t.Helper()
	sem := open(t, d, caslock.WithTTL(time.Hour), caslock.WithLeaseOptions(lease.WithReleaseTimeout(time.Hour))).
		Semaphore("it", n)
	for range n {
		held = append(held, acquire(t, sem, 1))
	}
	return held
}

// releaseAtOnce releases the permits in a goroutine each, the first before the others.
func releaseAtOnce(held []locks.Permits) []error {
	errs := make([]error, len(held))
	var wg sync.WaitGroup
	for i, p := range held {
		wg.Go(func() { errs[i] = p.ReleaseContext(context.Background()) })
		if i == 0 {
			synctest.Wait()
		}
	}
	wg.Wait()
	return errs
}

func TestReleasesAtOnceShareAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		held := several(t, slow{s}, 40)
		s.requests()
		require.NoError(t, errors.Join(releaseAtOnce(held)...))
		costs(t, s, 0, 2, "forty releases at once")
	})
}

func TestALostReplyOfReleasesAtOnceIsASuccess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		held := several(t, slow{s.connect("", "", "", "", lostReply)}, 3)
		require.NoError(t, errors.Join(releaseAtOnce(held)...))
		require.NotContains(t, s.data("it.semaphore"), "holders")
	})
}

func TestEachReleaseAtOnceSaysWhetherItHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		held := several(t, slow{s}, 3)
		data := s.data("it.semaphore")
		last := strings.LastIndex(data, `,{"holder"`)
		s.put("it.semaphore", data[:last]+data[strings.LastIndex(data, "}],"):][1:])
		errs := releaseAtOnce(held)
		require.NoError(t, errors.Join(errs[:2]...))
		require.ErrorIs(t, errs[2], locks.ErrLost)
	})
}

// deaf is a server that never answers one of the writes, not even when their context ends.
type deaf struct {
	slow
	swaps *atomic.Int64 // until then
	end   chan struct{}
}

func (d deaf) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if d.swaps.Add(-1) == 0 {
		<-d.end
	}
	return d.slow.Swap(ctx, name, data, version)
}

func TestAHangingReleaseHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := deaf{slow{s}, new(atomic.Int64), make(chan struct{})}
		held := several(t, d, 3)
		d.swaps.Store(1)
		errs := releaseAtOnce(held)
		close(d.end)
		require.ErrorIs(t, errs[0], locks.ErrLost)
		require.NoError(t, errors.Join(errs[1:]...))
	})
}

// hanging is a server that answers one of the writes never. Requests end with their contexts.
type hanging struct {
	*server
	swaps *atomic.Int64 // until then
}

func (d hanging) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if d.swaps.Add(-1) == 0 {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return d.server.Swap(ctx, name, data, version)
}

func TestCloseReleasesDespiteAHangingRelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := hanging{s, new(atomic.Int64)}
		c := open(t, d, caslock.WithTTL(time.Hour), caslock.WithLeaseOptions(lease.WithReleaseTimeout(time.Hour)))
		var held []locks.Permits
		for range 3 {
			held = append(held, acquire(t, c.Semaphore("it", 3), 1))
		}
		d.swaps.Store(1)
		go held[0].ReleaseContext(context.Background())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx)
		require.Equal(t, 1, strings.Count(s.data("it.semaphore"), `"holder":`), "that of the release that hangs")
	})
}

// lastMinute is a server that carries writes out when their contexts end.
type lastMinute struct {
	*server
	on *atomic.Bool
}

func (d lastMinute) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	if d.on.Load() {
		<-ctx.Done()
	}
	return d.server.Swap(ctx, name, data, version)
}

func TestAReleaseAnsweredAsItsContextEndsCounts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := lastMinute{s, new(atomic.Bool)}
		sem := open(t, d).Semaphore("it", 1)
		for range 20 {
			p := acquire(t, sem, 1)
			s.requests()
			d.on.Store(true)
			release(t, p)
			d.on.Store(false)
			costs(t, s, 0, 1, "a release")
		}
	})
}

func TestATokenIsThatOfItsAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect("", lostReply)
		sem := open(t, c).Semaphore("it", 3)
		one, two := acquire(t, sem, 1), acquire(t, sem, 1)
		three := acquire(t, open(t, s).Semaphore("it", 3), 1)
		require.Equal(t, []uint64{1, 2, 3}, []uint64{one.Token(), two.Token(), three.Token()})
	})
}

func TestInspectTellsTheHoldersOfPermits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		acquire(t, open(t, s, caslock.WithLabel("web-1")).Semaphore("it", 5), 2)
		acquire(t, open(t, s, caslock.WithLabel("web-2")).Semaphore("it", 5), 3)
		info, err := open(t, s).Semaphore("it", 5).Inspect(context.Background())
		require.NoError(t, err)
		require.Len(t, info.Holders, 2)
		for i, label := range []string{"web-1", "web-2"} {
			require.Equal(t, label, info.Holders[i].Label)
			require.EqualValues(t, i+2, info.Holders[i].Permits)
		}
	})
}

func TestSemaphoresNeedTheFormatJSON(t *testing.T) {
	sem := open(t, newServer(), caslock.WithFormat(native{})).Semaphore("it", 1)
	_, _, err := sem.TryAcquireContext(context.Background(), 1)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "no room for several holders")
}

func TestANameThatIsRefusedHasNoSemaphore(t *testing.T) {
	c := open(t, picky{newServer()})
	for name, why := range map[string]string{"": "empty", "a b": "a space"} {
		_, err := c.Semaphore(name, 1).AcquireContext(context.Background(), 1)
		require.ErrorContains(t, err, why)
	}
}

func TestAClosedClientHasNoSemaphores(t *testing.T) {
	c := open(t, newServer())
	require.NoError(t, c.Close(context.Background()))
	_, err := c.Semaphore("it", 1).AcquireContext(context.Background(), 1)
	require.ErrorIs(t, err, locks.ErrClosed)
}

func TestSweepDeletesSemaphoresToo(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, listed{s})
		release(t, acquire(t, c.Semaphore("old", 1), 1))
		acquire(t, c.Semaphore("held", 1), 1)
		time.Sleep(time.Hour)
		release(t, acquire(t, c.Semaphore("new", 1), 1))
		swept, err := c.Sweep(context.Background(), "", time.Hour)
		require.NoError(t, err)
		require.Equal(t, []string{"old.semaphore"}, swept)
		require.Equal(t, uint64(1), acquire(t, c.Semaphore("old", 1), 1).Token())
	})
}

// A key of NATS keeps a mark of its deletion, see package natslock.
func TestADeletedDocumentMayLookLikeALocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		mark, err := caslock.JSON.Encode(caslock.Record{})
		require.NoError(t, err)
		s.put("it.semaphore", string(mark))
		release(t, acquire(t, open(t, s).Semaphore("it", 1), 1))
		require.True(t, strings.HasPrefix(s.data("it.semaphore"), `{"cassemaphore":1,"token":1,`))
	})
}

// openSemaphores returns the driver.Store of the semaphores in d.
func openSemaphores(t *testing.T, d caslock.Documents) (inner driver.Store) {
	t.Helper()
	c := open(t, d, caslock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
		inner = of
		return of
	})))
	c.Semaphore("it", 1) // opens it
	return inner
}

// permit is a request for one of size permits, for a lease.
func permit(acquisition string, size int64) driver.Request {
	id := driver.HoldID{Name: "it", Acquisition: acquisition}
	return driver.Request{HoldID: id, TTL: term, Permits: 1, Size: size}
}

// ask requests the lock of req once.
func ask(t *testing.T, s driver.Store, req driver.Request) driver.Reply {
	t.Helper()
	r, err := s.Acquire(t.Context(), req)
	require.NoError(t, err)
	return r
}

func TestARepeatedAcquisitionRenewsItsPermits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := openSemaphores(t, s), openSemaphores(t, s)
		require.True(t, ask(t, a, permit("a:1", 1)).Held)
		require.False(t, ask(t, b, permit("b:1", 1)).Held)
		time.Sleep(2 * term / 3)
		require.True(t, ask(t, a, permit("a:1", 1)).Held)
		require.False(t, ask(t, b, permit("b:1", 1)).Held)
		time.Sleep(2 * term / 3)
		require.False(t, ask(t, b, permit("b:1", 1)).Held)
		time.Sleep(2 * term / 3)
		require.True(t, ask(t, b, permit("b:1", 1)).Held)
	})
}

// A client sees the acquisition twice. Meanwhile it lost its permits, and acquired them again.
func TestAnAcquisitionWithANewTokenIsSeenAnew(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b, c := openSemaphores(t, s), openSemaphores(t, s), openSemaphores(t, s)
		require.True(t, ask(t, a, permit("a:1", 1)).Held)
		require.False(t, ask(t, b, permit("b:1", 1)).Held)
		require.False(t, ask(t, c, permit("c:1", 1)).Held)
		time.Sleep(term + term/50)
		require.True(t, ask(t, c, permit("c:1", 1)).Held)
		_, err := c.Release(t.Context(), permit("c:1", 1).HoldID)
		require.NoError(t, err)
		require.EqualValues(t, 3, ask(t, a, permit("a:1", 1)).Token)
		require.False(t, ask(t, b, permit("b:1", 1)).Held)
	})
}

func TestAWaiterWaitsForTheFirstEndOfALease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		inner := openSemaphores(t, s)
		for i, lasts := range []time.Duration{3 * term, term, 2 * term} {
			req := permit(fmt.Sprint("a:", i), 3)
			req.TTL = lasts
			require.True(t, ask(t, inner, req).Held)
		}
		require.Equal(t, term+term/100, ask(t, inner, permit("b:1", 3)).Wait)
	})
}

func TestPermitsBeyondAnyNumberAreNoOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.put("it.semaphore", `{"cassemaphore":1,"token":2,"write":"x","holders":[`+
			`{"holder":"a","permits":9223372036854775807,"token":1,"lease_ms":30000},`+
			`{"holder":"b","permits":9223372036854775807,"token":2,"lease_ms":30000}]}`)
		refuse(t, open(t, s).Semaphore("it", math.MaxInt64), 1)
	})
}

func TestADocumentListsTheLastEightReleases(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sem := open(t, s).Semaphore("it", 1)
		for range 20 {
			release(t, acquire(t, sem, 1))
		}
		_, released, _ := strings.Cut(s.data("it.semaphore"), `"released":[`)
		require.Equal(t, 7, strings.Count(released, ","))
	})
}

func TestASemaphoreIsWrittenAtTheTimeOfTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		sem := open(t, s).Semaphore("it", 2)
		acquire(t, sem, 1)
		acquire(t, sem, 1)
		var d struct{ Written time.Time }
		require.NoError(t, json.Unmarshal([]byte(s.data("it.semaphore")), &d))
		require.Equal(t, time.Now().UnixNano(), d.Written.UnixNano())
	})
}

// The first release hangs, and the second one waits for it.
func TestAReleaseThatWaitsForAnotherEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		d := hanging{s, new(atomic.Int64)}
		inner := openSemaphores(t, d)
		for _, a := range []string{"a:1", "a:2"} {
			require.True(t, ask(t, inner, permit(a, 2)).Held)
		}
		d.swaps.Store(1)
		first, end := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer end()
		go inner.Release(first, permit("a:1", 2).HoldID)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := inner.Release(ctx, permit("a:2", 2).HoldID)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestAReleaseThatWasCarriedOutLeavesNoBatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s)
		for n := range 3 {
			release(t, acquire(t, c.Semaphore(fmt.Sprint("it", n), 1), 1))
		}
		require.Zero(t, c.Batches())
	})
}

func TestAWaitersViewOfPermitsLastsTheLongestLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.put("it.semaphore", `{"cassemaphore":1,"token":2,"write":"x","holders":[`+
			`{"holder":"a","permits":1,"token":1,"lease_ms":3600000},{"holder":"b","permits":1,"token":2,"lease_ms":1000}]}`)
		c := open(t, s)
		c.RememberFew()
		refuse(t, c.Semaphore("it", 2), 1)
		time.Sleep(time.Hour / 2)
		acquire(t, c.Semaphore("other", 1), 1)
		time.Sleep(time.Hour/2 + time.Hour/50)
		acquire(t, c.Semaphore("it", 2), 2)
	})
}
