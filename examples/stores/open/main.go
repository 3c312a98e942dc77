// Command open makes a report in one process at a time, under a lock of whichever store its
// environment names.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	_ "github.com/jucgo/locks/distributed/open/all" // or only some, such as redislock/redisopen
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx); { // an interrupt ends ctx, and so releases the lock
	case errors.Is(err, open.ErrURL):
		log.Print(err)
		os.Exit(2) // nobody has to be woken at night
	case err != nil:
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// An environment variable, because other users of the machine can read arguments.
	store, err := open.URL(ctx, cmp.Or(os.Getenv("LOCK_STORE"), "file:report-locks?kind=fenced"))
	if err != nil {
		return err
	}
	defer store.Close(context.Background())
	fmt.Println("the lock is in", store)

	err = locks.Do(ctx, store.Locker("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The store was out of reach for too long. Another process may hold the lock now.
		return fmt.Errorf("the report is incomplete: %w", err)
	}
	return err
}

// makeReport runs while the lock is held. Its ctx ends when the lock is lost.
func makeReport(ctx context.Context) error {
	for part := 1; part <= 3; part++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond): // the work
		}
		token := uint64(0)
		if hold, ok := locks.HoldFrom(ctx); ok { // not in mem:, which has no leases
			token = hold.Token()
		}
		fmt.Printf("write part %d with token %d\n", part, token)
	}
	return nil
}
