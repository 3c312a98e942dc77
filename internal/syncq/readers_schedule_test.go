package syncq

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/test/testbed"
)

// As in schedule_test.go, these tests bring about the rare orders of events. They hold the guard,
// or take a single step of the protocol by hand.

// bothPolicies runs f with a lock of each.
func bothPolicies(t *testing.T, f func(t *testing.T, s *ReadWrite)) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			s := NewReadWrite(policy)
			f(t, &s)
			require.NoError(t, s.Verify())
			require.True(t, s.Idle())
			require.Zero(t, s.ReadCount())
			require.True(t, s.readers().empty())
		})
	}
}

func writes(s *ReadWrite, o int64) asyncCall {
	return run(func() bool { s.Lock(Owned(o)); return true })
}

// neighbour returns a goroutine that hashes to the same slot as o.
func neighbour(s *ReadWrite, o int64) int64 {
	t := s.readers()
	for n := o + 1; ; n++ {
		if t.slot(n) == t.slot(o) {
			return n
		}
	}
}

func readAs(s *ReadWrite, o int64) asyncCall {
	return run(func() bool { s.ReadBiased(o); return true })
}

func TestReaderThatBlocksWriterHandsOverToIt(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		require.True(t, s.Biased())
		require.False(t, s.TryLockUnread(Owned(1)))
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		require.False(t, s.Biased(), "or readers would come in for ever")
		require.NoError(t, s.Verify())
		require.False(t, s.LockSharedFor(Owned(3), 0))
		require.True(t, s.ReleaseRead(2))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestReaderThatFindsTheBiasGoneHandsOver(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		require.True(t, s.ReleaseRead(2)) // biased, and read by nobody
		b := s.Slot(3)
		require.True(t, s.Biased() && b.take(3)) // as RLock does, which has yet to confirm it
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		require.False(t, s.Biased())
		require.Zero(t, s.Owner())
		s.leave(b)
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestAnEntryWithoutBiasKeepsNoWriterOut(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.TryLockUnread(Owned(1)))
		b := s.Slot(3)
		require.True(t, b.take(3)) // it looked for the bias before
		require.False(t, s.Biased())
		require.True(t, s.Release(1))
		require.True(t, s.TryLock(Owned(1)), "the entry is no hold")
		s.leave(b)
		require.EqualValues(t, 1, s.Owner())
		require.True(t, s.Release(1))
	})
}

func TestOnlyTheLastReaderOutHandsOver(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		o := neighbour(s, 2) // one of the collided
		for _, r := range []int64{2, 3, o} {
			s.ReadBiased(r)
		}
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		for _, r := range []int64{3, o} {
			require.True(t, s.ReleaseRead(r))
			require.Zero(t, s.Owner())
			require.NoError(t, s.Verify())
		}
		require.Equal(t, Acquired, s.ReenterRead(2))
		require.True(t, s.ReleaseRead(2))
		require.Zero(t, s.Owner())
		require.True(t, s.ReleaseRead(2))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestTwoLeavingReadersEndTheTablesHoldOnce(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		for range 100 {
			s.ReadBiased(2)
			s.ReadBiased(3)
			w := writes(s, 1)
			testbed.Await(t, func() bool { return s.Len() == 1 })
			s.guard.Lock()
			a := run(func() bool { return s.ReleaseRead(2) })
			b := run(func() bool { return s.ReleaseRead(3) })
			testbed.Await(t, s.readers().empty) // both are out, and one at least has to have the guard
			s.guard.Unlock()
			require.True(t, a.result(t))
			require.True(t, b.result(t))
			require.True(t, w.result(t))
			require.Equal(t, Value(1), s.Word.Load())
			require.True(t, s.Release(1))
			require.Zero(t, s.Word.Load())
		}
	})
}

