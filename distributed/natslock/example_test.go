package natslock_test

import (
	"context"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/natslock"
)

func ExampleNew() {
	ctx := context.Background()
	conn, err := nats.Connect("nats://localhost:4222", nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		log.Fatal(err)
	}
	client, err := natslock.New(ctx, js, "locks")
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
