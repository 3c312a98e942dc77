package locksdebug_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

// These tests are about values and methods of the program: a page runs such methods as little as
// possible, and survives them.

// customer is a key that the program goes on changing.
type customer struct {
	password string
	orders   map[int]int
	mu       *reentrant.Mutex
}

// String takes a lock of the program, as such methods do.
func (c *customer) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.password
}

func TestAPointerKeyIsNotRead(t *testing.T) {
	h := locksdebug.Handler()
	var set keyed.Mutexes[*customer]
	key := &customer{password: "secret", orders: map[int]int{}, mu: new(reentrant.Mutex)}
	l := set.Of(key)
	key.mu.Lock() // a page that calls String hangs
	require.NoError(t, l.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, l) })
	await(t, func() bool { return l.QueueLength() == 1 })
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Go(func() {
		for i := 0; ; i++ { // a page that reads the map is a race, and ends the process
			select {
			case <-stop:
				return
			default:
				key.orders[i%64]++
			}
		}
	})
	for _, format := range []string{"text/html", "text/plain", "application/json"} {
		answer := get(h, "/", format).Body.String()
		require.NotContains(t, answer, "secret")
		require.Contains(t, answer, "*locksdebug_test.customer(0x")
	}
	close(stop)
	changing.Wait()
	key.mu.Unlock()
	require.NoError(t, l.UnlockContext(bg))
}

func TestARecordedKeysNameStandsBeforeTheKey(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	var set keyed.Mutexes[string]
	l := r.Wrap("user", set.Of("ann"))
	require.NoError(t, l.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, l) })
	await(t, func() bool { return set.Of("ann").QueueLength() == 1 })
	a := ask(t, h)
	require.Len(t, a.Locks, 1)
	require.Equal(t, `user "ann"`, a.Locks[0].Name)
	require.NoError(t, l.UnlockContext(bg))
}

func TestARecordedLeasesNameStandsBeforeItsNameInTheStore(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	c, err := lease.New(newStore(), lease.WithTTL(time.Hour))
	require.NoError(t, err)
	defer c.Close(bg)
	mutex := c.Mutex("ann")
	l := r.Wrap("user", mutex)
	require.NoError(t, l.LockContext(bg))
	start(t, func(ctx context.Context) { waitHere(ctx, l) })
	await(t, func() bool { return mutex.QueueLength() == 1 })
	a := ask(t, h)
	require.Len(t, a.Locks, 1)
	require.Equal(t, `user "ann"`, a.Locks[0].Name)
	require.NoError(t, l.UnlockContext(bg))
}

// wrapper is a lock of the program around another lock.
type wrapper struct {
	locks.TryLocker
	unwrap func() locks.TryLocker
}

func (w *wrapper) Unwrap() locks.TryLocker { return w.unwrap() }

func TestAPageSurvivesAWrappersUnwrap(t *testing.T) {
	endless := &wrapper{TryLocker: new(reentrant.Mutex)}
	endless.unwrap = func() locks.TryLocker { return endless }
	broken := &wrapper{new(reentrant.Mutex), func() locks.TryLocker { panic("broken") }}
	for _, w := range []*wrapper{endless, broken} {
		r := record.New(record.Options{Waits: true})
		h := locksdebug.Handler(locksdebug.WithRecorder(r))
		l := r.Wrap("wrapped", w)
		require.NoError(t, l.LockContext(bg))
		_, stop := start(t, func(ctx context.Context) { waitHere(ctx, l) })
		await(t, func() bool { return w.TryLocker.(*reentrant.Mutex).QueueLength() == 1 })
		require.Contains(t, text(t, h), "wrapped")
		stop()
		require.NoError(t, l.UnlockContext(bg))
	}
}

// inspector is a lock's Inspect that a program wrote.
type inspecting func(ctx context.Context) (locks.Info, error)

func (f inspecting) Inspect(ctx context.Context) (locks.Info, error) { return f(ctx) }

// badError is an error whose Error panics.
type badError struct{}

func (*badError) Error() string { panic("no text") }

