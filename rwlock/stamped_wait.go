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

// This file holds what those do who wait for a Stamped.
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
// by a release that ends the write hold or the last read hold, or by a downgrade; each
// clears parked in that very step, and then, with the guard held, wakes all in the list. It sees
// parked, since that was set before; parked is cleared by others only if nobody waits. And it finds the sleeper,
// since its step comes after the setting, which is inside of the section in which the
// sleeper went to the list. Nothing has to be passed on by who was woken and gives up: a group is
// woken as a whole, and the next at the gate looks at the word for itself.
//
// # Barging
//
// A release frees the word, and the writer that comes along may have it before those in
// front are awake. Who lost so maxLost times, or waited in front for maxBarging, sets reserved as it sleeps again, and
// WriteLock leaves the free word alone until the waiter has had it. ReadLock never overtakes: it stays out while
// queued is set.
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
func (l *Stamped) wait(write bool, lim *limit) Stamp {
	l.arrive()
	var st Stamp
	if l.comeToFront(write, lim) {
		st = l.takeInFront(write, lim)
		l.gate.Unlock(syncq.FIFO)
	}
	l.depart()
	return st
}

func (l *Stamped) arrive() {
	l.guard.Lock()
	if l.waiting++; l.waiting == 1 {
		l.state.Or(queued)
	}
	l.guard.Unlock()
}

func (l *Stamped) depart() {
	l.guard.Lock()
	if l.waiting--; l.waiting == 0 {
		l.state.And(^uint64(queued | parked | reserved))
	}
	l.guard.Unlock()
}

// comeToFront takes the gate, and reports whether it could before the limit ended.
func (l *Stamped) comeToFront(write bool, lim *limit) bool {
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

// takeInFront takes the lock for one in front.
func (l *Stamped) takeInFront(write bool, lim *limit) (st Stamp) {
	var n *sleeper
	for {
		if write {
			st = l.enterWrite(0, reserved)
		} else {
			st = l.enterRead(0, reserved)
		}
		if st != 0 {
			break
		}
		if n == nil {
			n = sleepers.Get().(*sleeper)
			n.begin(lim)
		}
		if !l.lieDown(n, write) {
			continue
		}
		if !n.sleep() {
			l.getUp(n)
			break
		}
		n.lost++
	}
	if n != nil {
		n.end()
	}
	return st
}

// lieDown puts n in the list of those to be woken, unless the lock may be had, or the word changes meanwhile.
func (l *Stamped) lieDown(n *sleeper, write bool) bool {
	l.guard.Lock()
	defer l.guard.Unlock()
	s := l.state.Load()
	if s&writing == 0 && (!write || s&readers == 0) {
		return false
	}
	to := s | parked
	if n.lost >= maxLost || n.lost > 0 && time.Since(n.since) >= maxBarging {
		to |= reserved
		n.reserved = true
	}
	if s != to && !l.state.CompareAndSwap(s, to) {
		return false
	}
	l.push(n)
	return true
}

// getUp takes n, whose limit has ended, out of the list, and takes back what it asked for.
func (l *Stamped) getUp(n *sleeper) {
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

// wake wakes all who sleep in front.
func (l *Stamped) wake() {
	l.guard.Lock()
	first := l.heads
	l.heads = nil
	for n := first; n != nil; n = n.next {
		n.listed = false
	}
	l.guard.Unlock()
	for n := first; n != nil; {
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
	reserved bool

	// Guarded by the lock's guard; next belongs to the waker between list and unpark.
	listed     bool
	prev, next *sleeper
}

var sleepers = sync.Pool{New: func() any {
	n := new(sleeper)
	n.place.Init()
	return n
}}

func (n *sleeper) begin(lim *limit) {
	n.since = time.Now()
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
	n.lost, n.reserved = 0, false
	sleepers.Put(n)
}

func (l *Stamped) push(n *sleeper) {
	n.listed, n.prev, n.next = true, nil, l.heads
	if l.heads != nil {
		l.heads.prev = n
	}
	l.heads = n
}

func (l *Stamped) remove(n *sleeper) {
	if n.prev == nil {
		l.heads = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	}
	n.listed = false
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
func (l *Stamped) spinWrite() Stamp {
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

// spinRead does the same for a read hold, for as long as nobody waits.
func (l *Stamped) spinRead() Stamp {
	st := l.enterRead(queued, 0)
	for range spinRounds {
		if st != 0 || !spins || l.state.Load()&queued != 0 {
			break
		}
		pause.Pause(spinPause)
		st = l.enterRead(queued, 0)
	}
	return st
}
