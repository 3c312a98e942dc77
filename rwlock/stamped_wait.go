package rwlock

import (
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
)

// This file has the queue of a StampedLock.
//
// The state word alone says how the lock is held. Goroutines that cannot have it wait in one
// list, in the order of their arrival. The front of the list is its first writer, or the group of
// readers before it. All decisions about the list are made with the guard held.
//
// # A wait, step by step
//
//  1. The waiter spins for the time of about one hand-over.
//  2. With the guard held, it joins the list at its end, and settles: if the word has become one
//     that the front can have, the front is admitted at once. Otherwise the word gets the flag
//     parked.
//  3. It sleeps.
//  4. A release that makes the word available to the front finds parked, and takes the guard. In
//     one step it ends its own hold and admits the front.
//  5. If the lock becomes free, the first waiter is only told: it is unparked, and stays in the
//     list. It takes the lock when it runs. A writer may have come first (it barged); then the
//     waiter settles again, and sleeps.
//  6. If there are read holds, the group of readers in front is admitted with theirs: these are
//     counted in that very step, and the readers leave the list. A told reader that finds the
//     lock free, and a downgrade, so bring in the readers behind it.
//  7. A waiter whose limit ends leaves the list, and settles, because the next waiter may be the
//     front now.
//
// Step 5 does not hand the lock over, because a lock held by a goroutine that has yet to wake
// makes the next writer sleep too. With two goroutines and half of the holds writing, handing
// over took five times as long per hold (Zen 4, Go 1.26).
//
// # Why no wake-up is lost
//
// Whenever the guard is free, one of these holds:
//
//   - the list is empty;
//   - the word is not available to the front, and parked is set;
//   - the first waiter was told and has not looked at the word since. It will look.
//
// settle establishes this, and each change of the list ends with it. A step that makes the word
// available to the front ends the write hold or the last read hold, or downgrades. With parked
// set, each of these goes through admit, with the guard held. Without parked, the front was told.
//
// # Who gets the lock
//
// A waiter that was told in vain maxLost times, or for maxBarging, has the lock reserved:
// WriteLock leaves the free word alone until that waiter has had it. ReadLock never overtakes a
// writer: it stays out while pending is set.
const (
	maxLost    = 16
	maxBarging = time.Millisecond
)

// stampedWaiter is a goroutine in the list.
type stampedWaiter struct {
	place park.Place
	write bool

	// Guarded. A waiter with granted set is out of the list: it and next then belong to the
	// admitting goroutine until that has unparked it. A told waiter is unparked exactly once.
	granted    Stamp // a reader's hold, or tooMany
	told       bool  // it was unparked, is in the list, and has not looked at the word since
	reserved   bool  // and WriteLock may not barge
	lost       int   // how often it was told in vain
	since      time.Time
	prev, next *stampedWaiter
}

// Waiters are used again: a contended acquisition allocates nothing in the steady state.
var stampedWaiters = sync.Pool{New: func() any { return new(stampedWaiter) }}

// wait takes the lock in turn, and returns its stamp, tooMany, or 0 if the limit ended first.
func (l *StampedLock) wait(write bool, lim *park.Limit) Stamp {
	n := stampedWaiters.Get().(*stampedWaiter)
	n.write = write
	lim.Open(&n.place)
	defer lim.Stop()
	l.guard.Lock()
	l.push(n)
	l.settleAndUnlock()
	for {
		ended := !lim.Park(&n.place)
		st, over := l.look(n, ended)
		if !over {
			continue
		}
		n.end()
		if st != 0 && !write {
			l.state.afterWrites()
		}
		return st
	}
}

// look decides how the wait of n goes on after it was unparked, or when its limit has ended.
func (l *StampedLock) look(n *stampedWaiter, ended bool) (st Stamp, over bool) {
	l.guard.Lock()
	owed := ended && (n.told || n.granted != 0) // an Unpark that n has not seen
	n.told = false
	switch {
	case n.granted != 0:
		st = n.granted
		l.guard.Unlock()
	case ended:
		l.remove(n)
		l.settleAndUnlock()
	case n.write:
		if st = l.enterWrite(0); st != 0 {
			l.remove(n)
		} else {
			n.lose()
		}
		l.settleAndUnlock()
	default:
		if l.state.Load()&writing != 0 {
			n.lose()
		}
		first, k := l.settle(true)
		st = n.granted
		l.guard.Unlock()
		unpark(first, k)
		owed = st != 0 // n is the first of them
	}
	if owed {
		n.place.Park() // takes the permit, which is there or about to be
	}
	return st, ended || st != 0
}

// lose counts that n was told in vain.
func (n *stampedWaiter) lose() {
	if n.lost++; n.lost == 1 {
		n.since = time.Now()
	} else if n.lost >= maxLost || time.Since(n.since) >= maxBarging {
		n.reserved = true
	}
}