func TestAnInspectThatPanicsIsALine(t *testing.T) {
	for want, watched := range map[string]locks.Inspector{
		"nil pointer":      inspecting(func(ctx context.Context) (locks.Info, error) { return (*fair.Mutex)(nil).Inspect(ctx) }),
		"broken":           inspecting(func(context.Context) (locks.Info, error) { panic("broken") }),
		"an error":         inspecting(func(context.Context) (locks.Info, error) { panic(errors.New("an error")) }),
		"int(7)":           inspecting(func(context.Context) (locks.Info, error) { panic(7) }),
		"badError":         inspecting(func(context.Context) (locks.Info, error) { panic((*badError)(nil)) }),
		"no text":          inspecting(func(context.Context) (locks.Info, error) { return locks.Info{}, &badError{} }),
		"ended its gorout": inspecting(func(context.Context) (locks.Info, error) { runtime.Goexit(); return locks.Info{}, nil }),
	} {
		h := locksdebug.Handler(locksdebug.WithInspector("bad", watched), locksdebug.WithInspector("good", new(fair.Mutex)))
		for range 2 { // a second request asks again
			a := ask(t, h)
			require.Contains(t, a.Watched[0].Error, want)
			require.Empty(t, a.Watched[1].Error)
		}
	}
}

func TestAnInspectWithoutAnAnswerIsALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var calls atomic.Int32
		stuck := inspecting(func(context.Context) (locks.Info, error) {
			calls.Add(1)
			<-release
			return locks.Info{}, nil
		})
		slow := inspecting(func(ctx context.Context) (locks.Info, error) {
			<-ctx.Done()
			return locks.Info{}, ctx.Err()
		})
		h := locksdebug.Handler(locksdebug.WithInspector("stuck", stuck), locksdebug.WithInspector("slow", slow),
			locksdebug.WithInspector("good", new(fair.Mutex)))
		for _, want := range []string{"no answer within 2s", "no answer yet to an earlier request"} {
			began := time.Now()
			a := ask(t, h)
			require.Less(t, time.Since(began), 3*time.Second)
			require.Equal(t, want, a.Watched[0].Error)
			require.Equal(t, "no answer within 2s", a.Watched[1].Error)
			require.Empty(t, a.Watched[2].Error)
		}
		require.EqualValues(t, 1, calls.Load(), "a stuck Inspect is not called again")
		close(release)
		synctest.Wait()
		require.Empty(t, ask(t, h).Watched[0].Error, "an Inspect that has returned is called again")
	})
}

// leased is a lock whose holds have an Err that a program wrote.
type leased struct {
	locks.TryLocker
	err func() error
}

func (l *leased) Hold(context.Context) (locks.Hold, error) { return holding{err: l.err}, nil }

type holding struct {
	locks.Hold
	err func() error
}

func (h holding) Err() error { return h.err() }

func TestAMethodOfARecordedLockWithoutAnAnswerIsALine(t *testing.T) {
	for name, lock := range map[string]func(wait func()) locks.TryLocker{
		"Unwrap": func(wait func()) locks.TryLocker {
			return &wrapper{new(fair.Mutex), func() locks.TryLocker { wait(); return nil }}
		},
		"Err": func(wait func()) locks.TryLocker {
			return &leased{new(fair.Mutex), func() error { wait(); return nil }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var calls atomic.Int32
				bad := record.New(record.Options{Waits: true})
				good := record.New(record.Options{Waits: true})
				h := locksdebug.Handler(locksdebug.WithRecorder(bad), locksdebug.WithRecorder(good))
				l := bad.Wrap("bad", lock(func() { calls.Add(1); <-release }))
				other := good.Wrap("good", new(fair.Mutex))
				require.NoError(t, l.LockContext(bg))
				require.NoError(t, other.LockContext(bg))
				var waiting sync.WaitGroup
				waiting.Go(func() {
					if l.LockContext(bg) == nil {
						_ = l.UnlockContext(bg)
					}
				})
				synctest.Wait()
				for _, want := range []string{"no answer within 2s", "no answer yet to an earlier request"} {
					began := time.Now()
					a := ask(t, h)
					require.Less(t, time.Since(began), 3*time.Second)
					require.Len(t, a.Watched, 1)
					require.Equal(t, want, a.Watched[0].Error)
					require.Len(t, a.History, 1)
					require.Equal(t, "good", a.History[0].Name)
					names := []string{}
					for _, one := range a.Locks {
						names = append(names, one.Name)
					}
					require.Subset(t, names, []string{"bad", "good"}, "holds and waits are shown")
				}
				require.EqualValues(t, 1, calls.Load(), "a method that has not returned is not called again")
				close(release)
				synctest.Wait()
				a := ask(t, h)
				require.Empty(t, a.Watched)
				require.Len(t, a.History, 2)
				require.NoError(t, l.UnlockContext(bg))
				require.NoError(t, other.UnlockContext(bg))
				waiting.Wait()
			})
		})
	}
}

