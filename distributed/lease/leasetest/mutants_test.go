package leasetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
)

// fake is a configuration for a store in memory of one kind.
func fake(tb testing.TB, flaw fakestore.Flaw, kind fakestore.Kind) Config {
	tb.Helper()
	s := fakestore.NewServer(flaw)
	return dialing(s, kind, func(_ context.Context, link *Link) (net.Conn, error) {
		return link.Pipe(s.Serve), nil
	})
}

// dialing is a configuration for s. Its clients are of one kind, and connect by dial, unless it is
// nil.
func dialing(
	s *fakestore.Server, kind fakestore.Kind, dial func(ctx context.Context, link *Link) (net.Conn, error)) Config {
	return Config{
		Store: func(tb testing.TB, link *Link) driver.Store {
			var dials fakestore.Dial
			if dial != nil {
				dials = func(ctx context.Context) (net.Conn, error) { return dial(ctx, link) }
			}
			store, end := s.Client(kind, dials, link.TTL())
			tb.Cleanup(end)
			return store
		},
		FIFO:    kind == fakestore.Queued || kind == fakestore.Full,
		Foreign: func(_ testing.TB, name string) { s.Put(name) },
		Rest: func(tb testing.TB, name string) {
			rest := s.Rest(name) // what dead clients have left ends in its time
			for end := time.Now().Add(20 * time.Second); rest != "" && time.Now().Before(end); rest = s.Rest(name) {
				time.Sleep(20 * time.Millisecond)
			}
			if rest != "" {
				tb.Errorf("the store keeps of %s: %s", name, rest)
			}
		},
	}
}

// shared is fake for locks that are read and written.
func shared(tb testing.TB, flaw fakestore.Flaw, _ fakestore.Kind) Config {
	tb.Helper()
	s := fakestore.NewServer(flaw)
	cfg := Config{Read: func(p locks.Provider, name string) locks.TryLocker {
		return p.(halves).read.Mutex(name, lease.WithShared())
	}}
	cfg.Open = func(tb testing.TB, _ *Link, opts ...lease.Option) locks.Provider {
		open := func(kind fakestore.Kind) *lease.Client {
			store, end := s.Client(kind, nil, time.Minute)
			c, err := lease.New(store, opts...)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				_ = c.Close(context.Background())
				end()
			})
			return c
		}
		read := open(fakestore.Reading)
		return halves{open(fakestore.Watched), read} // the Store opened last is that of the exclusive lock
	}
	return cfg
}

// halves are clients of both halves of a read-write lock.
type halves struct {
	*lease.Client
	read *lease.Client
}

func (h halves) Close(ctx context.Context) error {
	return errors.Join(h.Client.Close(ctx), h.read.Close(ctx))
}

func TestStoresInMemoryPass(t *testing.T) {
	for _, kind := range []fakestore.Kind{
		fakestore.Polled, fakestore.Watched, fakestore.Queued, fakestore.Tied, fakestore.Full,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			TestInVirtualTime(t, func(tb testing.TB) Config { return fake(tb, "", kind) })
		})
	}
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		TestInVirtualTime(t, func(tb testing.TB) Config { return shared(tb, "", "") })
	})
}

func TestAStoreOfSemaphoresPasses(t *testing.T) {
	t.Parallel()
	TestInVirtualTime(t, func(tb testing.TB) Config { return semaphore(tb, "", fakestore.Permits) })
}

// A Link in front of a real server has real sockets, so these checks run in real time.
func TestNetworksOfRealSocketsFail(t *testing.T) {
	for _, name := range []string{"EndedContexts", "MarkedErrors", "FailedRequests"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakestore.NewServer("")
			address, err := s.Listen()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			cfg := dialing(s, fakestore.Queued, func(ctx context.Context, link *Link) (net.Conn, error) {
				return link.DialContext(ctx, "tcp", address)
			})
			byName(t, name).on(t, cfg.withDefaults())
		})
	}
}

// semaphore is a configuration for a store of semaphores.
func semaphore(tb testing.TB, flaw fakestore.Flaw, kind fakestore.Kind) Config {
	tb.Helper()
	cfg := fake(tb, flaw, kind)
	cfg.Semaphore = Semaphores
	return cfg
}

