package syncq

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
)

var testKind = Kind{Name: "test"}

// contend has 2 wait for s, and give up at once.
func contend(s *Sync) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.LockContext(ctx, Owned(2).Of(&testKind), FIFO)
}

// listed returns how many entries the registry has.
func listed() int {
	registry.Lock()
	defer registry.Unlock()
	return len(registry.locks)
}

func TestALockEntersTheRegistryOnceWithItsFirstWaiter(t *testing.T) {
	registered() // throws the dead ones of other tests out
	was := listed()
	s := new(Sync)
	require.True(t, s.TryLock(Owned(1).Of(&testKind)))
	require.Equal(t, was, listed())
	for range 10 {
		contend(s)
	}
	require.Equal(t, was+1, listed())
	require.True(t, slices.Contains(registered(), s))
	require.Equal(t, "test", s.Kind().Name)
}

func TestALockWithoutAKindIsNotInTheRegistry(t *testing.T) {
	s := new(Sync)
	require.True(t, s.TryLock(Anonymous(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, Ended, s.LockContext(ctx, Anonymous(2), FIFO))
	require.False(t, slices.Contains(registered(), s))
}

func TestTheFirstKindStays(t *testing.T) {
	var s Sync
	own := &Kind{Name: "own"}
	s.Describe(own)
	s.Describe(&testKind)
	require.True(t, s.TryLock(Owned(1)))
	contend(&s)
	require.Same(t, own, s.Kind())
}

func TestTheRegistryKeepsNoLockAlive(t *testing.T) {
	type object struct { // a lock need not be an object of its own
		name string
		s    Sync
	}
	var dead []weak.Pointer[object]
	for range 100 {
		o := &object{name: "a"}
		require.True(t, o.s.TryLock(Owned(1)))
		contend(&o.s)
		dead = append(dead, weak.Make(o))
	}
	eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(dead, func(p weak.Pointer[object]) bool { return p.Value() != nil })
	})
	registered()
	require.Less(t, listed(), 100)
}

func TestTheRegistryDoesNotGrowWithLocksThatAreGone(t *testing.T) {
	n := 300_000
	if raceEnabled {
		n /= 10
	}
	most := 0
	for i := range n {
		s := new(Sync)
		s.TryLock(Owned(1))
		contend(s)
		if i%5000 == 0 {
			runtime.GC() // as a program with more on its heap would
		}
		most = max(most, listed())
	}
	require.Less(t, most, 25_000)
}

func TestRecordsDoNotGrowWithLocksThatAreGone(t *testing.T) {
	SetRecording(true)
	defer SetRecording(false)
	most := 0
	for i := range 30_000 {
		s := new(Sync)
		s.TryLock(Owned(1))
		s.Record(1)
		if i%1000 == 0 {
			runtime.GC()
		}
		most = max(most, len(records.m))
	}
	require.Less(t, most, 10_000)
}

func TestRecordsAreOfHoldersOnly(t *testing.T) {
	SetRecording(true)
	defer SetRecording(false)
	s := new(Sync)
	for o := range int64(100) {
		require.True(t, s.TryLock(Owned(o+1)))
		s.Record(o + 1)
		require.NotEmpty(t, s.TakenAt(o+1))
		require.LessOrEqual(t, len(records.m[weak.Make(s)].of), minPlaces)
		require.True(t, s.Unlock(FIFO))
	}
	require.Empty(t, s.TakenAt(1))
}

// The look at the holders comes just as a reader becomes the writer: the word was seen to be
// shared, and the reader is among the readers no more. One owner is that of the goroutine that
// looks, and another goroutine upgrades its hold. The other owner has no hold any more, since
// another goroutine has given it back.
func TestThePlaceOfAnUpgradedReaderStays(t *testing.T) {
	for _, who := range []int64{-7, -8} {
		SetRecording(true)
		s := new(Sync)
		s.Describe(&Kind{Name: "read", Holders: func(s *Sync) []int64 {
			require.Equal(t, Acquired, s.Shares().Upgrade(-7, FIFO))
			return s.Readers()
		}})
		for o := range int64(minPlaces) {
			require.True(t, s.TryLock(Owned(o+1)))
			s.Record(o + 1)
			require.True(t, s.Unlock(FIFO))
		}
		require.Equal(t, Acquired, s.Shares().TryLockShared(-7, FIFO))
		if who != -7 {
			note(weak.Make(s), -7, []uintptr{1})
		}
		s.Record(who)
		require.NotEmpty(t, s.TakenAt(-7))
		require.NotEmpty(t, s.TakenAt(who))
		require.Empty(t, s.TakenAt(1))
		SetRecording(false)
	}
}

