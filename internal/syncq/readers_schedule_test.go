package syncq

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
)

// As in schedule_test.go, these tests hold the guard, or take a single step of the protocol by
// hand, to bring about the rare orders of events.

// bothPolicies runs f with a lock of each.
func bothPolicies(t *testing.T, f func(t *testing.T, s *Sync, policy Policy)) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO} {
		t.Run(name, func(t *testing.T) {
			s := New(policy)
			f(t, &s, policy)
			require.NoError(t, s.Verify())
			require.True(t, s.Idle())
			require.Zero(t, s.ReadCount())
			require.True(t, s.readers().empty())
		})
	}
}

func writes(s *Sync, o int64, policy Policy) asyncCall {
	return run(func() bool { s.Lock(Owned(o), policy); return true })
}

// neighbour returns a goroutine that hashes to the same slot as o.
func neighbour(s *Sync, o int64) int64 {
	t := s.readers()
	for n := o + 1; ; n++ {
		if t.slot(n) == t.slot(o) {
			return n
		}
	}
}

func readAs(s *Sync, o int64, policy Policy) asyncCall {
	return run(func() bool { s.ReadBiased(o, policy); return true })
}

func TestTheReaderThatBlocksAWriterHandsOverToIt(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		require.True(t, s.Biased())
		require.False(t, s.TryLockUnread(Owned(1), policy))
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		require.False(t, s.Biased(), "or readers would come in for ever")
		require.NoError(t, s.Verify())
		require.False(t, s.LockSharedFor(Owned(3), policy, 0))
		require.True(t, s.Unread(2, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestAReaderThatFindsTheBiasGoneHandsOver(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		require.True(t, s.Unread(2, policy)) // biased, and read by nobody
		b := s.Slot(3)
		require.True(t, s.Biased() && b.Take(3)) // as RLock does, which has yet to confirm it
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		require.False(t, s.Biased())
		require.Zero(t, s.Owner())
		exit(s, b, policy)
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestAnEntryWithoutBiasKeepsNoWriterOut(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		require.True(t, s.Unread(2, policy))
		require.True(t, s.TryLockUnread(Owned(1), policy))
		b := s.Slot(3)
		require.True(t, b.Take(3)) // it looked for the bias before
		require.False(t, s.Biased())
		require.True(t, s.Release(1, policy))
		require.True(t, s.TryLock(Owned(1)), "the entry is no hold")
		exit(s, b, policy)
		require.EqualValues(t, 1, s.Owner())
		require.True(t, s.Release(1, policy))
	})
}

func TestOnlyTheLastReaderOutHandsOver(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		o := neighbour(s, 2) // one of the collided
		for _, r := range []int64{2, 3, o} {
			s.ReadBiased(r, policy)
		}
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		for _, r := range []int64{3, o} {
			require.True(t, s.Unread(r, policy))
			require.Zero(t, s.Owner())
			require.NoError(t, s.Verify())
		}
		held, counted := s.ReenterRead(2)
		require.True(t, held && counted)
		require.True(t, s.Unread(2, policy))
		require.Zero(t, s.Owner())
		require.True(t, s.Unread(2, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestTwoReadersThatLeaveTogetherEndTheTablesHoldOnce(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		for range 100 {
			s.ReadBiased(2, policy)
			s.ReadBiased(3, policy)
			w := writes(s, 1, policy)
			eventually(t, func() bool { return s.Len() == 1 })
			s.guard.Lock()
			a := run(func() bool { return s.Unread(2, policy) })
			b := run(func() bool { return s.Unread(3, policy) })
			eventually(t, s.readers().empty) // both are out, and one at least has to have the guard
			s.guard.Unlock()
			require.True(t, a.result(t))
			require.True(t, b.result(t))
			require.True(t, w.result(t))
			require.Equal(t, Value(1), s.Word.Load())
			require.True(t, s.Release(1, policy))
			require.Zero(t, s.Word.Load())
		}
	})
}

func TestAnOldLookAtTheTableSparesANewReader(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		s.Revoke(policy)
		s.guard.Lock()
		out := run(func() bool { return s.Unread(2, policy) })
		eventually(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*Sync).ReadersLeft") // it has looked
		require.True(t, s.TryRead(3, policy))
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.Equal(t, 1, s.ReadHolds(3))
		require.False(t, s.TryLock(Owned(1)))
		require.False(t, s.TryLockUnread(Owned(1), policy))
		require.True(t, s.Unread(3, policy))
	})
}

func TestAnOldLookAtTheTableSparesANewBias(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		s.Revoke(policy)
		s.guard.Lock()
		out := run(func() bool { return s.Unread(2, policy) })
		eventually(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*Sync).ReadersLeft") // it has looked
		s.advance(policy, keep)                    // for another reader that left
		require.True(t, s.ReadBiased(3, policy))
		require.True(t, s.Unread(3, policy))
		require.True(t, s.Biased())
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.True(t, s.Biased(), "a reader that enters an empty table now reads, so the table has to keep its hold")
		require.False(t, s.TryLock(Owned(1)))
	})
}

