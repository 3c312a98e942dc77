package record_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

func nothing(context.Context) error { return nil }

// The counters of all locks with one name are one Stats.
func ExampleStats() {
	r := record.New(record.Options{})
	for range 2 {
		lock := r.Wrap("account", new(reentrant.Mutex))
		_ = locks.Do(context.Background(), lock, nothing)
	}
	var account record.Stats = r.Stats()[0]
	fmt.Println(account.Lock, account.Acquired, account.Released, account.Waiting, account.Held)
	// Output: account 2 2 0 0
}

// A metrics endpoint prints the buckets of a Histogram. All Histograms have the same bounds.
func ExampleHistogram() {
	r := record.New(record.Options{})
	lock := r.Wrap("account", new(reentrant.Mutex))
	for range 3 {
		_ = locks.Do(context.Background(), lock, nothing)
	}
	var waits record.Histogram = r.Stats()[0].Waits
	n := uint64(0)
	for i, count := range waits.Counts {
		if record.BucketUpperBound(i) < time.Minute {
			n += count
		}
	}
	fmt.Println(waits.Count(), n, waits.Quantile(0.99) < time.Minute)
	// Output: 3 3 true
}

// A hook sees each event when it happens.
func ExampleEvent() {
	r := record.New(record.Options{Hook: func(e record.Event) {
		fmt.Printf("%s %v, by a try: %v.\n", e.Lock, e.Kind, e.Try)
	}})
	_ = locks.Do(context.Background(), r.Wrap("account", new(reentrant.Mutex)), nothing)
	// Output:
	// account waiting, by a try: false.
	// account acquired, by a try: false.
	// account released, by a try: false.
}

func ExampleKind() {
	r := record.New(record.Options{Events: 10})
	lock := r.Wrap("account", new(reentrant.Mutex))
	_ = lock.UnlockContext(context.Background()) // it is not held
	events, _ := r.Events()
	var kind record.Kind = events[0].Kind
	fmt.Println(kind, kind == record.Refused, errors.Is(events[0].Err, locks.ErrNotHeld))
	// Output: refused true true
}

// A page for people in an incident shows the holder of a lock and its waiters.
func ExampleHold() {
	r := record.New(record.Options{Waits: true})
	lock := r.Wrap("account", new(reentrant.Mutex))
	_ = locks.Do(context.Background(), lock, func(ctx context.Context) error {
		var held record.Hold = r.Holds()[0]
		fmt.Printf("%s, %d hold, of this owner: %v;\n", held.Lock, held.Holds, held.Owner == locks.CurrentOwner(ctx))
		return nil
	})
	fmt.Println(len(r.Holds()), "holds")
	// Output:
	// account, 1 hold, of this owner: true;
	// 0 holds
}

func ExampleWait() {
	r := record.New(record.Options{Waits: true})
	lock := r.Wrap("account", new(reentrant.Mutex))
	_ = locks.Do(context.Background(), lock, func(context.Context) error {
		done := make(chan error)
		go func() { done <- locks.Do(context.Background(), lock, nothing) }()
		for len(r.Waits()) == 0 {
			time.Sleep(time.Millisecond)
		}
		var wait record.Wait = r.Waits()[0]
		fmt.Println(wait.Lock, wait.Calls, time.Since(wait.Since) > 0)
		go func() { <-done }()
		return nil
	})
	// Output: account 1 true
}
