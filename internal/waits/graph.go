package waits

import (
	"cmp"
	"slices"

	"github.com/jucgo/locks/internal/syncq"
)

// Wait is one wait for a lock, as one look saw it. A Wait keeps the lock alive, so do not keep a
// Wait.
type Wait struct {
	Lock *syncq.Sync
	syncq.Waiting

	behind  syncq.WaitID // the exclusive wait ahead that keeps this wait out
	holders []int64      // the holders that keep this wait out; shared by the waits of a lock
}

// Holders returns the holders of the lock that keep w out. They must not be changed.
func (w Wait) Holders() []int64 { return w.holders }

// Link is a step of a cycle: a wait, and why it waits for the next.
type Link struct {
	Wait
	Behind bool // the next wait is ahead in the queue; if false, the party of the next wait holds the lock
}

// Holders returns the holders of the lock, as far as they are known.
func Holders(s *syncq.Sync) []int64 { return holders(s, Kind(s), s.Owner()) }

// holders is Holders of a lock of kind k, with the exclusive holder owner, or 0.
func holders(s *syncq.Sync, k *syncq.Kind, owner int64) []int64 {
	if owner != 0 {
		return []int64{owner}
	}
	if k != nil && k.Holders != nil {
		return k.Holders(s)
	}
	return nil
}

// look returns the waits for s that want accepts, or all of them, in the order of the queue.
func look(s *syncq.Sync, want func(syncq.Waiting) bool) []Wait {
	owner := s.Owner()
	var waits []Wait
	var ahead syncq.WaitID
	s.EachWaiting(func(n syncq.Waiting) {
		if want == nil || want(n) {
			w := Wait{Lock: s, Waiting: n}
			if n.Shared && owner == 0 {
				w.behind = ahead
			}
			waits = append(waits, w)
		}
		if !n.Shared {
			ahead = n.ID
		}
	})
	if len(waits) == 0 {
		return nil
	}
	keepOut := holders(s, Kind(s), owner)
	for i := range waits {
		if !waits[i].Shared || owner != 0 {
			waits[i].holders = keepOut
		}
	}
	return waits
}

// waitOf returns the wait of e, which has joined the queue.
func waitOf(e syncq.Entry) Wait {
	w := Wait{Lock: e.Lock(), Waiting: e.Waiting()}
	if w.Shared {
		if now := again([]Wait{w}); now != nil {
			return now[0]
		}
	}
	w.holders = Holders(w.Lock)
	return w
}

// find returns the wait with id for s as it is now, or nil if it is over.
func find(s *syncq.Sync, id syncq.WaitID) []Wait {
	return look(s, func(n syncq.Waiting) bool { return n.ID == id })
}

// lookAll returns the waits for all these locks.
func lookAll(all []*syncq.Sync) []Wait {
	var waits []Wait
	for _, s := range all {
		waits = append(waits, look(s, nil)...)
	}
	return waits
}

// Waiting returns all waits for locks that have a Kind.
func Waiting() []Wait { return lookAll(locks()) }

// Cycles returns cycles of waits, each of which stood at one moment during the call. Every edge
// that is on a cycle is on a returned cycle.
func Cycles() [][]Link {
	all := locks()
	first := lookAll(all)
	if len(cycles(first)) == 0 {
		return nil
	}
	second := lookAll(all)
	third := lookAll(all)
	return cycles(common(second, first, third))
}

// common returns the waits that are also in each of others. It changes waits.
func common(waits []Wait, others ...[]Wait) []Wait {
	for _, other := range others {
		ids := make(map[syncq.WaitID]bool, len(other))
		for i := range other {
			ids[other[i].ID] = true
		}
		waits = slices.DeleteFunc(waits, func(w Wait) bool { return !ids[w.ID] })
	}
	return waits
}

// none is the WaitID of no wait.
var none syncq.WaitID

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
	ahead := make(map[*syncq.Sync]int) // the nearest exclusive wait so far, because waits is in the order of the queue
	for i, w := range waits {
		for _, h := range w.holders {
			for _, j := range byOwner[h] {
				from[i] = append(from[i], edge{j, false})
			}
		}
		if j, ok := ahead[w.Lock]; ok && w.behind != none {
			from[i] = append(from[i], edge{j, true})
		}
		if !w.Shared {
			ahead[w.Lock] = i
		}
	}
	return from
}

// cycles returns cycles among waits. Each edge that is on any cycle is on a returned cycle. With
// shared holders there can be exponentially many cycles, but each edge needs one cycle only. A
// returned cycle starts with its least party. For one of its edges, no cycle through that edge is
// shorter.
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

// closesCycle reports whether start, the wait of a goroutine that has just begun, is on a cycle
// that no explicit owner can open. If a wait of the found cycle has ended meanwhile, closesCycle
// searches again, as often as needed. No wait begins meanwhile, except the wait of a condition's
// waiter that comes back. The condition's waiter waits for a lock that a waiter must have released,
// and cannot wait again before this wait is over. The bound on broken is for locks that break the
// rules of their Kind: a search must not hang.
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
			return false // the waiter has the lock
		}
		start = now[0]
		if !ended {
			broken++
		}
	}
	return false
}

// cycleThrough returns a cycle through start, as one look after the other shows it, or nil. It
// looks only at waits to which start leads: as a rule start leads to a holder that does not wait.
// The holders of a lock are followed once, however many waits lead to them. Therefore the cost is
// a look or two at each queue on the way.
func cycleThrough(start Wait) []Wait {
	type step struct {
		Wait
		from int
	}
	steps := []step{{start, -1}}
	seen := map[syncq.WaitID]bool{start.ID: true}
	followed := map[*syncq.Sync]bool{}
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
			if !seen[v.ID] {
				seen[v.ID] = true
				steps = append(steps, step{v, k})
			}
		}
	}
	return nil
}

// waitsOf returns the waits of the goroutines among who.
func waitsOf(who []int64) (waits []Wait) {
	if len(who) == 1 { // as a rule
		if lock := awaitedBy(who[0]); lock != nil {
			waits = look(lock, func(n syncq.Waiting) bool { return n.Who == who[0] })
		}
		return waits
	}
	for lock, here := range allAwaitedBy(who) {
		waits = append(waits, look(lock, func(n syncq.Waiting) bool { return here[n.Who] })...)
	}
	return waits
}

// nearest returns the nearest exclusive wait ahead of w, if w is a shared wait that this exclusive
// wait keeps out. The result may differ from the wait that w names, which may have given up since
// the look at w.
func nearest(w Wait) []Wait {
	for w.behind != none {
		if ahead := find(w.Lock, w.behind); ahead != nil {
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

// again looks at waits once more, and returns the waits that are not over.
func again(waits []Wait) []Wait {
	var now []Wait
	for _, w := range waits {
		now = append(now, find(w.Lock, w.ID)...)
	}
	return now
}

// closed reports whether each wait of path has an edge to the next, and the last wait to the
// first.
func closed(path []Wait) bool {
	for i, w := range path {
		next := path[(i+1)%len(path)]
		if w.behind != next.ID && !slices.Contains(w.holders, next.Who) {
			return false
		}
	}
	return true
}