// A look at all of them for each would take minutes.
func TestThousandsOfReadersAreRecordedInNoTime(t *testing.T) {
	SetRecording(true)
	defer SetRecording(false)
	s := new(Sync)
	s.Describe(&Kind{Name: "read", Holders: (*Sync).Readers})
	began := time.Now()
	const n = 8000
	for o := range int64(n) {
		require.True(t, s.Read(o+1, FIFO))
		s.Record(o + 1)
		require.Less(t, time.Since(began), hang)
	}
	require.NotEmpty(t, s.TakenAt(1))
	require.NotEmpty(t, s.TakenAt(n))
}

func TestTheIndexOfWaitsIsEmptyWhenNobodyWaits(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	s := new(Sync)
	for _, policy := range []Policy{NonFair, FIFO} {
		require.True(t, s.TryLock(Owned(1)))
		c := NewCond(s, policy)
		var wg sync.WaitGroup
		for g := range int64(6) {
			wg.Go(func() {
				p := Owned(g + 2).Of(&testKind)
				switch g % 3 {
				case 0:
					require.True(t, s.Lock(p, policy))
				case 1:
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					if s.LockContext(ctx, p, policy) != Acquired {
						return
					}
				default:
					require.True(t, s.Lock(p, policy))
					c.WaitFor(p, time.Millisecond)
				}
				s.Unlock(policy)
			})
		}
		eventually(t, func() bool { registry.Lock(); defer registry.Unlock(); return len(registry.waits) >= 4 })
		s.Unlock(policy)
		wg.Wait()
		require.Empty(t, registry.waits)
	}
}

func TestARefusedFirstWaiterPassesItsWakeUpOn(t *testing.T) {
	// The wait is refused by hand between its beginning and its end: nothing else makes it the
	// first in the queue at that moment.
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	first, permit := enqueued(t, &s, Owned(2).Of(&testKind))
	second := run(func() bool { return s.Lock(Owned(3), NonFair) })
	eventually(t, func() bool { return s.Len() == 2 })
	require.True(t, s.Unlock(NonFair)) // wakes the first
	require.False(t, s.refuse(first, NonFair))
	require.True(t, first.refused)
	require.Empty(t, permit, "nothing is left of its own wake-up")
	first.recycle()
	require.True(t, second.result(t))
	s.Unlock(NonFair)
	require.NoError(t, s.Verify())
}

func TestALateRefusalLeavesTheLockWithItsNewHolder(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	n := newNode(Owned(2).Of(&testKind), false)
	require.True(t, s.enqueue(n, FIFO))
	require.True(t, s.Unlock(FIFO))
	require.True(t, s.refuse(n, FIFO))
	require.False(t, n.refused)
	n.place.Park()
	n.recycle()
	require.EqualValues(t, 2, s.Owner())
	s.Unlock(FIFO)
	require.NoError(t, s.Verify())
}

func TestWaitsThatWereNotThereTogetherMakeNoCycle(t *testing.T) {
	// A look at one lock after the other can see what never was: 2 waits for 1, ends its wait,
	// and only then 1 waits for 2.
	var a, b Sync
	a.Describe(&testKind)
	b.Describe(&testKind)
	require.True(t, a.TryLock(Owned(1)))
	require.True(t, b.TryLock(Owned(2)))
	n := newNode(Owned(2), false)
	require.True(t, a.enqueue(n, FIFO))
	first := lookAll([]*Sync{&a})
	a.guard.Lock()
	a.cancel(n, FIFO)
	a.guard.Unlock()
	m := newNode(Owned(1), false)
	require.True(t, b.enqueue(m, FIFO))
	first = append(first, lookAll([]*Sync{&b})...)
	require.Len(t, cycles(first), 1, "it looks like a cycle")
	require.False(t, stood(first))

	// Not even if the party waits for the same lock again, in the same node.
	b.guard.Lock()
	b.cancel(m, FIFO)
	b.guard.Unlock()
	require.True(t, a.enqueue(n, FIFO))
	require.True(t, b.enqueue(m, FIFO))
	require.False(t, stood(first))
	third := lookAll([]*Sync{&a, &b})
	require.Empty(t, common(slices.Clone(third), first))
	require.True(t, stood(third))
	require.Len(t, cycles(common(slices.Clone(third), third)), 1)
}

// stood reports whether the cycle of which path is the first look stood at one moment.
func stood(path []Wait) bool {
	stood, _ := stands(path)
	return stood
}