func TestAnErrOfAHoldThatPanicsIsALine(t *testing.T) {
	r := record.New(record.Options{})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	l := r.Wrap("bad", &leased{new(fair.Mutex), func() error { panic("broken") }})
	require.NoError(t, l.LockContext(bg))
	a := ask(t, h)
	require.Contains(t, a.Watched[0].Error, "panicked: broken")
	require.Empty(t, a.History)
	require.NoError(t, l.UnlockContext(bg))
}

func TestAMultiInTwoQueuesIsNotOneLock(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	h := locksdebug.Handler(locksdebug.WithRecorder(r))
	a, b := new(reentrant.Mutex), new(reentrant.Mutex)
	both := r.Wrap("both", locks.Multi(a, b))
	var holders []string
	for _, l := range []*reentrant.Mutex{a, b} {
		held := make(chan struct{})
		o, _ := start(t, func(ctx context.Context) {
			l.Lock()
			close(held)
			<-ctx.Done()
			l.Unlock()
		})
		<-held
		holders = append(holders, o.String())
	}
	// The first waiter waits for one of the two, the second one for the other.
	start(t, func(ctx context.Context) { waitHere(ctx, both) })
	await(t, func() bool { return a.QueueLength()+b.QueueLength() == 1 })
	other := b
	if b.QueueLength() == 1 {
		other = a
	}
	second := r.Wrap("both", locks.Multi(other))
	start(t, func(ctx context.Context) { waitHere(ctx, second) })
	await(t, func() bool { return other.QueueLength() == 1 })

	found := map[string]bool{}
	for _, l := range ask(t, h).Locks {
		if l.Name == "both" {
			require.Empty(t, l.Holders, "nobody holds a Multi whose members others hold")
			continue
		}
		require.Len(t, l.Holders, 1)
		require.Len(t, l.Waiters, 1)
		found[l.Holders[0].Owner] = true
	}
	slices.Sort(holders)
	require.Equal(t, holders, slices.Sorted(maps.Keys(found)))
}

func TestTheHistoryCountsWhatHasNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Waits: true})
		h := locksdebug.Handler(locksdebug.WithRecorder(r))
		l := r.Wrap("cache", new(fair.Mutex))
		for range 3 {
			require.NoError(t, l.LockContext(bg))
			require.NoError(t, l.UnlockContext(bg))
		}
		require.NoError(t, l.LockContext(bg))
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				if l.LockContext(bg) == nil {
					_ = l.UnlockContext(bg)
				}
			})
		}
		time.Sleep(6 * time.Second)
		a := ask(t, h)
		require.InDelta(t, 6, a.History[0].Hold99, 3, "it is exact to a factor of two")
		require.InDelta(t, 6, a.History[0].Wait99, 3)
		require.InDelta(t, 12, a.History[0].Waited, 0.01)
		require.NoError(t, l.UnlockContext(bg))
		waiting.Wait()
	})
}

func TestNotesNameNothingOfTheLibrary(t *testing.T) {
	var mu reentrant.Mutex
	h := locksdebug.Handler()
	mu.Lock()
	_, stop := start(t, func(ctx context.Context) { waitHere(ctx, &mu) })
	var plain sync.WaitGroup
	plain.Go(func() {
		mu.Lock()
		defer mu.Unlock()
	})
	defer plain.Wait()
	defer mu.Unlock()
	defer stop()
	// A waiter is in the queue before it sleeps. Until then its note says that it is runnable.
	noted := func(a answer) bool {
		return len(a.Locks) != 1 || len(a.Locks[0].Waiters) != 2 ||
			a.Locks[0].Waiters[0].State != "" || a.Locks[0].Waiters[1].State != ""
	}
	for began := time.Now(); noted(ask(t, h)); {
		require.Less(t, time.Since(began), hang)
	}
}

func TestAStackBeginsAtTheProgramsCall(t *testing.T) {
	var mu reentrant.Mutex
	h := locksdebug.Handler()
	mu.Lock()
	_, stop := start(t, func(ctx context.Context) { waitHere(ctx, &mu) })
	defer mu.Unlock()
	defer stop()
	await(t, func() bool { return mu.QueueLength() == 1 })
	a := ask(t, h)
	lines := strings.Split(a.Stacks[a.Locks[0].Waiters[0].Stack-1], "\n")
	require.Regexp(t, `reentrant\.\(\*Mutex\)\.LockContext\(`, lines[0])
	require.Regexp(t, `locks_test\.waitHere\(|locksdebug_test\.waitHere\(`, lines[2])
}
