// Command cache serves prices from memory. Eight goroutines ask for three articles a thousand
// times each, and every article is looked up once.
//
//	go run ./examples/stores/shop/cache
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/singleton"
)

// A Cache looks up each price once. The read-write lock guards the map only. A lookup runs outside
// of the lock, so a slow one delays only the goroutines that want the same article.
type Cache struct {
	lookUp func(ctx context.Context, article string) (price int, err error)

	mu     rwlock.RWMutex
	prices map[string]*singleton.Lazy[int]
}

// Price returns the price of article. A lookup that failed is repeated by the next call.
func (c *Cache) Price(ctx context.Context, article string) (int, error) {
	return c.entry(article).GetContext(ctx)
}

// Forget makes the next call of Price look article up again.
func (c *Cache) Forget(article string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.prices, article)
}

func (c *Cache) entry(article string) *singleton.Lazy[int] {
	c.mu.RLock()
	entry := c.prices[article]
	c.mu.RUnlock()
	if entry != nil {
		return entry
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.prices[article]; entry != nil {
		return entry // another goroutine was here between the two locks
	}
	entry = singleton.NewContext(func(ctx context.Context) (int, error) { return c.lookUp(ctx, article) })
	if c.prices == nil {
		c.prices = make(map[string]*singleton.Lazy[int])
	}
	c.prices[article] = entry
	return entry
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	var lookups, answers atomic.Int32
	cache := &Cache{lookUp: func(_ context.Context, article string) (int, error) {
		lookups.Add(1)
		time.Sleep(10 * time.Millisecond) // a request to the database
		return len(article), nil
	}}

	var customers sync.WaitGroup
	failed := make(chan error, 8)
	for range 8 {
		customers.Go(func() {
			for i := range 1000 {
				if _, err := cache.Price(ctx, []string{"nut", "bolt", "screw"}[i%3]); err != nil {
					failed <- err
					return
				}
				answers.Add(1)
			}
		})
	}
	customers.Wait()
	close(failed)
	fmt.Fprintf(out, "%d answers, %d lookups\n", answers.Load(), lookups.Load())
	return <-failed
}