func TestAnOldLookAtTheTableSparesABargingReader(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		w := writes(s, 1, policy) // keeps the bias away
		eventually(t, func() bool { return s.Len() == 1 })
		s.guard.Lock()
		out := run(func() bool { return s.Unread(2, policy) })
		eventually(t, s.readers().empty)
		atGuard(t, 1, "syncq.(*Sync).ReadersLeft") // it has looked
		require.True(t, s.TryRead(3, policy))
		s.guard.Unlock()
		require.True(t, out.result(t))
		require.Zero(t, s.Owner(), "3 reads")
		require.True(t, s.Unread(3, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestReadersAtTheHeadHoldTheLockBeforeTheyRun(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.TryLock(Owned(1)))
		first, second := readAs(s, 2, policy), readAs(s, 3, policy)
		eventually(t, func() bool { return s.Len() == 2 })
		s.guard.Lock()
		wake, ok := s.advance(policy, drop)
		require.True(t, ok)
		require.Equal(t, 2, s.Shared())
		require.False(t, s.TryLock(Owned(1)), "not even for the one that is back first")
		s.guard.Unlock()
		unpark(wake)
		require.True(t, first.result(t))
		require.True(t, second.result(t))
		require.True(t, s.Unread(2, policy))
		require.True(t, s.Unread(3, policy))
	})
}

func TestReadersAreCountedWhileAWriterWaits(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.TryLock(Owned(1)))
		r := readAs(s, 2, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		w := writes(s, 3, policy)
		eventually(t, func() bool { return s.Len() == 2 })
		require.True(t, s.Release(1, policy))
		require.True(t, r.result(t))
		require.Equal(t, oneHold|flagShared|flagQueued, s.Word.Load()&^flagReserved)
		require.NoError(t, s.Verify())
		require.True(t, s.TryRead(4, policy), "past the writer")
		require.Equal(t, 2*oneHold|flagShared|flagQueued, s.Word.Load()&^flagReserved)
		require.True(t, s.Unread(2, policy))
		require.Zero(t, s.Owner())
		require.True(t, s.Unread(4, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(3, policy))
	})
}

