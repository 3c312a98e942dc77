package syncq

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/prefetch"
)

// The states of a node: what its user does, and what others have done for it. Under NonFair a roused one races for the lock;
// under FIFO, where that may happen to it before its turn, it spins until it is granted the lock.
//
//	asleep   it is parked, or about to park  rouse -> roused, grant -> granted; both unpark
//	roused   it was told to look, and looks  rouse -> nudged, grant -> granted, user -> asleep
//	poised   roused before its turn (FIFO), it spins for longer  grant -> granted, user -> asleep
//	nudged   it was told again meanwhile     grant -> granted, user -> roused
//	granted  it holds the lock, and is in no queue
//
// One that is patient, and is granted the lock while it is asleep, stays asleep, which saves two atomic writes in a hand-over: it has
// not been roused, so its unpark says what there is to say.
//
// Every step out of asleep comes with one unpark, and every park ends with one, so
// nothing is left in a node's place, and nobody is about to unpark it, when its user is done
// with it. Others step with the guard held; their unparks may come after it. No wake-up
// is lost, since the user goes from roused to asleep by compare-and-swap, which
// whatever was done for it meanwhile makes fail.
const (
	asleep uint32 = iota
	roused
	poised
	nudged
	granted
)

// node is one wait of one party, in the lock's queue, in a condition's, or, once
// granted, in none. It has the size of two cache lines, not more: when a lock moves to another
// processor, so do the nodes of all who take turns. What a hand-over touches of the nodes of others
// is in the first line.
type node struct {
	place park.Place
	state atomic.Uint32

	shared  bool
	patient bool // once it is in the lock's queue, nothing but the lock ends its wait; see asleep
	limited bool // a limit can end the wait for the lock
	refused bool // the wait would have closed a cycle; its own

	value uint64 // the word of this party as the exclusive holder
	next  *node  // in the list; guarded by the lock's guard, as are in, prev and wake
	in    *list
	wake  *node // the next one to unpark; its unparker's

	prev      *node         // in the list, unless it is the first: then it is left over
	who       int64         // whom inspection shows
	since     time.Duration // when it joined the lock's queue (NonFair)
	kind      *Kind         // what its user knows of the lock's kind
	goroutine int64         // whose wait it is, if who is an explicit owner
	frame     uintptr       // where its user waits, about
	wait      uint64        // tells its waits apart; guarded by the guard of the list that it is in
	lost      int32         // how many races it lost (NonFair); its own
	breathe   bool          // roused early, it lets others run first; see pace.go
	indexed   bool          // findable by who; written with the guard held, while in the queue
}

// Nodes are used again: a contended acquisition allocates nothing in the steady
// state.
var nodes = sync.Pool{New: func() any {
	n := new(node)
	n.place.Init()
	return n
}}

func newNode(p Party, shared bool) *node {
	n := nodes.Get().(*node)
	n.value, n.who, n.shared, n.kind = p.value, p.who, shared, p.kind
	n.frame = prefetch.Frame()
	if explicit(n.who) {
		n.goroutine = goid.Get()
	}
	n.place.Begin()
	return n
}

func (n *node) recycle() {
	n.place.Reset()
	if n.state.Load() != asleep {
		n.state.Store(asleep)
	}
	n.lost = 0
	n.prev, n.kind, n.goroutine, n.patient, n.limited, n.refused = nil, nil, 0, false, false, false
	if n.indexed {
		n.indexed = false
		forget(n.who)
	}
	nodes.Put(n)
}

// rouse tells n to look, and reports whether it has to be unparked for that. The guard is held.
func (n *node) rouse() bool {
	for {
		switch n.state.Load() {
		case asleep:
			if n.state.CompareAndSwap(asleep, roused) {
				return true
			}
		case roused:
			if n.state.CompareAndSwap(roused, nudged) {
				return false
			}
		default:
			return false
		}
	}
}

// sleeper reports whether n is patient and asleep, which it is until somebody with the guard changes that. The guard is held.
func (n *node) sleeper() bool { return n.patient && n.state.Load() == asleep }

// overdue reports whether n has waited for longer than bargers may make it.
func (n *node) overdue() bool { return n.since == due || now()-n.since >= maxBarging }

// due is the since of one of many waiters that a condition has let go at once. They are handed the lock one after the other: that
// is the shortest way through a queue that nobody else is in, and they have waited.
const due = time.Duration(math.MinInt64)

// lose counts a race that n lost, and reports whether it was one too many.
func (n *node) lose() bool {
	n.lost++
	return n.lost >= maxLost || n.overdue()
}

var start = time.Now()

// now returns the monotonic time. Inside a testing/synctest bubble it stands still while
// anybody runs, which is why races are counted too.
func now() time.Duration { return time.Since(start) }

// list is a doubly linked list of nodes, so that a waiter that gives up leaves
// at once, wherever it is.
type list struct {
	head, tail *node
	len        int
}

func (l *list) push(n *node) {
	n.wait++
	n.in, n.prev, n.next = l, l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.len++
}

// before returns the node before n, which is in l.
func (l *list) before(n *node) *node {
	if l.head == n {
		return nil
	}
	return n.prev
}

// remove takes n out of l. It touches no other node if n is the first, as in a hand-over.
func (l *list) remove(n *node) {
	prev := l.before(n)
	if prev == nil {
		l.head = n.next
	} else {
		prev.next = n.next
	}
	switch {
	case n.next == nil:
		l.tail = prev
	case prev != nil:
		n.next.prev = prev
	}
	n.in, n.next = nil, nil
	l.len--
}

// owners returns whom the nodes of l show, first come first.
func (l *list) owners() []int64 {
	if l.len == 0 {
		return nil
	}
	who := make([]int64, 0, l.len)
	for n := l.head; n != nil; n = n.next {
		who = append(who, n.who)
	}
	return who
}
