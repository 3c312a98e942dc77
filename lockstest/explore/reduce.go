package explore

import (
	"slices"
	"strings"
)

// reduction says which schedules a search leaves out. A search leaves out none if the goroutines
// act on each other outside of locks, or with a bound of overtaking.
type reduction int

const (
	noReduction reduction = iota

	// byStates leaves out schedules that differ from another schedule in the order of operations on
	// different locks alone: see state.go. A goroutine that has done nothing yet starts at once.
	byStates

	// byHolds also leaves out when goroutines begin to wait for a lock. Of five goroutines with
	// three critical sections of one lock, the full search must try more than a million schedules
	// with two preemptions, and the reduced search 32,760.
	//
	//   - A goroutine does not begin to wait for a lock that another goroutine holds, unless there
	//     is nothing else to do. So the next holder is decided on when the lock is free. In the
	//     full search, goroutines also get the lock in the order in which they began to wait. Such
	//     a hand-off does not count as a preemption. So the same order of holds may need fewer
	//     preemptions.
	//   - A goroutine that goes on does not stop before it releases a lock. To stop after the
	//     release makes no difference to the other goroutines. Lipton, "Reduction: A method of
	//     proving properties of parallel programs", CACM 1975. The rule does not hold if another
	//     goroutine tries to acquire a lock without a wait. A method that only looks at a lock,
	//     such as IsLocked, counts as an atomic.
	//
	// Neither is left out while a goroutine waits for a condition of the lock: a goroutine that has
	// begun to wait for the lock before the signal gets the lock first.
	byHolds
)

// String returns what the outcome of a search says of the reduction.
func (r reduction) String() string {
	switch r {
	case byStates:
		return ", or differ from one of them in the order of operations on different locks alone"
	case byHolds:
		return " if a hand-off to a waiter is one, or differ from one of them in the order of operations " +
			"on different locks alone"
	}
	return ""
}

// reducer is a strategy with a reduction.
type reducer interface{ reduces() reduction }

// reduces returns the reduction of this run.
func (x *X) reduces() reduction {
	if s, ok := x.choose.(reducer); ok && !x.unsure && x.bound.starvation == 0 {
		return s.reduces()
	}
	return noReduction
}

// starting returns the option of a goroutine that has done nothing yet, or -1. The reduction starts
// it at once, and the goroutine that ran goes on after that: the work of a goroutine before its
// first operation makes no difference to the others.
func (x *X) starting(d decision) int {
	if x.reduces() < byStates {
		return -1
	}
	return slices.IndexFunc(d.options[:d.own], func(i int) bool { return x.list[i].seen().op.name == startOp })
}

// worth returns d without the options that the reduction leaves out. If one is left, the decision
// is forced.
func (x *X) worth(d decision) decision {
	if x.reduces() < byHolds {
		return d
	}
	if d.stays && d.own == len(d.options) && !x.tries && x.onlyReleases(x.list[d.options[0]]) {
		d.fewer, d.forced = true, true
		return d
	}
	var left []int
	for _, i := range d.options[:d.own] {
		if !x.wouldWait(x.list[i]) {
			left = append(left, i)
		}
	}
	if len(left) == 0 || len(left) == d.own {
		return d
	}
	d.stays = d.stays && left[0] == d.options[0]
	d.options, d.own = append(left, d.options[d.own:]...), len(left)
	d.fewer, d.forced = true, len(d.options) == 1
	return d
}

// wouldWait reports whether g, which is at its gate, would wait for a lock that another goroutine
// holds, until it has the lock. A lock that is read does not count: to wait for it makes a
// difference, since new readers wait behind a writer.
func (x *X) wouldWait(g *goroutine) bool {
	s := g.seen()
	switch s.op.name {
	case "Lock", "RLock", "WriteLock", "ReadLock":
		l := x.lockOf(s.op.lock)
		return !s.woken && !x.suspendedOn(l) &&
			slices.ContainsFunc(l.holds, func(h hold) bool { return !h.shared && h.who != g.index })
	}
	return false
}

// onlyReleases reports whether g, which is at its gate, is about to release a lock that it holds,
// and does nothing else.
func (x *X) onlyReleases(g *goroutine) bool {
	op := g.seen().op
	switch op.name {
	case "Unlock", "UnlockContext", "UnlockWrite", "RUnlock", "RUnlockContext", "UnlockRead":
		_, leased := op.lock.(*Lease)
		l := x.lockOf(op.lock)
		return !leased && !x.suspendedOn(l) && slices.ContainsFunc(l.holds, func(h hold) bool { return h.who == g.index })
	}
	return false
}

// suspendedOn reports whether a goroutine waits for a condition of a lock, or has not got the lock
// again after that.
func (x *X) suspendedOn(l *lockState) bool {
	return slices.ContainsFunc(x.list, func(g *goroutine) bool {
		s := g.seen()
		return effectOf(s.op.name) == suspends && s.inLock() && x.lockOf(s.op.lock) == l
	})
}

// isTry reports whether an operation may fail because another goroutine holds the lock.
func isTry(op string) bool { return strings.HasPrefix(op, "Try") }
