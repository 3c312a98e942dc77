package sqllock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

func TestCloseReleasesTenThousandHoldsInAHundredStatements(t *testing.T) {
	where := sharedPostgres(t)
	config, err := pgx.ParseConfig(dsn(sqllock.Postgres, where))
	require.NoError(t, err)
	link, sent := leasetest.NewLink(t), &counted{}
	config.DialFunc, config.Tracer = link.DialContext, sent
	db := stdlib.OpenDB(*config)
	defer db.Close()
	db.SetMaxIdleConns(16)
	table := fresh()
	c, err := sqllock.NewTable(db, append(patient(), sqllock.WithTable(table), term(time.Hour))...)
	require.NoError(t, err)
	require.NoError(t, c.CreateSchema(background))
	const n = 10_000
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			a := locks.WithOwner(background, locks.NewOwner())
			for i := w; i < n; i += 16 {
				if !assert.NoError(t, c.Mutex(fmt.Sprint(i)).LockContext(a)) {
					return
				}
			}
		})
	}
	wg.Wait()
	sent.forget()
	link.Delay(40 * time.Millisecond)
	began := time.Now()
	require.NoError(t, c.Close(background))
	t.Logf("closed in %v", time.Since(began))
	require.LessOrEqual(t, len(sent.statements()), n/100+n/1000)
	direct := inPgx.open(t, where)
	var held int
	require.NoError(t, direct.QueryRow("SELECT count(*) FROM "+table+" WHERE owner IS NOT NULL").Scan(&held))
	require.Zero(t, held)
}

func TestCloseWakesTheWaitersOfAllHolds(t *testing.T) {
	where := sharedPostgres(t)
	for what, opt := range map[string][]sqllock.Option{"Table": nil, "Table with a queue": {sqllock.WithQueue(0)}} {
		t.Run(what, func(t *testing.T) {
			table := fresh()
			open := func() *sqllock.Table {
				db := inPgx.open(t, where)
				opts := append(patient(), sqllock.WithTable(table), sqllock.WithListener(pgxnotify.Listener(db)),
					sqllock.WithBackoff(time.Hour, time.Hour),
					sqllock.WithLeaseOptions(lease.WithTTL(time.Hour), lease.WithPoll(time.Hour)))
				c, err := sqllock.NewTable(db, append(opts, opt...)...)
				require.NoError(t, err)
				require.NoError(t, c.CreateSchema(background))
				return c
			}
			c, waiter := open(), open()
			defer waiter.Close(background)
			const n = 20
			a := locks.WithOwner(background, locks.NewOwner())
			var waits []<-chan error
			for i := range n {
				require.NoError(t, c.Mutex(fmt.Sprint(i)).LockContext(a))
				b := locks.WithOwner(background, locks.NewOwner())
				waits = append(waits, inBackground(func() error { return waiter.Mutex(fmt.Sprint(i)).LockContext(b) }))
			}
			p, err := c.Semaphore("permits", 1).AcquireContext(background, 1)
			require.NoError(t, err)
			waits = append(waits, inBackground(func() error {
				_, err := waiter.Semaphore("permits", 1).AcquireContext(background, 1)
				return err
			}))
			time.Sleep(time.Second) // they wait
			require.NoError(t, c.Close(background))
			for _, w := range waits {
				require.NoError(t, <-w)
			}
			require.ErrorIs(t, p.ReleaseContext(background), locks.ErrLost)
		})
	}
}
