package redlock_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// The lock is on three servers that know nothing of each other. A client can acquire and keep the
// lock while two of the servers run.
func ExampleClient() {
	var servers []*miniredis.Miniredis
	var clients []redis.UniversalClient
	for range 3 {
		server := miniredis.NewMiniRedis()
		server.Start()
		defer server.Close()
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), DialerRetries: 1, ContextTimeoutEnabled: true})
		defer client.Close()
		servers, clients = append(servers, server), append(clients, client)
	}
	locker, err := redlock.New(clients)
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())

	var orders *lease.Mutex = locker.Mutex("orders")
	servers[1].Close()
	err = locks.Do(context.Background(), orders, func(context.Context) error {
		fmt.Println("worked")
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output: worked
}
