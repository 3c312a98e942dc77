package spin

import (
	"sync"

	"github.com/jucgo/locks/internal/park"
)

// ticketNode is an element of a Ticket's queue: one parked waiter, or a range of void tickets.
// While a node is in the queue, the lock's guard guards all of its fields but place. Before and
// after, the node belongs to its user.
type ticketNode struct {
	place park.Place

	from, to   uint64 // its tickets t, with from <= t < to; a waiter has one
	owner      int64  // the owner that Queued returns
	queued     bool   // in the queue, as a waiter
	prev, next *ticketNode
}

// void reports whether n, which is in the queue, is a range of void tickets.
func (n *ticketNode) void() bool { return !n.queued }

// Nodes are reused: a contended acquisition allocates nothing in the steady state. The user
// recycles its node when no goroutine can unpark it any more. A node that the user left in the
// queue is recycled by the goroutine that removes it.
var ticketNodes = sync.Pool{New: park.Maker(func(n *ticketNode) *park.Place { return &n.place })}

func newTicketNode(t uint64, owner int64) *ticketNode {
	n := ticketNodes.Get().(*ticketNode)
	n.from, n.to, n.owner = t, t+1, owner
	return n
}

func (n *ticketNode) recycle() {
	n.place.Reset()
	ticketNodes.Put(n)
}

// ticketQueue is a list of nodes in the order of their tickets. Goroutines may enqueue in
// another order, because a spinning waiter has a ticket and no node yet. Adjacent void ranges
// are merged.
type ticketQueue struct {
	head, tail *ticketNode
	voids      uint64 // the number of void tickets in it
}

// insert puts n at the place of its ticket. The place is at the end or close to it: a late
// waiter has lost its processor, or some 100 ns to spinning.
func (q *ticketQueue) insert(n *ticketNode) {
	p := q.tail
	for p != nil && p.from > n.from {
		p = p.prev
	}
	n.prev, n.queued = p, true
	if p == nil {
		n.next, q.head = q.head, n
	} else {
		n.next, p.next = p.next, n
	}
	if n.next == nil {
		q.tail = n
	} else {
		n.next.prev = n
	}
}

// remove removes n.
func (q *ticketQueue) remove(n *ticketNode) {
	if n.prev == nil {
		q.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		q.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	if n.void() {
		q.voids -= n.to - n.from
	}
	n.prev, n.next, n.queued = nil, nil, false
}

// annul makes the waiter n void, and merges it with adjacent void ranges.
func (q *ticketQueue) annul(n *ticketNode) {
	n.queued = false
	q.voids++
	if p := n.prev; p != nil && p.void() && p.to == n.from {
		q.absorb(n, p)
	}
	if s := n.next; s != nil && s.void() && s.from == n.to {
		q.absorb(n, s)
	}
}

// absorb merges the void range o, a neighbour of n, into n.
func (q *ticketQueue) absorb(n, o *ticketNode) {
	n.from, n.to = min(n.from, o.from), max(n.to, o.to)
	q.remove(o)
	q.voids += o.to - o.from
	o.recycle()
}