func TestAnEnteringReaderSendsAWriterToTheQueue(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		require.True(t, s.Unread(2, policy))
		s.guard.Lock()
		var seized bool
		seize := run(func() bool { seized = s.TryLockUnread(Owned(1), policy); return true })
		atGuard(t, 1, "syncq.(*Sync).TryLockUnread") // it has seen an empty table
		require.True(t, s.Slot(3).Take(3))
		require.True(t, s.Biased(), "and so reads")
		s.guard.Unlock()
		require.True(t, seize.result(t))
		require.False(t, seized)
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		exit(s, s.Slot(3), policy)
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestAReaderAfterAFailedUpgradeIsCounted(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		s.ReadBiased(2, policy)
		s.ReadBiased(3, policy)
		upgraded, has := s.Upgrade(2, policy)
		require.True(t, has)
		require.False(t, upgraded)
		s.ReadBiased(4, policy)
		require.False(t, s.Biased(), "not while the readers of before leave")
		require.Equal(t, 2, s.Shared())
		require.NoError(t, s.Verify())
		require.True(t, s.Unread(4, policy))
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		upgraded, _ = s.Upgrade(2, policy)
		require.False(t, upgraded)
		require.False(t, s.Biased())
		require.True(t, s.Unread(3, policy))
		upgraded, _ = s.Upgrade(2, policy)
		require.True(t, upgraded)
		require.NoError(t, s.Verify())
		require.True(t, s.Release(2, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestTheBiasComesAfterManyReadsBesideAReader(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		readCounted := func(times int) {
			for k := range times {
				require.True(t, s.Read(Owned(2), policy))
				require.Equal(t, 2*oneHold|flagShared, s.Word.Load(), "read %d is counted", k)
				require.True(t, s.Unread(2, policy))
				require.Equal(t, oneHold|flagShared, s.Word.Load())
			}
		}
		write := func() {
			require.True(t, s.LockFor(Owned(1), policy, 0))
			s.Wrote()
			require.True(t, s.Release(1, policy))
		}
		for range 2 {
			require.True(t, s.TryLockShared())
			readCounted(unbiasedReads - 1)
			require.True(t, s.UnlockShared(policy))
			write()
			require.True(t, s.TryLockShared())
			readCounted(unbiasedReads - 1)
			require.True(t, s.Read(Owned(2), policy))
			require.Equal(t, 3*oneHold|flagShared|flagVisible|flagBiased, s.Word.Load(), "another's, its own, the table's")
			require.True(t, s.Unread(2, policy))
			require.True(t, s.UnlockShared(policy))
			require.True(t, s.Read(Owned(2), policy))
			require.Equal(t, oneHold|flagShared|flagVisible|flagBiased, s.Word.Load(), "reads by the table's hold")
			require.True(t, s.Unread(2, policy))
			write()
		}
	})
}

func TestNoReaderSetsTheBiasBesideAWaiter(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.Read(Owned(3), policy))
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		s.readers().slot(2).reads = unbiasedReads
		require.True(t, s.TryRead(2, policy), "past a waiter")
		require.False(t, s.Biased())
		require.True(t, s.Unread(2, policy))
		require.True(t, s.Unread(3, policy))
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

// wokenWriter returns the wait of party 2, which a release of the lock has woken, and which has not
// run since.
func wokenWriter(t *testing.T, s *Sync) *node {
	require.True(t, s.TryLock(Owned(1)))
	n := newNode(Owned(2), false)
	require.True(t, s.join(n, NonFair))
	require.True(t, s.Release(1, NonFair))
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	return n
}

func TestAReaderPassesAWriterThatWasJustWokenOnce(t *testing.T) {
	s := new(Sync)
	n := wokenWriter(t, s)
	require.True(t, s.TryLockSharedInTurn())
	require.Equal(t, Acquired, s.AcquireShared(Owned(3), NonFair, park.After(0)))
	_, waits := s.tryEnqueue(newNode(Owned(4), true), NonFair)
	require.False(t, waits)
	require.NoError(t, s.verifyWord())

	n.place.Park()
	require.False(t, s.compete(n))
	require.Equal(t, 3*oneHold|flagShared|flagQueued|flagReserved, s.Word.Load(), "the lock is the writer's next")
	require.False(t, s.TryLockSharedInTurn())
	require.Equal(t, Ended, s.AcquireShared(Owned(3), NonFair, park.After(0)))
	require.True(t, s.TryUnlockShared())
	require.True(t, s.TryUnlockShared())
	require.False(t, s.TryUnlockShared(), "the last reader has to tell the writer")
	require.True(t, s.UnlockShared(NonFair))
	require.True(t, s.HeldBy(2))
	n.place.Park()
	require.True(t, s.compete(n))
	n.recycle()
	require.True(t, s.Release(2, NonFair))
}

func TestAReaderThatPassedAWokenWriterTellsNobody(t *testing.T) {
	s := new(Sync)
	n := wokenWriter(t, s)
	require.True(t, s.TryLockSharedInTurn())
	require.True(t, s.TryUnlockShared())
	require.Equal(t, flagQueued|flagWoken, s.Word.Load())
	require.NoError(t, s.verifyWord())
	n.place.Park()
	require.True(t, s.compete(n))
	n.recycle()
	require.True(t, s.HeldBy(2))
	require.True(t, s.Release(2, NonFair))
}

func TestAReaderMayCutInBeforeAReleaseHasWokenTheWriter(t *testing.T) {
	s := new(Sync)
	require.True(t, s.TryLock(Owned(1)))
	n := newNode(Owned(2), false)
	require.True(t, s.join(n, NonFair))
	s.Word.Store(flagQueued | flagWoken) // the first half of the release
	require.True(t, s.TryLockSharedInTurn())
	s.guarded(NonFair, keep) // the second
	require.Equal(t, oneHold|flagShared|flagQueued|flagReserved, s.Word.Load())
	require.NoError(t, s.verifyWord())
	require.True(t, s.UnlockShared(NonFair))
	n.place.Park()
	require.True(t, s.compete(n))
	n.recycle()
	require.True(t, s.Release(2, NonFair))
}

func TestAnUnusedBiasDoesNotKeepACountedReaderFromAnUpgrade(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.Read(Owned(2), policy))
		require.True(t, s.ReadBiased(3, policy))
		upgraded, _ := s.Upgrade(2, policy)
		require.False(t, upgraded, "3 reads")
		require.True(t, s.Unread(3, policy))
		upgraded, _ = s.Upgrade(2, policy)
		require.True(t, upgraded)
		require.Equal(t, Value(2), s.Word.Load())
		require.True(t, s.Release(2, policy))
	})
}

