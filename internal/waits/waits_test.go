package waits

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/test/testbed"
)

// hang is a limit that only a hang reaches.
const hang = time.Minute

var (
	testKind = syncq.Kind{Name: "test", Refusable: true}
	readKind = syncq.Kind{Name: "read", Holders: shares.Holders, Refusable: true}
)

func test(o int64) syncq.Party { return syncq.Owned(o).Of(&testKind) }

func read(o int64) syncq.Party { return syncq.Owned(o).Of(&readKind) }

// wait is a wait that a test can end.
type wait struct {
	s      *syncq.Sync
	out    chan syncq.Outcome
	cancel func()
}

// begin starts acquire, which waits for s under a context. begin returns when the waiter is in the
// queue.
func (w wait) begin(t *testing.T, acquire func(ctx context.Context) syncq.Outcome) wait {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.out = make(chan syncq.Outcome, 1)
	n := w.s.Len()
	go func() { w.out <- acquire(ctx) }()
	testbed.Await(t, func() bool { return w.s.Len() == n+1 })
	return w
}

// waitsFor starts a wait of p for s.
func waitsFor(t *testing.T, s *syncq.Sync, p syncq.Party) wait {
	t.Helper()
	return wait{s: s}.begin(t, func(ctx context.Context) syncq.Outcome {
		return s.Acquire(p.FIFO(), park.Until(ctx))
	})
}

// waitsShared starts a wait of p for a shared hold of s.
func waitsShared(t *testing.T, s *syncq.ReadWrite, p syncq.Party) wait {
	t.Helper()
	return wait{s: &s.Sync}.begin(t, func(ctx context.Context) syncq.Outcome {
		return s.AcquireRead(p.FIFO(), park.Until(ctx))
	})
}

// over cancels the wait, and returns how it has ended.
func (w wait) over(t *testing.T) syncq.Outcome {
	t.Helper()
	w.cancel()
	select {
	case out := <-w.out:
		return out
	case <-time.After(hang):
		t.Fatal("the wait does not end")
		return 0
	}
}

// contend lets party 2 wait for s, and give up at once.
func contend(s *syncq.Sync) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Acquire(test(2).FIFO(), park.Until(ctx))
}

// size returns how many entries m has.
func size(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestLockIsWatchedFromItsFirstWaiterOn(t *testing.T) {
	s := new(syncq.Sync)
	require.True(t, s.TryLock(test(1)))
	require.False(t, slices.Contains(locks(), s))
	for range 10 {
		contend(s)
	}
	require.True(t, slices.Contains(locks(), s))
	require.Equal(t, "test", Kind(s).Name)
}

func TestALockWithoutAKindIsNotWatched(t *testing.T) {
	s := new(syncq.Sync)
	require.True(t, s.TryLock(syncq.Anonymous(1)))
	w := waitsFor(t, s, syncq.Anonymous(2))
	require.False(t, slices.Contains(locks(), s))
	require.Equal(t, syncq.Ended, w.over(t))
}

func TestTheFirstKindStays(t *testing.T) {
	var s syncq.Sync
	own := &syncq.Kind{Name: "own"}
	s.Describe(own)
	s.Describe(&testKind)
	require.True(t, s.TryLock(test(1)))
	contend(&s)
	require.Same(t, own, Kind(&s))
}

func TestWatchingKeepsNoLockAlive(t *testing.T) {
	type object struct { // a lock need not be an object of its own
		name string
		s    syncq.Sync
	}
	var dead []weak.Pointer[object]
	for range 100 {
		o := &object{name: "a"}
		require.True(t, o.s.TryLock(test(1)))
		contend(&o.s)
		dead = append(dead, weak.Make(o))
	}
	testbed.Await(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(dead, func(p weak.Pointer[object]) bool { return p.Value() != nil })
	})
}

func TestLocksThatAreGoneAreForgotten(t *testing.T) {
	for range 30_000 {
		s := new(syncq.Sync)
		s.TryLock(test(1))
		contend(s)
	}
	testbed.Await(t, func() bool { runtime.GC(); return size(&watched) < 1000 })
}

