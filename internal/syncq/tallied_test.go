package syncq

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// inTurn is the party of a Tallied in tests.
var inTurn = Anonymous(0).FIFO()

// verify checks the table of Tallied, for pending steps whose sum is p. No goroutine has the guard.
func (t *Tallied) verify(p int64) (ok bool) {
	t.s.guard.Lock()
	defer t.s.guard.Unlock()
	switch v, alone := t.tally.Load(), t.s.Word.Load() == 0 && t.s.queue.head == nil; {
	case isInWord(v):
		return v == inWord+p && (t.s.queue.head != nil) == t.s.HasQueued()
	case isWriting(v):
		return v == writing+p && alone
	case v < 0:
		return v == p && alone
	default:
		return p == 0 && alone
	}
}

// A goroutine may be preempted between its step and the guard. So the test takes each half alone,
// in any order.
func TestATallyIsExactWhateverIsPending(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var (
			l       Tallied
			readers int
			writer  bool
			pending []int64
			sum     int64
		)
		finish := func(i int) {
			p := pending[i]
			pending = append(pending[:i], pending[i+1:]...)
			sum -= p
			switch {
			case p > 0:
				require.Equal(rt, !writer, l.change(1, addInTurn))
				if !writer {
					readers++
				}
			default:
				require.Equal(rt, readers > 0, l.UnlockShared())
				readers = max(readers-1, 0)
			}
		}
		step := func(op string) {
			free := readers == 0 && !writer
			switch op {
			case "read":
				if l.AddShared() {
					require.False(rt, writer)
					readers++
				} else {
					pending, sum = append(pending, 1), sum+1
				}
			case "release":
				if l.DropShared() {
					require.Positive(rt, readers)
					readers--
				} else {
					pending, sum = append(pending, -1), sum-1
				}
			case "finish":
				if len(pending) > 0 {
					finish(rapid.IntRange(0, len(pending)-1).Draw(rt, "which"))
				}
			case "write":
				ok := l.TryLockFree()
				require.True(rt, free || !ok)
				require.Equal(rt, free, ok || l.TryLock())
				writer = writer || free
			case "write slowly":
				require.Equal(rt, free, l.TryLock())
				writer = writer || free
			case "unlock":
				ok := l.UnlockAlone()
				require.True(rt, writer || !ok)
				require.Equal(rt, writer, ok || l.Unlock())
				writer = false
			case "barge":
				ok := l.BargeShared()
				require.False(rt, writer && ok)
				require.Equal(rt, !writer, ok || l.TryLockShared())
				if !writer {
					readers++
				}
			}
			exclusively, shared := l.Holds()
			require.Equal(rt, writer, exclusively)
			require.Equal(rt, readers, shared)
			require.True(rt, l.verify(sum), "tally %d, word %#x, %d pending", l.tally.Load(), l.s.Word.Load(), sum)
		}
		ops := []string{"read", "read", "release", "release", "finish", "finish", "write", "write slowly", "unlock", "barge"}
		for _, op := range rapid.SliceOfN(rapid.SampledFrom(ops), 1, 60).Draw(rt, "ops") {
			step(op)
		}
		for len(pending) > 0 {
			finish(0)
		}
		for readers > 0 {
			step("release")
		}
		step("unlock")
		require.Zero(rt, l.tally.Load(), "a lock that nobody uses counts in its tally")
	})
}

func TestHoldsMoveToTheWordForAWaiterAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Tallied
		require.True(t, l.AddShared())
		require.True(t, l.AddShared())
		go l.Acquire(inTurn, nil)
		synctest.Wait()
		require.Equal(t, 1, l.Len())
		require.EqualValues(t, int64(inWord), l.tally.Load())
		require.Equal(t, 2, l.s.Word.Shared())
		require.False(t, l.AddShared(), "it would overtake the waiter")
		go l.AcquireShared(inTurn, nil)
		synctest.Wait()
		require.Equal(t, 2, l.Len())
		require.True(t, l.verify(0))

		require.False(t, l.DropShared())
		require.True(t, l.UnlockShared())
		require.False(t, l.DropShared())
		require.True(t, l.UnlockShared(), "it hands the lock to the writer")
		synctest.Wait()
		exclusively, _ := l.Holds()
		require.True(t, exclusively)
		require.False(t, l.UnlockAlone())
		require.True(t, l.Unlock(), "it hands the lock to the reader")
		synctest.Wait()
		require.EqualValues(t, 1, l.tally.Load(), "nobody waits")
		require.True(t, l.DropShared())
		require.True(t, l.verify(0))
	})
}

// A condition's waiter uses the word, wherever the holds are.
func TestAConditionMovesTheHoldsToTheWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Tallied
		c := l.NewCond()
		require.True(t, l.TryLockFree())
		signalled := false
		go func() { signalled = c.Wait(Anonymous(0), nil) }()
		synctest.Wait()
		require.True(t, l.verify(0))
		require.True(t, l.TryLock(), "the wait has released the lock")
		require.Positive(t, c.Len())

		require.True(t, l.UnlockAlone())
		require.True(t, l.TryLockFree())
		require.True(t, c.Signal(), "the lock is held by the tally")
		synctest.Wait()
		require.False(t, signalled, "the waiter awaits the lock")
		require.Equal(t, 1, l.Len())
		require.False(t, l.UnlockAlone())
		require.True(t, l.Unlock())
		synctest.Wait()
		require.True(t, signalled)
		require.True(t, l.Unlock())
		require.Zero(t, l.tally.Load())
	})
}

// As in the sync package's own test, a writer counts a million, and a reader 1.
func TestATallyCountsUnderStress(t *testing.T) {
	const rounds = 3000
	var (
		l  Tallied
		n  atomic.Int64 // readers, or a million
		wg sync.WaitGroup
	)
	within := func(weight int64) {
		if now := n.Add(weight); now < weight || weight > 1 && now != weight {
			t.Errorf("%d beside %d", now, weight)
		}
		if rand.IntN(8) == 0 {
			runtime.Gosched()
		}
		n.Add(-weight)
	}
	const million = 1_000_000
	write := func() {
		within(million)
		if !l.UnlockAlone() && !l.Unlock() {
			t.Error("the writer does not hold the lock")
		}
	}
	read := func() {
		within(1)
		if !l.DropShared() && !l.UnlockShared() {
			t.Error("the reader does not hold the lock")
		}
	}
	for range 3 {
		wg.Go(func() {
			for range rounds {
				if !l.AddShared() {
					l.AcquireShared(inTurn, nil)
				}
				read()
			}
		})
		wg.Go(func() {
			for range rounds {
				if l.BargeShared() || l.TryLockShared() {
					read()
				}
				runtime.Gosched()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			if !l.TryLockFree() {
				l.Acquire(inTurn, nil)
			}
			write()
		}
	})
	wg.Go(func() {
		for range rounds {
			if l.TryLockFree() || l.TryLock() {
				write()
			}
			runtime.Gosched()
		}
	})
	wg.Wait()
	require.Zero(t, l.tally.Load())
	require.True(t, l.verify(0))
	require.True(t, l.TryLockFree())
}
