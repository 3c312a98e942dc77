package syncq

import (
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
)

// Tallied is the synchronizer of a read-write lock without owners that is FIFO. While no goroutine
// waits, its holds are in a word of their own, the tally, and readers add to that. An add cannot
// fail. A compare-and-swap fails when another reader was faster, and has to be repeated: a read by
// two goroutines takes twice as long. The zero Tallied is free. A Tallied must not be copied.
//
// # State
//
// The holds are in the tally or in the word of the Sync. A step that adds to the tally, and does
// not get what it asks for, is pending. The goroutine takes the guard, moves the holds to the word,
// takes its step back, and asks there. Let p be the number of pending reads less the number of
// pending releases. These are all legal states while the guard is free:
//
//	tally      word      queue
//	n          0         empty  n shared holds, or a free lock; p is 0
//	-m         0         empty  a free lock; p is -m
//	writing+p  0         empty  held exclusively
//	inWord+p   see Word  any    the word has the holds, and changes with the guard held only
//
// These are all steps. Those with the guard held begin with the second to last, and end with
// the last if they can.
//
//	by           from       to
//	AddShared    n          n+1         a shared hold
//	             any other  1 more      pending
//	DropShared   n > 0      n-1         a shared hold is over
//	             any other  1 less      pending
//	TryLockFree  0          writing     the exclusive hold
//	UnlockAlone  writing    0           the exclusive hold is over
//	moveToWord   any        inWord+p    guard held
//	change,      inWord+p   1 less or   guard held; a pending read or release is taken back, and
//	enqueue                 1 more      the word changes as in any Sync
//	moveToTally  inWord     n, writing  guard held, the queue is empty
//
// # Why the tally is exact
//
// A pending step is taken back in the state inWord+p alone, because moveToWord comes before.
// The swap of moveToTally finds p to be 0. Two pending steps may make p 0 together. Both are taken
// back when the holds are in the word again, and add up to 0 until then.
//
// So the tally begins to count with p = 0. While it is 0 or more, a step that is not pending
// changes it and the holds alike, and p stays 0. The tally falls below 0 by a release that finds no
// hold. Until the tally is back at 0, each step is pending, nobody holds the lock, and the tally
// is p. So the first two rows hold: the tally is the number of holds, or there are none.
// TryLockFree finds 0, so nobody holds the lock, and p is 0. UnlockAlone finds writing, so p is 0
// again. Thus moveToWord knows the holds and p from the tally, and neither loses nor invents a
// hold.
//
// # Why nothing else changes
//
// A hold is in one place at a time, so holds exclude each other as in a Sync. A goroutine joins the
// queue with the holds in the word, and they stay there while the queue is not empty. Meanwhile no
// step without the guard takes the lock or gives up a hold. So no newcomer overtakes a waiter. Each
// release takes the guard, and calls advance. A pending step holds nothing and bars nobody: a try
// that fails has found a holder, or a waiter that is to be next.
//
// The model is tally.pml.
type Tallied struct {
	s     Sync
	tally atomic.Int64
}

// The tallies that count no shared holds, without the pending steps.
const (
	inWord  = -1 << 61
	writing = 2 * inWord

	// Pending steps change a tally by less than room.
	room = -inWord / 2
)

// isWriting reports whether tally v says that the lock is held exclusively.
func isWriting(v int64) bool { return v < inWord-room }

// isInWord reports whether tally v says that the word has the holds.
func isInWord(v int64) bool { return v < inWord+room && !isWriting(v) }

// The following methods change the tally alone.

// AddShared takes a shared hold, unless a party holds the lock exclusively or waits. If AddShared
// fails, AcquireShared has to follow.
func (t *Tallied) AddShared() bool { return t.tally.Add(1) > 0 }

// DropShared gives a shared hold back. If DropShared fails, UnlockShared has to follow.
func (t *Tallied) DropShared() bool { return t.tally.Add(-1) >= 0 }

// BargeShared takes a shared hold unless the lock is held exclusively. It may fail in other cases.
func (t *Tallied) BargeShared() bool {
	for {
		switch v := t.tally.Load(); {
		case v < 0:
			return false
		case t.tally.CompareAndSwap(v, v+1):
			return true
		}
	}
}

// TryLockFree takes the lock exclusively if it is free. It may fail while a step is pending.
func (t *Tallied) TryLockFree() bool { return t.tally.CompareAndSwap(0, writing) }

// UnlockAlone gives the exclusive hold back if nobody waits. It may fail while a step is pending.
func (t *Tallied) UnlockAlone() bool { return t.tally.CompareAndSwap(writing, 0) }

// The following methods decide in all cases.

// TryLock takes the lock exclusively if it is free.
func (t *Tallied) TryLock() bool {
	v := t.tally.Load()
	return v <= 0 && !isWriting(v) && !t.HasQueued() && t.change(0, takeFree)
}

// Unlock gives the exclusive hold back. If there is none, Unlock does nothing, and reports false.
func (t *Tallied) Unlock() bool { return t.change(0, dropExclusive) }

// TryLockShared takes a shared hold unless the lock is held exclusively. It barges.
func (t *Tallied) TryLockShared() bool {
	return !isWriting(t.tally.Load()) && t.change(0, addShared)
}

