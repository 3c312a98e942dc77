package syncq

import (
	"math"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
)

// state is how far the wait of a node is. It is guarded by the lock's guard; the waiter may read it
// after an unpark that nothing can follow.
//
//	from     to         by whom, and with what
//	waiting  awake      advance (NonFair): the first waiter shall race for the lock; one unpark
//	waiting  granted    advance: the waiter holds the lock; one unpark
//	waiting  dismissed  dismiss: the waiter's owner holds the lock; one unpark
//	awake    waiting    compete: the waiter lost the race, and parks again
//	awake    granted    compete: it won; or advance, without an unpark: it will see that
//	awake    dismissed  dismiss, without an unpark
//
// Each step out of waiting comes with exactly one unpark, and each park ends with exactly one. So
// nothing is left in a node's place when its waiter is done with it.
type state uint8

const (
	waiting   state = iota // parked, or about to park
	awake                  // told to race for the lock
	granted                // holds the lock, and is in no queue
	dismissed              // its owner holds the lock, and it is in no queue
)

// node is one wait of one party: in the lock's queue, in a condition's, or in none.
type node struct {
	place park.Place
	oneWait

	// Guarded by the lock's guard.
	in     *list // the list that has the node
	next   *node
	visit  *walk  // the inspection that goes on here
	number uint64 // the number of this wait among those of the node

	// Set by the waiter before it joins.
	shared bool
	value  uint64 // the word of this party as the exclusive holder
	who    int64  // the owner that inspection shows

	wake *node // the next node to unpark; the unparker's
}

// oneWait is the part of a node that is zero before each wait.
type oneWait struct {
	// Guarded by the lock's guard.
	state    state
	reserved bool          // the next release hands the lock to this waiter (NonFair)
	reported bool          // the watcher wants to know when the wait is over
	lost     int32         // races lost (NonFair)
	began    time.Duration // when the node joined the lock's queue, if waits are timed
	prev     *node         // only valid if the node is not the first

	// Set by the waiter before it joins.
	s         *Sync
	limited   bool // a context or a time limit can end the wait for the lock
	refused   bool // by the watcher
	policy    Policy
	goroutine int64 // that waits, if who is an explicit owner
	kind      *Kind

	since time.Duration // when the node joined the lock's queue, see overdue (NonFair)
}

// Nodes are used again: a contended acquisition allocates nothing in the steady state.
var nodes = sync.Pool{New: func() any {
	n := new(node)
	n.place.Init()
	return n
}}

// newNode returns a wait of p. A zero lock may be FIFO already: then p says that too.
func (s *Sync) newNode(p Party, shared bool) *node {
	n := nodes.Get().(*node)
	n.s, n.value, n.who, n.shared, n.kind = s, p.value, p.who, shared, p.kind
	n.policy = p.policy || s.queue.policy
	if explicit(n.who) {
		n.goroutine = goid.Get()
	}
	return n
}

// end recycles n, whose wait has ended with out unless it was refused, and returns the outcome.
func (n *node) end(out Outcome) Outcome {
	if n.refused {
		out = Refused
	}
	n.recycle()
	return out
}

func (n *node) recycle() {
	n.place.Reset()
	if n.reported {
		(*watcher.Load()).Ended(n.who)
	}
	n.oneWait = oneWait{}
	nodes.Put(n)
}

// mirror returns the flags about a queue whose first waiter is n. The guard is held.
func (n *node) mirror() uint64 {
	switch {
	case n.reserved:
		return flagQueued | flagReserved
	case n.state == awake:
		return flagQueued | flagWoken
	}
	return flagQueued
}

// A waiter that is first and loses the race to bargers maxLost times, or has waited for maxBarging
// (see overdue), has the lock reserved: the next release hands it over. That bounds barging. A
// waiter for readers has it reserved at once.
const (
	maxBarging = time.Millisecond
	maxLost    = 16
)

// due is the since of a waiter that a broadcast moved here with others. All of them have the lock
// reserved: handing it from one to the next is the shortest way through them, and they have waited.
const due = time.Duration(math.MinInt64 / 2)

// overdue reports whether the lock is to be reserved for n by now.
//
// The clock is read when a waiter joins, becomes the first, or loses a race, and at no other time:
// a reading takes as long as several atomic writes. The first waiter behind readers has the
// lock reserved without a look at the clock. A signalled waiter that joins as the first
// usually wins its first race. Its wait counts from the first that it loses, and its signal reads
// no clock.
func (n *node) overdue() bool {
	if n.reserved {
		return true
	}
	t := clock()
	if n.since == 0 {
		n.since = t
	}
	return t-n.since >= maxBarging
}

var start = time.Now()

// now returns the monotonic time. Inside a testing/synctest bubble it stands still while a
// goroutine runs, which is why lost races are counted as well.
func clock() time.Duration { return time.Since(start) }

// list is a doubly linked list of nodes in the order of their arrival. A waiter that gives up
// leaves at once, wherever it is.
type list struct {
	head, tail *node
	len        int32

	// These concern the whole lock. They are here because there is room: a Sync takes 64 bytes.
	watched bool   // the watcher knows the lock
	policy  Policy // from New, or FIFO since the first waiter or condition that said so
	written uint16 // how many writes there were: see Wrote
}

func (l *list) push(n *node) {
	n.number++
	n.in, n.prev, n.next = l, l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	l.len++
}

// remove takes n out of l.
func (l *list) remove(n *node) {
	if l.head == n {
		l.shift(n)
		return
	}
	if n.prev.next = n.next; n.next == nil {
		l.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	l.removed(n)
}

// shift takes n, the first, out of l. It touches no other node, as in a hand-off.
func (l *list) shift(n *node) {
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	l.removed(n)
}

// removed ends the links of n to l.
func (l *list) removed(n *node) {
	for w := n.visit; w != nil; w = n.visit {
		n.visit = w.next
		w.stand(n.next)
	}
	n.in, n.next = nil, nil
	l.len--
}

// walk is an inspection of a list that gives the guard back now and then. Between two parts it
// stands on the node at which it goes on. If that node leaves the list, the walk moves to the next.
type walk struct {
	at   *node
	next *walk // another one that stands there
}

// stand has w go on at n.
func (w *walk) stand(n *node) {
	w.at = n
	if n != nil {
		w.next, n.visit = n.visit, w
	}
}

// resume takes w off its node, and returns that.
func (w *walk) resume() *node {
	if w.at != nil {
		for p := &w.at.visit; ; p = &(*p).next {
			if *p == w {
				*p = w.next
				break
			}
		}
	}
	return w.at
}

// part is how many nodes an inspection looks at before it gives the guard back.
const part = 128

// each calls visit for the nodes of l, which s guards, in their order. The guard is held during a
// call, and given back between parts: a node that joins or leaves meanwhile may be missed.
func (s *Sync) each(l *list, visit func(*node)) {
	s.guard.Lock()
	defer s.guard.Unlock()
	for n, k := l.head, 1; n != nil; k++ {
		visit(n)
		n = n.next
		if k%part == 0 {
			w := new(walk)
			w.stand(n)
			s.guard.Unlock()
			s.guard.Lock()
			n = w.resume()
		}
	}
}

// owners returns the owners of the nodes of l, which s guards, in the order of the list.
func (s *Sync) owners(l *list) (who []int64) {
	s.each(l, func(n *node) { who = append(who, n.who) })
	return who
}

// unpark unparks n and those behind it.
func unpark(n *node) {
	for n != nil {
		next := n.wake
		n.wake = nil // or a waiter would keep the nodes of its whole group alive
		n.place.Unpark()
		n = next
	}
}
