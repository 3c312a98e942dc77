package dynamolock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/dynamolock"
)

func ExampleNew() {
	var client *dynamodb.Client // dynamodb.NewFromConfig(cfg)
	provider, err := dynamolock.New(client, "locks")
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())
	err = locks.Do(context.Background(), provider.Mutex("orders"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		return save(ctx, hold.Token()) // ctx ends if the lock is lost
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
}

func save(context.Context, uint64) error { return nil }

// A table that the program shares with others, and locks whose waiters cost little.
func ExampleOption() {
	var client *dynamodb.Client // dynamodb.NewFromConfig(cfg)
	opts := []dynamolock.Option{
		dynamolock.WithKey("pk"), dynamolock.WithPrefix("lock#"),
		dynamolock.WithTTL(time.Minute), dynamolock.WithPolling(time.Second, 20*time.Second),
	}
	err := dynamolock.CheckTable(context.Background(), client, "shop", opts...)
	if errors.Is(err, dynamolock.ErrTable) {
		panic(err) // such as that of a global table
	}
	provider, err := dynamolock.New(client, "shop", opts...)
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())
}
