package record_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

func Example() {
	r := record.New(record.Options{})
	lock := r.Wrap("accounts", new(reentrant.Mutex))

	ctx := context.Background()
	for range 3 {
		_ = locks.Do(ctx, lock, func(context.Context) error { return nil })
	}

	// For a metrics endpoint: counters, gauges and histograms by name.
	for _, s := range r.Stats() {
		fmt.Println(s.Lock, s.Acquired, s.Released, s.Held, s.Waits.Count(), s.Waits.Quantile(0.99) < time.Minute)
	}
	// Output: accounts 3 3 0 3 true
}

// The lock inside has the methods that the wrapper lacks.
func ExampleInner() {
	r := record.New(record.Options{})
	var lock locks.TryLocker = r.Wrap("accounts", new(reentrant.Mutex))

	_ = lock.LockContext(context.Background()) // recorded
	if mu, ok := record.Inner[*reentrant.Mutex](lock); ok {
		fmt.Println(mu.HoldCount(), mu.QueueLength())
	}
	_ = lock.UnlockContext(context.Background())
	// Output: 1 0
}

// A timeline of waits and holds can be drawn from the events.
func ExampleRecorder_Events() {
	r := record.New(record.Options{Events: 1000})
	lock := r.Wrap("accounts", new(reentrant.Mutex))

	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	_ = lock.LockContext(ctx)
	_, _ = lock.TryLockContext(context.Background()) // in vain
	_ = lock.UnlockContext(ctx)

	events, dropped := r.Events()
	for _, e := range events {
		fmt.Println(e.Lock, e.Kind, e.Holds)
	}
	fmt.Println("dropped", dropped)
	// Output:
	// accounts waiting 0
	// accounts acquired 1
	// accounts failed 0
	// accounts released 0
	// dropped 0
}

// An alert tells of a holder that has the lock for too long.
func ExampleRecorder_Holds() {
	r := record.New(record.Options{})
	lock := r.Wrap("accounts", new(reentrant.Mutex))
	_ = lock.LockContext(context.Background())
	if all := r.Holds(); len(all) > 0 {
		var oldest record.Hold = all[0]
		fmt.Println(oldest.Lock, oldest.Holds, time.Since(oldest.Since) < time.Minute)
	}
	_ = lock.UnlockContext(context.Background())
	// Output: accounts 1 true
}

// Waits and holds that take long go to a logger of one's own.
func ExampleOptions() {
	r := record.New(record.Options{Logger: slog.Default(), Slow: 100 * time.Millisecond})
	lock := r.Wrap("accounts", new(reentrant.Mutex))
	_ = lock.LockContext(context.Background()) // not logged: quick enough
	_ = lock.UnlockContext(context.Background())
	// Output:
}
