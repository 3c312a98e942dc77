package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks/semaphore"
)

// At most three downloads at the same time, however many goroutines there are.
func ExampleWeighted() {
	ctx := context.Background()
	downloads := semaphore.NewWeighted(3)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := downloads.Acquire(ctx, 1); err != nil {
				return
			}
			defer downloads.Release(1)
			// download
		})
	}
	wg.Wait()
	fmt.Println(downloads.Available(), "of", downloads.Size())
	// Output: 3 of 3
}

// A program that gets another share of memory changes the size while permits are held.
func ExampleWeighted_Resize() {
	memory := semaphore.NewWeighted(1000)
	fmt.Println(memory.TryAcquire(800))
	memory.Resize(500)
	fmt.Println(memory.Available())
	memory.Release(800)
	fmt.Println(memory.Available())
	err := memory.Acquire(context.Background(), 600)
	fmt.Println(errors.Is(err, semaphore.ErrTooLarge), err)
	// Output:
	// true
	// -300
	// 500
	// true semaphore: Acquire: more permits than the semaphore has: 600 of 500
}

// A shutdown takes what is left, so that no new work begins.
func ExampleWeighted_Drain() {
	workers := semaphore.NewWeighted(5)
	workers.TryAcquire(2)
	fmt.Println(workers.Drain(), workers.TryAcquire(1))
	// Output: 3 false
}

// A request waits for a connection for 10 ms, and is then served from the cache.
func ExampleWeighted_TryAcquireFor() {
	connections := semaphore.NewWeighted(1)
	fmt.Println(connections.TryAcquireFor(1, 10*time.Millisecond))
	fmt.Println(connections.TryAcquireFor(1, 10*time.Millisecond))
	// Output:
	// true
	// false
}
