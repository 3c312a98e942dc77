// Command s3 makes a report in one process at a time, under a lock in a bucket on S3.
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

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/s3lock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	settings, err := config.LoadDefaultConfig(ctx) // the environment, or the role of the machine
	if err != nil {
		return err
	}
	bucket := s3.NewFromConfig(settings, func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil // with AWS_ENDPOINT_URL, a server of one's own
	})
	client, err := s3lock.New(bucket, cmp.Or(os.Getenv("BUCKET"), "reports"))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	// If a process has died with the lock, this waits for a lease, which is 30 s.
	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The bucket was out of reach for too long. Another process may hold the lock now.
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