// UnlockShared follows a DropShared that failed. If there is no shared hold, UnlockShared does
// nothing, and reports false.
func (t *Tallied) UnlockShared() bool { return t.change(-1, dropShared) }

// Acquire is Sync.Acquire.
func (t *Tallied) Acquire(p Party, l *park.Limit) Outcome {
	if l.None() {
		return outcomeOf(t.TryLock())
	}
	return t.acquire(t.s.newNode(p, false), l)
}

// AcquireShared is Sync.AcquireShared after AddShared has failed.
func (t *Tallied) AcquireShared(p Party, l *park.Limit) Outcome {
	if l.None() {
		return outcomeOf(t.change(1, addInTurn))
	}
	return t.acquire(t.s.newNode(p, true), l)
}

// outcomeOf returns the outcome of an acquisition that does not wait.
func outcomeOf(ok bool) Outcome {
	if ok {
		return Acquired
	}
	return Ended
}

// acquire is the rest of Acquire and AcquireShared.
func (t *Tallied) acquire(n *node, l *park.Limit) Outcome {
	if l == nil {
		if queued, guard := t.enqueue(n); queued {
			n.place.ParkAndUnlock(guard)
		}
		return n.end(Acquired)
	}
	n.limited = l.Open(&n.place)
	if queued, _ := t.enqueue(n); queued && !l.Park(&n.place, nil) {
		return n.end(n.leave())
	}
	return n.end(Acquired)
}

// enqueue is node.enqueue. If n is shared, the read of n is pending.
func (t *Tallied) enqueue(n *node) (queued bool, guard *sync.Mutex) {
	if n.who == 0 {
		n.who = goid.Get()
	}
	t.s.guard.Lock()
	t.moveToWord()
	if n.shared {
		t.tally.Add(-1)
	}
	_, queued = n.tryEnqueue() // it wakes nobody, since the lock is held if there are waiters
	if queued && !n.place.IsOpen() {
		return true, &t.s.guard
	}
	t.moveToTally()
	t.s.guard.Unlock()
	return queued, nil
}

// change takes back the pending step of the caller, which is 1, -1, or 0 if there is none. Then it
// changes the word by next. It reports false if next refused the word.
func (t *Tallied) change(pending int64, next step) bool {
	t.s.guard.Lock()
	t.moveToWord()
	if pending != 0 {
		t.tally.Add(-pending)
	}
	wake, ok := t.s.advance(next)
	t.moveToTally()
	t.s.guard.Unlock()
	unpark(wake)
	return ok
}

// These are the steps of change.

func takeFree(w uint64) (uint64, bool) { return Taken, w == 0 }

func addShared(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, !exclusive(w) }

func addInTurn(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, admitsReader(w) }

func dropExclusive(w uint64) (uint64, bool) { return 0, exclusive(w) }

// moveToWord moves the holds to the word if they are in the tally. The guard is held. Whatever the
// tally becomes between its two steps is less than 0, so every other goroutine awaits the guard.
func (t *Tallied) moveToWord() {
	if isInWord(t.tally.Load()) {
		return // that changes with the guard held only
	}
	switch v := t.tally.Add(inWord) - inWord; {
	case v > 0:
		t.tally.Add(-v)
		t.s.Word.Store(uint64(v)<<flagBits | flagShared)
	case isWriting(v):
		t.tally.Add(-writing)
		t.s.Word.Store(Taken)
	}
}

// moveToTally moves the holds to the tally if nobody waits, and p is 0. The guard is held. If p is
// not 0, the goroutine of a pending step will call moveToTally.
func (t *Tallied) moveToTally() {
	if t.s.queue.head != nil {
		return
	}
	holds := int64(t.s.Word.Shared())
	if t.s.Word.Owner() != 0 {
		holds = writing
	}
	if t.tally.CompareAndSwap(inWord, holds) {
		t.s.Word.Store(0)
	}
}

// NewCond returns a condition of the lock.
func (t *Tallied) NewCond() *Cond {
	c := NewCond(&t.s, FIFO)
	c.tallied = t
	return c
}

// Holds returns whether the lock is held exclusively, and the number of shared holds.
func (t *Tallied) Holds() (exclusively bool, shared int) {
	v := t.tally.Load()
	if isInWord(v) {
		t.s.guard.Lock()
		defer t.s.guard.Unlock()
		if v = t.tally.Load(); isInWord(v) {
			return t.s.Word.Owner() != 0, t.s.Word.Shared()
		}
	}
	return isWriting(v), int(max(v, 0))
}

// HasQueued reports whether a goroutine waits for the lock.
func (t *Tallied) HasQueued() bool { return t.s.HasQueued() }

// Len is Sync.Len.
func (t *Tallied) Len() int { return t.s.Len() }

// Waits is Sync.Waits.
func (t *Tallied) Waits(who int64) bool { return t.s.Waits(who) }

// Waiters is Sync.Waiters.
func (t *Tallied) Waiters() []int64 { return t.s.Waiters() }

// WaitersFor is Sync.WaitersFor.
func (t *Tallied) WaitersFor(shared bool) []int64 { return t.s.WaitersFor(shared) }
