package consullock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/lease"
)

func ExampleNew() {
	ctx := context.Background()
	consul, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	client, err := consullock.New(consul)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	err = locks.Do(ctx, client.Mutex("orders"), func(ctx context.Context) error {
		// Only one process at a time is here. Its ctx ends if the lock is lost.
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

func ExampleClient_Mutex() {
	ctx := context.Background()
	consul, err := api.NewClient(&api.Config{Address: "consul.example.com:8500"})
	if err != nil {
		log.Fatal(err)
	}
	options := []consullock.Option{consullock.WithTTL(20 * time.Second), consullock.WithLockDelay(20 * time.Second)}
	client, err := consullock.New(consul, options...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	var orders *lease.Mutex = client.Mutex("orders")
	if err := orders.LockContext(ctx); err != nil {
		log.Fatal(err)
	}
	defer orders.UnlockContext(ctx)
	hold, err := orders.Hold(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("token", hold.Token(), "of the key", client.Key("orders"))
}
