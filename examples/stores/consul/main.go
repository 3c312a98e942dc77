// Command consul makes a report in one process at a time, under a lock in Consul.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	consul, err := api.NewClient(api.DefaultConfig()) // CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and others
	if err != nil {
		return err
	}
	client, err := consullock.New(consul)
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// Consul was out of reach for too long. Another process may hold the lock now.
		return fmt.Errorf("the report is incomplete: %w", err)
	}
	return err
}

// makeReport runs while the lock is held. Its ctx ends when the lock is lost.
func makeReport(ctx context.Context) error {
	hold, _ := locks.HoldFrom(ctx)
	for part := 1; part <= 3; part++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond): // the work
		}
		// A store that compares tokens refuses the writes of a former holder.
		fmt.Printf("write part %d with token %d\n", part, hold.Token())
	}
	return nil
}
