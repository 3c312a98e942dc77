// Command orders sells from a stock that several processes share. A process is paused for longer
// than its lease, and the stock refuses its late write.
//
//	go run ./examples/stores/shop/orders
//
// A small Redis server is inside. Yours is a real one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

var errSoldOut = errors.New("sold out")

// A Stock is the resource: a service of its own, which all processes call. It refuses a token that
// is smaller than one it has seen. The gate also guards the count of each article.
type Stock struct {
	gate  fence.Gate
	count map[string]*int
}

// Count returns the number of pieces, and notes that the holder of token reads them.
func (s *Stock) Count(article string, token uint64) (n int, err error) {
	err = s.gate.Do(article, token, func() error {
		n = *s.count[article]
		return nil
	})
	return n, err
}

// Set changes the number of pieces.
func (s *Stock) Set(article string, token uint64, n int) error {
	return s.gate.Do(article, token, func() error {
		*s.count[article] = n
		return nil
	})
}

// A Shop is one of the processes that sell.
type Shop struct {
	locks *redislock.Client
	stock *Stock
	pause func() // what happens between the read and the write of a sale
}

// Sell sells n pieces of article. It returns an error that matches locks.ErrLost or fence.ErrStale
// if another process had the lock before the sale was complete.
func (s *Shop) Sell(ctx context.Context, article string, n int) error {
	lock := s.locks.FencedMutex("stock/"+article, lease.WithFixedTTL(10*time.Second))
	return locks.Do(ctx, lock, func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		left, err := s.stock.Count(article, hold.Token())
		if err != nil {
			return err
		}
		if left < n {
			return errSoldOut
		}
		s.pause()
		return s.stock.Set(article, hold.Token(), left-n)
	})
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Close()
	nuts := 5
	stock := &Stock{count: map[string]*int{"nut": &nuts}}
	var shops [2]Shop
	for i := range shops {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		client, err := redislock.New(rdb)
		if err != nil {
			return err
		}
		defer client.Close(context.Background())
		shops[i] = Shop{locks: client, stock: stock, pause: func() {}}
	}

	var second error
	shops[0].pause = func() { // for eleven seconds: the lease ends, and the second shop sells
		server.FastForward(11 * time.Second)
		second = shops[1].Sell(ctx, "nut", 1)
	}
	first := shops[0].Sell(ctx, "nut", 2)
	fmt.Fprintln(out, "the second shop sold one piece:", second == nil)
	fmt.Fprintln(out, "the late write of the first shop was refused:", errors.Is(first, fence.ErrStale))
	fmt.Fprintln(out, "pieces left:", nuts)
	return second
}
