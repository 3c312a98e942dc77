package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

func opened(s driver.Store, opts ...lease.Option) *lease.Client {
	client, err := lease.New(s, opts...)
	if err != nil {
		panic(err)
	}
	return client
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A Client is a locks.Provider. Its locks are shared by the goroutines of one process.
func ExampleClient() {
	ctx := context.Background()
	var client *lease.Client = opened(newServer().connect(), lease.WithTTL(10*time.Second))
	defer client.Close(ctx)

	err := locks.Do(ctx, client.Locker("orders"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		fmt.Printf("The token is %d.\n", hold.Token())
		return nil
	})
	fmt.Println(err)
	// Output:
	// The token is 1.
	// <nil>
}

// The hold of this Mutex is not renewed: it ends after a minute.
func ExampleMutex() {
	ctx := context.Background()
	client := opened(newServer().connect())
	defer client.Close(ctx)

	var orders *lease.Mutex = client.Mutex("orders", lease.WithFixedTTL(time.Minute))
	must(orders.LockContext(ctx))
	hold, err := orders.Hold(ctx)
	must(err)
	end, limited := hold.Deadline()
	fmt.Printf("limited: %v, to a minute: %v.\n", limited, time.Until(end) <= time.Minute)

	other := locks.WithOwner(ctx, locks.NewOwner())
	fmt.Println(orders.TryLockContext(other))
	must(orders.UnlockContext(ctx))
	// Output:
	// limited: true, to a minute: true.
	// false <nil>
}

// A writer goes on as a reader, and lets no other writer in between. The client is one of package
// redislock, etcdlock or zklock.
func ExampleRWMutex() {
	var client interface {
		RWMutex(name string, opts ...lease.MutexOption) *lease.RWMutex
	}
	ctx := context.Background()
	var catalogue *lease.RWMutex = client.RWMutex("catalogue")
	must(catalogue.WriteLocker().LockContext(ctx))
	fmt.Println("write the catalogue")
	must(catalogue.ReadLocker().LockContext(ctx))
	must(catalogue.WriteLocker().UnlockContext(ctx))
	fmt.Println("read the catalogue as written")
	must(catalogue.ReadLocker().UnlockContext(ctx))
}

// absent is a store that cannot serve now.
type absent struct{ *client }

func (absent) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{}, driver.Mark(errors.New("loading the data set"), driver.ErrUnavailable)
}

// By default, LockContext waits for a store that will be there soon. RetryNever returns the error.
func ExampleRetry() {
	ctx := context.Background()
	var retry lease.Retry = lease.RetryNever
	client := opened(absent{newServer().connect()}, lease.WithRetry(retry))
	defer client.Close(ctx)

	err := client.Mutex("orders").LockContext(ctx)
	fmt.Println(errors.Is(err, lease.ErrUnavailable))
	// Output: true
}
