package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/rwlock"
)

// A cache looks a second time when it may write, since another goroutine may have filled it in
// between, and reads on without a gap in which somebody could empty it again.
func ExampleRWMutex_Downgrade() {
	var rw rwlock.RWMutex
	var cached string

	get := func() string {
		rw.RLock()
		if cached == "" {
			rw.RUnlock() // a reader may not ask to write
			rw.Lock()
			if cached == "" {
				cached = "computed"
			}
			rw.Downgrade()
		}
		defer rw.RUnlock()
		return cached
	}
	fmt.Println(get(), get(), rw.IsReadLocked())
	// Output: computed computed false
}

func ExampleRWMutex_TryUpgrade() {
	var rw rwlock.RWMutex
	counter := 0

	increment := func() {
		rw.RLock()
		before := counter
		if !rw.TryUpgrade() {
			// Others read too: start over as a writer, and look again.
			rw.RUnlock()
			rw.Lock()
			before = counter
		}
		counter = before + 1
		rw.Unlock()
	}
	increment()
	increment()
	fmt.Println(counter)
	// Output: 2
}

func ExampleRWMutex_TryRLockFor() {
	rw := rwlock.New(locks.FIFO)
	rw.Lock()

	done := make(chan struct{})
	go func() {
		defer close(done)
		fmt.Println("in time:", rw.TryRLockFor(time.Millisecond))

		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		err := rw.RLockContext(ctx)
		fmt.Println("in time:", err == nil, errors.Is(err, context.DeadlineExceeded))
	}()
	<-done
	rw.Unlock()
	// Output:
	// in time: false
	// in time: false true
}

// A store that is written against the interface takes a lock of this process as well as one
// of many.
func ExampleRWMutex_ReadLocker() {
	store := struct {
		lock  locks.ReadWriteLocker
		value int
	}{lock: new(rwlock.RWMutex)}

	ctx := context.Background()
	err := locks.Do(ctx, store.lock.WriteLocker(), func(context.Context) error {
		store.value = 42
		return nil
	})
	fmt.Println(err)
	err = locks.Do(ctx, store.lock.ReadLocker(), func(context.Context) error {
		fmt.Println(store.value)
		return nil
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// 42
	// <nil>
}

// The workers of a group act for the owner that has the lock.
func ExampleRWMutex_LockContext() {
	var rw rwlock.RWMutex
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	if err := rw.LockContext(ctx); err != nil {
		fmt.Println(err)
		return
	}
	squares := make([]int, 4)
	g, ctx := errgroup.WithContext(ctx)
	for i := range squares {
		g.Go(func() error {
			if err := rw.RLockContext(ctx); err != nil { // would wait if it were another owner
				return err
			}
			squares[i] = i * i
			return rw.RUnlockContext(ctx)
		})
	}
	fmt.Println(g.Wait(), squares)
	fmt.Println(rw.UnlockContext(ctx), rw.IsWriteLocked())
	// Output:
	// <nil> [0 1 4 9]
	// <nil> false
}

// A function that must only run under the lock says so, and tests find the caller who forgot. A
// check of the write lock fails for a reader, too.
func ExampleRWMutex_AssertWriteHeld() {
	var mu rwlock.RWMutex
	stock := map[string]int{"tea": 3}
	sell := func(article string) {
		mu.AssertWriteHeld()
		stock[article]--
	}
	count := func(article string) int {
		mu.AssertReadHeld()
		return stock[article]
	}

	mu.Lock()
	sell("tea")
	mu.Unlock()

	mu.RLock()
	fmt.Println("left:", count("tea"))
	defer mu.RUnlock()
	defer func() {
		err, _ := recover().(error)
		fmt.Println("a reader who sells:", errors.Is(err, locks.ErrNotHeld))
	}()
	sell("tea")
	// Output:
	// left: 2
	// a reader who sells: true
}

// In a request the owner comes from the context.
func ExampleRWMutex_WriteHoldCountContext() {
	var mu rwlock.RWMutex
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	if err := mu.WriteLocker().LockContext(ctx); err != nil {
		panic(err)
	}
	fmt.Println("writes:", mu.WriteHoldCountContext(ctx))
	if err := mu.WriteLocker().UnlockContext(ctx); err != nil {
		panic(err)
	}
	// Output: writes: 1
}

// A function that needs a read hold checks that its caller has one. The workers of a group count
// the holds of the owner of their context.
func ExampleRWMutex_ReadHoldCountContext() {
	var rw rwlock.RWMutex
	owner := locks.WithOwner(context.Background(), locks.NewOwner())
	rw.RLock()
	defer rw.RUnlock()
	for range 2 {
		if err := rw.RLockContext(owner); err != nil {
			fmt.Println(err)
			return
		}
		defer rw.RUnlockContext(owner)
	}
	fmt.Println("this goroutine:", rw.ReadHoldCount())
	fmt.Println("the owner:", rw.ReadHoldCountContext(owner))
	// Output:
	// this goroutine: 1
	// the owner: 2
}
