package syncq

import (
	"cmp"
	"slices"
	"sync"
	"weak"
)

// Who waits for whom.
//
// # The graph
//
// Its vertices are waits in the queues of locks, not parties: an explicit owner may wait in several
// goroutines at once. A wait in a condition's queue is none; it becomes one when a
// signal or its limit moves it to the lock's queue. The edges out of a wait say what has to happen
// before it can end well:
//
//   - Of an exclusive wait: to the wait of whoever holds the lock, in any mode.
//   - Of a shared wait for a lock that is held exclusively: to the wait of the holder.
//   - Of any other shared wait: to the nearest exclusive wait ahead of it in the queue, which
//     no shared one is let past, under either policy.
//
// All edges of a wait have to go, so every cycle is a deadlock. A limit that ends one of its
// waits opens it. So does an explicit owner that holds, and acts in another goroutine
// meanwhile.
//
// Other edges along a queue are left out. They add no deadlock, only longer descriptions of the
// same one. A wait behind others that the holders keep out as well has an edge to the holders. So
// have all waits ahead of it, and none of them has another way out of the queue.
//
// # Cycles that never were
//
// The locks are looked at one after the other, so that an edge can be gone when the next is
// seen. There are three looks therefore: the first finds waits, the second their edges, the
// third the same waits again, told by the number that each wait has. Each look begins after the
// one before has ended. Say that the first ends at t1 and the third begins at t2.
//
//   - A wait seen at the first look and at the third was in its queue from t1 to t2. Meanwhile
//     its goroutine released nothing, and took nothing, or else only the lock that it is in the
//     queue of: under NonFair, a waiter takes the word first and leaves the queue then. A look
//     does not count it as waiting in between, and as it would not stop holding the lock before
//     it leaves, the third look tells that it had not taken it by t2.
//   - So, if it was seen to hold a lock at the second look, it held it from t1 to t2.
//   - A wait that was ahead of another at the second look was so from t1 to t2: waits join at
//     the end only.
//   - The nearest exclusive wait ahead may give up between two looks. The next one ahead keeps
//     out whom it kept out, and waits for the same holders. So the nearest is the nearest of
//     those that all looks saw.
//
// So a cycle of which all waits are seen at the first look and at the third, and all edges at the
// second, stood from t1 to t2. And a cycle that stands when the looks begin, and lasts, is
// seen. Only for an explicit owner the second point is not true, since it may act in
// another goroutine: of its holds nothing is known but that the second look saw them.
//
// # Refusal
//
// While waits are refused, they begin one at a time: the enqueueing and the search for cycles
// through the new wait happen with one mutex held. Of the waits that make up a cycle, the last
// one to begin finds the others in their queues, and all edges in place, as nobody else in it
// runs. Only the nearest exclusive wait ahead of a shared one, if it has a limit, may leave at
// any time, in the middle of the search too; then the search asks who is the nearest now. That
// one was ahead before, and waits for the same holders, so there is no new cycle either when
// one leaves after the search. The last one to begin leaves, and so the cycle does not come
// about. None before it was refused for this cycle, as there was no cycle then. Thus exactly
// one is refused, and, by the three looks, none without a cycle. Waits that cannot be refused
// are seen by those that can: a condition's waiter that comes back to the lock, which must not
// return without it, an explicit owner's, and those of locks that do not know of refusal.
//
// A cycle through the hold of an explicit owner is never a reason to refuse: a goroutine that
// shares the owner may be about to release.

// Wait is one wait for a lock, as one look saw it. It keeps the lock alive, and is not to be kept.
type Wait struct {
	Lock      *Sync
	Who       int64
	Goroutine int64 // that waits; Who unless that is an explicit owner
	Shared    bool
	Limited   bool // a context or a time limit can end it

	id      waitID
	behind  waitID  // the exclusive wait ahead of it that keeps it out
	holders []int64 // who keeps it out; shared by the waits of a lock
}

// Holders returns which holders of the lock keep w out. It may be shared, and must not be changed.
func (w Wait) Holders() []int64 { return w.holders }

// waitID tells a wait from all others for as long as it is kept.
type waitID struct {
	n    *node
	wait uint64
}

func (n *node) id() waitID {
	if n == nil {
		return waitID{}
	}
	return waitID{n, n.wait}
}

