package onrueidis_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock/onrueidis"
)

func ExampleNew() {
	server := miniredis.NewMiniRedis() // yours is a real one
	server.Start()
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:  []string{server.Addr()},
		DisableCache: true, // miniredis has no CLIENT TRACKING
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	provider, err := onrueidis.New(client)
	if err != nil {
		panic(err)
	}
	defer provider.Close(context.Background())

	err = locks.Do(context.Background(), provider.FencedMutex("orders"), func(context.Context) error {
		fmt.Println("worked")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: worked
}
