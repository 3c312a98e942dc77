package ruled

import (
	"sync"
	"time"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
)

// state says how far a wait has come. It is guarded, but the waiter may read its state without the
// guard after the last unpark.
//
//	from     to       by which function
//	waiting  racing   advance (NonFair): the waiter shall race for the word; one unpark
//	waiting  granted  advance: the waiter has acquired, and is in no queue; one unpark
//	waiting  refused  Refuse, or enqueue after it: the wait is over without success; one unpark
//	racing   waiting  compete: the waiter lost the race, and parks again
//	racing   granted  compete: the waiter won, or was admitted at its second look; advance: the word
//	                  was kept for the waiter while it was awake; no unpark in either case
//	racing   refused  Refuse, without an unpark
//
// A waiter that is woken first becomes racing. Each step out of waiting comes with exactly one
// unpark, unless compete admits its own waiter, which is awake. Each park ends with exactly one
// unpark. So no permit is left in a node's place when its waiter is done.
type state uint8

const (
	waiting state = iota // parked, or about to park
	racing               // woken, to race for the word
	granted              // has acquired, and is in no queue
	refused              // will not acquire, and is in no queue
)

// Node is one wait.
type Node struct {
	place park.Place
	arg   uint64
	who   int64 // the owner that inspection shows
	wake  *Node // the next node to unpark; for the goroutine that unparks

	// Guarded.
	prev, next *Node
	state      state
	reserved   bool          // the word is kept for this waiter, which is first
	lost       int           // races lost (NonFair)
	since      time.Duration // when the wait began, by start (NonFair)
}

// Nodes of waits without a limit are used again: such a wait allocates nothing in the steady state.
// A wait with a limit allocates a channel anyway, and its node is garbage with the channel. A
// goroutine that wakes would pay more for the way back to the pool than for a new node.
var nodes = sync.Pool{New: park.Maker(func(n *Node) *park.Place { return &n.place })}

func newNode(arg uint64, who int64) *Node {
	n := nodes.Get().(*Node)
	n.arg, n.who = arg, who
	return n
}

// recycle returns n's outcome, and gives n back to the pool.
func (n *Node) recycle() syncq.Outcome {
	out := n.Outcome()
	n.state, n.reserved, n.lost, n.since = waiting, false, 0, 0
	nodes.Put(n)
	return out
}

// Permits delivers a permit when the wait may be over. The wait has a limit.
func (n *Node) Permits() <-chan struct{} { return n.place.Permits() }

// Outcome returns how the wait ended. n is in no queue, and no unpark of n will come.
func (n *Node) Outcome() syncq.Outcome { return outcomes[n.state] }

var outcomes = [...]syncq.Outcome{waiting: syncq.Ended, granted: syncq.Acquired, refused: syncq.Refused}

// overdue reports whether the word is to be kept for n, the first waiter, by now (NonFair). The
// wait counts from n's arrival. So all overdue waiters are admitted one after the other, and then
// nobody is overdue for a while. The guard is held.
func (s *Sync[R]) overdue(n *Node) bool {
	patience := syncq.MaxBarging * time.Duration(1+s.queue.len/syncq.LongQueue)
	return n.lost >= syncq.MaxLost || time.Since(start)-n.since >= patience
}

var start = time.Now()

// unpark unparks n and the nodes that follow n by wake.
func unpark(n *Node) {
	for n != nil {
		next := n.wake
		n.wake = nil
		n.place.Unpark() // the last access: the node belongs to its user again
		n = next
	}
}

// list is the queue: nodes in order of arrival. A waiter that gives up leaves at once. A generic
// list, which syncq, rwlock and spin could share, calls a method for each link: a contended
// Acquire of semaphore.Weighted takes 3 to 7 % longer (Go 1.26.8 and 1.27.0).
type list struct {
	head, tail *Node
	len        int
}

// push appends n.
func (l *list) push(n *Node) {
	n.prev = l.tail
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.len++
}

// remove takes n out.
func (l *list) remove(n *Node) {
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
	n.prev, n.next = nil, nil
	l.len--
}
