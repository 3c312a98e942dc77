package spin_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks/spin"
)

// A section of a few instructions.
func ExampleMutex() {
	var mu spin.Mutex
	low, high := 0, 0
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			mu.Lock()
			low, high = min(low, i), max(high, i)
			mu.Unlock()
		})
	}
	wg.Wait()
	fmt.Println(low, high)
	// Output: 0 7
}

func ExampleTicket() {
	var mu spin.Ticket
	var order []int

	mu.Lock()
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
		for mu.QueueLength() <= i { // until it waits
			time.Sleep(time.Millisecond)
		}
	}
	mu.Unlock()
	wg.Wait()
	fmt.Println(order)
	// Output: [0 1 2]
}

// A waiter that gives up is skipped.
func ExampleMCS() {
	var mu spin.MCS
	mu.Lock()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(mu.LockContext(ctx))
	fmt.Println(mu.QueueLength())

	mu.Unlock()
	fmt.Println(mu.TryLock())
	// Output:
	// spin: LockContext: context deadline exceeded
	// 0
	// true
}
