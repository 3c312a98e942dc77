// Command nats makes a report in one process at a time, under a lock in a bucket of NATS.
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

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/natslock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	conn, err := nats.Connect(cmp.Or(os.Getenv("NATS"), nats.DefaultURL),
		nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.PingInterval(5*time.Second))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	// With three servers, set Replicas to 3. A bucket that is there stays as it is.
	_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "locks"})
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return err
	}
	client, err := natslock.New(ctx, js, "locks")
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The servers were out of reach for too long. Another process may hold the lock now.
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
