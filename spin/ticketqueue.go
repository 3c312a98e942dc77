package spin

import (
	"sync"

	"github.com/jucgo/locks/internal/park"
)

// ticketNode is, in the queue of a Ticket, one waiter that sleeps, or a range of void tickets.
// All but its place belongs to the lock's guard while it is in the queue, and to its user before
// and after.
type ticketNode struct {
	place park.Place

	from, to   uint64 // its tickets, without to; one only if it is a waiter
	who        int64  // whom inspection shows
	queued     bool   // in the queue, as a waiter
	prev, next *ticketNode
}

// void reports whether n, which is in the queue, is a range of void tickets.
func (n *ticketNode) void() bool { return !n.queued }

// Nodes are used again: a contended acquisition allocates nothing in the steady state. One is
// given back by its user, when nobody can be about to unpark it any more, or, if it was left to
// the queue, by the goroutine that takes it out there.
var ticketNodes = sync.Pool{New: func() any { return new(ticketNode) }}

func newTicketNode(t uint64, who int64) *ticketNode {
	n := ticketNodes.Get().(*ticketNode)
	n.from, n.to, n.who = t, t+1, who
	return n
}

func (n *ticketNode) recycle() {
	n.place.Reset()
	ticketNodes.Put(n)
}

// ticketQueue is a list of nodes in the order of their tickets, which is not quite that of their
// coming: who spins has a ticket, and no node yet. Void ranges that touch are one.
type ticketQueue struct {
	head, tail *ticketNode
	voids      uint64 // how many tickets in it are void
}

// insert puts n where its ticket belongs. That is at the end, or close to it, since who comes
// late has lost its processor, or some 100 ns to spinning.
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

// remove takes n out.
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

// annul makes the waiter n void, and one with the void ranges that it touches.
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

// absorb makes the void range o, a neighbour of n, part of n.
func (q *ticketQueue) absorb(n, o *ticketNode) {
	n.from, n.to = min(n.from, o.from), max(n.to, o.to)
	q.remove(o)
	q.voids += o.to - o.from
	o.recycle()
}
