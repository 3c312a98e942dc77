package locktest

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// Waiter is a call in a goroutine of its own. Its fields may be read after synctest.Wait.
type Waiter struct {
	ID   locks.Owner
	Back bool  // the call returned
	OK   bool  // and had the lock
	Err  error // or this
}

// Start makes the call acquire in a goroutine of its own, in a bubble, and waits until it
// rests. If the call gets the lock, then runs.
func Start(acquire func() (bool, error), then func()) *Waiter {
	w := new(Waiter)
	go func() {
		w.ID = Me()
		w.OK, w.Err = acquire()
		w.Back = true
		if w.OK && then != nil {
			then()
		}
	}()
	synctest.Wait()
	return w
}

// Locking is Lock as an argument of Start.
func Locking(l Lock) func() (bool, error) {
	return func() (bool, error) { l.Lock(); return true, nil }
}

// Calling is a call that returns when it has the lock, as an argument of Start.
func Calling(lock func()) func() (bool, error) {
	return func() (bool, error) { lock(); return true, nil }
}

// LockingFor is TryLockFor as an argument of Start.
func LockingFor(l Lock, d time.Duration) func() (bool, error) {
	return func() (bool, error) { return l.TryLockFor(d), nil }
}

// LockingContext is LockContext as an argument of Start.
func LockingContext(l Lock, ctx context.Context) func() (bool, error) {
	return func() (bool, error) { err := l.LockContext(ctx); return err == nil, err }
}

// Works checks that l is free and without waiters, and can be acquired and released.
func Works(t testing.TB, l Lock) {
	t.Helper()
	require.False(t, l.IsLocked(), "free")
	require.False(t, l.HasQueued(), "nobody is queued")
	require.Zero(t, l.QueueLength())
	require.Empty(t, l.Queued())
	require.True(t, l.TryLock())
	l.Unlock()
	require.True(t, l.TryLockFor(0))
	l.Unlock()
	l.Lock()
	require.True(t, l.IsLocked())
	l.Unlock()
	require.False(t, l.IsLocked())
}

// bubble makes a situation that runs in a bubble, with a fresh lock that must work at its end.
func bubble(f func(t *testing.T, l Lock, k Kind)) func(t *testing.T, k Kind) {
	return func(t *testing.T, k Kind) {
		synctest.Test(t, func(t *testing.T) {
			l := k.New()
			f(t, l, k)
			synctest.Wait()
			Works(t, l)
		})
	}
}

// stress makes a situation that runs with real time, on all processors and on one.
func stress(f func(t *testing.T, l Lock)) func(t *testing.T, k Kind) {
	return func(t *testing.T, k Kind) {
		run := func(t *testing.T) {
			l := k.New()
			f(t, l)
			Works(t, l)
		}
		t.Run("on all processors", run)
		t.Run("on one processor", func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			run(t)
		})
	}
}

// held runs f while another goroutine holds l.
func held(l Lock, f func()) {
	release := make(chan struct{})
	Start(Locking(l), func() { <-release; l.Unlock() })
	f()
	close(release)
	synctest.Wait()
}

// Faulty returns a child of ctx whose Done calls fail, which panics or ends the goroutine.
func Faulty(ctx context.Context, fail func()) context.Context { return faulty{ctx, fail} }

type faulty struct {
	context.Context
	fail func()
}

func (f faulty) Done() <-chan struct{} {
	f.fail()
	return nil
}

// Fails calls f in a goroutine of its own, for each way in which a faulty context of ctx fails. It
// returns when f has panicked or ended its goroutine.
func Fails(t testing.TB, ctx context.Context, f func(ctx context.Context)) {
	t.Helper()
	for _, fail := range []func(){func() { panic("Done") }, runtime.Goexit} {
		returned := false
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			f(Faulty(ctx, fail))
			returned = true
		})
		wg.Wait()
		require.False(t, returned, "the context was not asked")
	}
}

// Durations without a wait.
var none = []time.Duration{0, -1, -time.Hour, math.MinInt64}

