package rwlock

import (
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/ownerless"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// This file has the queue of a StampedLock.
//
// The state word alone says how the lock is held. Waiters are in one list, in order of arrival.
// The front of the list is its first writer, or the group of readers before it. All decisions
// about the list are made with the guard held.
//
// # A wait, step by step
//
//  1. The waiter spins for about the time of one hand-off.
//  2. With the guard held, it enqueues at the end of the list, and settles: if the word is
//     available to the front by now, the front is admitted at once. Otherwise the word gets the
//     flag parked.
//  3. It parks.
//  4. A release that makes the word available to the front finds parked, and takes the guard. In
//     one step it ends its own hold and admits the front.
//  5. If the lock becomes free, and only readers wait, all of them are sent: they leave the list,
//     and are unparked. Each of them asks for the lock as a newcomer does when it runs. If it asks
//     in vain, it waits again, from step 2. If one of the readers has been sent in vain
//     syncq.MaxLost times, none is sent, and step 6 follows.
//  6. Otherwise, if the lock becomes free, the first waiter is only woken: it is unparked, and
//     stays in the list. It acquires the lock when it runs. If a writer has barged, the waiter
//     settles again, and parks.
//  7. If there are read holds, the group of readers in front joins them: the same step counts
//     their holds, and removes them from the list. A woken reader that finds the lock free, and a
//     downgrade, admit the readers behind it in the same way.
//  8. A waiter whose limit ends removes itself from the list, and settles, because the next
//     waiter may be the front now.
//
// Steps 5 and 6 do not hand the lock off: if the holder still sleeps, the next writer parks too.
// With two goroutines and half of the holds writing, handing off took five times as long per hold
// (Zen 4, Go 1.26). If readers that sleep were granted the lock, the next writer would wait until
// each of them has a processor, and each goroutine that comes meanwhile would park.
//
// # Why no wake-up is lost
//
// Whenever the guard is free, one of these holds:
//
//   - the list is empty;
//   - the word is not available to the front, and parked is set;
//   - the first waiter was woken and has not looked at the word since. It will look.
//
// A reader that was sent is in no list. No waiter depends on it, and it will ask again itself.
//
// settle establishes this, and each change of the list ends with it. The steps that can make the
// word available to the front are the end of a write hold, the end of the last read hold, and a
// downgrade. With parked set, each of these goes through admit, with the guard held. Without
// parked, the front was woken.
//
// # Who gets the lock
//
// A waiter that was woken or sent in vain syncq.MaxLost times, or woken in vain for too long, has
// the lock reserved: WriteLock does not acquire the free word until that waiter has had it. For a
// reader, too long is syncq.MaxBarging from its first vain look on. For a writer, it is syncq.MaxBarging
// from its arrival on, and as much again for each syncq.LongQueue waiters. If an awake writer gets
// no processor, a writer that overtakes it makes the reservation (countBarger). A waiting writer
// that gets the lock makes the reservation for the next one (reserveOverdue). If a waiter with a
// reservation is a reader, the lock is reserved as soon as readers are in front: all of them enter
// together. ReadLock never overtakes a writer: it waits while pending is set.

// stampedWaiter is a goroutine in the list.
type stampedWaiter struct {
	place park.Place
	write bool
	who   int64 // the goroutine

	// Guarded. A waiter with granted set is out of the list. Then granted and next belong to the
	// admitting goroutine until it has unparked the waiter. A woken waiter is unparked exactly
	// once.
	granted    Stamp     // a reader's hold, or tooMany
	woken      bool      // it was unparked, is in the list, and has not looked at the word since
	sent       bool      // it is out of the list without a hold, and was unparked or is about to be
	reserved   bool      // WriteLock must not barge
	lost       int       // how often it was woken or sent in vain
	since      time.Time // when a writer joined the list, or a reader first lost
	prev, next *stampedWaiter
}

// Waiters are reused: a contended acquisition allocates nothing in the steady state.
var stampedWaiters = sync.Pool{New: park.Maker(func(n *stampedWaiter) *park.Place { return &n.place })}

// stamped is named in tests by package deadlock, which sees no waits for a StampedLock.
var stamped = ownerless.Kind{Name: "rwlock.StampedLock"}

// wait acquires the lock in turn, and returns its stamp, tooMany, or 0 if the limit ended first.
func (l *StampedLock) wait(write bool, lim *park.Limit) Stamp {
	stamped.Waits()
	n := stampedWaiters.Get().(*stampedWaiter)
	n.write, n.who = write, goid.Get()
	lim.Open(&n.place)
	l.join(n)
	for {
		ended := !lim.Park(&n.place, nil)
		st, over := l.look(n, ended)
		if !over {
			continue
		}
		n.end()
		if st != 0 && !write {
			l.state.AfterWrites()
		}
		return st
	}
}

// join puts n at the end of the list.
func (l *StampedLock) join(n *stampedWaiter) {
	if n.write {
		n.since = time.Now()
	}
	l.guard.Lock()
	l.fold()
	l.push(n)
	l.settleAndUnlock()
}

// look decides how the wait of n continues after it was unparked or its limit has ended.
func (l *StampedLock) look(n *stampedWaiter, ended bool) (st Stamp, over bool) {
	l.guard.Lock()
	unparked := ended && (n.woken || n.sent || n.granted != 0) // an Unpark that n has not seen
	n.woken = false
	switch {
	case n.granted != 0:
		st = n.granted
		l.guard.Unlock()
	case n.sent:
		l.guard.Unlock()
		if st = l.acquireRead(pending); st == 0 && !ended {
			n.sent, n.next = false, nil
			n.lost++
			n.reserved = n.reserved || n.lost >= syncq.MaxLost
			l.join(n)
		}
	case ended:
		l.remove(n)
		l.settleAndUnlock()
	case n.write:
		if st = l.acquireWrite(0); st != 0 {
			l.remove(n)
			l.reserveOverdue()
		} else {
			l.lose(n)
		}
		l.settleAndUnlock()
	default:
		if l.state.Load()&writing != 0 {
			l.lose(n)
		}
		first, k := l.settle(true)
		st = n.granted
		l.guard.Unlock()
		unpark(first, k)
		unparked = st != 0 // n is the first of them
	}
	if unparked {
		n.place.Park() // takes the permit, which is there or about to be
	}
	return st, ended || st != 0
}

// lose counts that n, which is in the list, was woken in vain. The guard is held.
func (l *StampedLock) lose(n *stampedWaiter) {
	l.count(n, -1)
	if n.lost++; n.since.IsZero() {
		n.since = time.Now()
	}
	n.reserved = n.reserved || n.lost >= syncq.MaxLost || time.Since(n.since) >= l.patience(n)
	l.count(n, 1)
}

// patience is how long n waits before the lock is reserved for it. The guard is held.
func (l *StampedLock) patience(n *stampedWaiter) time.Duration {
	if !n.write {
		return syncq.MaxBarging
	}
	return syncq.MaxBarging * time.Duration(1+l.waiting/syncq.LongQueue)
}

// countBarger follows each write hold that spinWrite takes past waiters. The word was free, so the
// first waiter is awake. Goroutines can pass the lock to each other without ever finding it held.
// The first waiter loses no race meanwhile, because it gets a processor only when Go ends a time
// slice. So one in syncq.BargedRounds such holds looks whether the first waiter is a writer that is
// overdue, and reserves the lock for that writer. Package syncq has the same bound (Barged).
//
// Other goroutines may change the word meanwhile. But the first waiter stays woken while the guard
// is held, and reserved is legal in all words of the table with a first waiter that was woken.
func (l *StampedLock) countBarger() {
	if !l.barges.Count(syncq.BargedRounds) || !l.guard.TryLock() {
		return
	}
	defer l.guard.Unlock()
	if n := l.head; n == nil || !n.woken || !l.reserveOverdue() {
		return
	}
	for s := l.state.Load(); !l.state.CompareAndSwap(s, s|reserved); s = l.state.Load() {
	}
}

// reserveOverdue reserves the lock for the first waiter if that is a writer and overdue, and
// reports whether it did. The guard is held. The caller changes the word.
//
// A writer that won its race calls it for the next waiter. So all overdue writers get the lock one
// after the other, and then nobody is overdue for a while. With a reservation by bargers only, each
// waiter needed syncq.BargedRounds of them, and an acquisition by 64 goroutines took 1.6 times as
// long (Go 1.26.8).
func (l *StampedLock) reserveOverdue() bool {
	n := l.head
	if n == nil || n.reserved || !n.write || time.Since(n.since) < l.patience(n) {
		return false
	}
	n.reserved = true
	l.overdue++
	return true
}

// settle makes the word agree with the list, and admits the front if the word is available to it.
// Each change of the list requires it. The guard is held. The caller must unpark the returned
// waiters after it has released the guard. awake means that the front is the calling goroutine.
func (l *StampedLock) settle(awake bool) (first *stampedWaiter, k int) {
	for {
		s := l.state.Load()
		if first, k, ok := l.admit(s, s, awake); ok {
			return first, k
		}
	}
}

// settleAndUnlock settles, releases the guard, and unparks the admitted waiters.
func (l *StampedLock) settleAndUnlock() {
	first, k := l.settle(false)
	l.guard.Unlock()
	unpark(first, k)
}

// release changes the word from s to the given one, and admits the front in the same step if the
// word is available to it. If the word is not s, it does nothing, and returns false.
//
// If release wakes a writer with a reservation, it yields its processor to that writer. Otherwise
// the releasing goroutine would go on until it wants the lock again, and park. The processor of the
// writer would meanwhile wake another processor for nothing.
func (l *StampedLock) release(s, to uint64) bool {
	l.guard.Lock()
	first, k, ok := l.admit(s, to, false)
	yields := ok && k == 1 && first.write && first.reserved
	l.guard.Unlock()
	unpark(first, k)
	if yields {
		runtime.Gosched()
	}
	return ok
}

// admit changes the word from s to the given one, with the flags that the list requires, and admits
// the front if that word is available to it. The guard is held. If there are read holds already, or
// the first waiter is awake, the readers in front get their holds at once. Otherwise all waiters
// are sent, or the first is woken. The caller must unpark the k returned waiters after it has
// released the guard. If the word is not s, admit does nothing, and returns false.
func (l *StampedLock) admit(s, to uint64, awake bool) (first *stampedWaiter, k int, ok bool) {
	to &^= queued | pending | parked | reserved
	k, after := 0, l.head
	switch {
	case to&writing != 0:
	case awake || to&readers != 0:
		for ; after != nil && !after.write; after = after.next {
			k++
		}
	case l.sends():
		if s != to && !l.state.CompareAndSwap(s, to) {
			return nil, 0, false
		}
		first, k = l.send()
		return first, k, true
	}
	// The word counts as many holds as fit, and overflow the others.
	inWord := min(k, int((readers-to&readers)/reader))
	beyond := min(k-inWord, max(0, maxOverflow-int(l.overflow)))
	to += uint64(inWord) * reader
	if after != nil {
		to |= queued
		if l.writers > 0 {
			to |= pending
		}
		switch {
		case to&writing != 0 || after.write && to&readers != 0:
			to |= parked
		case !after.woken:
			first, k = after, 1
		}
		if l.isReserved(after) {
			to |= reserved
		}
	}
	if s != to && !l.state.CompareAndSwap(s, to) {
		return nil, 0, false
	}
	if first != nil {
		first.woken = true
		return first, 1, true
	}
	l.overflow += int32(beyond)
	first = l.grant(k, inWord+beyond, stampOf(to, read))
	if first != nil && first.woken {
		return first.next, k - 1, true // it is awake already, or about to be
	}
	return first, k, true
}

// sends reports whether a release that frees the lock sends all waiters: readers only, none of
// which was sent in vain too often, or is awake. A writer behind the readers would be woken with
// them, and could overtake them. Under exploration no reader is sent, because the schedules in
// which the reader comes later show the same.
func (l *StampedLock) sends() bool {
	return l.head != nil && l.writers == 0 && l.overdue == 0 && !l.head.woken && spins &&
		!(sched.On && sched.Explored())
}

// send takes all waiters out of the list, and tells them to ask again.
func (l *StampedLock) send() (first *stampedWaiter, k int) {
	first, k = l.head, int(l.waiting)
	for n := first; n != nil; n = n.next {
		n.sent = true
	}
	l.head, l.tail, l.waiting = nil, nil, 0
	return first, k
}

// isReserved reports whether the lock is reserved for the front, whose first waiter is n. Readers
// in front enter together, and so an overdue reader among them counts for all.
func (l *StampedLock) isReserved(n *stampedWaiter) bool {
	return n.reserved || !n.write && l.overdue > 0
}

// grant removes the first k waiters, which are readers, from the list. The first counted of them
// get st, the stamp of a hold. The others get tooMany.
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
		if n.granted = st; n.reserved {
			l.overdue--
		}
		n = n.next
	}
	l.head = n
	if n == nil {
		l.tail = nil
	} else {
		n.prev = nil
	}
	l.waiting -= int32(k)
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