// Link is a step of a cycle: a wait, and why it waits for the next.
type Link struct {
	Wait
	Behind bool // the next one is ahead in the queue; if not, it holds the lock
}

// Holders returns who holds the lock, as far as that is known.
func (s *Sync) Holders() []int64 { return s.holders(s.Word.Load()) }

func (s *Sync) holders(w uint64) []int64 {
	if exclusive(w) {
		return []int64{int64(w) >> shift}
	}
	if k := s.kind.Load(); k != nil && k.Holders != nil {
		return k.Holders(s)
	}
	return nil
}

// look returns the waits for the lock that want says, or all of them, in the order of the queue.
func (s *Sync) look(want func(*node) bool) []Wait {
	w := s.Word.Load()
	var waits []Wait
	var ahead waitID
	s.each(&s.queue, func(n *node) {
		if want == nil || want(n) {
			waits = append(waits, s.waitOf(n, w, ahead))
		}
		if !n.shared {
			ahead = n.id()
		}
	})
	if len(waits) == 0 {
		return nil
	}
	holders := s.holders(w)
	for i := range waits {
		if !waits[i].Shared || exclusive(w) {
			waits[i].holders = holders
		}
	}
	return waits
}

// waitOf returns the wait of n, without holders, with the word w and the nearest
// exclusive wait ahead.
func (s *Sync) waitOf(n *node, w uint64, ahead waitID) Wait {
	wait := Wait{Lock: s, Who: n.who, Goroutine: n.goroutine, Shared: n.shared, Limited: n.limited, id: n.id()}
	if wait.Goroutine == 0 {
		wait.Goroutine = n.who
	}
	if n.shared && !exclusive(w) {
		wait.behind = ahead
	}
	return wait
}

// find returns the waits that ids says, as they are now. Those that are over are missing.
func (s *Sync) find(ids ...waitID) []Wait {
	return s.look(func(n *node) bool { return slices.Contains(ids, n.id()) })
}

// lookAll returns the waits for all locks.
func lookAll(locks []*Sync) []Wait {
	var waits []Wait
	for _, s := range locks {
		waits = append(waits, s.look(nil)...)
	}
	return waits
}

// Waiting returns all waits for locks that have a Kind.
func Waiting() []Wait { return lookAll(registered()) }

// Cycles returns cycles of waits, each of which stood at one moment during the call. Every edge
// that is on a cycle is on one of them.
func Cycles() [][]Link {
	locks := registered()
	first := lookAll(locks)
	if len(cycles(first)) == 0 {
		return nil
	}
	second := lookAll(locks)
	third := lookAll(locks)
	return cycles(common(second, first, third))
}

// common returns those of waits, which it changes, that are among each of others.
func common(waits []Wait, others ...[]Wait) []Wait {
	for _, other := range others {
		ids := make(map[waitID]bool, len(other))
		for i := range other {
			ids[other[i].id] = true
		}
		waits = slices.DeleteFunc(waits, func(w Wait) bool { return !ids[w.id] })
	}
	return waits
}

// edge leads to the wait with the index to.
type edge struct {
	to     int
	behind bool
}

// edges returns the edges between waits, from each of them. The waits for a lock are in the
// order of its queue.
func edges(waits []Wait) [][]edge {
	byOwner := make(map[int64][]int)
	for i, w := range waits {
		byOwner[w.Who] = append(byOwner[w.Who], i)
	}
	from := make([][]edge, len(waits))
	ahead := make(map[*Sync]int) // the nearest exclusive wait, as those for a lock are in the order of its queue
	for i, w := range waits {
		for _, h := range w.holders {
			for _, j := range byOwner[h] {
				from[i] = append(from[i], edge{j, false})
			}
		}
		if j, ok := ahead[w.Lock]; ok && w.behind.n != nil {
			from[i] = append(from[i], edge{j, true})
		}
		if !w.Shared {
			ahead[w.Lock] = i
		}
	}
	return from
}

