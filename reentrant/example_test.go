package reentrant_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

type account struct {
	mu      reentrant.Mutex
	balance int
}

func (a *account) Add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance += n
}

func (a *account) AddTwice(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Add(n) // takes the lock again
	a.Add(n)
}

func ExampleMutex() {
	var a account
	a.AddTwice(21)
	fmt.Println(a.balance, a.mu.IsLocked())
	// Output: 42 false
}

func ExampleNew() {
	m := reentrant.New(locks.FIFO)
	m.Lock()
	m.Lock()
	fmt.Println(m.IsFair(), m.HoldCount())
	m.Unlock()
	m.Unlock()
	fmt.Println(m.IsHeld())
	// Output:
	// true 2
	// false
}

func ExampleMutex_TryLockFor() {
	var m reentrant.Mutex
	other := locks.WithOwner(context.Background(), locks.NewOwner())
	_ = m.LockContext(other)

	if !m.TryLockFor(10 * time.Millisecond) {
		fmt.Println("busy, doing something else")
	}
	_ = m.UnlockContext(other)
	// Output: busy, doing something else
}

func ExampleMutex_LockContext() {
	var m reentrant.Mutex
	m.Lock()
	defer m.Unlock()

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.LockContext(ctx) }()
	cancel() // interrupts the wait

	err := <-done
	fmt.Println(errors.Is(err, context.Canceled))
	fmt.Println(m.HasQueued())
	// Output:
	// true
	// false
}

// Goroutines that work for one owner re-enter its locks, and need something else
// to keep their own accesses apart: here, each has an element of its own.
func ExampleMutex_explicitOwner() {
	var m reentrant.Mutex
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	if err := m.LockContext(ctx); err != nil {
		panic(err)
	}

	squares := make([]int, 4)
	group, ctx2 := errgroup.WithContext(ctx)
	for i := range squares {
		group.Go(func() error {
			if !m.IsLocked() || m.Owner() != locks.CurrentOwner(ctx2) {
				return locks.ErrNotHeld
			}
			squares[i] = i * i
			return nil
		})
	}
	err := group.Wait()
	fmt.Println(squares, err)
	fmt.Println(m.UnlockContext(ctx))
	// Output:
	// [0 1 4 9] <nil>
	// <nil>
}

// report knows its lock as a locks.TryLocker only: any lock of the module will do.
func report(ctx context.Context, l locks.TryLocker) error {
	ok, err := l.TryLockContext(ctx)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Println("somebody else reports already")
		return nil
	}
	fmt.Println("reporting")
	return l.UnlockContext(ctx)
}

func ExampleMutex_tryLocker() {
	ctx := context.Background()
	for _, l := range []locks.TryLocker{
		new(reentrant.Mutex), reentrant.New(locks.FIFO), new(fair.Mutex), new(fair.BargingMutex),
	} {
		if err := report(ctx, l); err != nil {
			panic(err)
		}
	}
	// Output:
	// reporting
	// reporting
	// reporting
	// reporting
}

// A function that must only run under the lock says so, and tests find the caller who forgot.
func ExampleMutex_AssertHeld() {
	var mu reentrant.Mutex
	balance := 10
	withdraw := func(amount int) {
		mu.AssertHeld()
		balance -= amount
	}

	mu.Lock()
	withdraw(4)
	mu.Unlock()
	fmt.Println("left:", balance)

	defer func() {
		err, _ := recover().(error)
		fmt.Println("without the lock:", errors.Is(err, locks.ErrNotHeld))
	}()
	withdraw(4)
	// Output:
	// left: 6
	// without the lock: true
}