func TestCountedReadersOfOneSlotLeaveInAnyOrder(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		a := int64(2)
		b := neighbour(s, a)
		c := neighbour(s, b)
		require.True(t, s.TryLockShared(), "so that a is not the first reader")
		require.True(t, s.Read(Owned(a), policy))
		require.True(t, s.Read(Owned(b), policy))
		require.True(t, s.ReadBiased(c, policy))
		require.True(t, s.UnlockShared(policy))
		require.Equal(t, 3*oneHold|flagShared|flagVisible|flagBiased, s.Word.Load())
		require.NoError(t, s.Verify())
		require.Equal(t, 3, s.ReadCount())
		for _, o := range []int64{a, b} {
			held, counted := s.ReenterRead(o)
			require.True(t, held && counted)
			require.Equal(t, 2, s.ReadHolds(o))
			require.True(t, s.Unread(o, policy))
		}
		w := writes(s, 1, policy)
		eventually(t, func() bool { return s.Len() == 1 })
		for _, o := range []int64{a, c, b} {
			require.Zero(t, s.Owner())
			require.NoError(t, s.Verify())
			require.True(t, s.Unread(o, policy))
			require.False(t, s.Unread(o, policy))
		}
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestASignalOnAnIdleBiasedLockWakesTheWaiter(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		c := NewCond(s, policy)
		require.True(t, s.TryLock(Owned(1)))
		w := run(func() bool { c.Wait(Owned(1), nil); return true })
		eventually(t, func() bool { return c.Len() == 1 })
		s.ReadBiased(2, policy)
		require.True(t, s.Unread(2, policy)) // biased, and idle, when it should be the signaller's
		require.True(t, c.Signal())
		require.True(t, w.result(t))
		require.True(t, s.Release(1, policy))
	})
}

func TestSharedHoldsStopAtTheirLimitInSlotAndCrowd(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		o := neighbour(s, 2)
		require.True(t, s.ReadBiased(2, policy))
		require.True(t, s.ReadBiased(o, policy))
		b := s.Slot(2)
		require.Same(t, b, s.Slot(o))
		b.others[o] = MaxHolds - 1
		held, counted := s.ReenterRead(o)
		require.True(t, held && counted)
		held, counted = s.ReenterRead(o)
		require.True(t, held)
		require.False(t, counted)
		require.Equal(t, MaxHolds, s.ReadHolds(o))
		b.others[o] = 1

		b.reentries.set(MaxHolds - 2)
		require.True(t, b.Reenter())
		require.False(t, b.Reenter())
		held, counted = s.ReenterRead(2)
		require.True(t, held)
		require.False(t, counted)
		require.Equal(t, MaxHolds, s.ReadHolds(2))
		b.reentries.set(0)
		require.True(t, s.Unread(2, policy))
		require.True(t, s.Unread(o, policy), "from the collided, while the slot is free")
	})
}