// cycles returns cycles among waits that cover every edge which is on any cycle. There can be
// exponentially many cycles with shared holders, but each edge needs one. A
// cycle starts with its least party, and is as short as one through an edge of it can be.
func cycles(waits []Wait) [][]Link {
	from := edges(waits)
	component := components(from)
	type pair struct{ i, j int }
	covered := make(map[pair]bool)
	var found [][]Link
	for i := range from {
		for _, e := range from[i] {
			if component[i] != component[e.to] || covered[pair{i, e.to}] {
				continue
			}
			path := shortest(from, component, e.to, i) // ends with i
			links := make([]Link, len(path))
			for k, v := range path {
				next := path[(k+1)%len(path)]
				covered[pair{v, next}] = true
				links[k].Wait = waits[v]
				links[k].Behind = !slices.Contains(from[v], edge{next, false})
			}
			found = append(found, rotate(links))
		}
	}
	return found
}

// rotate returns the cycle with its least party first.
func rotate(links []Link) []Link {
	at := 0
	for k := range links {
		if cmp.Or(cmp.Compare(links[k].Who, links[at].Who), cmp.Compare(links[k].Goroutine, links[at].Goroutine)) < 0 {
			at = k
		}
	}
	return slices.Concat(links[at:], links[:at])
}

// shortest returns a shortest path between two vertices of a strongly connected component.
func shortest(from [][]edge, component []int, start, end int) []int {
	parent := map[int]int{start: start}
	for queue := []int{start}; ; queue = queue[1:] {
		v := queue[0]
		if v == end {
			break
		}
		for _, e := range from[v] {
			if _, seen := parent[e.to]; !seen && component[e.to] == component[v] {
				parent[e.to] = v
				queue = append(queue, e.to)
			}
		}
	}
	path := []int{end}
	for v := end; v != start; {
		v = parent[v]
		path = append(path, v)
	}
	slices.Reverse(path)
	return path
}

// components returns, for each vertex, a number of its strongly connected component. (Tarjan's
// algorithm, without recursion, since chains of waits can be long.)
func components(from [][]edge) []int {
	const unseen = -1
	component, low, order := make([]int, len(from)), make([]int, len(from)), make([]int, len(from))
	for v := range from {
		component[v], order[v] = unseen, unseen
	}
	type frame struct{ v, next int }
	var stack []int
	clock := 0
	for root := range from {
		if order[root] != unseen {
			continue
		}
		calls := []frame{{root, 0}}
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			v := f.v
			if f.next == 0 {
				order[v], low[v] = clock, clock
				clock++
				stack = append(stack, v)
			}
			if f.next < len(from[v]) {
				to := from[v][f.next].to
				f.next++
				if order[to] == unseen {
					calls = append(calls, frame{to, 0})
				} else if component[to] == unseen {
					low[v] = min(low[v], order[to])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1].v
				low[u] = min(low[u], low[v])
			}
			if low[v] == order[v] {
				for {
					top := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					component[top] = v
					if top == v {
						break
					}
				}
			}
		}
	}
	return component
}

// begin is held while a wait begins and waits are refused.
var begin sync.Mutex

// Refuse switches the refusal of waits that would close a cycle, and reports whether it was on.
// Waits that have begun already are not refused, but seen.
func Refuse(on bool) (was bool) {
	begin.Lock()
	defer begin.Unlock()
	registry.Lock()
	was = refusing.Swap(on)
	switch {
	case !on:
		registry.waits = nil
	case !was:
		registry.waits = make(map[int64]weak.Pointer[Sync])
	}
	registry.Unlock()
	if !on || was {
		return was
	}
	for _, s := range registered() {
		s.each(&s.queue, s.index)
	}
	return was
}

// enqueueUnlessCycle is enqueue while waits are refused.
func (s *Sync) enqueueUnlessCycle(n *node, policy Policy) bool {
	begin.Lock()
	defer begin.Unlock()
	s.guard.Lock()
	wake, queued := s.join(n, policy)
	w := s.Word.Load()
	start := s.waitOf(n, w, waitID{})
	if queued && start.Shared && !exclusive(w) {
		ahead := s.queue.before(n)
		for ahead != nil && ahead.shared {
			ahead = s.queue.before(ahead)
		}
		start.behind = ahead.id()
	}
	s.guard.Unlock()
	unpark(wake)
	if k := s.kind.Load(); !queued || k == nil || !k.Refusable || n.who <= 0 {
		return queued
	}
	if start.behind.n == nil {
		start.holders = s.holders(w)
	}
	return !closesCycle(start) || s.refuse(n, policy)
}

