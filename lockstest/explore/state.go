package explore

import (
	"hash/maphash"
	"slices"
	"strings"
)

// This file computes numbers that stand for the state of a run.
//
// The trail of a run has everything that the root has seen, in its order. Two runs with the same
// decisions have the same trail, unless something else decides in the program.
//
// The state of a run stands for the knowledge of the program, and not for the order in which this
// knowledge came about. Two runs with the same state go on alike after the same decisions. Each
// goroutine and each lock has a history. An operation mixes the lock's history into the goroutine's
// history, since the goroutine now knows the work of others under the lock. Then it mixes the
// goroutine's history into the lock's history. So the order of operations on different locks makes
// no difference. Nor does the order in which goroutines arrive at a lock, once they have had the
// lock.
//
// X.Step, time that passes, and operations of a [Lease] have an order with everything, since their
// effects are unknown. Messages between goroutines without locks, as by atomics, are not part of
// the state. So a search that leaves out states comes after a search that does not.

// mix returns a number that stands for a, and then b.
func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<6 + a>>2
	a ^= a >> 30
	a *= 0xbf58476d1ce4e5b9
	a ^= a >> 27
	a *= 0x94d049bb133111eb
	return a ^ a>>31
}

var seed = maphash.MakeSeed()

func hashOf(s string) uint64 { return maphash.String(seed, s) }

// sign returns a number that stands for the place in the program of a function with this stack.
func sign(stack []uintptr) (h uint64) {
	for _, pc := range stack[:min(len(stack), 12)] {
		h = mix(h, uint64(pc))
	}
	return h
}

// everything notes that something has an order with all that was done and that will be done.
func (x *X) everything(what uint64) {
	x.global = mix(x.global, what)
	for _, g := range x.list {
		x.global = mix(x.global, g.history)
	}
	x.trail = mix(x.trail, x.global)
}

// noteBegin notes that g is let go, before an operation or after a wait.
func (x *X) noteBegin(g *goroutine, s seen, l *lockState) {
	g.since = x.steps
	x.tries = x.tries || isTry(s.op.name)
	x.trail = mix(mix(x.trail, uint64(g.index)), mix(hashOf(s.op.name), s.op.sign))
	if l == nil {
		if s.op.name != startOp && s.op.from == 0 {
			x.everything(uint64(g.index))
		}
		return
	}
	if l.id == 0 {
		l.id = mix(mix(g.history, uint64(g.index)), hashOf(s.op.name))
		if _, key, ok := strings.Cut(l.name, "("); ok && !strings.Contains(key, "0x") {
			l.id = hashOf(key) // unless it is an address, which the next run has not
		}
	}
	x.trail = mix(x.trail, l.id)
	if _, ok := l.lock.(*Lease); ok {
		x.everything(uint64(g.index))
	}
	if effectOf(s.op.name) == suspends {
		x.shares(g, l, 3)
	}
}

// noteEnd notes the end of an operation of g.
func (x *X) noteEnd(g *goroutine, op operation) {
	h := hashOf(op.name)
	if !op.ok {
		h++
	}
	x.trail = mix(x.trail, h)
	if op.lock == nil {
		g.history = mix(mix(g.history, h), x.global)
		return
	}
	x.shares(g, x.lockOf(op.lock), h)
}

// shares lets g know the history of l, and adds to it.
func (x *X) shares(g *goroutine, l *lockState, what uint64) {
	g.history = mix(mix(g.history, what), mix(l.history, x.global))
	l.history = mix(l.history, g.history)
}

// stateNow returns a number that stands for the state of the program and for the goroutines that
// may run next. The number is 0 if there is more than the root knows.
func (x *X) stateNow(d decision) uint64 {
	if x.unsure || x.bound.starvation > 0 {
		return 0
	}
	h := x.global
	var waiting []*goroutine
	for _, g := range x.list {
		state := g.state.Load()
		h = mix(mix(h, g.history), uint64(state))
		if s := g.seen(); s.woken || s.inLock() && state == running {
			waiting = append(waiting, g)
		}
	}
	slices.SortFunc(waiting, func(a, b *goroutine) int { return a.since - b.since })
	queues := map[*lockState]uint64{}
	for _, g := range waiting {
		s := g.seen()
		l := x.lockOf(s.op.lock)
		what := hashOf(s.op.name)
		if s.woken {
			what++
		}
		if l != nil {
			queues[l] = mix(queues[l], mix(uint64(g.index), what))
		}
	}
	sum := uint64(0)
	for _, l := range x.locks {
		sum += mix(l.id, mix(l.history, queues[l]))
	}
	h = mix(h, sum)
	if d.stays {
		h = mix(h, uint64(d.options[0])+1)
	}
	return h | 1
}

// known are the trails of a search by their paths. It notes programs that do not do the same after
// the same decisions.
type known map[uint64]uint64

// mostKnown is how many decisions a search remembers.
const mostKnown = 1 << 17

// strays takes in a run, and reports whether one with the same decisions has done something else.
func (k known) strays(x *X) bool {
	other := false
	note := func(path, trail uint64) {
		was, ok := k[path]
		if ok {
			other = other || was != trail
		} else if len(k) < mostKnown {
			k[path] = trail
		}
	}
	for _, d := range x.decisions {
		note(d.path, d.trail)
	}
	end := x.trail
	if x.finding != nil {
		end = mix(end, hashOf(string(x.finding.Kind)))
	}
	note(mix(x.path, 0), end)
	return other
}
