package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/named"
)

func ExampleClient_Mutex() {
	server := miniredis.NewMiniRedis() // yours is a real one
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ReadTimeout: time.Second,
		ContextTimeoutEnabled: true})
	defer client.Close()

	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())

	err = locks.Do(context.Background(), provider.Mutex("orders"), func(ctx context.Context) error {
		// ctx ends when the lock is lost, because the server could not be reached for too long.
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond): // the work
			fmt.Println("worked")
			return nil
		}
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
	// Output: worked
}

// A program that watches locks asks which process holds one.
func ExampleClient_FencedMutex_inspect() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client, redislock.WithLabel("billing"))
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())

	orders := provider.FencedMutex("orders")
	err = locks.Do(context.Background(), orders, func(ctx context.Context) error {
		info, err := orders.Inspect(ctx) // any other process gets the same answer
		for _, h := range info.Holders {
			fmt.Println("held by", h.Label)
		}
		fmt.Println(info.Waiting, "waiters")
		return err
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// held by billing
	// 0 waiters
}

// A holder sends its token with each write. The resource refuses a write with a smaller token than
// it has seen: that holder does not know yet that its lock is lost.
func ExampleClient_FencedMutex() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())

	var seen uint64 // by the resource
	write := func(token uint64, text string) {
		if token < seen {
			fmt.Println("refused:", text)
			return
		}
		seen = token
		fmt.Println("written:", text)
	}

	ctx := context.Background()
	lock := provider.FencedMutex("account")
	var old uint64
	for _, text := range []string{"first", "second"} {
		if err := lock.LockContext(ctx); err != nil {
			panic(err)
		}
		hold, err := lock.Hold(ctx)
		if err != nil {
			panic(err)
		}
		write(hold.Token(), text)
		if text == "first" {
			old = hold.Token()
		}
		if err := lock.UnlockContext(ctx); err != nil {
			panic(err)
		}
	}
	write(old, "late")
	// Output:
	// written: first
	// written: second
	// refused: late
}

// A call site that is written against locks.Provider does not know whether its locks are in
// this process or on a server.
func Example_provider() {
	bill := func(ctx context.Context, p locks.Provider, customer string) error {
		return locks.Do(ctx, p.Locker("bill/"+customer), func(context.Context) error {
			fmt.Println("billed", customer)
			return nil
		})
	}

	// One process.
	ctx := context.Background()
	if err := bill(ctx, new(named.Provider), "ada"); err != nil {
		panic(err)
	}

	// Several.
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	defer provider.Close(ctx)
	if err := bill(ctx, provider, "grace"); err != nil {
		panic(err)
	}
	// Output:
	// billed ada
	// billed grace
}

// Readers of all processes share the lock, and a writer has it alone.
func ExampleClient_RWMutex() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer provider.Close(ctx)

	var catalogue *lease.RWMutex = provider.RWMutex("catalogue")
	err = locks.Do(ctx, catalogue.ReadLocker(), func(ctx context.Context) error {
		other := locks.WithOwner(ctx, locks.NewOwner())
		writes, err := catalogue.WriteLocker().TryLockContext(other)
		fmt.Println("another one writes:", writes)
		return err
	})
	fmt.Println(err)
	// Output:
	// another one writes: false
	// <nil>
}

// All clients of a lock publish on one kind of channel. Redisson before 3.22.0 knows only the
// classic kind, also in a cluster.
func ExamplePubSub() {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"redis-1:6379", "redis-2:6379"}})
	defer cluster.Close()
	provider, err := redislock.New(cluster, redislock.WithPubSub(redislock.Classic))
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())
}

// At most three processes work at a time. If one dies, its permit returns with the end of its
// lease.
func ExampleClient_Semaphore() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer provider.Close(ctx)

	workers := provider.Semaphore("workers", 3) // at most three at a time, in all processes
	permit, err := workers.AcquireContext(ctx, 1)
	if err != nil {
		panic(err)
	}
	defer permit.ReleaseContext(ctx)

	_, ok, err := workers.TryAcquireContext(ctx, 3)
	fmt.Println("three more:", ok, err)
	// Output:
	// three more: false <nil>
}

// Processes in Java have the same permits by getPermitExpirableSemaphore("workers").
func ExampleRedissonExpirableSemaphore() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer provider.Close(ctx)

	var workers *redislock.RedissonExpirableSemaphore = provider.RedissonExpirableSemaphore("workers")
	if _, err := workers.TrySetPermits(ctx, 3); err != nil { // only the first process sets them
		panic(err)
	}
	permit, err := workers.AcquireContext(ctx, 1)
	if err != nil {
		panic(err)
	}
	defer permit.ReleaseContext(ctx)
	fmt.Println(workers.AvailablePermits(ctx))
	// Output:
	// 2 <nil>
}

// Processes in Java have the same permits by getSemaphore("seats").
func ExampleRedissonSemaphore() {
	server := miniredis.NewMiniRedis()
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer provider.Close(ctx)

	var seats *redislock.RedissonSemaphore = provider.RedissonSemaphore("seats")
	if err := seats.AddPermits(ctx, 10); err != nil {
		panic(err)
	}
	four, err := seats.AcquireContext(ctx, 4)
	if err != nil {
		panic(err)
	}
	fmt.Println(seats.DrainPermits(ctx))
	fmt.Println(four.ReleaseContext(ctx))
	// Output:
	// 6 <nil>
	// <nil>
}
