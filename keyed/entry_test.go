package keyed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/goid"
	_ "github.com/jucgo/locks/internal/waits" // which has locks described
	"github.com/jucgo/locks/reentrant"
)

// of returns the entry that l's key has now.
func of[K comparable](l Mutex[K]) *entry[K] {
	s := l.shard()
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.find(&l)
}

// oneShard returns another key of key's shard.
func oneShard(ms *Mutexes[int], key int) int {
	l := ms.Of(key)
	for other := key + 1; ; other++ {
		if o := ms.Of(other); o.shard() == l.shard() {
			return other
		}
	}
}

func TestAnUnusedEntryServesAnotherKey(t *testing.T) {
	var ms Mutexes[int]
	a, b := ms.Of(0), ms.Of(oneShard(&ms, 0))
	a.Lock()
	e := of(a)
	a.Unlock()
	b.Lock()
	require.Same(t, e, of(b))
	b.Unlock()
}

func TestAReleasingEntryServesNoOtherKey(t *testing.T) {
	var ms Mutexes[int]
	a, b := ms.Of(0), ms.Of(oneShard(&ms, 0))
	a.Lock()
	s := a.shard()
	late, _ := s.addUser(&a, false, false) // a release that is under way
	a.Unlock()
	b.Lock()
	require.NotSame(t, late, of(b))
	b.Unlock()
	require.Equal(t, 1, ms.Len())
	s.dropUser(late)
	require.Zero(t, ms.Len())
}

func TestAnUnusedEntryKeepsNoKey(t *testing.T) {
	var ms Mutexes[*[64]byte]
	l := ms.Of(new([64]byte))
	key, s := weak.Make(l.key), l.shard()
	l.Lock()
	require.NotNil(t, of(l))
	l.Unlock()
	l.key = nil
	runtime.GC()
	require.Nil(t, key.Value())
	require.Equal(t, 1, s.spares)
}

func TestTheEndOfASoleHoldKeepsNoKey(t *testing.T) {
	var ms Mutexes[*[64]byte]
	l := ms.Of(new([64]byte))
	key := weak.Make(l.key)
	l.Lock()
	require.NotZero(t, l.shard().holder)
	l.Unlock()
	l.key = nil
	runtime.GC()
	require.Nil(t, key.Value())
	runtime.KeepAlive(&ms)
}

func TestEachFurtherUseOfAKeyMovesTheSoleHold(t *testing.T) {
	mine, other := t.Context(), locks.WithOwner(t.Context(), locks.NewOwner())
	for name, use := range map[string]func(l Mutex[int]){
		"NewCond":        func(l Mutex[int]) { l.NewCond().Signal() },
		"IsHeld":         func(l Mutex[int]) { require.True(t, l.IsHeld()) },
		"HoldCount":      func(l Mutex[int]) { require.Equal(t, 2, l.HoldCountContext(mine)) },
		"Owner":          func(l Mutex[int]) { require.Equal(t, current(), l.Owner()) },
		"Unlock, other":  func(l Mutex[int]) { require.ErrorIs(t, l.UnlockContext(other), locks.ErrNotHeld) },
		"TryLock, other": func(l Mutex[int]) { ok, err := l.TryLockContext(other); require.True(t, !ok && err == nil) },
		"Unlock, other goroutine": func(l Mutex[int]) {
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() {
					err, _ := recover().(error)
					require.ErrorIs(t, err, locks.ErrNotHeld)
				}()
				l.Unlock()
			})
			wg.Wait()
		},
		"TryLock, other goroutine": func(l Mutex[int]) {
			var wg sync.WaitGroup
			wg.Go(func() { require.False(t, l.TryLock()) })
			wg.Wait()
		},
	} {
		var ms Mutexes[int]
		l := ms.Of(0)
		l.Lock()
		require.True(t, l.TryLock())
		require.Equal(t, int64(current()), l.shard().holder, name)
		use(l)
		require.Zero(t, l.shard().holder, name)
		require.Equal(t, 1, ms.Len(), name)
		requireSound(t, &ms)
		require.Equal(t, 2, l.HoldCount(), name)
		l.Unlock()
		require.True(t, l.IsHeld(), name)
		l.Unlock()
		require.False(t, l.IsLocked(), name)
	}
}