func TestAnIdleBiasedLockIsAcquiredWithoutAWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, lock := range map[string]func(s *Sync, policy Policy) bool{
		"Lock":        func(s *Sync, policy Policy) bool { s.Lock(Owned(1), policy); return true },
		"LockFor":     func(s *Sync, policy Policy) bool { return s.LockFor(Owned(1), policy, time.Hour) },
		"LockContext": func(s *Sync, policy Policy) bool { return s.LockContext(ctx, Owned(1), policy) == Acquired },
		"wait": func(s *Sync, policy Policy) bool {
			require.True(t, s.TryLock(Owned(1)))
			// Readers come while it waits, so that it finds the bias when its time is up.
			stop := make(chan struct{})
			c := NewCond(s, policy)
			w := run(func() bool {
				return !c.Wait(Owned(1), until(stop))
			})
			eventually(t, func() bool { return c.Len() == 1 })
			s.ReadBiased(2, policy)
			require.True(t, s.Unread(2, policy))
			close(stop)
			return w.result(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
				s.ReadBiased(2, policy)
				require.True(t, s.Unread(2, policy))
				if name == "wait" {
					s.Revoke(policy)
				} else {
					require.True(t, s.Biased())
				}
				require.True(t, run(func() bool { return lock(s, policy) }).result(t))
				require.EqualValues(t, 1, s.Owner())
				require.True(t, s.Release(1, policy))
			})
		})
	}
}

// The reader is in the slot that a writer looks at first, of so many that a lot can happen
// until it has looked at the last.
func TestAReaderEnteringDuringALookKeepsTheWriterOut(t *testing.T) {
	for name, take := range map[string]func(s *Sync) bool{
		"TryLockUnread": func(s *Sync) bool { return s.TryLockUnread(Owned(1), NonFair) },
		"Upgrade": func(s *Sync) bool {
			s.ReadBiased(1, NonFair)
			upgraded, _ := s.Upgrade(1, NonFair)
			if !upgraded {
				s.Unread(1, NonFair)
			}
			return upgraded
		},
	} {
		t.Run(name, func(t *testing.T) {
			const bits = 14
			var s Sync
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
					case !b.Take(me):
					case s.Biased():
						inside.Add(1)
						runtime.Gosched()
						inside.Add(-1)
						exit(&s, b, NonFair)
					default:
						exit(&s, b, NonFair)
						s.ReadBiased(me, NonFair)
						s.Unread(me, NonFair)
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
					s.Release(1, NonFair)
				}
			}
			stop.Store(true)
			require.True(t, isReading.result(t))
			require.False(t, together, "a writer and a reader")
			require.NoError(t, s.Verify())
		})
	}
}

// A reader without time to wait does not go to the queue when it finds the bias gone. It may still
// be the last reader that a writer has seen in the table. Then it has to look into the table.
func TestReadersWithNoTimeToWaitLeaveNoWriterAsleep(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *Sync, policy Policy) {
		require.True(t, s.ReadBiased(9, policy))
		require.True(t, s.Unread(9, policy))
		var stop atomic.Bool
		var readers []asyncCall
		for me := range int64(2) {
			readers = append(readers, run(func() bool {
				for !stop.Load() {
					if s.ReadFor(Owned(20+me), policy, 0) {
						s.Unread(20+me, policy)
					}
				}
				return true
			}))
		}
		writer := run(func() bool {
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
				s.Lock(Owned(1), policy)
				s.Release(1, policy)
				s.ReadBiased(9, policy)
				s.Unread(9, policy)
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
