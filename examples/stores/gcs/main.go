// Command gcs makes a report in one process at a time, under a lock in Google Cloud Storage.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/oauth2/google"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/gcslock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	connection, endpoint, err := connect()
	if err != nil {
		return err
	}
	client, err := gcslock.New(connection, cmp.Or(os.Getenv("BUCKET"), "reports"), gcslock.WithEndpoint(endpoint))
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

// connect returns what sends requests to Google, with the credentials of the machine or of "gcloud
// auth application-default login". They are renewed under its context, which lasts for that reason.
func connect() (*http.Client, string, error) {
	if emulator := os.Getenv("STORAGE_EMULATOR_HOST"); emulator != "" { // such as http://localhost:4443
		return http.DefaultClient, emulator, nil
	}
	client, err := google.DefaultClient(context.Background(), "https://www.googleapis.com/auth/devstorage.read_write")
	return client, gcslock.DefaultEndpoint, err
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
