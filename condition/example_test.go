package condition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/reentrant"
)

// Buffer is a bounded buffer. Goroutines that wait for room and goroutines that wait for an item
// have a condition each, so that a signal never goes to the wrong side.
type Buffer struct {
	mu                reentrant.Mutex
	notFull, notEmpty *condition.Cond
	items             []int
	room              int
}

func NewBuffer(room int) *Buffer {
	b := &Buffer{room: room}
	b.notFull, b.notEmpty = b.mu.NewCond(), b.mu.NewCond()
	return b
}

func (b *Buffer) Put(item int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == b.room {
		b.notFull.Wait()
	}
	b.items = append(b.items, item)
	b.notEmpty.Signal()
}

func (b *Buffer) Take() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 {
		b.notEmpty.Wait()
	}
	item := b.items[0]
	b.items = b.items[1:]
	b.notFull.Signal()
	return item
}

func ExampleCond() {
	b := NewBuffer(2)
	go func() {
		for i := range 5 {
			b.Put(i)
		}
	}()
	for range 5 {
		fmt.Print(b.Take(), " ")
	}
	// Output: 0 1 2 3 4
}

func ExampleCond_WaitWhile() {
	var mu reentrant.Mutex
	changed := mu.NewCond()
	ready := false

	go func() {
		mu.Lock()
		defer mu.Unlock()
		ready = true
		changed.Signal()
	}()

	mu.Lock()
	defer mu.Unlock()
	fmt.Println(changed.WaitWhile(context.Background(), func() bool { return !ready }))

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := changed.WaitWhile(ctx, func() bool { return ready })
	fmt.Println(errors.Is(err, context.DeadlineExceeded), mu.IsHeld())
	// Output:
	// <nil>
	// true true
}

func ExampleNew() {
	var mu sync.Mutex // any sync.Locker
	c := condition.New(&mu)
	mu.Lock()
	left := c.WaitFor(time.Millisecond)
	fmt.Println(left <= 0)
	mu.Unlock()
	// Output: true
}