// inTheWay is a store whose contenders may be in each other's way, such as one that needs a
// majority. It refuses the third request of an acquisition for a moment, even if the lock is free.
type inTheWay struct {
	driver.Store
	mu    sync.Mutex
	asked map[string]int // by acquisition
}

func (s *inTheWay) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	s.mu.Lock()
	s.asked[req.Acquisition]++
	third := s.asked[req.Acquisition] == 3
	s.mu.Unlock()
	if third {
		return driver.Reply{Wait: 5 * time.Millisecond}, nil
	}
	return s.Store.Acquire(ctx, req)
}

func TestAWaiterThatIsToldMayBeRefusedForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fake(t, "", fakestore.Watched)
		open := cfg.Store
		cfg.Store = func(tb testing.TB, link *Link) driver.Store {
			return &inTheWay{Store: open(tb, link), asked: make(map[string]int)}
		}
		if failures := record(t, byName(t, "NoticesForAll").virtually, cfg); len(failures) > 0 {
			t.Error(failures)
		}
	})
}

// timingOut is a store on a machine that is too busy: the client gives up each first request to
// release, and the server has carried the request out.
type timingOut struct {
	driver.Store
	mu    sync.Mutex
	asked map[driver.HoldID]bool
}

func (s *timingOut) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	released, err := s.Store.Release(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[id] {
		return released, err
	}
	s.asked[id] = true
	time.Sleep(2 * slow)
	return driver.Released{}, errors.New("i/o timeout")
}

func TestAReleaseMayBeAnsweredAtTheSecondRequestOnly(t *testing.T) {
	for _, name := range []string{"OneWinner", "OtherNames", "OneHolder"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := fake(t, "", fakestore.Watched)
				open := cfg.Store
				cfg.Store = func(tb testing.TB, link *Link) driver.Store {
					return &timingOut{Store: open(tb, link), asked: make(map[driver.HoldID]bool)}
				}
				if failures := record(t, byName(t, name).virtually, cfg); len(failures) > 0 {
					t.Error(failures)
				}
			})
		})
	}
}

// A crawling store takes seconds for each request, as a server on a machine that is too busy.
type crawling struct{ driver.Store }

func (s crawling) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	time.Sleep(3 * time.Second)
	return s.Store.Acquire(ctx, req)
}

func (s crawling) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	time.Sleep(3 * time.Second)
	return s.Store.Release(ctx, id)
}

func TestAWaitBesideSlowTurnsIsNoHang(t *testing.T) {
	for name, open := range map[string]opener{"Turns": fake, "Tickets": fake, "PermitsShared": semaphore} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kind := fakestore.Watched
				if name == "PermitsShared" {
					kind = fakestore.Permits
				}
				cfg := open(t, "", kind)
				open := cfg.Store
				cfg.Store = func(tb testing.TB, link *Link) driver.Store { return crawling{open(tb, link)} }
				if failures := record(t, byName(t, name).virtually, cfg); len(failures) > 0 {
					t.Error(failures)
				}
			})
		})
	}
}

// A stingy store gives no lock to any client.
type stingy struct{ driver.Store }

func (stingy) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{}, nil
}

func TestAShortCheckOfTurnsHasATurn(t *testing.T) {
	defer func(before time.Duration) { *long = before }(*long)
	*long = 0
	synctest.Test(t, func(t *testing.T) {
		cfg := fake(t, "", fakestore.Watched)
		open := cfg.Store
		cfg.Store = func(tb testing.TB, link *Link) driver.Store { return stingy{open(tb, link)} }
		failures := record(t, byName(t, "Turns").virtually, cfg)
		if len(failures) != 1 || !strings.Contains(failures[0], errHangs.Error()) {
			t.Errorf("nobody gets the lock, and the check finds %q", failures)
		}
	})
}

func TestAWaitBesideNoTurnIsAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := (&suite{TB: t, ctx: t.Context()}).crew()
		ctx, cancel := w.patient(t.Context(), time.Minute)
		defer cancel()
		for range 10 {
			time.Sleep(50 * time.Second)
			w.grants.Add(1)
		}
		if err := ctx.Err(); err != nil {
			t.Errorf("the wait ends while others get on: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Minute)
		if err := context.Cause(ctx); err != errHangs {
			t.Errorf("the wait goes on while nobody gets on: %v", err)
		}
	})
}

// recorder is a testing.TB to which a check can fail without failing the test.
type recorder struct {
	testing.TB
	name     string
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// record runs a check on clients of cfg and returns what it complained about.
func record(t *testing.T, run func(testing.TB, Config), cfg Config) []string {
	t.Helper()
	return recordNamed(t, t.Name(), run, cfg)
}

// recordNamed is record with a name that gives the seeds of the check.
func recordNamed(t *testing.T, name string, run func(testing.TB, Config), cfg Config) []string {
	t.Helper()
	r := &recorder{TB: t, name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for len(r.cleanups) > 0 {
				last := len(r.cleanups) - 1
				f := r.cleanups[last]
				r.cleanups = r.cleanups[:last]
				f()
			}
		}()
		run(r, cfg)
	}()
	<-done
	return r.failures
}

func (r *recorder) Helper()                     {}
func (r *recorder) Name() string                { return r.name }
func (r *recorder) Cleanup(f func())            { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(...any)                  {}
func (r *recorder) Logf(string, ...any)         {}
func (r *recorder) Error(args ...any)           { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, arg ...any) { r.fail(fmt.Sprintf(f, arg...)) }
func (r *recorder) Fatal(args ...any)           { r.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, arg ...any) { r.fail(fmt.Sprintf(f, arg...)); runtime.Goexit() }

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, message)
}

