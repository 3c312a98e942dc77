package cas

import (
	"sync/atomic"

	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/spin"
)

// Stack is a last-in, first-out collection that never blocks. The algorithm is from R. K.
// Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986. Java's library has
// no such type; Goetz's "Java Concurrency in Practice" has one as ConcurrentStack.
//
// The zero Stack is empty. It must not be copied after first use. Push costs one allocation and
// one compare-and-swap, Pop one compare-and-swap. The loser of a race pauses like
// [spin.Backoff].
//
// In the terms of the Go memory model, the Push of a value synchronizes before the Pop that
// returns it.
//
// # Why it needs no stamp
//
// Pop reads the top node and its successor, and swaps one for the other if the top is still the
// same. If that node were popped and pushed again in between, its successor could be another
// node: ABA. ABA needs a node that is used twice. Here each Push makes a new node. The collector
// cannot reuse the memory of a node while a Pop holds a pointer to it, and a node's successor
// never changes. Therefore the same top means the same stack. A Stack that reused its nodes, from
// a sync.Pool for example, would need a stamp.
type Stack[T any] struct {
	top atomic.Pointer[node[T]]
}

// node does not change once it is published, and is never pushed again.
type node[T any] struct {
	value T
	next  *node[T]
	depth int // the number of nodes from here to the bottom
}

func (n *node[T]) size() int {
	if n == nil {
		return 0
	}
	return n.depth
}

// Push puts value on top.
func (s *Stack[T]) Push(value T) {
	if sched.On {
		sched.Begin("Push", s)
	}
	var backoff spin.Backoff
	n := &node[T]{value: value}
	for {
		top := s.top.Load()
		n.next, n.depth = top, top.size()+1
		if sched.On {
			sched.Step()
		}
		if s.top.CompareAndSwap(top, n) {
			return
		}
		backoff.Pause()
	}
}

// Pop removes and returns the top value. It returns false if the stack is empty.
func (s *Stack[T]) Pop() (value T, ok bool) {
	if sched.On {
		sched.Begin("Pop", s)
	}
	var backoff spin.Backoff
	for {
		top := s.top.Load()
		if top == nil {
			return value, false
		}
		if sched.On {
			sched.Step()
		}
		if s.top.CompareAndSwap(top, top.next) {
			return top.value, true
		}
		backoff.Pause()
	}
}

// Peek returns the top value and leaves it there. It returns false if the stack is empty.
func (s *Stack[T]) Peek() (value T, ok bool) {
	if sched.On {
		sched.Begin("Peek", s)
	}
	if top := s.top.Load(); top != nil {
		return top.value, true
	}
	return value, false
}

// Len returns the number of values. It was exact at one moment during the call. It costs one
// read.
func (s *Stack[T]) Len() int { return s.top.Load().size() }
