// Command zookeeper makes a report in one process at a time, under a lock on ZooKeeper.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	connecting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	servers := strings.Split(cmp.Or(os.Getenv("ZOOKEEPER"), "localhost:2181"), ",")
	client, err := zklock.New(connecting, servers)
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The session may be over. Another process may hold the lock now.
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
