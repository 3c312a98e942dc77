package rwlock

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
	"github.com/jucgo/locks/internal/syncq"
)

// This file holds what those do who wait for a StampedLock.
//
// The state word alone says who holds. Waiting is in two stages, so that the word needs no queue of
// its own, and the queue no versions:
//
//   - Whoever waits queues at the gate, a FIFO synchronizer: writers for it exclusively, readers in shared mode.
//     The gate so makes the order of arrival, lets consecutive readers through as one group,
//     and takes care of those who give up.
//   - Those who hold the gate, one writer or a group of readers, are in front. They take the
//     lock as soon as its word lets them, sleep while it does not, and give the gate back when they have it,
//     which brings the next ones to the front.
//
// # Why no wake-up is lost
//
// Those at the gate are syncq's concern: whoever is in front gives the gate back in the end, with
// the lock or without it. It remains that nobody sleeps in front while the word is one that it
// could take. With the guard held, a sleeper sets parked on a word that it cannot take, by
// compare-and-swap, and goes to the list; then it sleeps. The word becomes one that it could take only
// by a release that ends the write hold or the last read hold, or by a downgrade. Each of these clears
// parked in that very step, and wakes all in the list. It sees parked, since that was set before, and
// others clear it only if nobody waits. And it finds the sleeper, since it looks with
// the guard held, after a step that came after the setting, which is inside of the section in
// which the sleeper went to the list. Nothing has to be passed on by who was woken and gives
// up: readers were given the lock, and the next at the gate looks at the word for itself.
//
// # Who gets the lock
//
// To readers in front, the end of a write hold gives their holds in that same step: they are
// in together, and the word does not have to speak of them any more. A writer in front is only told. The
// next writer that comes along may have the lock before it is awake. A writer that lost so maxLost times, or
// for maxBarging, sets reserved as it sleeps again, and WriteLock leaves the free word alone until it
// has had it. ReadLock never overtakes: it stays out while pending is set.
const (
	maxLost    = 16
	maxBarging = time.Millisecond
)

// Who waits at the gate is not shown to anybody.
const someone = 1

// limit is what cuts a wait short: a duration, or a context.
type limit struct {
	d     time.Duration
	since time.Time
	ctx   context.Context
}

// left is what is left of the duration. It does not overflow, whatever the duration.
func (lim *limit) left() time.Duration { return lim.d - time.Since(lim.since) }

// wait takes the lock as soon as those before it have had it, and returns its stamp, tooMany, or 0 if
// the limit ended first.
func (l *StampedLock) wait(write bool, lim *limit) Stamp {
	l.arrive(write)
	if !l.comeToFront(write, lim) {
		l.depart(write)
		return 0
	}
	st, granted := l.takeInFront(write, lim)
	l.gate.Unlock(syncq.FIFO)
	if !granted {
		l.depart(write)
	}
	return st
}

func (l *StampedLock) arrive(write bool) {
	l.guard.Lock()
	if l.waiting++; l.waiting == 1 {
		l.state.Or(queued)
	}
	if write {
		if l.writers++; l.writers == 1 {
			l.state.Or(pending)
		}
	}
	l.guard.Unlock()
}

func (l *StampedLock) depart(write bool) {
	l.guard.Lock()
	if write {
		if l.writers--; l.writers == 0 {
			l.state.And(^uint64(pending | reserved))
		}
	}
	if l.waiting--; l.waiting == 0 {
		l.state.And(^uint64(queued | parked))
	}
	l.guard.Unlock()
}

// comeToFront takes the gate, and reports whether it could before the limit ended.
func (l *StampedLock) comeToFront(write bool, lim *limit) bool {
	switch {
	case lim == nil && write:
		l.gate.Lock(syncq.Anonymous(someone), syncq.FIFO)
		return true
	case lim == nil:
		l.gate.LockShared(someone, syncq.FIFO)
		return true
	case lim.ctx != nil && write:
		return l.gate.LockContext(lim.ctx, syncq.Anonymous(someone), syncq.FIFO)
	case lim.ctx != nil:
		return l.gate.LockSharedContext(lim.ctx, someone, syncq.FIFO)
	case write:
		return l.gate.LockFor(syncq.Anonymous(someone), syncq.FIFO, lim.left())
	}
	return l.gate.LockSharedFor(someone, syncq.FIFO, lim.left())
}

// takeInFront takes the lock for one in front. If it was granted, it does not count as one who waits any
// more.
func (l *StampedLock) takeInFront(write bool, lim *limit) (st Stamp, granted bool) {
	var n *sleeper
	for {
		if write {
			st = l.enterWrite(0, reserved)
		} else {
			st = l.enterRead(0)
		}
		if st != 0 {
			break
		}
		if n == nil {
			n = sleepers.Get().(*sleeper)
			n.begin(write, lim)
		}
		if !l.lieDown(n) {
			continue
		}
		ended := !n.sleep()
		if ended {
			l.getUp(n)
		}
		if n.granted != 0 {
			st, granted = n.granted, true
			break
		}
		if ended {
			break
		}
		n.lost++
	}
	if n != nil {
		n.end()
	}
	return st, granted
}

