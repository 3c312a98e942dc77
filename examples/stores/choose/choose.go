// Package choose has the lines of code of docs/guides/choosing.md and of the pages below it, so
// that they are compiled.
package choose

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/singleton"
)

type account struct {
	locks.TryLocker
	balance int
}

type prices map[string]int

// use stands for the check of an error.
func use(error) {}

// oneProcess has the locks of the first table: in one process.
func oneProcess(ctx context.Context, work func(ctx context.Context) error, id string) error {
	var barging fair.BargingMutex
	use(barging.LockContext(ctx))
	barging.Unlock()

	var inOrder fair.Mutex
	use(locks.Do(ctx, &inOrder, work))

	var owned reentrant.Mutex
	owned.Lock()
	owned.Unlock()

	var rw rwlock.RWMutex
	use(locks.Do(ctx, rw.ReadLocker(), work))

	var config rwlock.Snapshot[prices]
	current := config.Load()

	users := keyed.New[string](locks.FIFO)
	use(locks.Do(ctx, users.Of(id), work))

	from, to := &account{TryLocker: &inOrder}, &account{TryLocker: &owned}
	use(locks.Do(ctx, locks.Multi(from, to), work))

	pool := semaphore.NewWeighted(10)
	use(pool.Acquire(ctx, 1))

	notEmpty := inOrder.NewCond()
	for current["apple"] == 0 {
		use(notEmpty.WaitContext(ctx))
	}

	lazy := singleton.New(func() (*sql.DB, error) { return sql.Open("pgx", "") })
	db, err := lazy.Get()
	use(err)

	_ = db
	return err
}

// betweenProcesses has the locks of the second table.
func betweenProcesses(ctx context.Context, work func(ctx context.Context) error, rdb redis.UniversalClient,
	db *sql.DB, cli *clientv3.Client, url, name string, inTx func(tx *sql.Tx) error) error {
	files, err := filelock.New("/var/lock/app")
	use(err)
	use(locks.Do(ctx, files.Mutex("import"), work))

	rows, err := sqllock.NewRow(db)
	use(err)
	use(rows.Do(ctx, "account 7", inTx))

	table, err := sqllock.NewTable(db)
	use(err)
	use(locks.Do(ctx, table.Mutex("report"), work))

	client, err := redislock.New(rdb)
	use(err)
	use(locks.Do(ctx, client.FencedMutex("report"), work))

	etcd, err := etcdlock.New(cli)
	use(err)
	use(locks.Do(ctx, etcd.Mutex("report"), work))

	store, err := open.URL(ctx, url)
	use(err)
	use(locks.Do(ctx, store.Locker("report"), work))

	fleet := client.Semaphore("exports", 4)
	permits, err := fleet.AcquireContext(ctx, 1)
	use(err)

	use(leader.Run(ctx, client.FencedMutex("cron"), work))

	_ = permits
	return err
}

// waitAlone limits the wait, and not the work. It and waiting have the parts of
// docs/guides/choosing/waiting.md.
func waitAlone(ctx context.Context, l *fair.Mutex, work func(ctx context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := l.LockContext(wait); err != nil {
		return err // matches context.DeadlineExceeded, or the end of ctx
	}
	defer l.Unlock()
	return work(ctx) // not wait: its time limit is for the wait alone
}

func waiting(ctx context.Context, l *fair.Mutex, work func(ctx context.Context) error) error {
	ran, err := locks.TryDo(ctx, l, work) // does not wait; ran is false if another holder has the lock
	if err == nil && !ran {
		return errors.New("busy")
	}

	if !l.TryLockFor(100 * time.Millisecond) { // queues, as long as 100 ms
		return errors.New("busy")
	}
	return err
}

// condWait has the part about conditions.
func condWait(ctx context.Context, mu *fair.Mutex, notEmpty *condition.Cond, queue *[]int) (int, error) {
	if err := mu.LockContext(ctx); err != nil {
		return 0, err
	}
	defer mu.Unlock()
	for len(*queue) == 0 {
		if err := notEmpty.WaitContext(ctx); err != nil {
			return 0, err // the lock is held again
		}
	}
	first := (*queue)[0]
	*queue = (*queue)[1:]
	return first, nil
}

// transfer has the part about several locks.
func transfer(ctx context.Context, from, to *account, amount int) error {
	return locks.Do(ctx, locks.Multi(from, to), func(context.Context) error {
		from.balance -= amount
		to.balance += amount
		return nil
	})
}

// readWrite is the part about read-write locks.
func readWrite(ctx context.Context, rw *rwlock.RWMutex, cache map[string]int, key string, load func() int) int {
	rw.Lock()
	cache[key] = load()
	rw.Downgrade() // from the write hold to a read hold, without a moment in between
	defer rw.RUnlock()
	return cache[key]
}

// tokens has the part about fencing tokens.
func tokens(ctx context.Context, client *redislock.Client, gate *fence.Gate, write func() error) error {
	return locks.Do(ctx, client.FencedMutex("report"), func(ctx context.Context) error {
		hold, _ := locks.HoldFrom(ctx)
		return gate.Do("report", hold.Token(), write) // refuses a token smaller than one it has seen
	})
}

// otherGoroutine has the part about owners.
func otherGoroutine(ctx context.Context, mu *reentrant.Mutex) error {
	job := locks.WithOwner(ctx, locks.NewOwner())
	if err := mu.LockContext(job); err != nil {
		return err
	}
	go func() {
		if err := mu.UnlockContext(job); err != nil { // the owner of job holds the lock, not a goroutine
			log.Print(err)
		}
	}()
	return nil
}

var _ = []any{
	oneProcess, betweenProcesses, waitAlone, waiting, condWait, transfer, readWrite, tokens, otherGoroutine,
}
