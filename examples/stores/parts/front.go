package parts

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/fair"
)

// sellHere is the first code of the README.
func sellHere(ctx context.Context, sellTicket func(context.Context) error) error {
	var mu fair.Mutex // the zero value is unlocked; waiters acquire it in order of arrival

	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := locks.Do(ctx, &mu, sellTicket) // limits sellTicket too; unlocks on return, panic and Goexit
	return err
}

// sellAnywhere is the second one.
func sellAnywhere(ctx context.Context, rdb redis.UniversalClient, sellTicket func(context.Context) error) error {
	client, err := redislock.New(rdb) // rdb is a client of go-redis
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.FencedMutex("tickets"), sellTicket) // the ctx of sellTicket ends if the lock is lost
	return err
}
