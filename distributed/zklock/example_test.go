package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
)

func ExampleClient() {
	ctx := context.Background()
	servers := []string{"zk1:2181", "zk2:2181", "zk3:2181"}
	client, err := zklock.New(ctx, servers, zklock.WithSessionTimeout(10*time.Second))
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)

	err = locks.Do(ctx, client.Locker("orders"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		// ctx ends when the lock is lost. The token is for the resource that ctx cannot stop.
		fmt.Println("work with token", hold.Token())
		return ctx.Err()
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
}

// Another client asks for the lock back, with Client.Revoke or with Curator's Revoker. The holder
// decides what to do.
func ExampleClient_Mutex() {
	var client *zklock.Client // as in the example of Client
	asked := make(chan struct{})
	var revocable lease.MutexOption = zklock.WithRevocation(func(uint64) { close(asked) })
	var orders *lease.Mutex = client.Mutex("orders", revocable)

	_ = locks.Do(context.Background(), orders, func(ctx context.Context) error {
		for {
			select {
			case <-asked: // finish early
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(100 * time.Millisecond): // one piece of work
			}
		}
	})
}

// A writer goes on as a reader, without letting another writer in between.
func ExampleClient_RWMutex() {
	var client *zklock.Client // as in the example of Client
	var catalogue *lease.RWMutex = client.RWMutex("catalogue")
	ctx := context.Background()
	if err := catalogue.WriteLocker().LockContext(ctx); err != nil {
		panic(err)
	}
	// write
	err := catalogue.ReadLocker().LockContext(ctx)
	if err := errors.Join(err, catalogue.WriteLocker().UnlockContext(ctx)); err != nil {
		panic(err)
	}
	// read
	if err := catalogue.ReadLocker().UnlockContext(ctx); err != nil {
		panic(err)
	}
}

// At most three of these jobs run in all processes together, with the jobs in Java.
func ExampleClient_Semaphore() {
	var client *zklock.Client // as in the example of Client
	ctx := context.Background()
	permits, err := client.Semaphore("jobs", 3).AcquireContext(ctx, 1)
	if err != nil {
		panic(err)
	}
	// work
	if err := permits.ReleaseContext(ctx); errors.Is(err, locks.ErrLost) {
		fmt.Println("more than three may have run")
	}
}

// A program that shows whether it can still count on its locks.
func ExampleState() {
	ctx := context.Background()
	client, err := zklock.New(ctx, []string{"zk1:2181"}, zklock.WithState(func(s zklock.State) {
		switch s {
		case zklock.Held:
			fmt.Println("all is well")
		case zklock.Suspect:
			fmt.Println("start nothing that takes long")
		case zklock.Lost:
			fmt.Println("all holds are lost")
		}
	}))
	if err != nil {
		panic(err)
	}
	defer client.Close(ctx)
}