func TestASoleHoldIsReentered(t *testing.T) {
	var ms Mutexes[int]
	l := ms.Of(0)
	l.Lock()
	require.True(t, l.TryLock())
	require.True(t, l.TryLockFor(0))
	require.NoError(t, l.LockContext(t.Context()))
	require.Equal(t, 4, l.shard().holds)
	for range 3 {
		l.Unlock()
		require.Equal(t, 1, ms.Len())
	}
	l.Unlock()
	require.Zero(t, ms.Len())
	requireSound(t, &ms)
}

func TestASoleHoldIsReenteredUpToTheLimit(t *testing.T) {
	var ms Mutexes[int]
	l := ms.Of(0)
	l.Lock()
	l.shard().holds = reentrant.MaxHolds - 1
	l.Lock()
	require.PanicsWithValue(t, locks.ErrTooManyHolds, l.Lock)
	require.Equal(t, reentrant.MaxHolds, l.HoldCount())
}

func TestAKeyBesideASoleHoldGetsAnEntry(t *testing.T) {
	var ms Mutexes[int]
	a := ms.Of(0)
	b := ms.Of(oneShard(&ms, a.key))
	c := ms.Of(oneShard(&ms, b.key))
	s := a.shard()
	for range 2 {
		a.Lock()
		b.Lock()
		require.Equal(t, a.key, s.key)
		require.Equal(t, 1, s.used)
		require.Equal(t, 2, ms.Len())
		a.Unlock()
		c.Lock() // b has an entry, and c finds none
		require.Equal(t, c.key, s.key)
		require.Equal(t, 1, s.used)
		requireSound(t, &ms)
		require.True(t, b.IsHeld())
		b.Unlock()
		c.Unlock()
		require.Zero(t, ms.Len())
	}
}

// Package deadlock knows of the holds that goroutines acquire while it records.
func TestAHoldThatIsRecordedIsNoSoleHold(t *testing.T) {
	var ms, earlier Mutexes[int]
	earlier.Of(0).Lock()
	defer goid.SetRecording(goid.SetRecording(true))
	l := ms.Of(0)
	l.Lock()
	require.Zero(t, l.shard().holder)
	require.True(t, l.IsHeld())
	l.Unlock()
	require.Zero(t, ms.Len())
	earlier.Of(0).Unlock()
	require.Zero(t, earlier.Len())
}

// requireSound checks the sole holds, the chains and the spare entries of all shards.
func requireSound(t *testing.T, ms *Mutexes[int]) {
	t.Helper()
	for i := range ms.shards {
		s := &ms.shards[i]
		used, spares := 0, 0
		require.True(t, s.holder == 0 && s.holds == 0 && s.key == 0 || s.holder > 0 && s.holds > 0)
		for chain, e := range s.chains {
			for ; e != nil; e = e.next {
				used++
				require.True(t, s.holder == 0 || s.key != e.key)
				require.True(t, e.users.Load() > 0 || e.lock.IsLocked())
				require.Equal(t, uint64(i), e.hash%shardCount)
				require.Equal(t, uint64(chain), e.hash/shardCount%uint64(len(s.chains)))
			}
		}
		for e := s.spare; e != nil; e = e.next {
			spares++
			require.Zero(t, e.users.Load())
			require.False(t, e.lock.IsLocked())
			require.NotSame(t, e, s.contended.Load())
		}
		require.Equal(t, used, s.used)
		require.Equal(t, spares, s.spares)
		require.LessOrEqual(t, spares, spareEntries)
		require.LessOrEqual(t, used, len(s.chains))
		require.LessOrEqual(t, len(s.chains), max(shrinkAbove, used*shrinkFactor))
	}
}

