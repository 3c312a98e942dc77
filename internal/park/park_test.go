package park

import (
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ready returns a new Place.
func ready() *Place {
	p := new(Place)
	p.Init()
	return p
}

// kinds are the two ways a Place can carry its permit.
func kinds(t *testing.T, f func(t *testing.T, newPlace func() *Place)) {
	t.Run("uncut", func(t *testing.T) { f(t, ready) })
	t.Run("channel", func(t *testing.T) {
		f(t, func() *Place { p := ready(); p.Open(); return p })
	})
}

func TestAPermitIsRememberedWhenUnparkComesFirst(t *testing.T) {
	kinds(t, func(t *testing.T, newPlace func() *Place) {
		p := newPlace()
		p.Unpark()
		p.Park()
	})
}

func TestTwoUnparksMakeOnePermit(t *testing.T) {
	kinds(t, func(t *testing.T, newPlace func() *Place) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace()
			p.Unpark()
			p.Unpark()
			p.Park()
			var back atomic.Bool
			go func() { p.Park(); back.Store(true) }()
			synctest.Wait()
			require.False(t, back.Load(), "the second Park blocks")
			p.Unpark()
			synctest.Wait()
			require.True(t, back.Load())
		})
	})
}

func TestParkedGoroutineIsDurablyBlockedInABubble(t *testing.T) {
	kinds(t, func(t *testing.T, newPlace func() *Place) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlace()
			began := time.Now()
			time.AfterFunc(time.Hour, p.Unpark)
			p.Park()
			require.Equal(t, time.Hour, time.Since(began))
		})
	})
}

func TestAPlaceServesOneBubbleAfterAnother(t *testing.T) {
	p := ready()
	use := func() {
		for range 3 {
			var wg sync.WaitGroup
			wg.Go(p.Park)
			p.Unpark()
			wg.Wait()
			p.Reset()
		}
	}
	for range 3 {
		use()
		synctest.Test(t, func(*testing.T) { use() })
	}
	// With a permit left from another bubble.
	synctest.Test(t, func(*testing.T) { p.Unpark() })
	synctest.Test(t, func(*testing.T) { p.Park() })
}

func TestGoroutineParkedOutsideCanBeUnparkedFromBubble(t *testing.T) {
	p := ready()
	done := make(chan struct{})
	go func() { p.Park(); close(done) }()
	for !p.busy() {
		time.Sleep(time.Microsecond)
	}
	synctest.Test(t, func(*testing.T) { p.Unpark() })
	<-done
}

func TestResetTakesALeftPermitAndClosesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ready()
		p.Unpark()
		p.Reset()
		p.Open()
		p.Unpark()
		p.Reset()
		var back atomic.Bool
		go func() { p.Park(); back.Store(true) }()
		synctest.Wait()
		require.False(t, back.Load())
		p.Unpark()
	})
}

func TestUnparkHappensBeforeTheReturnOfPark(t *testing.T) {
	kinds(t, func(t *testing.T, newPlace func() *Place) {
		ping, pong := newPlace(), newPlace()
		handToAndFro(t, ping.Park, ping.Unpark, pong.Park, pong.Unpark)
	})
}

// handToAndFro lets two goroutines wait for each other in turns.
func handToAndFro(t *testing.T, awaitPing, ping, awaitPong, pong func()) {
	t.Helper()
	const rounds = 5000
	n := 0 // handed to and fro without another synchronisation
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			awaitPing()
			n++
			pong()
		}
	})
	for range rounds {
		n++
		ping()
		awaitPong()
	}
	wg.Wait()
	require.Equal(t, 2*rounds, n)
}

func TestNoUnparkThatRacesWithParkIsLost(t *testing.T) {
	kinds(t, func(t *testing.T, newPlace func() *Place) {
		for range 2000 {
			p := newPlace()
			var wg sync.WaitGroup
			wg.Go(p.Park)
			wg.Go(p.Unpark)
			wg.Wait()
		}
	})
}

// monitor is a mutex with a place for one waiter.
type monitor struct {
	mu    sync.Mutex
	waits bool
	p     *Place
}

// await parks with the mutex.
func (m *monitor) await() {
	m.mu.Lock()
	m.waits = true
	m.p.ParkAndUnlock(&m.mu)
}

// end unparks the waiter, which it waits for.
func (m *monitor) end() {
	for found := false; !found; runtime.Gosched() {
		m.mu.Lock()
		found, m.waits = m.waits, false
		m.mu.Unlock()
	}
	m.p.Unpark()
}

func TestWaiterThatParksWithTheMutexIsUnparked(t *testing.T) {
	ping, pong := monitor{p: ready()}, monitor{p: ready()}
	handToAndFro(t, ping.await, ping.end, pong.await, pong.end)
}

func TestAParkedWaiterHasGivenTheMutexBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitor{p: ready()}
		done := false
		go func() { m.await(); done = true }()
		synctest.Wait()
		require.True(t, m.mu.TryLock())
		require.False(t, done)
		m.mu.Unlock()
		m.end()
		synctest.Wait()
		require.True(t, done)
		require.True(t, m.mu.TryLock(), "and does not have it when it is back")
	})
}

// A timer that is not stopped is garbage as soon as nobody waits for its channel.
func TestTimeLimitsLeaveNothingAfterTheirWaits(t *testing.T) {
	const waits = 10_000
	objects := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := objects()
	for range waits {
		p, l := ready(), After(time.Hour)
		require.True(t, l.Open(p))
		time.AfterFunc(0, p.Unpark)
		require.True(t, l.Park(p, nil))
	}
	require.Less(t, objects(), before+waits/10)
}

// The waiter parks again at once, while its last Unpark may still return.
func TestUnparkTouchesNothingAfterItsSignal(t *testing.T) {
	m := monitor{p: ready()}
	const rounds = 1000
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			m.await()
		}
	})
	for range rounds {
		m.end()
	}
	wg.Wait()
}

func TestAPlaceKeepsNoMutex(t *testing.T) {
	m := monitor{p: ready()}
	var wg sync.WaitGroup
	wg.Go(m.await)
	m.end()
	wg.Wait()
	require.Nil(t, m.p.guard)
}

func TestPlaceServesBothKindsOfWaitsInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitor{p: ready()}
		for range 100 {
			go m.await()
			m.end()
			synctest.Wait()
			m.p.Unpark() // before the park: a permit
			m.p.ParkAndUnlock(nil)
		}
	})
}

func TestParkingAllocatesNothing(t *testing.T) {
	ping, pong := ready(), ready()
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			ping.Park()
			pong.Unpark()
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10_000 {
		ping.Unpark()
		pong.Park()
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.Mallocs-before.Mallocs, uint64(20), "in 20,000 waits")
	stop.Store(true)
	ping.Unpark()
	wg.Wait()
}

func BenchmarkHandOver(b *testing.B) {
	for name, open := range map[string]bool{"uncut": false, "channel": true} {
		b.Run(name, func(b *testing.B) {
			ping, pong := ready(), ready()
			if open {
				ping.Open()
				pong.Open()
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for range b.N {
					ping.Park()
					pong.Unpark()
				}
			})
			for range b.N {
				ping.Unpark()
				pong.Park()
			}
			wg.Wait()
		})
	}
}

func TestTheBlockProfileHasTheWaits(t *testing.T) {
	runtime.SetBlockProfileRate(1)
	defer runtime.SetBlockProfileRate(0)
	p := ready()
	for range 3 {
		done := make(chan struct{})
		go func() { waitForTheProfile(p); close(done) }()
		awaitSleep()
		p.Unpark()
		<-done
	}
	var profile strings.Builder
	require.NoError(t, pprof.Lookup("block").WriteTo(&profile, 1))
	require.Contains(t, profile.String(), "waitForTheProfile")
	require.GreaterOrEqual(t, waitsIn(t, profile.String()), 3)
}

//go:noinline
func waitForTheProfile(p *Place) { p.Park() }

// waitsIn returns how many waits of waitForTheProfile there are in a profile: a line of each
// stack begins with the cycles and the count, and the frames follow.
func waitsIn(t *testing.T, profile string) (n int) {
	for _, stack := range strings.Split(profile, "\n\n") {
		entries := regexp.MustCompile(`(?m)^\d+ (\d+) @[^\n]*\n(?:#[^\n]*\n?)*`)
		for _, entry := range entries.FindAllStringSubmatch(stack, -1) {
			if strings.Contains(entry[0], "waitForTheProfile") {
				k, err := strconv.Atoi(entry[1])
				require.NoError(t, err)
				n += k
			}
		}
	}
	return n
}

// awaitSleep returns when the stack trace of the goroutine that waits for the profile says that it
// is asleep. Before that, an Unpark may come in time to save it the wait.
func awaitSleep() {
	asleep := regexp.MustCompile(`\[sync\.Cond\.Wait[^\n]*\]:\n(?:[^\n]+\n)*[^\n]*waitForTheProfile`)
	buf := make([]byte, 1<<20)
	for !asleep.Match(buf[:runtime.Stack(buf, true)]) {
		runtime.Gosched()
	}
}

func TestAStackTraceSaysThatTheGoroutineWaits(t *testing.T) {
	p := ready()
	done := make(chan struct{})
	go func() { waitForTheProfile(p); close(done) }()
	awaitSleep()
	p.Unpark()
	<-done
}

// busy reports whether a goroutine is parked here.
func (p *Place) busy() bool { return p.state.Load() == parked }