// lieDown puts n in the list of those to be woken, unless the lock may be had, or the word changes meanwhile.
func (l *StampedLock) lieDown(n *sleeper) bool {
	l.guard.Lock()
	defer l.guard.Unlock()
	s := l.state.Load()
	if s&writing == 0 && (!n.write || s&readers == 0) {
		return false
	}
	to := s | parked
	if n.write && (n.lost >= maxLost || n.lost > 0 && time.Since(n.since) >= maxBarging) {
		to |= reserved
		n.reserved = true
	}
	if s != to && !l.state.CompareAndSwap(s, to) {
		return false
	}
	l.push(n)
	return true
}

// getUp takes n, whose limit has ended, out of the list, unless it was woken already, and takes back what it asked for.
func (l *StampedLock) getUp(n *sleeper) {
	l.guard.Lock()
	listed := n.listed
	if listed {
		l.remove(n)
	}
	if n.reserved {
		l.state.And(^uint64(reserved))
	}
	l.guard.Unlock()
	if !listed {
		n.place.Park() // the unpark was, or is about to be
	}
}

// wake tells the writer that sleeps in front, if any, that the lock became free.
func (l *StampedLock) wake() {
	l.guard.Lock()
	first := l.clearList()
	l.guard.Unlock()
	unpark(first)
}

// handOver changes the word from s, which is held for writing, to one that is not, and lets the readers
// in that sleep in front, or tells the writer that does. If the word is not s, it does nothing.
func (l *StampedLock) handOver(s, to uint64) bool {
	l.guard.Lock()
	k := 0
	if l.heads != nil && !l.heads.write {
		k = min(l.asleep, int((readers-to&readers)/reader)) // the others have to look for themselves
	}
	to = to&^parked + uint64(k)*reader
	if l.waiting == k {
		to &^= queued
	}
	if !l.state.CompareAndSwap(s, to) {
		l.guard.Unlock()
		return false
	}
	l.waiting -= k
	first := l.clearList()
	for n := first; k > 0; n = n.next {
		n.granted = stampOf(to, read)
		k--
	}
	l.guard.Unlock()
	unpark(first)
	return true
}

// unpark unparks n and those behind it.
func unpark(n *sleeper) {
	for n != nil {
		next := n.next // once it is unparked, n is its user's again
		n.place.Unpark()
		n = next
	}
}

// sleeper is one in front that sleeps, or did.
type sleeper struct {
	place    park.Place
	permit   <-chan struct{} // nil if nothing can cut the wait short
	ctx      <-chan struct{}
	timer    *time.Timer
	since    time.Time
	lost     int
	write    bool
	reserved bool

	// Guarded by the lock's guard. When it is no longer listed, next is its waker's until it is unparked, and
	// granted, the stamp of the hold that it was given, is its own then.
	listed     bool
	granted    Stamp
	prev, next *sleeper
}

var sleepers = sync.Pool{New: func() any {
	n := new(sleeper)
	n.place.Init()
	return n
}}

func (n *sleeper) begin(write bool, lim *limit) {
	n.write, n.since = write, time.Now()
	if lim == nil {
		return
	}
	n.permit = n.place.Open()
	if lim.ctx != nil {
		n.ctx = lim.ctx.Done()
	} else {
		n.timer = time.NewTimer(lim.left())
	}
}

// sleep returns true when n is woken, and false when its limit ends.
func (n *sleeper) sleep() bool {
	if n.permit == nil {
		n.place.Park()
		return true
	}
	var timer <-chan time.Time
	if n.timer != nil {
		timer = n.timer.C
	}
	select {
	case <-n.permit:
		return true
	case <-n.ctx:
	case <-timer:
	}
	return false
}

// end makes n as good as new.
func (n *sleeper) end() {
	if n.timer != nil {
		n.timer.Stop()
	}
	n.place.Reset()
	n.permit, n.ctx, n.timer = nil, nil, nil
	n.lost, n.reserved, n.granted = 0, false, 0
	sleepers.Put(n)
}

func (l *StampedLock) push(n *sleeper) {
	n.listed, n.prev, n.next = true, nil, l.heads
	if l.heads != nil {
		l.heads.prev = n
	}
	l.heads = n
	l.asleep++
}

// clearList takes all out of the list, and returns the first of them.
func (l *StampedLock) clearList() *sleeper {
	first := l.heads
	l.heads, l.asleep = nil, 0
	for n := first; n != nil; n = n.next {
		n.listed = false
	}
	return first
}

func (l *StampedLock) remove(n *sleeper) {
	if n.prev == nil {
		l.heads = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	n.listed = false
	l.asleep--
}

// A spin looks at the word spinRounds times, spinPause pauses apart: some 200 ns in all, about one
// hand-over, so that spinning in vain at most doubles what waiting costs.
const (
	spinRounds = 4
	spinPause  = 2
)

// spins says that a holder can be running while another goroutine spins.
var spins = runtime.NumCPU() > 1

// spinWrite tries for a short while to take a lock that is held for a short while.
func (l *StampedLock) spinWrite() Stamp {
	st := l.enterWrite(reserved, 0)
	for range spinRounds {
		if st != 0 || !spins {
			break
		}
		pause.Pause(spinPause)
		st = l.enterWrite(reserved, 0)
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
