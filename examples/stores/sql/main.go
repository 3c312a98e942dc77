// Command sql makes a report in one process at a time, under a lock in a table of SQLite.
package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "modernc.org/sqlite"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/sqllock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil { // an interrupt ends ctx, and so releases the lock
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// For PostgreSQL it is sql.Open("pgx", ...), and for MariaDB and MySQL sql.Open("mysql", ...).
	file := cmp.Or(os.Getenv("SQLITE_FILE"), "report.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	defer db.Close()
	table, err := sqllock.NewTable(db)
	if err != nil {
		return err
	}
	defer table.Close(context.Background())
	if err := table.CreateSchema(ctx); err != nil { // or give sqllock.Schema to your migrations
		return err
	}

	err = locks.Do(ctx, table.Mutex("report"), makeReport)
	if errors.Is(err, locks.ErrLost) {
		// The database was out of reach for too long. Another process may hold the lock now.
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
		// sqllock.Gate refuses the writes of a former holder by this token.
		fmt.Printf("write part %d with token %d\n", part, hold.Token())
	}
	return nil
}