func TestGrowingAndShrinkingShardsFindEveryLock(t *testing.T) {
	const keys = 100 * shardCount
	var ms Mutexes[int]
	order := rand.New(rand.NewPCG(1, 2))
	holds := make([]int, keys)
	use := func(key int, unlock bool) {
		l := ms.Of(key)
		require.Equal(t, holds[key], l.HoldCount())
		if unlock {
			l.Unlock()
			holds[key]--
		} else {
			l.Lock()
			holds[key]++
		}
		require.Equal(t, holds[key], l.HoldCount())
		other := ms.Of(order.IntN(keys))
		e, _ := other.shard().addUser(&other, false, false)
		other.shard().dropUser(e)
	}
	for _, key := range order.Perm(keys) {
		use(key, false)
		if key%10 == 0 {
			use(key, false)
		}
	}
	requireSound(t, &ms)
	require.Equal(t, keys, ms.Len())
	for n, key := range order.Perm(keys) {
		for holds[key] > 0 {
			use(key, true)
		}
		if n%500 == 0 {
			requireSound(t, &ms)
		}
	}
	require.Zero(t, ms.Len())
	requireSound(t, &ms)
}

func TestKeysOfOneHashHaveOwnLocks(t *testing.T) {
	const keys = 3
	for first := range keys {
		for second := range keys {
			if second == first {
				continue
			}
			var ms Mutexes[int]
			l := func(key int) Mutex[int] { return Mutex[int]{&ms, 1 << 20, key} }
			for key := range keys {
				require.False(t, l(key).IsLocked())
				l(key).Lock()
				require.Equal(t, 1, l(key).HoldCount())
			}
			l(first).Unlock()
			l(second).Unlock()
			for key := range keys {
				require.Equal(t, key != first && key != second, l(key).IsHeld())
			}
			l(keys - first - second).Unlock()
			requireSound(t, &ms)
			require.Zero(t, ms.Len())
		}
	}
}

// contend returns a lock that the calling goroutine holds, while two others wait for it. They
// release it at once. done waits for them.
func contend(ms *Mutexes[int], key int) (l Mutex[int], done func()) {
	l = ms.Of(key)
	l.Lock()
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			l.Lock()
			l.Unlock()
		})
		for l.QueueLength() <= n {
			runtime.Gosched()
		}
	}
	return l, wg.Wait
}

func TestAContendedKeyNeedsNoMutex(t *testing.T) {
	var ms Mutexes[int]
	l, done := contend(&ms, 0)
	s := l.shard()
	require.Same(t, of(l), s.contended.Load())
	s.mu.Lock()
	l.Lock()
	l.Unlock()
	require.NoError(t, l.LockContext(t.Context()))
	l.Unlock()
	l.Unlock()
	s.mu.Unlock()
	done()
	require.Zero(t, ms.Len())
	requireSound(t, &ms)
}

func TestAContendedEntryServesNoOtherKey(t *testing.T) {
	var ms Mutexes[int]
	l, done := contend(&ms, 0)
	e, s := of(l), l.shard()
	l.Unlock()
	done()
	require.Zero(t, ms.Len())
	require.Nil(t, s.contended.Load())
	require.Zero(t, s.spares)
	require.True(t, e.lock.IsLocked(), "the lock is retired")
}

// A goroutine may have read the field contended before the entry was deleted.
func TestAGoroutineThatIsLateForAContendedEntryBeginsAnew(t *testing.T) {
	var ms Mutexes[int]
	l, done := contend(&ms, 0)
	e, s := of(l), l.shard()
	l.Unlock()
	done()
	for name, lock := range map[string]func(){
		"Lock":    l.Lock,
		"TryLock": func() { require.True(t, l.TryLock()) },
		"explicit owner": func() {
			o := locks.WithOwner(t.Context(), locks.NewOwner())
			require.NoError(t, l.LockContext(o))
			require.NoError(t, l.UnlockContext(o))
			l.Lock()
		},
	} {
		s.contended.Store(e)
		lock()
		require.Equal(t, int64(current()), s.holder, name)
		l.Unlock()
		s.contended.Store(nil)
		require.Zero(t, ms.Len(), name)
		requireSound(t, &ms)
	}
}

// While goroutines wait for a key, other keys of its shard have entries too.
func TestAKeyBesideAContendedKeyIsAnotherLock(t *testing.T) {
	var ms Mutexes[int]
	a, doneA := contend(&ms, 0)
	b, doneB := contend(&ms, oneShard(&ms, 0))
	require.Same(t, of(a), a.shard().contended.Load())
	require.NotSame(t, of(a), of(b))
	b.Unlock()
	doneB()
	require.True(t, a.IsHeld())
	require.False(t, b.IsHeld())
	a.Unlock()
	doneA()
	require.Zero(t, ms.Len())
	requireSound(t, &ms)
}

