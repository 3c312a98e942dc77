// Command leader runs a job at every tick in one of several processes. Start it in two terminals.
// One of them prints a line each second. Kill this process, and the other process goes on.
//
//	go run ./examples/stores/shop/leader
//	go run ./examples/stores/shop/leader -every 5s
//
// The processes are on one machine. With a Provider of package redislock instead of filelock they
// can be anywhere, and lead stays as it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/distributed/leader"
)

// lead runs job at each tick while this process has the lock "cron", until ctx ends. The ctx of the
// job also ends when the lock is lost. The process then competes for the lock again. A job that
// fails is repeated at the next tick.
func lead(ctx context.Context, p locks.Provider, tick <-chan time.Time, job func(context.Context) error) error {
	return leader.Run(ctx, p.Locker("cron"), func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick:
			}
			if ctx.Err() != nil { // also if both were ready
				return context.Cause(ctx)
			}
			if err := job(ctx); err != nil && ctx.Err() == nil {
				log.Print("the job failed: ", err)
			}
		}
	},
		leader.WithOnGained(func(context.Context) { log.Print("this process leads") }),
		leader.WithOnLost(func(reason error) { log.Print("this process leads no longer: ", reason) }),
		leader.WithOnError(func(err error) { log.Print("the store fails: ", err) }),
	)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := flag.String("dir", filepath.Join(os.TempDir(), "shop-leader"), "the folder of the lock")
	every := flag.Duration("every", time.Second, "the time between two jobs")
	flag.Parse()
	client, err := filelock.New(*dir)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(context.Background())
	tick := time.NewTicker(*every)
	defer tick.Stop()
	err = lead(ctx, client, tick.C, func(context.Context) error {
		_, err := fmt.Printf("process %d sends the reminders\n", os.Getpid())
		return err
	})
	if ctx.Err() == nil {
		log.Print(err)
	}
}
