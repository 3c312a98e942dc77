package deadlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/keyed"
)

// Philosophers who all take their left fork first, and are found when none of them can
// have the right one.
func ExampleFind() {
	ctx, leave := context.WithCancel(context.Background())
	var table keyed.Mutexes[int]
	var seated, philosophers sync.WaitGroup
	seated.Add(3)
	for i := range 3 {
		left, right := table.Of(i), table.Of((i+1)%3)
		philosophers.Go(func() {
			left.Lock()
			defer left.Unlock()
			seated.Done()
			seated.Wait()
			if right.LockContext(ctx) == nil {
				right.Unlock()
			}
		})
	}

	var cycles []deadlock.Cycle
	for len(cycles) == 0 { // a program would ask when it is told to, or from time to time
		time.Sleep(time.Millisecond)
		cycles = deadlock.Find()
	}
	for _, cycle := range cycles {
		fmt.Println(len(cycle), "wait for each other") // fmt.Print(cycle) says all of it
		for i, w := range cycle {
			next := cycle[(i+1)%len(cycle)]
			fmt.Println(w.Lock.Type, "is held by the next:", w.For == next.Party)
		}
	}
	leave()
	philosophers.Wait()
	// Output:
	// 3 wait for each other
	// keyed.Mutex is held by the next: true
	// keyed.Mutex is held by the next: true
	// keyed.Mutex is held by the next: true
}

// The philosopher who would close the circle is refused, puts the left fork down, and tries again.
func ExampleRefuse() {
	defer deadlock.Refuse(deadlock.Refuse(true))
	ctx := context.Background()
	var table keyed.Mutexes[int]
	var seated, philosophers sync.WaitGroup
	seated.Add(3)
	refused := make(chan error, 3)
	for i := range 3 {
		left, right := table.Of(i), table.Of((i+1)%3)
		eat := func(first bool) error {
			left.Lock()
			defer left.Unlock()
			if first {
				seated.Done()
				seated.Wait()
			}
			if err := right.LockContext(ctx); err != nil {
				return err
			}
			defer right.Unlock()
			return nil
		}
		philosophers.Go(func() {
			if err := eat(true); errors.Is(err, locks.ErrDeadlock) {
				refused <- err
				for eat(false) != nil {
				}
			}
		})
	}
	philosophers.Wait()
	fmt.Println("all have eaten, and", len(refused), "was refused at first")
	// Output: all have eaten, and 1 was refused at first
}
