package locks_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
)

// A function that only waits and releases accepts a Locker.
func ExampleLocker() {
	increment := func(ctx context.Context, l locks.Locker, n *int) error {
		if err := l.LockContext(ctx); err != nil {
			return err
		}
		*n++
		return l.UnlockContext(ctx)
	}
	var mu reentrant.Mutex
	n := 1
	err := increment(context.Background(), &mu, &n)
	fmt.Println(n, err)
	// Output: 2 <nil>
}

// The names of the locks are data. Another Provider moves the locks to a store.
func ExampleProvider() {
	transfer := func(ctx context.Context, p locks.Provider, from, to string) error {
		both := locks.Multi(p.Locker("account/"+from), p.Locker("account/"+to))
		return locks.Do(ctx, both, func(context.Context) error {
			fmt.Println(from, "pays", to)
			return nil
		})
	}
	if err := transfer(context.Background(), new(named.Provider), "ada", "grace"); err != nil {
		fmt.Println(err)
	}
	// Output: ada pays grace
}

func ExampleReadWriteLocker() {
	var rw locks.ReadWriteLocker = new(rwlock.RWMutex)
	ctx, other := context.Background(), locks.WithOwner(context.Background(), locks.NewOwner())

	// Two readers share the lock, and exclude writers.
	_ = locks.Do(ctx, rw.ReadLocker(), func(ctx context.Context) error {
		reads, _ := rw.ReadLocker().TryLockContext(other)
		fmt.Printf("another one reads: %v;\n", reads)
		writes, _ := rw.WriteLocker().TryLockContext(locks.WithOwner(ctx, locks.NewOwner()))
		fmt.Println("a third one writes:", writes)
		return rw.ReadLocker().UnlockContext(other)
	})
	// Output:
	// another one reads: true;
	// a third one writes: false
}

// The owner of a hold is a goroutine, unless the context names another owner.
func ExampleOwner() {
	var mu reentrant.Mutex
	var job locks.Owner = locks.NewOwner()
	ctx := locks.WithOwner(context.Background(), job)
	_ = mu.LockContext(ctx)
	fmt.Println(mu.Owner() == job, mu.IsHeld()) // this goroutine holds nothing itself
	_ = mu.UnlockContext(ctx)
	// Output: true false
}

// Inspect answers "which owner holds this lock, and how many wait for it?".
func ExampleInfo() {
	var mu reentrant.Mutex
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	_ = mu.LockContext(ctx)

	var info locks.Info
	info, err := mu.Inspect(ctx)
	fmt.Printf("held: %v, shared: %v, waiting: %d, error: %v;\n", info.Held, info.Shared, info.Waiting, err)
	for _, party := range info.Holders {
		fmt.Println("by us:", party.Owner == locks.CurrentOwner(ctx))
	}
	_ = mu.UnlockContext(ctx)
	// Output:
	// held: true, shared: false, waiting: 0, error: <nil>;
	// by us: true
}

// A Party of a lock on a store also has the process, the time and the token.
func ExampleParty() {
	describe := func(p locks.Party) string {
		if p.Owner != 0 {
			return "an owner of this process;"
		}
		return fmt.Sprintf("process %d on %s with token %d", p.PID, p.Host, p.Token)
	}
	fmt.Println(describe(locks.Party{Owner: locks.NewOwner()}))
	fmt.Println(describe(locks.Party{Host: "web-1", PID: 4711, Token: 9}))
	// Output:
	// an owner of this process;
	// process 4711 on web-1 with token 9
}

// A lock with a lease implements Leased. A lock in memory cannot be lost, and does not.
func ExampleLeased() {
	var lock locks.TryLocker = new(reentrant.Mutex)
	if leased, ok := lock.(locks.Leased); ok {
		hold, err := leased.Hold(context.Background())
		fmt.Println("the hold has token", hold.Token(), err)
	} else {
		fmt.Println("a hold of this lock lasts until its release")
	}
	// Output: a hold of this lock lasts until its release
}

// A holder that does not work inside of locks.Do looks at its Hold.
func ExampleHold() {
	var reports locks.Leased // such as client.FencedMutex("reports") of package redislock

	work := func(ctx context.Context) error {
		if err := reports.LockContext(ctx); err != nil {
			return err
		}
		defer reports.UnlockContext(ctx)
		var hold locks.Hold
		hold, err := reports.Hold(ctx)
		if err != nil {
			return err
		}
		for part := range 3 {
			select {
			case <-hold.Lost():
				return hold.Err() // it matches locks.ErrLost
			default:
				fmt.Println("write part", part, "with token", hold.Token())
			}
		}
		return nil
	}
	_ = work
}

func ExampleFromSync() {
	var mu locks.SyncLocker = new(sync.Mutex) // of a package that knows nothing of this module
	l := locks.FromSync(mu)
	err := locks.Do(context.Background(), l, func(context.Context) error {
		if mu.TryLock() {
			return errors.New("the lock is free")
		}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleRWGuarded() {
	ctx := context.Background()
	rates := locks.NewRWGuarded(new(fair.RWMutex), map[string]float64{"EUR": 1})
	_ = rates.With(ctx, func(m *map[string]float64) error {
		(*m)["USD"] = 1.08
		return nil
	})
	_ = rates.Read(ctx, func(m *map[string]float64) error { // beside other readers
		fmt.Println((*m)["USD"])
		return nil
	})
	// Output: 1.08
}

// The function is written once. It gets a semaphore of this process, or of a store, such as
// client.Semaphore("uploads", 3) of package redislock.
func ExampleSemaphore() {
	upload := func(ctx context.Context, uploads locks.Semaphore, file string) error {
		permits, err := uploads.AcquireContext(ctx, 1)
		if err != nil {
			return err
		}
		defer permits.ReleaseContext(ctx)
		fmt.Print("upload ", file, ": ")
		return nil
	}
	fmt.Println(upload(context.Background(), semaphore.NewWeighted(3), "a.txt"))
	// Output: upload a.txt: <nil>
}

// Work under permits with a lease ends when they are lost.
func ExamplePermits() {
	work := func(ctx context.Context, permits locks.Permits) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-permits.Lost(): // never, if it is nil
				cancel()
			case <-ctx.Done():
			}
		}()
		return ctx.Err() // the work itself
	}
	ctx := context.Background()
	permits, ok, err := semaphore.NewWeighted(3).TryAcquireContext(ctx, 2)
	if err != nil || !ok { // an error, or too few are free
		return
	}
	fmt.Println(permits.Count(), work(ctx, permits), permits.ReleaseContext(ctx))
	// Output: 2 <nil> <nil>
}

func ExamplePolicy() {
	var zero locks.Policy
	fmt.Println(zero, locks.FIFO)
	// Output: NonFair FIFO
}
