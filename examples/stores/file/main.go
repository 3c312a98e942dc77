// Command file makes a report in one process of this machine at a time, under a lock on a file.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// All processes have to use one folder. Nothing else may delete the files in it.
	dir := cmp.Or(os.Getenv("LOCK_DIR"), filepath.Join(os.TempDir(), "report-locks"))
	client, err := filelock.New(dir, filelock.WithTokens(), filelock.WithWatch(time.Second))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())

	err = locks.Do(ctx, client.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The file was deleted or replaced. Another process may hold the new one now.
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
		fmt.Printf("write part %d with token %d\n", part, hold.Token())
	}
	return nil
}
