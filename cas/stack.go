package cas

import (
	"sync/atomic"

	"github.com/jucgo/locks/spin"
)

// Stack is a last-in, first-out collection that never blocks: R. K. Treiber's, "Systems
// Programming: Coping with Parallelism", IBM RJ 5118, 1986. Java has no such type in its library;
// Goetz's "Java Concurrency in Practice" has one as ConcurrentStack.
//
// The zero Stack is empty. It must not be copied after first use. Push costs one allocation and
// one compare-and-swap, Pop one compare-and-swap; the loser of a race backs off, as
// [spin.Backoff] has it.
//
// In the terms of the Go memory model, the Push of a value synchronizes before the Pop that
// returns it.
//
// # Why it needs no stamp
//
// Pop reads the top node and its successor, and swaps one for the other if the top is still the
// same. Were that node popped and pushed again in between, its successor could be another one by
// then: ABA. It takes a node that is used twice. Here each Push makes a new one, which the
// collector cannot place where an old one is as long as a Pop holds a pointer to that; and a
// node's successor never changes. So the same top means the same stack. A Stack that kept its
// nodes for reuse, in a sync.Pool for example, would need a stamp.
type Stack[T any] struct {
	top atomic.Pointer[node[T]]
}

// node is never changed once it is published, and never pushed again.
type node[T any] struct {
	value T
	next  *node[T]
	depth int // this one and all below it
}

func (n *node[T]) size() int {
	if n == nil {
		return 0
	}
	return n.depth
}

// Push puts value on top.
func (s *Stack[T]) Push(value T) {
	var backoff spin.Backoff
	n := &node[T]{value: value}
	for {
		top := s.top.Load()
		n.next, n.depth = top, top.size()+1
		if s.top.CompareAndSwap(top, n) {
			return
		}
		backoff.Pause()
	}
}

// Pop takes the value on top, and reports false if there is none.
func (s *Stack[T]) Pop() (value T, ok bool) {
	var backoff spin.Backoff
	for {
		top := s.top.Load()
		if top == nil {
			return value, false
		}
		if s.top.CompareAndSwap(top, top.next) {
			return top.value, true
		}
		backoff.Pause()
	}
}

// Peek returns the value on top without taking it, and reports false if there is none.
func (s *Stack[T]) Peek() (value T, ok bool) {
	if top := s.top.Load(); top != nil {
		return top.value, true
	}
	return value, false
}

// Len returns how many values there are. It is exact, and out of date at once if others push and
// pop. It costs one read.
func (s *Stack[T]) Len() int { return s.top.Load().size() }
