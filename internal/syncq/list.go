package syncq

import "sync"

// list is a doubly linked list of nodes in the order of their arrival. A waiter that gives up
// leaves at once, wherever it is.
type list struct {
	head, tail *node
	len        int32

	// The fields below concern the whole lock. They are here because there is room: a lock takes 64
	// bytes.
	marks   mark     // watched, inOrder; changed with the guard held
	written uint8    // how many writes there were: see Wrote
	barged  mark     // how often a holder overtook an awake waiter: see Barged
	failed  Failures // see Spin
}

// The marks of a list.
const (
	watched uint8 = 1 << iota // the watcher knows the lock
	inOrder                   // FIFO from New on, or since the first waiter or condition that said so
	crowded                   // two parties have waited for the lock at once: see worthSpinning
)

// policy returns the policy of the lock. It never changes from FIFO to NonFair.
func (l *list) policy() Policy { return l.marks.load()&inOrder != 0 }

// admitBy notes that a lock without [New] is FIFO. The guard is held.
func (l *list) admitBy(policy Policy) {
	if policy == FIFO && l.policy() == NonFair {
		l.marks.set(l.marks.load() | inOrder)
	}
}

// push puts n at the end of l.
func (l *list) push(n *node) {
	n.number++
	n.in, n.prev, n.next = l, l.tail, nil
	if l.tail == nil {
		l.head = n
	} else {
		l.tail.next = n
	}
	l.tail = n
	if l.len++; l.len == 2 {
		l.marks.set(l.marks.load() | crowded)
	}
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
	l.onRemoval(n)
}

// shift takes n, the first, out of l. It touches no other node, as in a hand-off.
func (l *list) shift(n *node) {
	if l.head = n.next; l.head == nil {
		l.tail = nil
	}
	l.onRemoval(n)
}

// onRemoval ends the links of n to l.
func (l *list) onRemoval(n *node) {
	for w := n.visit; w != nil; w = n.visit {
		n.visit = w.next
		w.stand(n.next)
	}
	n.in, n.next = nil, nil
	l.len--
}

// walk is an inspection of a list that gives the guard back now and then. Between two parts it
// stands on the node at which it goes on. If that node leaves the list, the walk moves to the next
// node.
type walk struct {
	at   *node
	next *walk // another one that stands there
}

// stand makes n the node at which w goes on.
func (w *walk) stand(n *node) {
	w.at = n
	if n != nil {
		w.next, n.visit = n.visit, w
	}
}

// resume takes w off its node, and returns the node.
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

// each calls visit for the nodes of l in their order. The guard is held during a call, and given
// back between parts: a node that joins or leaves meanwhile may be missed.
func (l *list) each(guard *sync.Mutex, visit func(*node)) {
	guard.Lock()
	defer guard.Unlock()
	for n, k := l.head, 1; n != nil; k++ {
		visit(n)
		n = n.next
		if k%part == 0 {
			w := new(walk)
			w.stand(n)
			guard.Unlock()
			guard.Lock()
			n = w.resume()
		}
	}
}

// owners returns the owners of the nodes of l, in the order of the list.
func (l *list) owners(guard *sync.Mutex) (who []int64) {
	l.each(guard, func(n *node) { who = append(who, n.who) })
	return who
}

// unpark unparks n and the nodes that follow n by wake.
func unpark(n *node) {
	for n != nil {
		next := n.wake
		n.wake = nil // or a waiter would keep the nodes of its whole group alive
		n.place.Unpark()
		n = next
	}
}