func TestLocksThatAreGoneLeaveNoRecords(t *testing.T) {
	SetRecording(true)
	defer SetRecording(false)
	most := 0
	for i := range 30_000 {
		s := new(syncq.Sync)
		s.TryLock(test(1))
		s.Acquired(test(1))
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
	s := new(syncq.Sync)
	for o := range int64(100) {
		require.True(t, s.TryLock(test(o+1)))
		s.Acquired(test(o + 1))
		require.NotEmpty(t, TakenAt(s, o+1))
		require.LessOrEqual(t, len(records.m[weak.Make(s)].of), minSites)
		require.True(t, s.Unlock())
	}
	require.Empty(t, TakenAt(s, 1))
}

// record looks at the holders just when a reader becomes the writer: it has seen a shared word, and
// then does not find the reader among the readers. In the first case another goroutine of the
// recorded owner upgrades that owner's hold. In the second case another goroutine has released the
// hold of the recorded owner.
func TestThePlaceOfAnUpgradedReaderStays(t *testing.T) {
	for _, who := range []int64{-7, -8} {
		SetRecording(true)
		s := new(syncq.ReadWrite)
		kind := &syncq.Kind{Name: "read", Holders: func(*syncq.Sync) []int64 {
			require.Equal(t, syncq.Acquired, shares.Of(&s.Sync).Upgrade(s, -7))
			return shares.Holders(&s.Sync)
		}}
		for o := range int64(minSites) {
			require.True(t, s.TryLock(syncq.Owned(o+1)))
			record(&s.Sync, kind, o+1)
			require.True(t, s.Unlock())
		}
		require.Equal(t, syncq.Acquired, shares.Of(&s.Sync).TryLock(-7, true))
		if who != -7 {
			note(weak.Make(&s.Sync), -7, []uintptr{1})
		}
		record(&s.Sync, kind, who)
		require.NotEmpty(t, TakenAt(&s.Sync, -7))
		require.NotEmpty(t, TakenAt(&s.Sync, who))
		require.Empty(t, TakenAt(&s.Sync, 1))
		SetRecording(false)
	}
}

// If each record looked at all readers, the test would take minutes.
func TestThousandsOfReadersAreRecordedInNoTime(t *testing.T) {
	SetRecording(true)
	defer SetRecording(false)
	s := new(syncq.ReadWrite)
	began := time.Now()
	const n = 8000
	for o := range int64(n) {
		require.Equal(t, syncq.Acquired, s.AcquireRead(read(o+1).FIFO(), nil))
		s.Acquired(read(o + 1))
		require.Less(t, time.Since(began), hang)
	}
	require.NotEmpty(t, TakenAt(&s.Sync, 1))
	require.NotEmpty(t, TakenAt(&s.Sync, n))
}

func TestNoWaitIsFindableWhenNoneIsLeft(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	for _, policy := range []syncq.Policy{syncq.NonFair, syncq.FIFO} {
		x := syncq.New(policy)
		s := &x
		require.True(t, s.TryLock(test(1)))
		c := syncq.NewCond(s, policy)
		var wg sync.WaitGroup
		for g := range int64(6) {
			wg.Go(func() {
				p := test(g + 2)
				switch g % 3 {
				case 0:
					require.Equal(t, syncq.Acquired, s.Acquire(p, nil))
				case 1:
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					if s.Acquire(p, park.Until(ctx)) != syncq.Acquired {
						return
					}
				default:
					require.Equal(t, syncq.Acquired, s.Acquire(p, nil))
					c.Wait(p, park.After(time.Millisecond))
				}
				s.Unlock()
			})
		}
		testbed.Await(t, func() bool { return size(&awaited) >= 4 })
		s.Unlock()
		wg.Wait()
		require.Zero(t, size(&awaited))
	}
}

func TestWaitsOlderThanRefusalAreFindable(t *testing.T) {
	var s syncq.Sync
	require.True(t, s.TryLock(test(1)))
	w := waitsFor(t, &s, test(2))
	require.Nil(t, awaitedBy(2))
	Refuse(true)
	defer Refuse(false)
	require.Same(t, &s, awaitedBy(2))
	require.Equal(t, syncq.Ended, w.over(t))
	require.Nil(t, awaitedBy(2))
}

func TestWaitsAtDifferentTimesMakeNoCycle(t *testing.T) {
	// A look at one lock after the other can see what never was: 2 waits for 1, ends its wait,
	// and only then 1 waits for 2.
	var a, b syncq.Sync
	require.True(t, a.TryLock(test(1)))
	require.True(t, b.TryLock(test(2)))
	two := waitsFor(t, &a, test(2))
	first := lookAll([]*syncq.Sync{&a})
	require.Equal(t, syncq.Ended, two.over(t))
	one := waitsFor(t, &b, test(1))
	first = append(first, lookAll([]*syncq.Sync{&b})...)
	require.Len(t, cycles(first), 1, "it looks like a cycle")
	require.False(t, standing(first))

	// Not even if the party waits for the same lock again, perhaps in the same node.
	require.Equal(t, syncq.Ended, one.over(t))
	two, one = waitsFor(t, &a, test(2)), waitsFor(t, &b, test(1))
	require.False(t, standing(first))
	third := lookAll([]*syncq.Sync{&a, &b})
	require.Empty(t, common(slices.Clone(third), first))
	require.True(t, standing(third))
	require.Len(t, cycles(common(slices.Clone(third), third)), 1)
	two.over(t)
	one.over(t)
}

// standing reports whether the cycle of which path is the first look stood at one moment.
func standing(path []Wait) bool {
	all, _ := stands(path)
	return all
}

// 7 reads a, and waits for b; 8 holds b, and asks to read a. Writers 5 and 6 wait in between.
// 6, the nearest to 8, gives up when it has been seen.
func TestCycleIsSeenThoughItsWriterGivesUp(t *testing.T) {
	var a, b syncq.ReadWrite
	require.Equal(t, syncq.Acquired, a.AcquireRead(read(7).FIFO(), nil))
	require.True(t, b.TryLock(test(8)))
	five, six, seven := waitsFor(t, &a.Sync, read(5)), waitsFor(t, &a.Sync, read(6)), waitsFor(t, &b.Sync, test(7))
	eight := waitsShared(t, &a, read(8))
	Refuse(true)
	defer Refuse(false)
	both := []*syncq.Sync{&a.Sync, &b.Sync}
	first, second := lookAll(both), lookAll(both)
	last := waitsOf([]int64{8})[0]
	path := cycleThrough(last)
	require.Len(t, path, 3)
	require.EqualValues(t, 6, path[1].Who)

	require.Equal(t, syncq.Ended, six.over(t))
	ok, ended := stands(path)
	require.False(t, ok)
	require.True(t, ended)
	require.True(t, closesCycle(last))
	require.EqualValues(t, 5, cycleThrough(last)[1].Who)
	found := cycles(common(second, first, lookAll(both)))
	require.Len(t, found, 1)
	require.Len(t, found[0], 3)
	require.EqualValues(t, 5, found[0][0].Who)
	require.True(t, found[0][2].Behind)
	for _, w := range []wait{five, seven, eight} {
		w.over(t)
	}
}

func TestWaitThatHasBecomeHoldClosesNoCycle(t *testing.T) {
	var a, b syncq.Sync
	require.True(t, a.TryLock(test(1)))
	require.True(t, b.TryLock(test(2)))
	one, two := waitsFor(t, &b, test(1)), waitsFor(t, &a, test(2))
	Refuse(true)
	defer Refuse(false)
	last := waitsOf([]int64{2})[0]
	require.NotEmpty(t, cycleThrough(last))
	require.True(t, a.Unlock()) // as if 1 had another goroutine
	require.Equal(t, syncq.Acquired, <-two.out)
	require.False(t, closesCycle(last))
	one.over(t)
}

func TestOnlyEdgesThatAreStillThereCloseCycle(t *testing.T) {
	var a, b syncq.Sync
	require.True(t, a.TryLock(test(1)))
	require.True(t, b.TryLock(test(2)))
	one, two := waitsFor(t, &b, test(1)), waitsFor(t, &a, test(2))
	path := lookAll([]*syncq.Sync{&a, &b})
	require.True(t, closed(path))
	require.True(t, standing(path))
	held := a.Word.Load()
	queued := held & (syncq.Taken - 1)
	a.Word.Store(3*syncq.Taken | queued) // as if 1 had another goroutine
	require.Len(t, again(path), 2)
	require.False(t, closed(again(path)))
	require.False(t, standing(path))
	a.Word.Store(held)
	one.over(t)
	two.over(t)
}

func TestRefusableWaitsBeginOneAtATime(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var s syncq.Sync
	require.True(t, s.TryLock(test(1)))
	begin.Lock()                           // another goroutine looks for cycles
	release := sync.OnceFunc(begin.Unlock) // also if the test fails, so that others can wait
	t.Cleanup(release)
	done := make(chan bool, 1)
	go func() { done <- s.Acquire(test(2).FIFO(), nil) == syncq.Acquired }()
	testbed.Await(t, func() bool { return asks("waits.watcher.Begin") })
	require.Zero(t, s.Len())
	release()
	testbed.Await(t, func() bool { return s.Len() == 1 })
	s.Unlock()
	require.True(t, <-done)
}

// asks reports whether a goroutine that calls function is blocked at a mutex.
func asks(function string) bool {
	buf := make([]byte, 1<<20)
	for _, g := range bytes.Split(buf[:runtime.Stack(buf, true)], []byte("\n\n")) {
		header, frames, _ := bytes.Cut(g, []byte("\n"))
		if bytes.Contains(header, []byte("[sync.Mutex.Lock")) && bytes.Contains(frames, []byte(function+"(")) {
			return true
		}
	}
	return false
}

// Each wait is kept out by all the readers, which are queued up at another lock.
func TestSearchForACycleInCrowdIsFast(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	var a, b syncq.ReadWrite
	const n = 200
	for o := int64(1); o <= n; o++ {
		require.Equal(t, syncq.Acquired, a.AcquireRead(read(o).FIFO(), nil))
		require.Equal(t, syncq.Acquired, b.AcquireRead(read(o+n).FIFO(), nil))
	}
	began := time.Now()
	var all []wait
	for o := int64(1); o <= n; o++ {
		all = append(all, waitsFor(t, &b.Sync, read(o)))
	}
	for o := int64(2*n + 1); o <= 3*n; o++ {
		all = append(all, waitsFor(t, &a.Sync, read(o)))
		require.Less(t, time.Since(began), hang)
	}
	t.Log(time.Since(began))
	for _, w := range all {
		require.Equal(t, syncq.Ended, w.over(t))
	}
}

// bias lets a reader read s beside another reader, until s is biased to readers.
func bias(t *testing.T, s *syncq.ReadWrite) {
	require.True(t, s.TryLockShared())
	defer s.UnlockShared()
	for k := 0; !s.Biased(); k++ {
		require.Less(t, k, 1000)
		require.Equal(t, syncq.Acquired, s.AcquireRead(read(2), nil))
		require.True(t, s.ReleaseRead(2))
	}
}

func TestRefusalLeavesAnIdleBiasedLockAlone(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	for _, policy := range []syncq.Policy{syncq.NonFair, syncq.FIFO} {
		s := syncq.NewReadWrite(policy)
		bias(t, &s)
		require.Equal(t, syncq.Acquired, s.Acquire(read(1), nil))
		require.True(t, s.Release(1))
	}
}

func TestARefusedWriterIsInNoReadersWay(t *testing.T) {
	Refuse(true)
	defer Refuse(false)
	for _, policy := range []syncq.Policy{syncq.NonFair, syncq.FIFO} {
		s, other := syncq.NewReadWrite(policy), syncq.NewReadWrite(policy)
		require.True(t, other.TryLock(test(1)))
		bias(t, &s)
		require.Equal(t, syncq.Acquired, s.AcquireRead(read(2), nil))
		blocked := make(chan bool)
		go func() { blocked <- other.Acquire(test(2), nil) == syncq.Acquired }()
		testbed.Await(t, func() bool { return other.Len() == 1 })

		require.Equal(t, syncq.Refused, s.Acquire(read(1), nil), "it would wait for 2, which waits for it")
		require.Zero(t, s.Len())
		require.Equal(t, syncq.Acquired, s.AcquireRead(read(3), nil))
		require.Equal(t, 2, shares.ReadCount(&s))

		require.True(t, other.Unlock())
		require.True(t, <-blocked)
		require.True(t, other.Unlock())
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.ReleaseRead(3))
		require.True(t, s.TryLock(test(1)), "nobody holds the lock")
		require.True(t, s.Release(1))
	}
}

func TestComponentsOfLongChainNeedNoDeepStack(t *testing.T) {
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