// end resets n and recycles it.
func (n *stampedWaiter) end() {
	n.place.Reset()
	n.granted, n.woken, n.sent, n.reserved, n.lost, n.since = 0, false, false, false, 0, time.Time{}
	n.prev, n.next = nil, nil
	stampedWaiters.Put(n)
}

// push appends n to the list.
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

// remove removes n from the list.
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

func (l *StampedLock) count(n *stampedWaiter, by int32) {
	if l.waiting += by; l.waiting == 3 {
		l.barges.Crowd() // of two waiters, one may have been woken by the other
	}
	if n.write {
		l.writers += by
	}
	if n.reserved {
		l.overdue += by
	}
}

// A spin for a read hold looks at the word readRounds times, syncq.SpinPause pauses apart: some
// 200 ns in all, about one hand-off. A spin for a write hold takes four times as long, for the
// reasons that internal/syncq gives. With 64 writers an acquisition takes 0.7 times what it takes
// with 4 rounds.
const (
	readRounds  = 4
	writeRounds = 16
)

// spins is true if a holder can run while another goroutine spins.
var spins = runtime.NumCPU() > 1

// spinWrite tries for a short while to acquire the lock for writing.
func (l *StampedLock) spinWrite() Stamp {
	st := l.acquireWrite(reserved)
	if sched.On && sched.Explored() {
		return st
	}
	for range writeRounds {
		if st != 0 || !l.worthSpinning() {
			break
		}
		pause.Pause(syncq.SpinPause)
		st = l.acquireWrite(reserved)
	}
	return st
}

// worthSpinning reports whether a writer goes on to spin, for the reasons that internal/syncq gives.
func (l *StampedLock) worthSpinning() bool {
	s := l.state.Load() & readers
	return spins && (s == 0 || s <= syncq.SpinReaders*reader && l.barges.Crowded())
}

// spinRead tries for a short while to acquire the lock for reading, until a writer waits.
func (l *StampedLock) spinRead() Stamp {
	st := l.acquireRead(pending)
	if sched.On && sched.Explored() {
		return st
	}
	for range readRounds {
		if st != 0 || !spins || l.state.Load()&pending != 0 {
			break
		}
		pause.Pause(syncq.SpinPause)
		st = l.acquireRead(pending)
	}
	return st
}
