package ephemeral_test

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/ephemeral"
)

func ExampleNew() {
	var client *zklock.Client // as in the example of zklock.Client
	_ = locks.Do(context.Background(), ephemeral.New(client, "orders"), func(context.Context) error {
		fmt.Println("the release wakes every waiter")
		return nil
	})
}