func TestTheLastUserOfAContendedKeyDeletesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ms Mutexes[int]
		l := ms.Of(0)
		c := l.NewCond()
		l.Lock()
		go l.TryLockFor(time.Second)
		go l.TryLockFor(time.Minute)
		synctest.Wait()
		require.Same(t, of(l), l.shard().contended.Load())
		require.Equal(t, int64(3), of(l).users.Load(), "two waiters and a condition")
		time.Sleep(time.Hour)
		require.Equal(t, int64(1), of(l).users.Load())
		l.shard().dropUser(of(l)) // as when the condition is unreachable
		require.True(t, l.IsHeld())
		l.Unlock()
		require.Zero(t, ms.Len())
		c.HasWaiters()
	})
}

// Deadlock detection reads the key without a lock when it reports what it found.
func TestADescribedEntryServesNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ms Mutexes[int]
		a, b := ms.Of(0), ms.Of(oneShard(&ms, 0))
		a.Lock()
		known := of(a)
		go a.TryLockFor(time.Millisecond)
		time.Sleep(time.Second)
		a.Unlock()
		b.Lock()
		require.NotSame(t, known, of(b))
		b.Unlock()
	})
}

func TestEachWaitTellsDeadlockDetectionItsKey(t *testing.T) {
	for name, lock := range map[string]func(l Mutex[int]){
		"Lock":        func(l Mutex[int]) { l.Lock() },
		"TryLockFor":  func(l Mutex[int]) { require.True(t, l.TryLockFor(time.Hour)) },
		"LockContext": func(l Mutex[int]) { require.NoError(t, l.LockContext(context.Background())) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ms Mutexes[int]
				l := ms.Of(0)
				l.Lock()
				done := make(chan struct{})
				go func() {
					defer close(done)
					lock(l)
					l.Unlock()
				}()
				synctest.Wait()
				require.True(t, of(l).described.Load())
				l.Unlock()
				<-done
			})
		})
	}
}

// A signalled waiter may be the first in the lock's queue.
func TestAConditionTellsDeadlockDetectionItsKey(t *testing.T) {
	var ms Mutexes[int]
	l := ms.Of(0)
	c := l.NewCond()
	require.True(t, of(l).described.Load())
	runtime.KeepAlive(c)
}

func TestANestedLockIsNotDescribed(t *testing.T) {
	var ms Mutexes[int]
	l := ms.Of(0)
	ctx := locks.WithOwner(t.Context(), locks.NewOwner())
	require.NoError(t, l.LockContext(ctx))
	require.NoError(t, l.LockContext(ctx))
	require.False(t, of(l).described.Load())
	require.NoError(t, l.UnlockContext(ctx))
	require.NoError(t, l.UnlockContext(ctx))
	l.Lock()
	l.Lock()
	require.True(t, l.TryLockFor(time.Second))
	require.False(t, of(l).described.Load())
	for range 3 {
		l.Unlock()
	}
	require.Zero(t, ms.Len())
}

// panicking is a context that panics when it is asked for an owner for the given time.
type panicking struct {
	context.Context
	in *int
}

func (c panicking) Value(key any) any {
	if *c.in--; *c.in == 0 {
		panic("broken context")
	}
	return c.Context.Value(key)
}

func TestAContextThatPanicsLeavesNoKeyBehind(t *testing.T) {
	for name, use := range map[string]func(l Mutex[int], ctx context.Context){
		"LockContext":    func(l Mutex[int], ctx context.Context) { _ = l.LockContext(ctx) },
		"TryLockContext": func(l Mutex[int], ctx context.Context) { _, _ = l.TryLockContext(ctx) },
	} {
		for calls := 1; ; calls++ {
			var ms Mutexes[int]
			in, l := calls, ms.Of(0)
			o := locks.WithOwner(t.Context(), locks.NewOwner())
			panicked := func() (panicked bool) {
				defer func() { panicked = recover() != nil }()
				use(l, panicking{o, &in})
				return false
			}()
			if !panicked {
				require.Greater(t, calls, 1, name)
				require.NoError(t, l.UnlockContext(o))
				require.Zero(t, ms.Len())
				break
			}
			require.Zero(t, ms.Len(), "%s, call %d", name, calls)
		}
	}
}

