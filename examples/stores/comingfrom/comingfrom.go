// Package comingfrom has the programs of the pages docs/guides/coming-from for client-go's leader
// election and for the libraries of Java: ShedLock, Redisson, Curator and java.util.concurrent.
package comingfrom

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

func electByClientGo(ctx context.Context, api coordinationv1client.CoordinationV1Interface, pod string,
	schedule func(ctx context.Context)) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "scheduler"},
			Client:     api,
			LockConfig: resourcelock.ResourceLockConfig{Identity: pod},
		},
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: schedule,
			OnStoppedLeading: func() { log.Fatal("no longer the leader") },
		},
	})
}

func elect(ctx context.Context, api coordinationv1client.CoordinationV1Interface,
	schedule func(ctx context.Context) error) error {
	client, err := k8slock.New(api, "shop")
	if err != nil {
		return err
	}
	defer client.Close(context.Background())
	return leader.Run(ctx, client.Mutex("scheduler"), schedule)
}

func scheduled(ctx context.Context, table *sqllock.Table, makeReport func(ctx context.Context) error) error {
	_, err := locks.TryDo(ctx, table.Mutex("report"), makeReport)
	return err // nil if another process makes the report
}

func atLeast(ctx context.Context, table *sqllock.Table, makeReport func(ctx context.Context) error) error {
	_, err := locks.TryDo(ctx, table.Mutex("report"), func(ctx context.Context) error {
		tooEarly := time.After(14 * time.Minute)
		if err := makeReport(ctx); err != nil {
			return err
		}
		select {
		case <-tooEarly:
		case <-ctx.Done():
		}
		return nil
	})
	return err
}

func openTable(ctx context.Context, db *sql.DB) (*sqllock.Table, error) {
	table, err := sqllock.NewTable(db) // time is that of the database
	if err != nil {
		return nil, err
	}
	return table, table.CreateSchema(ctx)
}

func onRedis(ctx context.Context, rdb redis.UniversalClient, makeReport func(ctx context.Context) error) error {
	client, err := redislock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close(context.Background())
	return locks.Do(ctx, client.Mutex("report"), makeReport)
}

func withLimit(ctx context.Context, client *redislock.Client, makeReport func(ctx context.Context) error) (err error) {
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	mu := client.Mutex("report", lease.WithFixedTTL(30*time.Second))
	if err := mu.LockContext(wait); err != nil {
		return err // matches context.DeadlineExceeded after ten seconds
	}
	defer func() { err = errors.Join(err, mu.UnlockContext(ctx)) }()
	return makeReport(ctx)
}

func fenced(ctx context.Context, client *redislock.Client, write func(token uint64) error) error {
	return locks.Do(ctx, client.FencedMutex("report"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		return write(hold.Token())
	})
}

func onZooKeeper(ctx context.Context, servers []string, makeReport func(ctx context.Context) error) (err error) {
	client, err := zklock.New(ctx, servers, zklock.WithState(func(s zklock.State) { log.Print(s) }))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())
	wait, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	mu := client.Mutex("/locks/report")
	if err := mu.LockContext(wait); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mu.UnlockContext(ctx)) }()
	return makeReport(ctx)
}

func leaseOfV2(ctx context.Context, client *zklock.Client, export func() error) error {
	permits, err := client.Semaphore("/exports", 4).AcquireContext(ctx, 1)
	if err != nil {
		return err
	}
	defer permits.ReleaseContext(ctx)
	return export()
}

type buffer struct {
	lock     *reentrant.Mutex // reentrant.New(locks.FIFO)
	notEmpty *condition.Cond  // lock.NewCond()
	items    []string
}

func (b *buffer) take(ctx context.Context) (string, error) {
	if err := b.lock.LockContext(ctx); err != nil {
		return "", err
	}
	defer b.lock.Unlock()
	for len(b.items) == 0 {
		if err := b.notEmpty.WaitContext(ctx); err != nil {
			return "", err // where Java throws InterruptedException
		}
	}
	first := b.items[0]
	b.items = b.items[1:]
	return first, nil
}

func (b *buffer) put(item string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.items = append(b.items, item)
	b.notEmpty.Signal()
}

func newBuffer() *buffer {
	lock := reentrant.New(locks.FIFO)
	return &buffer{lock: lock, notEmpty: lock.NewCond()}
}

func tryForASecond(lock *reentrant.Mutex, work func()) error {
	if !lock.TryLockFor(time.Second) {
		return errors.New("busy")
	}
	defer lock.Unlock()
	work()
	return nil
}

func downgrade(rw *rwlock.RWMutex, data map[string]int, load func() int) int {
	rw.Lock()
	data["x"] = load()
	rw.Downgrade() // in place of readLock().lock() and writeLock().unlock()
	defer rw.RUnlock()
	return data["x"]
}

var _ = []any{
	electByClientGo, elect, scheduled, atLeast, openTable, onRedis, withLimit, fenced, onZooKeeper,
	leaseOfV2, newBuffer, (*buffer).take, (*buffer).put, tryForASecond, downgrade,
}