// refuse takes n out of the queue as refused, unless the lock came to it after all: then it
// reports true.
func (s *Sync) refuse(n *node, policy Policy) bool {
	s.guard.Lock()
	var wake *node
	unparked, came := n.state != waiting, n.in == nil
	if !came {
		wake = s.cancel(n, policy)
		n.refused = true
	}
	s.guard.Unlock()
	unpark(wake)
	if !came && unparked {
		n.place.Park()
	}
	return came
}

// closesCycle reports whether start, the wait of a goroutine that has just begun, is on a cycle
// that no explicit owner can open. A cycle that does not stand up to the looks had a wait that
// has ended since, and there is another search, as often as it takes: no wait begins meanwhile
// but that of a condition's waiter that comes back, to a lock which somebody must have given up
// who waited, and cannot wait again before this is over. The bound is for locks that break the
// rules of their Kind, and must not make everybody hang.
func closesCycle(start Wait) bool {
	for broken := 0; broken < 100; {
		path := cycleThrough(start)
		if path == nil {
			return false
		}
		stood, ended := stands(path)
		if stood {
			return true
		}
		now := again([]Wait{start})
		if len(now) == 0 {
			return false // it has the lock
		}
		start = now[0]
		if !ended {
			broken++
		}
	}
	return false
}

// cycleThrough returns a cycle through start, as one look after the other shows it, or nil. It
// looks only at what the wait can lead to: as a rule, a holder that does not wait. The holders
// of a lock are followed once, however many waits lead to them, so that the cost is that of a
// look or two at each queue on the way.
func cycleThrough(start Wait) []Wait {
	type step struct {
		Wait
		from int
	}
	steps := []step{{start, -1}}
	seen := map[waitID]bool{start.id: true}
	followed := map[*Sync]bool{}
	for k := 0; k < len(steps); k++ {
		w := steps[k].Wait
		if followed[w.Lock] {
			continue
		}
		if slices.Contains(w.holders, start.Who) {
			var path []Wait
			for ; k >= 0; k = steps[k].from {
				path = append(path, steps[k].Wait)
			}
			slices.Reverse(path)
			return path
		}
		next := waitsOf(w.holders)
		if len(w.holders) > 0 {
			followed[w.Lock] = true
		} else {
			next = nearest(w)
		}
		for _, v := range next {
			if !seen[v.id] {
				seen[v.id] = true
				steps = append(steps, step{v, k})
			}
		}
	}
	return nil
}

// waitsOf returns the waits of the goroutines among who.
func waitsOf(who []int64) (waits []Wait) {
	if len(who) == 1 { // as a rule
		if lock := waitsFor(who[0]); lock != nil {
			waits = lock.look(func(n *node) bool { return n.who == who[0] })
		}
		return waits
	}
	for lock, here := range allWaitFor(who) {
		waits = append(waits, lock.look(func(n *node) bool { return here[n.who] })...)
	}
	return waits
}

// nearest returns the exclusive wait that is nearest ahead of w, if w is a shared one that it
// keeps out. It may not be the one that w says: whoever has a limit may have given up since w
// was looked at.
func nearest(w Wait) []Wait {
	for w.behind.n != nil {
		if ahead := w.Lock.find(w.behind); ahead != nil {
			return ahead
		}
		now := again([]Wait{w})
		if len(now) == 0 {
			break
		}
		w = now[0]
	}
	return nil
}

// stands reports whether the cycle stood at one moment, and if not, whether one of its waits
// has ended: path is the first look.
func stands(path []Wait) (stood, ended bool) {
	second := again(path)
	third := again(path)
	ended = len(third) < len(path)
	return closed(second) && len(second) == len(path) && !ended, ended
}

// again looks at waits once more, and returns those that are not over.
func again(waits []Wait) []Wait {
	var now []Wait
	for _, w := range waits {
		now = append(now, w.Lock.find(w.id)...)
	}
	return now
}

// closed reports whether each of path has an edge to the next, and the last one to the first.
func closed(path []Wait) bool {
	for i, w := range path {
		next := path[(i+1)%len(path)]
		if w.behind != next.id && !slices.Contains(w.holders, next.Who) {
			return false
		}
	}
	return true
}