func TestOldLookAtTheTableSparesNewReader(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		s.Revoke()
		s.guard.Lock()
		out := run(func() bool { return s.ReleaseRead(2) })
		testbed.Await(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*ReadWrite).ReadersLeft") // it has looked
		require.True(t, s.TryRead(3))
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.Equal(t, 1, s.ReadHolds(3))
		require.False(t, s.TryLock(Owned(1)))
		require.False(t, s.TryLockUnread(Owned(1)))
		require.True(t, s.ReleaseRead(3))
	})
}

func TestOldLookAtTheTableSparesNewBias(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		s.Revoke()
		s.guard.Lock()
		out := run(func() bool { return s.ReleaseRead(2) })
		testbed.Await(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*ReadWrite).ReadersLeft") // it has looked
		s.advance(keep)                                 // for another reader that left
		require.True(t, s.ReadBiased(3))
		require.True(t, s.ReleaseRead(3))
		require.True(t, s.Biased())
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.True(t, s.Biased(), "a reader that enters an empty table now reads, so the table has to keep its hold")
		require.False(t, s.TryLock(Owned(1)))
	})
}

func TestOldLookAtTheTableSparesBargingReader(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		w := writes(s, 1) // keeps the bias away
		testbed.Await(t, func() bool { return s.Len() == 1 })
		s.guard.Lock()
		out := run(func() bool { return s.ReleaseRead(2) })
		testbed.Await(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*ReadWrite).ReadersLeft") // it has looked
		require.True(t, s.TryRead(3))
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.Zero(t, s.Owner(), "3 reads")
		require.True(t, s.ReleaseRead(3))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

// Under NonFair a writer waits behind them. Without it they are sent: see sent_test.go.
func TestReadersAtHeadHoldLockBeforeTheyRun(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.readers()
		require.True(t, s.TryLock(Owned(1)))
		first, second := readAs(s, 2), readAs(s, 3)
		testbed.Await(t, func() bool { return s.Len() == 2 })
		if s.Policy() == NonFair {
			writer := queueAs(t, s, Owned(4), 3, nil)
			defer func() {
				require.True(t, writer.result(t))
				require.True(t, s.Release(4))
			}()
		}
		s.guard.Lock()
		wake, ok := s.advance(drop)
		require.True(t, ok)
		require.Equal(t, 2, s.Shared())
		require.False(t, s.TryLock(Owned(1)), "not even for the one that is back first")
		s.guard.Unlock()
		unpark(wake)
		require.True(t, first.result(t))
		require.True(t, second.result(t))
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.ReleaseRead(3))
	})
}

func TestReadersAreCountedWhileAWriterWaits(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.TryLock(Owned(1)))
		r := readAs(s, 2)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		w := writes(s, 3)
		testbed.Await(t, func() bool { return s.Len() == 2 })
		require.True(t, s.Release(1))
		require.True(t, r.result(t))
		require.Equal(t, oneHold|flagShared|flagQueued, s.Word.Load()&^flagReserved)
		require.NoError(t, s.Verify())
		require.True(t, s.TryRead(4), "past the writer")
		require.Equal(t, 2*oneHold|flagShared|flagQueued, s.Word.Load()&^flagReserved)
		require.True(t, s.ReleaseRead(2))
		require.Zero(t, s.Owner())
		require.True(t, s.ReleaseRead(4))
		require.True(t, w.result(t))
		require.True(t, s.Release(3))
	})
}

