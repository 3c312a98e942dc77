package fair_test

import (
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks/fair"
)

func ExampleMutex() {
	var m fair.Mutex
	var order []int

	m.Lock()
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			m.Lock()
			defer m.Unlock()
			order = append(order, i)
		})
		for m.QueueLength() <= i { // until it waits
			time.Sleep(time.Millisecond)
		}
	}
	m.Unlock()
	wg.Wait()
	fmt.Println(order)
	// Output: [0 1 2]
}

func ExampleMutex_TryLockFor() {
	var m fair.Mutex
	m.Lock()
	fmt.Println(m.TryLockFor(10 * time.Millisecond))
	m.Unlock()
	fmt.Println(m.TryLockFor(10 * time.Millisecond))
	// Output:
	// false
	// true
}

func ExampleBargingMutex() {
	var m fair.BargingMutex
	count := 0
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			m.Lock()
			defer m.Unlock()
			count++
		})
	}
	wg.Wait()
	fmt.Println(count, m.IsLocked())
	// Output: 10 false
}

func ExampleRWMutex() {
	var mu fair.RWMutex // where sync.RWMutex was
	prices := map[string]int{"tea": 3}

	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			mu.RLock()
			defer mu.RUnlock()
			_ = prices["tea"]
		})
	}
	wg.Wait()

	mu.Lock()
	prices["tea"]++
	fmt.Println(prices["tea"], mu.IsWriteLocked())
	mu.Unlock()
	// Output: 4 true
}