// mutants lists stores with one flaw each, by the check that must notice.
var mutants = []struct {
	check string
	store func(testing.TB, fakestore.Flaw, fakestore.Kind) Config
	kind  fakestore.Kind
	flaw  fakestore.Flaw
}{
	{"PermitsAreCounted", semaphore, fakestore.Permits, fakestore.PermitTooMany},
	{"PermitsAreCounted", semaphore, fakestore.Permits, fakestore.PermitTooFew},
	{"PermitsAreCounted", semaphore, fakestore.Permits, fakestore.PermitsWeighOne},
	{"PermitsAreCounted", semaphore, fakestore.Permits, fakestore.PermitsOneByOne},
	{"PermitsReturn", semaphore, fakestore.Permits, fakestore.ReaderFreesAll},
	{"PermitsReturn", semaphore, fakestore.Permits, fakestore.AnyoneFrees},
	{"PermitsReturn", semaphore, fakestore.Permits, fakestore.RenewAny},
	{"PermitsOfTheDead", semaphore, fakestore.Permits, fakestore.ReadersLapse},
	{"PermitsOfTheDead", semaphore, fakestore.Permits, fakestore.NeverFree},
	{"PermitsOfTheDead", semaphore, fakestore.Permits, fakestore.FastClock},
	{"PermitsTried", semaphore, fakestore.Permits, fakestore.PermitTooMany},
	{"PermitsTried", semaphore, fakestore.Permits, fakestore.PermitTooFew},
	{"PermitsTried", semaphore, fakestore.Permits, fakestore.PermitsWeighOne},
	{"PermitsShared", semaphore, fakestore.Permits, fakestore.PermitTooMany},
	{"PermitsShared", semaphore, fakestore.Permits, fakestore.TokenSeven},
	{"PermitsShared", semaphore, fakestore.Permits, fakestore.PermitsOneByOne},
	{"PermitsWakeAll", semaphore, fakestore.Permits, fakestore.WatchOnce},
	{"PermitsWakeAll", semaphore, fakestore.Permits, fakestore.WatchMute},
	{"PermitsInspected", semaphore, fakestore.Permits, fakestore.InspectForgets},
	{"PermitsInspected", semaphore, fakestore.Permits, fakestore.InspectOther},
	{"PermitsAreCounted", semaphore, fakestore.Permits, fakestore.WaitTooLong},
	{"PermitsUnderFaults", semaphore, fakestore.Permits, fakestore.PermitTooMany},
	{"PermitsUnderFaults", semaphore, fakestore.Permits, fakestore.NeverFree},

	{"OneHolder", fake, fakestore.Watched, fakestore.NoExclusion},
	{"OneWinner", fake, fakestore.Watched, fakestore.AcquireNoLock},
	{"OtherNames", fake, fakestore.Watched, fakestore.NamesCut},
	{"Takeover", fake, fakestore.Watched, fakestore.NeverFree},
	{"OneHolder", fake, fakestore.Watched, fakestore.FirstSight},
	{"Tokens", fake, fakestore.Watched, fakestore.Spurious},
	{"OneHolder", fake, fakestore.Watched, fakestore.SometimesFails},
	{"ReleaseIsAtomic", fake, fakestore.Watched, fakestore.AcquireTwice},
	{"RepeatedAcquire", fake, fakestore.Watched, fakestore.AcquireCounts},
	{"LateRequests", fake, fakestore.Watched, fakestore.LateSteals},
	{"OneHolder", fake, fakestore.Watched, fakestore.WaitTooLong},
	{"MarkedErrors", fake, fakestore.Watched, fakestore.RefusedAfterAll},
	{"EndedContexts", fake, fakestore.Watched, fakestore.IgnoresContext},

	{"Takeover", fake, fakestore.Watched, fakestore.FastClock},
	{"Takeover", fake, fakestore.Watched, fakestore.ClientsClock},
	{"RenewedLease", fake, fakestore.Watched, fakestore.RenewLies},
	{"RenewedLease", fake, fakestore.Watched, fakestore.RenewAdds},
	{"OneHolder", fake, fakestore.Watched, fakestore.RenewAny},
	{"RenewTellsTheTruth", fake, fakestore.Watched, fakestore.RenewAcquires},
	{"RenewTellsTheTruth", fake, fakestore.Watched, fakestore.RenewRevives},
	{"RenewTellsTheTruth", fake, fakestore.Watched, fakestore.RenewDenies},
	{"OtherNames", fake, fakestore.Watched, fakestore.RenewMixes},
	{"Takeover", fake, fakestore.Tied, fakestore.LongTerm},
	{"RenewedLease", fake, fakestore.Tied, fakestore.SessionEnds},
	{"Takeover", fake, fakestore.Tied, fakestore.SessionStays},

	{"OneHolder", fake, fakestore.Watched, fakestore.LookupNo},
	{"OneHolder", fake, fakestore.Watched, fakestore.LookupYes},
	{"OneHolder", fake, fakestore.Watched, fakestore.LookupAny},
	{"Tokens", fake, fakestore.Watched, fakestore.LookupToken},
	{"OneHolder", fake, fakestore.Watched, fakestore.LookupAcquires},
	{"OneHolder", fake, fakestore.Watched, fakestore.AnyoneFrees},
	{"ReleaseIsAtomic", fake, fakestore.Watched, fakestore.ReleaseLooks},
	{"OneHolder", fake, fakestore.Watched, fakestore.ReleaseKeeps},
	{"OneHolder", fake, fakestore.Watched, fakestore.ReleasedAlways},
	{"OneHolder", fake, fakestore.Watched, fakestore.ReleasedNever},
	{"OneHolder", fake, fakestore.Watched, fakestore.ReleaseFailsOnce},

	{"Tokens", fake, fakestore.Watched, fakestore.TokenSeven},
	{"Tokens", fake, fakestore.Watched, fakestore.TokenPairs},
	{"Tokens", fake, fakestore.Watched, fakestore.TokenRestarts},
	{"Tokens", fake, fakestore.Watched, fakestore.TokenOfClient},
	{"Tokens", fake, fakestore.Full, fakestore.TokenBroken},

	{"Notices", fake, fakestore.Watched, fakestore.WatchMute},
	{"Notices", fake, fakestore.Watched, fakestore.WatchHalf},
	{"Notices", fake, fakestore.Watched, fakestore.WatchLate},
	{"Notices", fake, fakestore.Watched, fakestore.ListensNot},
	{"Notices", fake, fakestore.Watched, fakestore.WatchAgain},
	{"Contention", fake, fakestore.Full, fakestore.ProberMute},
	{"Contention", fake, fakestore.Full, fakestore.ProberHolder},

	{"QueueOrder", fake, fakestore.Queued, fakestore.QueueLIFO},
	{"QueueOrder", fake, fakestore.Queued, fakestore.QueueForgets},
	{"QueueOrder", fake, fakestore.Queued, fakestore.QueueBarges},
	{"QueueLeave", fake, fakestore.Queued, fakestore.LeaveKeeps},
	{"QueueLeave", fake, fakestore.Queued, fakestore.LeaveFirst},
	{"OneHolder", fake, fakestore.Queued, fakestore.PlaceOfTry},
	{"QueueOrder", fake, fakestore.Queued, fakestore.PlaceOfHolder},

	{"Breaks", fake, fakestore.Full, fakestore.BreakRenews},
	{"Breaks", fake, fakestore.Full, fakestore.BreakLies},
	{"Breaks", fake, fakestore.Full, fakestore.BreakNothing},
	{"Inspection", fake, fakestore.Full, fakestore.InspectFree},
	{"Inspection", fake, fakestore.Full, fakestore.InspectHeld},
	{"Inspection", fake, fakestore.Full, fakestore.InspectFrees},
	{"Inspection", fake, fakestore.Full, fakestore.InspectOther},
	{"Inspection", fake, fakestore.Full, fakestore.InspectForgets},
	{"NoFalseLoss", fake, fakestore.Full, fakestore.LossFalse},

	{"RenewsAll", fake, fakestore.Watched, fakestore.RenewFirst},
	{"NoticesForAll", fake, fakestore.Watched, fakestore.WatchOnce},
	{"Awaited", fake, fakestore.Watched, fakestore.AwaitedNever},
	{"QueueNotices", fake, fakestore.Queued, fakestore.QueueWakes},
	{"DeadWaiter", fake, fakestore.Queued, fakestore.PlaceForever},
	{"BreakNotice", fake, fakestore.Full, fakestore.BreakMute},
	{"SessionLoss", fake, fakestore.Tied, fakestore.LossMute},
	{"SessionFrees", fake, fakestore.Tied, fakestore.SessionKeeps},
	{"SessionFrees", fake, fakestore.Tied, fakestore.AnyoneFrees},
	{"ForeignData", fake, fakestore.Watched, fakestore.OverwritesValue},

	{"Readers", shared, fakestore.Watched, fakestore.ReadersExclude},
	{"Readers", shared, fakestore.Watched, fakestore.ReaderIntrudes},
	{"Readers", shared, fakestore.Watched, fakestore.WriterIntrudes},
	{"Readers", shared, fakestore.Watched, fakestore.ReaderFreesAll},

	{"OneHolder", fake, fakestore.Watched, fakestore.ClientHolds},
	{"OneHolder", fake, fakestore.Watched, fakestore.SerialHolds},
	{"OneHolder", fake, fakestore.Watched, fakestore.RefusedLater},
	{"OneHolder", fake, fakestore.Watched, fakestore.LookupFrees},
	{"OneHolder", fake, fakestore.Watched, fakestore.ReleaseAsync},
	{"Tickets", fake, fakestore.Watched, fakestore.GivesOften},
	{"OddNames", fake, fakestore.Watched, fakestore.NamesFold},
	{"OddNames", fake, fakestore.Watched, fakestore.NamesShort},
	{"OddNames", fake, fakestore.Watched, fakestore.NamesPlain},
	{"OddNames", fake, fakestore.Watched, fakestore.NamesUTF16},
	{"AtOnce", fake, fakestore.Watched, fakestore.RepliesMix},
	{"RepeatedAcquire", fake, fakestore.Watched, fakestore.RepeatFrees},
	{"TwoRequests", fake, fakestore.Queued, fakestore.HoldsTwice},
	{"TwoRequests", fake, fakestore.Queued, fakestore.RefusalFrees},
	{"TwoRequests", fake, fakestore.Queued, fakestore.PlacesTwice},
	{"MarkedErrors", fake, fakestore.Watched, fakestore.FailureRefuses},
	{"MarkedErrors", fake, fakestore.Queued, fakestore.RefusedEnqueue},
	{"FailedRequests", fake, fakestore.Watched, fakestore.RefusedRelease},
	{"FailedRequests", fake, fakestore.Watched, fakestore.FailureFindsNot},
	{"FailedRequests", fake, fakestore.Watched, fakestore.FailureLoses},
	{"FailedRequests", fake, fakestore.Watched, fakestore.FailureReleases},

	{"Takeover", fake, fakestore.Watched, fakestore.RefusalsProlong},
	{"Takeover", fake, fakestore.Watched, fakestore.WaitWhole},
	{"Takeover", fake, fakestore.Watched, fakestore.WaitHalf},
	{"Takeover", fake, fakestore.Watched, fakestore.SlowClock},
	{"Takeover", fake, fakestore.Watched, fakestore.LeaseFixed},
	{"Takeover", fake, fakestore.Watched, fakestore.LeaseSeconds},
	{"Tokens", fake, fakestore.Watched, fakestore.TokenLapsed},
	{"RenewedLease", fake, fakestore.Watched, fakestore.RenewHalf},
	{"RenewedLease", fake, fakestore.Watched, fakestore.RenewOnce},
	{"LapsedHold", fake, fakestore.Watched, fakestore.RenewLate},
	{"RenewsAll", fake, fakestore.Watched, fakestore.RenewStops},
	{"ReleasesAll", fake, fakestore.Full, fakestore.ReleaseAllStops},
	{"ReleasesAll", fake, fakestore.Full, fakestore.ReleaseAllFrees},

	{"Notices", fake, fakestore.Watched, fakestore.WatchCloses},
	{"OtherWatches", fake, fakestore.Watched, fakestore.WatchesEnd},
	{"HandOvers", fake, fakestore.Watched, fakestore.WakesEarly},
	{"HandOvers", fake, fakestore.Queued, fakestore.LeaveMute},
	{"QueueLeave", fake, fakestore.Queued, fakestore.LeaveFrees},
	{"Arrival", fake, fakestore.Queued, fakestore.QueueSeldom},
	{"QueueLeave", fake, fakestore.Queued, fakestore.LookupPlace},
	{"QueueOrder", fake, fakestore.Queued, fakestore.PlaceBrief},

	{"Inspection", fake, fakestore.Full, fakestore.InspectShared},
	{"Inspection", fake, fakestore.Full, fakestore.InspectToken},
	{"Inspection", fake, fakestore.Full, fakestore.InspectLeft},
	{"Inspection", fake, fakestore.Full, fakestore.InspectCounts},
	{"NoFalseLoss", fake, fakestore.Tied, fakestore.LossAll},

	{"DeadReader", shared, fakestore.Watched, fakestore.ReaderStays},
	{"DeadReader", shared, fakestore.Watched, fakestore.ReaderShortens},
	{"DeadReader", shared, fakestore.Watched, fakestore.ReadersLapse},
	{"ReaderNotices", shared, fakestore.Watched, fakestore.ReaderWakes},
}

func TestEachFlawIsFoundByItsCheck(t *testing.T) {
	t.Parallel()
	for _, m := range mutants {
		t.Run(m.check+"/"+string(m.flaw), func(t *testing.T) {
			for try := range 20 { // chance may miss the moment of a flaw
				var found []string
				synctest.Test(t, func(t *testing.T) {
					cfg := m.store(t, m.flaw, m.kind)
					cfg.Rest = nil // the check itself has to notice
					found = recordNamed(t, fmt.Sprintf("%s, try %d", t.Name(), try), byName(t, m.check).virtually, cfg)
				})
				if len(found) > 0 {
					return
				}
			}
			t.Errorf("%s does not notice that %s", m.check, m.flaw)
		})
	}
}

func byName(t *testing.T, name string) check {
	t.Helper()
	for _, c := range checks() {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return check{}
}