// Plain has the situations in which every mutex behaves like sync.Mutex, or as sync.Mutex would
// if it had time limits.
var Plain = []Situation{
	{"the zero lock is free", bubble(func(t *testing.T, l Lock, k Kind) {
		require.False(t, l.IsLocked())
		if l, ok := l.(interface{ IsFair() bool }); ok { // a type that has both policies
			require.Equal(t, k.FIFO, l.IsFair())
		}
	})},
	{"no two goroutines are inside together", stress(func(t *testing.T, l Lock) {
		const parties, rounds = 8, 300
		inside, count := 0, 0 // plain: the race detector watches, too
		var wg sync.WaitGroup
		for range parties {
			wg.Go(func() {
				for i := range rounds {
					l.Lock()
					inside++
					if i%16 == 0 {
						runtime.Gosched()
					}
					assert.Equal(t, 1, inside)
					count++
					inside--
					l.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, parties*rounds, count)
	})},
	{"all ways to acquire exclude each other and order memory", stress(func(t *testing.T, l Lock) {
		const rounds = 200
		count := 0
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		party := func(acquire func() bool, release func()) {
			wg.Go(func() {
				for range rounds {
					for !acquire() {
						runtime.Gosched()
					}
					count++
					release()
				}
			})
		}
		unlockContext := func() { assert.NoError(t, l.UnlockContext(ctx)) }
		party(func() bool { l.Lock(); return true }, l.Unlock)
		party(l.TryLock, l.Unlock)
		party(func() bool { return l.TryLockFor(time.Microsecond) }, unlockContext)
		party(func() bool { return l.TryLockFor(time.Minute) }, l.Unlock)
		party(func() bool { return l.LockContext(ctx) == nil }, unlockContext)
		party(func() bool { return l.LockContext(context.Background()) == nil }, unlockContext)
		party(func() bool { ok, err := l.TryLockContext(ctx); return ok && err == nil }, unlockContext)
		party(func() bool {
			short, cancel := context.WithTimeout(ctx, 10*time.Microsecond)
			defer cancel()
			return l.LockContext(short) == nil
		}, l.Unlock)
		wg.Wait()
		require.Equal(t, 8*rounds, count)
	})},
	{"TryLock takes a free lock and no held one", bubble(func(t *testing.T, l Lock, k Kind) {
		held(l, func() {
			require.False(t, l.TryLock())
			ok, err := l.TryLockContext(context.Background())
			require.False(t, ok)
			require.NoError(t, err)
		})
		require.True(t, l.TryLock())
		require.True(t, l.IsLocked())
		l.Unlock()
		ok, err := l.TryLockContext(context.Background())
		require.True(t, ok)
		require.NoError(t, err)
		l.Unlock()
	})},
	{"TryLockFor takes a free lock whatever the duration", bubble(func(t *testing.T, l Lock, k Kind) {
		for _, d := range append(none, 1, time.Hour, math.MaxInt64) {
			require.True(t, l.TryLockFor(d), "%d", d)
			require.True(t, l.IsLocked())
			l.Unlock()
		}
	})},
	{"TryLockFor without time fails at once on a held lock", bubble(func(t *testing.T, l Lock, k Kind) {
		held(l, func() {
			began := time.Now()
			for _, d := range none {
				require.False(t, l.TryLockFor(d), "%d", d)
			}
			require.Zero(t, time.Since(began))
			require.Zero(t, l.QueueLength())
		})
	})},
	{"TryLockFor fails after exactly its duration", bubble(func(t *testing.T, l Lock, k Kind) {
		held(l, func() {
			began := time.Now()
			require.False(t, l.TryLockFor(time.Hour))
			require.Equal(t, time.Hour, time.Since(began))
			require.Zero(t, l.QueueLength())
			require.False(t, l.IsQueued(Me()))
			require.False(t, l.HasQueued())
		})
	})},
	{"TryLockFor with the greatest duration does not expire", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		w := Start(LockingFor(l, math.MaxInt64), l.Unlock)
		time.Sleep(1000 * time.Hour)
		require.False(t, w.Back)
		require.Equal(t, 1, l.QueueLength())
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})},
	{"TryLockFor takes a lock that becomes free in time", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		w := Start(LockingFor(l, time.Hour), l.Unlock)
		time.Sleep(time.Hour - 1)
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})},
	{"Unlock of a free lock panics and changes nothing", bubble(func(t *testing.T, l Lock, k Kind) {
		for range 3 {
			PanicsWith(t, locks.ErrNotHeld, l.Unlock)
			require.ErrorIs(t, l.UnlockContext(context.Background()), locks.ErrNotHeld)
			Works(t, l)
		}
	})},
	{"Unlock of a lock that was released panics", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		l.Unlock()
		PanicsWith(t, locks.ErrNotHeld, l.Unlock)
	})},
	{"a panic with a deferred unlock leaves the lock free", bubble(func(t *testing.T, l Lock, k Kind) {
		require.PanicsWithValue(t, "section", func() {
			l.Lock()
			defer l.Unlock()
			panic("section")
		})
	})},
	{"Goexit with a deferred unlock lets the next one in", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		w := Start(Locking(l), func() {
			defer l.Unlock()
			runtime.Goexit()
		})
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})},
	{"a panic in the section lets those who wait in", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		w := Start(func() (bool, error) { l.Lock(); return true, nil }, func() {
			defer func() { _ = recover() }()
			defer l.Unlock()
			panic("section")
		})
		x := Start(Locking(l), l.Unlock)
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
		require.True(t, x.OK)
	})},
	{"a context whose Done fails leaves no trace in the lock", bubble(func(t *testing.T, l Lock, k Kind) {
		owner := locks.WithOwner(t.Context(), locks.NewOwner())
		for _, ctx := range []context.Context{t.Context(), owner} {
			held(l, func() {
				Fails(t, ctx, func(ctx context.Context) { _ = l.LockContext(ctx) })
				require.Zero(t, l.QueueLength())
			})
			require.NoError(t, l.LockContext(ctx))
			require.NoError(t, l.UnlockContext(ctx))
			require.False(t, l.IsLocked(), "one unlock ends the only hold")
		}
	})},
	{"Lock ignores everything but the lock", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		w := Start(Locking(l), l.Unlock)
		time.Sleep(10000 * time.Hour)
		require.False(t, w.Back)
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
	})},
	{"inspection shows who waits, longest wait first", bubble(func(t *testing.T, l Lock, k Kind) {
		l.Lock()
		a := Start(Locking(l), l.Unlock)
		b := Start(LockingFor(l, time.Hour), l.Unlock)
		o := locks.NewOwner()
		Start(LockingContext(l, locks.WithOwner(context.Background(), o)), func() {
			assert.NoError(t, l.UnlockContext(locks.WithOwner(context.Background(), o)))
		})
		require.True(t, l.HasQueued())
		require.Equal(t, 3, l.QueueLength())
		require.Equal(t, []locks.Owner{a.ID, b.ID, o}, l.Queued())
		require.True(t, l.IsQueued(a.ID))
		require.True(t, l.IsQueued(b.ID))
		require.True(t, l.IsQueued(o))
		require.False(t, l.IsQueued(Me()), "the holder does not wait")
		require.False(t, l.IsQueued(0))
		l.Unlock()
	})},
	{"String tells the state and the number of waiters", bubble(func(t *testing.T, l Lock, k Kind) {
		require.Contains(t, l.String(), "[unlocked, 0 queued]")
		l.Lock()
		w := Start(Locking(l), l.Unlock)
		require.Contains(t, l.String(), "1 queued]")
		require.Contains(t, l.String(), "[locked")
		if k.Owned {
			require.Contains(t, l.String(), "[locked by "+Me().String()+",")
		}
		l.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
		require.Contains(t, l.String(), "[unlocked, 0 queued]")
	})},
	{"a goroutine that waits for the lock is durably blocked", func(t *testing.T, k Kind) {
		synctest.Test(t, func(t *testing.T) {
			l := k.New()
			l.Lock()
			for _, acquire := range []func() (bool, error){
				Locking(l), LockingFor(l, 1000*time.Hour), LockingContext(l, t.Context()),
			} {
				Start(acquire, l.Unlock) // its synctest.Wait would not return
			}
			require.Equal(t, 3, l.QueueLength())
			l.Unlock()
		})
	}},
	{"one lock serves inside and outside of bubbles in turn", func(t *testing.T, k Kind) {
		l := k.New()
		contend := func() {
			var wg sync.WaitGroup
			count := 0
			for i := range 4 {
				wg.Go(func() {
					for range 50 {
						if i%2 == 0 {
							l.Lock()
						} else {
							assert.True(t, l.TryLockFor(time.Hour))
						}
						count++
						runtime.Gosched()
						l.Unlock()
					}
				})
			}
			wg.Wait()
			assert.Equal(t, 200, count)
			l.Lock()
			w := false
			wg.Go(func() { w = l.TryLockFor(time.Millisecond) })
			wg.Wait()
			assert.False(t, w)
			l.Unlock()
		}
		for range 3 {
			contend()
			synctest.Test(t, func(*testing.T) { contend() })
		}
		contend()
		Works(t, l)
	}},
}