func TestEnteringReaderSendsAWriterToTheQueue(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		require.True(t, s.ReleaseRead(2))
		s.guard.Lock()
		var seized bool
		seize := run(func() bool { seized = s.TryLockUnread(Owned(1)); return true })
		atGuard(t, 1, "syncq.(*Sync).TryLockUnread") // it has seen an empty table
		require.True(t, s.Slot(3).take(3))
		require.True(t, s.Biased(), "and so reads")
		s.guard.Unlock()
		require.True(t, seize.result(t))
		require.False(t, seized)
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		s.leave(s.Slot(3))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestAReaderAfterAFailedUpgradeIsCounted(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.ReadBiased(2)
		s.ReadBiased(3)
		require.Equal(t, Busy, s.Upgrade(2))
		s.ReadBiased(4)
		require.False(t, s.Biased(), "not while the readers of before leave")
		require.Equal(t, 2, s.Shared())
		require.NoError(t, s.Verify())
		require.True(t, s.ReleaseRead(4))
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		require.Equal(t, Busy, s.Upgrade(2))
		require.False(t, s.Biased())
		require.True(t, s.ReleaseRead(3))
		require.Equal(t, Acquired, s.Upgrade(2))
		require.NoError(t, s.Verify())
		require.True(t, s.Release(2))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestManyReadsDuringAReadBringTheBias(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		readCounted := func(times int) {
			for k := range times {
				require.True(t, s.Read(Owned(2)))
				require.Equal(t, 2*oneHold|flagShared, s.Word.Load(), "read %d is counted", k)
				require.True(t, s.ReleaseRead(2))
				require.Equal(t, oneHold|flagShared, s.Word.Load())
			}
		}
		write := func() {
			require.True(t, s.LockFor(Owned(1), 0))
			s.Wrote()
			require.True(t, s.Release(1))
		}
		for range 2 {
			require.True(t, s.TryLockShared())
			readCounted(unbiasedReads - 1)
			require.True(t, s.UnlockShared())
			write()
			require.True(t, s.TryLockShared())
			readCounted(unbiasedReads - 1)
			require.True(t, s.Read(Owned(2)))
			const held = 3*oneHold | flagShared | flagVisible | flagBiased
			require.Equal(t, held, s.Word.Load(), "another's, its own, the table's")
			require.True(t, s.ReleaseRead(2))
			require.True(t, s.UnlockShared())
			require.True(t, s.Read(Owned(2)))
			require.Equal(t, oneHold|flagShared|flagVisible|flagBiased, s.Word.Load(), "reads by the table's hold")
			require.True(t, s.ReleaseRead(2))
			write()
		}
	})
}

func TestNoReaderSetsTheBiasDespiteAWaiter(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.Read(Owned(3)))
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		s.readers().slot(2).reads = unbiasedReads
		require.True(t, s.TryRead(2), "past a waiter")
		require.False(t, s.Biased())
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.ReleaseRead(3))
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

// wokenWriter returns the wait of party 2, which a release of the lock has woken, and which has not
// run since.
func wokenWriter(t *testing.T, s *ReadWrite) *node {
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(2), false)
	require.True(t, s.join(n))
	require.True(t, s.Release(1))
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	return n
}

func TestAReaderOvertakesAJustWokenWriterOnce(t *testing.T) {
	s := new(ReadWrite)
	n := wokenWriter(t, s)
	require.True(t, s.TryLockSharedInTurn())
	require.Equal(t, Acquired, s.AcquireShared(Owned(3), park.After(0)))
	_, waits := s.newNode(Owned(4), true).tryEnqueue()
	require.False(t, waits)
	require.NoError(t, s.verifyWord())

	n.place.Park()
	require.False(t, n.compete())
	require.Equal(t, 3*oneHold|flagShared|flagQueued|flagReserved, s.Word.Load(), "the lock is the writer's next")
	require.False(t, s.TryLockSharedInTurn())
	require.Equal(t, Ended, s.AcquireShared(Owned(3), park.After(0)))
	require.True(t, s.TryUnlockShared())
	require.True(t, s.TryUnlockShared())
	require.False(t, s.TryUnlockShared(), "the last reader has to tell the writer")
	require.True(t, s.UnlockShared())
	require.True(t, s.HeldBy(2))
	n.place.Park()
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.Release(2))
}

func TestReaderThatOvertookWokenWriterTellsNobody(t *testing.T) {
	s := new(ReadWrite)
	n := wokenWriter(t, s)
	require.True(t, s.TryLockSharedInTurn())
	require.True(t, s.TryUnlockShared())
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	require.NoError(t, s.verifyWord())
	n.place.Park()
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.HeldBy(2))
	require.True(t, s.Release(2))
}

