package explore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest/explore"
)

type account struct {
	mu      fair.Mutex
	balance int
}

// transfer deadlocks with a transfer in the other direction.
func transfer(from, to *account, amount int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.balance -= amount
	to.balance += amount
}

// The function is the body of a test: func TestTransfers(t *testing.T).
func ExampleRun() {
	test := func(t *testing.T) {
		explore.Run(t, func(x *explore.X) {
			a, b := &account{balance: 10}, &account{balance: 10}
			x.Go("there", func() { transfer(a, b, 1) })
			x.Go("back", func() { transfer(b, a, 2) })
			x.Wait()
			x.Check(a.balance+b.balance == 20, "%d and %d", a.balance, b.balance)
		})
	}
	_ = test
}

// The options that a report prints, and that a test of a known mistake has.
func ExampleReplay() {
	test := func(t *testing.T) {
		explore.Run(t, func(x *explore.X) {
			a, b := new(account), new(account)
			x.Go("there", func() { transfer(a, b, 1) })
			x.Go("back", func() { transfer(b, a, 2) })
		}, explore.Replay("2:2"), explore.Expect(explore.Deadlock))
	}
	_ = test
}

// The lease of a job may be lost at any moment: the schedule decides when.
func ExampleX_NewLease() {
	test := func(t *testing.T) {
		explore.Run(t, func(x *explore.X) {
			job := x.NewLease("job")
			var newest atomic.Uint64
			for range 2 {
				x.Go("works", func() {
					_ = locks.Do(x.Context(), job, func(ctx context.Context) error {
						hold, _ := locks.HoldFrom(ctx)
						newest.Store(max(newest.Load(), hold.Token()))
						x.Step() // the work
						if err := hold.Err(); err != nil {
							return err // and not the line below
						}
						x.Check(newest.Load() == hold.Token(), "two work at the same time")
						return nil
					})
				})
			}
		})
	}
	_ = test
}

// A stop and a job may be ready at once. The select of the program would take one of them at
// random. As a decision of the schedule, each is tried, and a replay takes the same one.
func ExampleX_Select() {
	test := func(t *testing.T) {
		explore.Run(t, func(x *explore.X) {
			jobs, stop := make(chan int, 1), make(chan struct{})
			jobs <- 1
			close(stop)
			worked := false
			var work explore.Case = explore.Receive(jobs, func(int, bool) { worked = true })
			x.Select(work, explore.Receive(stop, nil))
			x.Check(worked, "a job was left when the worker stopped") // the mistake
		}, explore.Expect(explore.Failure))
	}
	_ = test
}
