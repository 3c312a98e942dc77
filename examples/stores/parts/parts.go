// Package parts has the parts of programs that the pages of this repository show, so that they are
// compiled. The pages name what their readers have, such as a client.
package parts

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	locksdebug "github.com/jucgo/locks/debug/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
)

// The lock is in this process or on a store.
func transfer(ctx context.Context, l locks.TryLocker) error {
	return locks.Do(ctx, l, func(ctx context.Context) error {
		// held here; released once on return, panic and Goexit
		return nil
	})
}

func lead(ctx context.Context, client *redislock.Client, schedule func(context.Context, uint64) error) error {
	err := leader.Run(ctx, client.FencedMutex("cron"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)     // hold.Token() is the fencing token of this leader
		return schedule(ctx, hold.Token()) // until ctx ends
	})
	return err
}

func inspectAny(ctx context.Context, client *redislock.Client) error {
	info, err := client.Mutex("orders").Inspect(ctx)
	if err != nil {
		return err
	}
	for _, h := range info.Holders {
		fmt.Println(h.Label, h.Host, h.PID, h.Since, h.Left, h.Token)
	}
	fmt.Println(info.Waiting, "waiting") // -1: unknown
	return nil
}

func inspectLabelled(ctx context.Context, rdb redis.UniversalClient) error {
	client, err := redislock.New(rdb, redislock.WithLabel("billing")) // if not given, the host and the process id
	if err != nil {
		return err
	}
	defer client.Close(ctx)
	info, err := client.FencedMutex("report").Inspect(ctx)
	if err != nil {
		return err
	}
	for _, p := range info.Holders {
		log.Printf("%s, process %d on %s, holds it since %v with token %d", p.Label, p.PID, p.Host, p.Since, p.Token)
	}
	return nil
}

func connect(ctx context.Context, config *tls.Config) (*zklock.Client, error) {
	client, err := zklock.New(ctx, []string{"zk1.example:2281"},
		zklock.WithDialer((&tls.Dialer{Config: config}).DialContext),
		zklock.WithAuth("digest", []byte("user:password")),
		zklock.WithACL(zk.AuthACL(zk.PermAll)))
	return client, err
}

func measure(logger *slog.Logger, export func(lock string, acquired uint64, waiting, held int64, p99 time.Duration)) {
	r := record.New(record.Options{Logger: logger, Slow: 100 * time.Millisecond}) // both optional
	lock := r.Wrap("accounts", new(reentrant.Mutex))                              // a locks.TryLocker, as before
	go transfer(context.Background(), lock)

	for _, s := range r.Stats() { // for your metrics, by name
		export(s.Lock, s.Acquired, s.Waiting, s.Held, s.Waits.Quantile(0.99))
	}
}

func show() locks.TryLocker {
	r := record.New(record.Options{Waits: true})
	cache := r.Wrap("cache", new(fair.Mutex)) // a lock without owners needs a Recorder to be shown
	http.Handle("/debug/locks", locksdebug.Handler(locksdebug.WithRecorder(r)))
	return cache
}

var _ = []any{sellHere, sellAnywhere, show, lead, inspectAny, inspectLabelled, connect, measure}