func TestAReaderMayBargeBeforeTheWakeUp(t *testing.T) {
	s := new(ReadWrite)
	require.True(t, s.TryLock(Owned(1)))
	n := s.newNode(Owned(2), false)
	require.True(t, s.join(n))
	s.Word.Store(flagQueued | flagWoken) // the first half of the release
	require.True(t, s.TryLockSharedInTurn())
	s.guarded(keep) // the second
	require.Equal(t, oneHold|flagShared|flagQueued|flagReserved, s.Word.Load())
	require.NoError(t, s.verifyWord())
	require.True(t, s.UnlockShared())
	n.place.Park()
	require.True(t, n.compete())
	n.recycle()
	require.True(t, s.Release(2))
}

func TestAnUnusedBiasKeepsNoReaderFromUpgrading(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.Read(Owned(2)))
		require.True(t, s.ReadBiased(3))
		require.Equal(t, Busy, s.Upgrade(2), "3 reads")
		require.True(t, s.ReleaseRead(3))
		require.Equal(t, Acquired, s.Upgrade(2))
		require.Equal(t, Value(2), s.Word.Load())
		require.True(t, s.Release(2))
	})
}

func TestCountedReadersOfSlotLeaveInAnyOrder(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		a := int64(2)
		b := neighbour(s, a)
		c := neighbour(s, b)
		require.True(t, s.TryLockShared(), "so that a is not the first reader")
		require.True(t, s.Read(Owned(a)))
		require.True(t, s.Read(Owned(b)))
		require.True(t, s.ReadBiased(c))
		require.True(t, s.UnlockShared())
		require.Equal(t, 3*oneHold|flagShared|flagVisible|flagBiased, s.Word.Load())
		require.NoError(t, s.Verify())
		require.Equal(t, 3, s.ReadCount())
		for _, o := range []int64{a, b} {
			require.Equal(t, Acquired, s.ReenterRead(o))
			require.Equal(t, 2, s.ReadHolds(o))
			require.True(t, s.ReleaseRead(o))
		}
		w := writes(s, 1)
		testbed.Await(t, func() bool { return s.Len() == 1 })
		for _, o := range []int64{a, c, b} {
			require.Zero(t, s.Owner())
			require.NoError(t, s.Verify())
			require.True(t, s.ReleaseRead(o))
			require.False(t, s.ReleaseRead(o))
		}
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestSignalOnAnIdleBiasedLockWakesWaiter(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		c := NewCond(&s.Sync, s.Policy())
		require.True(t, s.TryLock(Owned(1)))
		w := run(func() bool { c.Wait(Owned(1), nil); return true })
		testbed.Await(t, func() bool { return c.Len() == 1 })
		s.ReadBiased(2)
		require.True(t, s.ReleaseRead(2)) // biased, and idle, when it should be the signaller's
		require.True(t, c.Signal())
		require.True(t, w.result(t))
		require.True(t, s.Release(1))
	})
}

func TestSharedHoldsHaveTheirLimitEverywhere(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		o := neighbour(s, 2)
		require.True(t, s.ReadBiased(2))
		require.True(t, s.ReadBiased(o))
		b := s.Slot(2)
		require.Same(t, b, s.Slot(o))
		b.others[o] = MaxHolds - 1
		require.Equal(t, Acquired, s.ReenterRead(o))
		require.Equal(t, TooMany, s.ReenterRead(o))
		require.Equal(t, MaxHolds, s.ReadHolds(o))
		b.others[o] = 1

		b.reentries.set(MaxHolds - 2)
		require.True(t, b.Reenter())
		require.False(t, b.Reenter())
		require.Equal(t, TooMany, s.ReenterRead(2))
		require.Equal(t, MaxHolds, s.ReadHolds(2))
		b.reentries.set(0)
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.ReleaseRead(o), "from the collided, while the slot is free")
	})
}