// 7 reads a, and waits for b; 8 holds b, and asks to read a. Writers 5 and 6 wait in between.
// 6, the nearest to 8, gives up when it has been seen.
func TestACycleIsSeenThoughItsWriterGivesUp(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var a, b Sync
	a.Describe(&Kind{Name: "read", Holders: (*Sync).Readers})
	b.Describe(&testKind)
	require.True(t, a.Read(7, FIFO))
	require.True(t, b.TryLock(Owned(8)))
	five, six, seven := newNode(Owned(5), false), newNode(Owned(6), false), newNode(Owned(7), false)
	eight := newNode(Party{who: 8}, true)
	require.True(t, a.enqueue(five, FIFO))
	require.True(t, a.enqueue(six, FIFO))
	require.True(t, b.enqueue(seven, FIFO))
	require.True(t, a.enqueue(eight, FIFO))
	locks := []*Sync{&a, &b}
	first, second := lookAll(locks), lookAll(locks)
	begun := a.find(eight.id())[0]
	path := cycleThrough(begun)
	require.Len(t, path, 3)
	require.EqualValues(t, 6, path[1].Who)

	a.guard.Lock()
	require.Nil(t, a.cancel(six, FIFO))
	a.guard.Unlock()
	ok, ended := stands(path)
	require.False(t, ok)
	require.True(t, ended)
	require.True(t, closesCycle(begun))
	require.EqualValues(t, 5, cycleThrough(begun)[1].Who)
	found := cycles(common(second, first, lookAll(locks)))
	require.Len(t, found, 1)
	require.Len(t, found[0], 3)
	require.EqualValues(t, 5, found[0][0].Who)
	require.True(t, found[0][2].Behind)
}

func TestAWaitThatHasBecomeAHoldClosesNoCycle(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var a, b Sync
	a.Describe(&testKind)
	b.Describe(&testKind)
	require.True(t, a.TryLock(Owned(1)))
	require.True(t, b.TryLock(Owned(2)))
	n, m := newNode(Owned(2), false), newNode(Owned(1), false)
	require.True(t, b.enqueue(m, FIFO))
	require.True(t, a.enqueue(n, FIFO))
	begun := a.find(n.id())[0]
	require.NotEmpty(t, cycleThrough(begun))
	require.True(t, a.Unlock(FIFO)) // as if 1 had another goroutine
	require.False(t, closesCycle(begun))
}

func TestOnlyEdgesThatAreStillThereCloseACycle(t *testing.T) {
	var a, b Sync
	require.True(t, a.TryLock(Owned(1)))
	require.True(t, b.TryLock(Owned(2)))
	n, m := newNode(Owned(2), false), newNode(Owned(1), false)
	require.True(t, a.enqueue(n, FIFO))
	require.True(t, b.enqueue(m, FIFO))
	path := lookAll([]*Sync{&a, &b})
	require.True(t, closed(path))
	require.True(t, stood(path))
	a.Word.Store(value(3) | queued) // as if 1 had another goroutine
	require.Len(t, again(path), 2)
	require.False(t, closed(again(path)))
	require.False(t, stood(path))
}

func TestAWaiterThatWinsTheLockNoLongerWaits(t *testing.T) {
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	n, permit := enqueued(t, &s, Owned(2))
	require.True(t, s.enqueue(newNode(Owned(3), false), NonFair))
	require.Len(t, s.look(nil), 2)
	require.True(t, s.Unlock(NonFair))
	<-permit
	require.Len(t, s.look(nil), 2, "it is awake, and may lose the race")
	require.True(t, s.compete(n))
	looked := s.look(nil)
	require.Len(t, looked, 1)
	require.EqualValues(t, 3, looked[0].Who)
	require.Equal(t, []int64{2}, looked[0].Holders())
}

func TestWaitsBeginOneAtATimeWhileRefusalIsOn(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var s Sync
	require.True(t, s.TryLock(Owned(1)))
	begin.Lock() // somebody else looks for cycles
	waiter := run(func() bool { return s.Lock(Owned(2).Of(&testKind), FIFO) })
	atGuard(t, 1, "syncq.(*Sync).enqueueUnlessCycle")
	require.Zero(t, s.Len())
	begin.Unlock()
	eventually(t, func() bool { return s.Len() == 1 })
	s.Unlock(FIFO)
	require.True(t, waiter.result(t))
}

// Each wait is kept out by all the readers, who are queued up at another lock.
func TestASearchForACycleInACrowdIsFast(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var a, b Sync
	kind := &Kind{Name: "read", Holders: (*Sync).Readers, Refusable: true}
	a.Describe(kind)
	b.Describe(kind)
	const n = 500
	for o := int64(1); o <= n; o++ {
		require.True(t, a.Read(o, FIFO))
		require.True(t, b.Read(o+n, FIFO))
	}
	began := time.Now()
	for o := int64(1); o <= n; o++ {
		require.True(t, b.enqueue(newNode(Owned(o), false), FIFO))
		require.Less(t, time.Since(began), hang)
	}
	for o := int64(2*n + 1); o <= 3*n; o++ {
		require.True(t, a.enqueue(newNode(Owned(o), false), FIFO))
		require.Less(t, time.Since(began), hang)
	}
	t.Log(time.Since(began))
}

func TestComponentsOfALongChainNeedNoDeepStack(t *testing.T) {
	const n = 1_000_000
	from := make([][]edge, n)
	for i := range from {
		from[i] = []edge{{(i + 1) % n, false}}
	}
	c := components(from)
	require.Equal(t, c[0], c[n-1])
	from[n-1] = nil
	c = components(from)
	require.NotEqual(t, c[0], c[n-1])
}