func TestAPanickingContextsUnlockLeavesNoKey(t *testing.T) {
	for calls := 1; ; calls++ {
		var ms Mutexes[int]
		in, l := calls, ms.Of(0)
		o := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, l.LockContext(o))
		panicked := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			_ = l.UnlockContext(panicking{o, &in})
			return false
		}()
		if panicked {
			require.Zero(t, of(l).users.Load())
			require.True(t, of(l).lock.IsLocked())
			require.NoError(t, l.UnlockContext(o))
		}
		require.Zero(t, ms.Len())
		if !panicked {
			require.Greater(t, calls, 1)
			break
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // a second one for what pools keep
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAMillionReleasedKeysLeaveNearlyNothing(t *testing.T) {
	const keys = 1_000_000
	var ms Mutexes[int]
	before := heap()
	for k := range keys {
		ms.Of(k).Lock()
	}
	require.Equal(t, keys, ms.Len())
	for k := range keys - 1 {
		ms.Of(k).Unlock()
	}
	require.Equal(t, 1, ms.Len(), "one that stays keeps nothing of the others")
	after := heap()
	require.Less(t, int64(after)-int64(before), int64(256<<10))
	require.True(t, ms.Of(keys-1).IsHeld())
	ms.Of(keys - 1).Unlock()
	require.Zero(t, ms.Len())
}

func TestGoroutinesOnKeysOfOneShardExcludeEachOther(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprint("procs=", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			const keys, goroutines, rounds = 4, 8, 1000
			var ms Mutexes[int]
			// Keys 0 and 1 have one hash, and so have 2 and 3.
			of := func(key int) Mutex[int] { return Mutex[int]{&ms, uint64(key/2) * shardCount, key} }
			var inside [keys]atomic.Int32
			use := func(key int, section func()) {
				assert.Equal(t, int32(1), inside[key].Add(1))
				section()
				inside[key].Add(-1)
				of(key).Unlock()
			}
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(g), 3))
					for range rounds {
						l := of(r.IntN(keys))
						if r.IntN(2) == 0 {
							l.Lock()
						} else if !l.TryLock() {
							continue
						}
						use(l.key, func() {
							switch next := of((l.key + 1) % keys); r.IntN(5) {
							case 0:
								l.Lock()
								runtime.Gosched()
								l.Unlock()
							case 1:
								assert.True(t, l.IsHeld())
							case 2:
								runtime.Gosched()
							case 3:
								if next.TryLock() {
									use(next.key, runtime.Gosched)
								}
							}
						})
					}
				})
			}
			wg.Wait()
			require.Zero(t, ms.Len())
			requireSound(t, &ms)
		})
	}
}

// Of each crowd, some goroutines give up, and some act for explicit owners.
func TestCrowdsOfTwoKeysOfAShardExcludeEachOther(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		for _, policy := range []locks.Policy{locks.NonFair, locks.FIFO} {
			t.Run(fmt.Sprint("procs=", procs, ", ", policy), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				const keys, goroutines, rounds = 2, 12, 400
				ms := New[int](policy)
				var inside, plain [keys]int // race detector: only a holder touches its key's
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(uint64(g), 5))
						o := locks.WithOwner(context.Background(), locks.NewOwner())
						for range rounds {
							key := r.IntN(keys)
							l := Mutex[int]{ms, uint64(key) * shardCount, key}
							ok, unlock := true, l.Unlock
							switch r.IntN(5) {
							case 0:
								ok = l.TryLock()
							case 1:
								ok = l.TryLockFor(time.Duration(r.IntN(20)) * time.Microsecond)
							case 2:
								assert.NoError(t, l.LockContext(o))
								unlock = func() { assert.NoError(t, l.UnlockContext(o)) }
							default:
								l.Lock()
							}
							if !ok {
								continue
							}
							inside[key]++
							assert.Equal(t, 1, inside[key])
							if r.IntN(8) == 0 {
								runtime.Gosched()
							}
							plain[key]++
							inside[key]--
							unlock()
						}
					})
				}
				wg.Wait()
				require.Zero(t, ms.Len())
				requireSound(t, ms)
			})
		}
	}
}