func TestIdleBiasedLockIsAcquiredWithoutAWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, lock := range map[string]func(s *ReadWrite) bool{
		"Lock":        func(s *ReadWrite) bool { s.Lock(Owned(1)); return true },
		"LockFor":     func(s *ReadWrite) bool { return s.LockFor(Owned(1), time.Hour) },
		"LockContext": func(s *ReadWrite) bool { return s.LockContext(ctx, Owned(1)) == Acquired },
		"wait": func(s *ReadWrite) bool {
			require.True(t, s.TryLock(Owned(1)))
			// Readers come while it waits, so that it finds the bias when its time is up.
			stop := make(chan struct{})
			c := NewCond(&s.Sync, s.Policy())
			w := run(func() bool {
				return !c.Wait(Owned(1), until(stop))
			})
			testbed.Await(t, func() bool { return c.Len() == 1 })
			s.ReadBiased(2)
			require.True(t, s.ReleaseRead(2))
			close(stop)
			return w.result(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, s *ReadWrite) {
				s.ReadBiased(2)
				require.True(t, s.ReleaseRead(2))
				if name == "wait" {
					s.Revoke()
				} else {
					require.True(t, s.Biased())
				}
				require.True(t, run(func() bool { return lock(s) }).result(t))
				require.EqualValues(t, 1, s.Owner())
				require.True(t, s.Release(1))
			})
		})
	}
}

// The reader is in the slot that a writer looks at first. The table has so many slots that much can
// happen before the writer looks at the last.
func TestReaderEnteringDuringALookKeepsWriterOut(t *testing.T) {
	for name, take := range map[string]func(s *ReadWrite) bool{
		"TryLockUnread": func(s *ReadWrite) bool { return s.TryLockUnread(Owned(1)) },
		"Upgrade": func(s *ReadWrite) bool {
			s.ReadBiased(1)
			upgraded := s.Upgrade(1) == Acquired
			if !upgraded {
				s.ReleaseRead(1)
			}
			return upgraded
		},
	} {
		t.Run(name, func(t *testing.T) {
			const bits = 14
			var s ReadWrite
			s.table.Store(&readTable{slots: make([]Slot, 1<<bits)})
			me := int64(2)
			for s.Slot(me) != &s.readers().slots[0] {
				me++
			}
			var inside atomic.Int32
			var stop atomic.Bool
			isReading := run(func() bool {
				b := s.Slot(me)
				for !stop.Load() {
					switch {
					case !b.take(me):
					case s.Biased():
						inside.Add(1)
						runtime.Gosched()
						inside.Add(-1)
						s.leave(b)
					default:
						s.leave(b)
						s.ReadBiased(me)
						s.ReleaseRead(me)
					}
				}
				return true
			})
			together := false
			for end := time.Now().Add(300 * time.Millisecond); !together && time.Now().Before(end); {
				if take(&s) {
					for range 20 {
						together = together || inside.Load() != 0
					}
					s.Release(1)
				}
			}
			stop.Store(true)
			require.True(t, isReading.result(t))
			require.False(t, together, "a writer and a reader")
			require.NoError(t, s.Verify())
		})
	}
}

// A reader without time to wait does not join the queue when it finds the bias gone. It may still
// be the last reader that a writer has seen in the table. Such a reader must look into the table.
func TestReadersThatCannotWaitLeaveNoWriterAsleep(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		require.True(t, s.ReadBiased(9))
		require.True(t, s.ReleaseRead(9))
		var stop atomic.Bool
		var readers []asyncCall
		for me := range int64(2) {
			readers = append(readers, run(func() bool {
				for !stop.Load() {
					if s.ReadFor(Owned(20+me), 0) {
						s.ReleaseRead(20 + me)
					}
				}
				return true
			}))
		}
		writer := run(func() bool {
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				s.Lock(Owned(1))
				s.Release(1)
				s.ReadBiased(9)
				s.ReleaseRead(9)
			}
			return true
		})
		defer func() {
			stop.Store(true)
			for _, r := range readers {
				r.result(t)
			}
		}()
		require.True(t, writer.result(t))
	})
}