// settle makes the word agree with the list, and admits the front if the word is available to it.
// It is due after each change of the list. It returns the waiters that the caller has to unpark
// after it has released the guard, which is held. awake says that the front is the calling
// goroutine.
func (l *StampedLock) settle(awake bool) (first *stampedWaiter, k int) {
	for {
		s := l.state.Load()
		if first, k, ok := l.admit(s, s, awake); ok {
			return first, k
		}
	}
}

// settleAndUnlock settles, releases the guard, and wakes the admitted waiters.
func (l *StampedLock) settleAndUnlock() {
	first, k := l.settle(false)
	l.guard.Unlock()
	unpark(first, k)
}

// release changes the word from s to the given one, which may be available to the front, and
// admits that in the same step. If the word is not s, it does nothing, and returns false.
func (l *StampedLock) release(s, to uint64) bool {
	l.guard.Lock()
	first, k, ok := l.admit(s, to, false)
	l.guard.Unlock()
	unpark(first, k)
	return ok
}

// admit changes the word from s to the given one, with the flags that the list requires, and
// admits the front if that word is available to it: readers with their holds if there are read
// holds already, or if the first of them is awake; otherwise the first waiter is told. admit
// returns the k waiters that the caller has to unpark after it has released the guard. If the
// word is not s, it does nothing, and returns false. The guard is held.
func (l *StampedLock) admit(s, to uint64, awake bool) (first *stampedWaiter, k int, ok bool) {
	to &^= queued | pending | parked | reserved
	k, after := 0, l.head
	if to&writing == 0 && (awake || to&readers != 0) {
		for ; after != nil && !after.write; after = after.next {
			k++
		}
	}
	// The word counts the holds up to its room, and overflow the others.
	inWord := min(k, int((readers-to&readers)/reader))
	beyond := min(k-inWord, maxOverflow-l.overflow)
	to += uint64(inWord) * reader
	if after != nil {
		to |= queued
		if l.writers > 0 {
			to |= pending
		}
		switch {
		case to&writing != 0 || after.write && to&readers != 0:
			to |= parked
		case !after.told:
			first, k = after, 1
		}
		if after.reserved {
			to |= reserved
		}
	}
	if s != to && !l.state.CompareAndSwap(s, to) {
		return nil, 0, false
	}
	if first != nil {
		first.told = true
		return first, 1, true
	}
	l.overflow += beyond
	first = l.grant(k, inWord+beyond, stampOf(to, read))
	if first != nil && first.told {
		return first.next, k - 1, true // it is awake already, or about to be
	}
	return first, k, true
}

// grant takes the first k waiters, which are readers, out of the list, and gives the stamp of a
// hold to the first counted of them. The others have no room.
func (l *StampedLock) grant(k, counted int, st Stamp) (first *stampedWaiter) {
	if k == 0 {
		return nil
	}
	first = l.head
	n := first
	for i := range k {
		if i == counted {
			st = tooMany
		}
		n.granted = st
		n = n.next
	}
	l.head = n
	if n == nil {
		l.tail = nil
	} else {
		n.prev = nil
	}
	l.waiting -= k
	return first
}

// unpark wakes n and the k-1 waiters behind it.
func unpark(n *stampedWaiter, k int) {
	for ; k > 1; k-- {
		next := n.next // once it is unparked, n is its user's again
		n.place.Unpark()
		n = next
	}
	if k == 1 {
		n.place.Unpark()
	}
}

// end makes n as good as new.
func (n *stampedWaiter) end() {
	n.place.Reset()
	n.granted, n.told, n.reserved, n.lost = 0, false, false, 0
	n.prev, n.next = nil, nil
	stampedWaiters.Put(n)
}

// push adds n at the end of the list.
func (l *StampedLock) push(n *stampedWaiter) {
	n.prev = l.tail
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.count(n, 1)
}

// remove takes n out of the list.
func (l *StampedLock) remove(n *stampedWaiter) {
	if n.prev == nil {
		l.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	l.count(n, -1)
}

func (l *StampedLock) count(n *stampedWaiter, by int) {
	l.waiting += by
	if n.write {
		l.writers += by
	}
}

// A spin looks at the word spinRounds times, spinPause pauses apart: some 200 ns in all, about
// one hand-over, so that spinning in vain at most doubles what waiting costs.
const (
	spinRounds = 4
	spinPause  = 2
)

// spins says that a holder can be running while another goroutine spins.
var spins = runtime.NumCPU() > 1

// spinWrite tries for a short while to take a lock that is held for a short while.
func (l *StampedLock) spinWrite() Stamp {
	st := l.enterWrite(reserved)
	for range spinRounds {
		if st != 0 || !spins {
			break
		}
		pause.Pause(spinPause)
		st = l.enterWrite(reserved)
	}
	return st
}

// spinRead does the same for a read hold, for as long as no writer waits.
func (l *StampedLock) spinRead() Stamp {
	st := l.enterRead(pending)
	for range spinRounds {
		if st != 0 || !spins || l.state.Load()&pending != 0 {
			break
		}
		pause.Pause(spinPause)
		st = l.enterRead(pending)
	}
	return st
}
