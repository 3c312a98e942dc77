package syncq

import (
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/park"
)

// What a node's owner learns from whoever unparks it.
const (
	waiting uint32 = iota // nothing yet
	turn                  // it is first and may compete for the lock (NonFair)
	granted               // it holds the lock, and is out of the queue
)

// node is one wait of one party, in the lock's queue, in a condition's, or, once
// granted, in none.
type node struct {
	place  park.Place
	status atomic.Uint32 // written with the guard held

	shared bool
	value  uint64 // the word of this party as the exclusive holder
	who    int64  // whom inspection shows
	lost   int    // how often it lost the race; its own

	// Guarded by the lock's guard.
	in         *list
	prev, next *node
}

// Nodes are used again: a contended acquisition allocates nothing in the steady
// state. A node may only come back when nobody can unpark it any more, since its next
// user may live in another testing/synctest bubble, where a stray wake-up
// would be fatal:
//
//   - Under FIFO a node is unparked by the lock once, when granted, and its user has
//     taken that permit.
//   - Under NonFair the lock unparks nodes with the guard held, and the user takes the
//     guard after it left the queue.
//   - A node that can be cancelled waits on a channel of its own.
var nodes = sync.Pool{New: func() any { return new(node) }}

func newNode(p Party, shared bool) *node {
	n := nodes.Get().(*node)
	n.value, n.who, n.shared = p.value, p.who, shared
	return n
}

func (n *node) recycle() {
	n.place.Reset()
	n.status.Store(waiting)
	n.lost = 0
	nodes.Put(n)
}

// list is a doubly linked list of nodes, so that a waiter that gives up leaves
// at once, wherever it is.
type list struct {
	head, tail *node
	len        int
}

func (l *list) push(n *node) {
	n.in, n.prev, n.next = l, l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.len++
}

func (l *list) remove(n *node) {
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
	n.in, n.prev, n.next = nil, nil, nil
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
