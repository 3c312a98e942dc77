package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

func TestTheLongestLeaseExcludesOthersFromTheBeginning(t *testing.T) {
	t.Parallel()
	each(t, false, func(t *testing.T, k kind, d database) {
		where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
		l := k.open(t, d.open(t, where), table, term(time.Hour)).Mutex(name, lease.WithFixedTTL(math.MaxInt64))
		rival := k.open(t, d.open(t, where), table).Mutex(name)
		a := adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		require.True(t, held(t, rival))
		require.NoError(t, h.Extend(a, math.MaxInt64))
		require.True(t, held(t, rival))
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
		require.False(t, held(t, rival))
	})
}

// asMySQL writes settings of MariaDB as MySQL has them.
var asMySQL = strings.NewReplacer("tx_isolation", "transaction_isolation", "&innodb_snapshot_isolation=1", "",
	"ORACLE", "ANSI", "SIMULTANEOUS_ASSIGNMENT", "")

// set returns a pool whose connections have a setting, besides what dsn sets.
func (d database) set(tb testing.TB, where, setting string) *sql.DB {
	tb.Helper()
	if d.name == inMySQL.name {
		setting = asMySQL.Replace(setting)
	}
	db, err := sql.Open(d.driver, dsn(d.dialect, where)+"&"+setting)
	require.NoError(tb, err)
	tb.Cleanup(func() { db.Close() })
	return db
}

func TestSessionSettingsDoNotKeepLocksAway(t *testing.T) {
	t.Parallel()
	settings := map[sqllock.Dialect][]string{
		sqllock.Postgres: {
			"default_transaction_isolation=serializable&lock_timeout=10",
			"default_query_exec_mode=simple_protocol&timezone=Asia/Tokyo&datestyle=German&intervalstyle=iso_8601",
		},
		sqllock.MySQL: {
			"sql_mode=%27ANSI%27&tx_isolation=%27SERIALIZABLE%27&interpolateParams=true&clientFoundRows=true",
			"sql_mode=%27ORACLE%27&time_zone=%27%2B13%3A00%27&parseTime=true",
			"tx_isolation=%27SERIALIZABLE%27&innodb_snapshot_isolation=1",
			"sql_mode=%27SIMULTANEOUS_ASSIGNMENT%27&sql_safe_updates=1&charset=latin1",
		},
	}
	each(t, true, func(t *testing.T, k kind, d database) {
		where := d.serve(t)
		for _, setting := range settings[d.dialect] {
			table, name := sqllock.WithTable(fresh()), "it's "+fresh()
			db := d.set(t, where, setting)
			l := k.open(t, db, table, term(time.Hour)).Mutex(name)
			rival := k.open(t, d.open(t, where), table, term(time.Hour)).Mutex(name)
			for range 2 { // the second time there is a row
				a := adaptertest.Owner()
				h := adaptertest.Hold(t, l, a)
				require.True(t, held(t, rival), setting)
				require.NoError(t, h.Extend(a, time.Hour), setting) // as a renewal does
				require.True(t, held(t, rival), setting)
				require.NoError(t, h.Err(), setting)
				require.NoError(t, l.UnlockContext(a), setting)
				require.False(t, held(t, rival), setting)
			}
		}
	})
}

func TestEverySQLModeGrantsALapsedLockOnce(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		database
		mode string
	}{
		{inMaria, ""}, {inMaria, "ANSI"}, {inMaria, "TRADITIONAL"}, {inMaria, "ORACLE"},
		{inMaria, "SIMULTANEOUS_ASSIGNMENT"}, {inMySQL, ""}, {inMySQL, "ANSI"}, {inMySQL, "TRADITIONAL"},
	} {
		for _, k := range inTables {
			t.Run(k.name+" on "+on.name+" "+on.mode, func(t *testing.T) {
				t.Parallel()
				where, table := on.serve(t), sqllock.WithTable(fresh())
				open := func(opts ...lease.MutexOption) *lease.Mutex {
					db := on.set(t, where, "sql_mode=%27"+on.mode+"%27")
					return k.open(t, db, table).Mutex("it", opts...)
				}
				first, next, rival := open(lease.WithFixedTTL(short)), open(), open()
				a, b := adaptertest.Owner(), adaptertest.Owner()
				adaptertest.Patiently(t, first, a) // and does not give it back
				h := adaptertest.Hold(t, next, b)
				require.True(t, held(t, rival))
				require.NoError(t, h.Err())
				require.NoError(t, next.UnlockContext(b))
				require.ErrorIs(t, first.UnlockContext(a), locks.ErrLost)
			})
		}
	}
}

// MariaDB does so by default from 11.6 on, to whose snapshot is out of date.
func TestARefusedTransactionIsBegunAnew(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			where, table := inMaria.serve(t), sqllock.WithTable(fresh())
			k.open(t, inMaria.open(t, where), table)
			inside, total := 0, 0
			var wg sync.WaitGroup
			for range 6 {
				db := inMaria.set(t, where, "tx_isolation=%27SERIALIZABLE%27&innodb_snapshot_isolation=1")
				l := k.open(t, db, table).Mutex("it")
				wg.Go(func() {
					for range 50 {
						a := adaptertest.Owner()
						if !assert.NoError(t, l.LockContext(a)) {
							return
						}
						inside++
						assert.Equal(t, 1, inside)
						total++
						inside--
						assert.NoError(t, l.UnlockContext(a))
					}
				})
			}
			wg.Wait()
			require.Equal(t, 300, total)
		})
	}
}

func TestModesThatChangeStatementsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for _, m := range []struct{ setting, name string }{
		{"autocommit=0", "autocommit has to be on"},
		{"completion_type=%27CHAIN%27", "completion_type has to be NO_CHAIN"},
		{"completion_type=%27RELEASE%27", "completion_type has to be NO_CHAIN"},
		{"sql_mode=%27EMPTY_STRING_IS_NULL%27", "EMPTY_STRING_IS_NULL"},
		{"sql_select_limit=5", "sql_select_limit has to be DEFAULT"},
		{"sql_select_limit=0", "sql_select_limit has to be DEFAULT"},
		{"unique_checks=0", "unique_checks has to be on"},
		{"charset=latin1&character_set_connection=utf8mb4", "character_set_connection has to be latin1"},
		{"timestamp=1000000000", "timestamp has to be DEFAULT"},
	} {
		for _, d := range []database{inMaria, inMySQL} {
			if d.name == inMySQL.name && strings.Contains(m.setting, "sql_mode") {
				continue // MySQL has no such mode
			}
			t.Run(d.name+" "+m.setting, func(t *testing.T) {
				t.Parallel()
				where, table := d.serve(t), fresh()
				made := d.open(t, where)
				db := d.set(t, where, m.setting)
				refusedByName := func(what string, err error) {
					t.Helper()
					require.ErrorContains(t, err, m.name, what)
					require.ErrorIs(t, err, lease.ErrRefused, what)
					require.NotErrorIs(t, err, locks.ErrForeign, what)
					require.NotErrorIs(t, err, lease.ErrUnavailable, what)
				}
				for _, k := range inTables {
					k.open(t, made, sqllock.WithTable(table))
					opts := append(patient(), sqllock.WithTable(table))
					if k.name == queueKind.name {
						opts = append(opts, sqllock.WithQueue(0))
					}
					c, err := sqllock.NewTable(db, opts...)
					require.NoError(t, err)
					refusedByName(k.name, c.Mutex("it").LockContext(background))
					_, err = c.Semaphore("it", 2).AcquireContext(background, 1)
					refusedByName("Semaphore", err)
					require.NoError(t, c.Close(background))
				}
				r, err := sqllock.NewRow(db, append(patient(), sqllock.WithTable(table))...)
				require.NoError(t, err)
				if err = r.Do(background, "it", nothing); strings.HasPrefix(m.setting, "autocommit") {
					require.NoError(t, err)
				} else {
					refusedByName("Row", err)
				}
				require.NoError(t, r.Close(background))

				_, err = made.Exec("CREATE TABLE " + table + "_own (id VARCHAR(9) PRIMARY KEY, v BIGINT, n BIGINT NOT NULL)")
				require.NoError(t, err)
				_, err = made.Exec("INSERT INTO " + table + "_own VALUES ('it', 1, 1)")
				require.NoError(t, err)
				own := sqllock.Columns{Table: table + "_own", Key: "id", Value: "v", Version: "n", Token: "n"}
				v, err := sqllock.NewVersioned[int64](db, own, "it", calm)
				require.NoError(t, err)
				_, err = v.CompareAndSwap(background, 1, 2)
				refusedByName("CompareAndSwap", err)
				_, _, err = v.Load(background)
				refusedByName("Load", err)
				g, err := sqllock.NewGate(db, own, calm)
				require.NoError(t, err)
				refusedByName("Gate", g.Do(background, "it", 7, nothing))
			})
		}
	}
}

func TestSemaphoresThatReadUncommittedAreRefused(t *testing.T) {
	t.Parallel()
	where, table := inMaria.serve(t), sqllock.WithTable(fresh())
	tableKind.open(t, inMaria.open(t, where), table)
	db := inMaria.set(t, where, "tx_isolation=%27READ-UNCOMMITTED%27")
	locks, err := sqllock.NewTable(db, append(patient(), table)...)
	require.NoError(t, err)
	defer locks.Close(background)
	require.NoError(t, locks.CreateSchema(background))
	_, err = locks.Semaphore("it", 2).AcquireContext(background, 1)
	require.ErrorContains(t, err, "tx_isolation has to be at least READ-COMMITTED")
	require.ErrorIs(t, err, lease.ErrRefused)
	require.NotErrorIs(t, err, lease.ErrUnavailable)
	l := locks.Mutex("it")
	require.NoError(t, l.LockContext(background))
	require.NoError(t, l.UnlockContext(background))
}

func TestNamesInAnotherEncodingAreRefusedByName(t *testing.T) {
	t.Parallel()
	where, table := inPgx.serve(t), fresh()
	_, err := inPgx.open(t, where).Exec(
		"CREATE DATABASE " + table + " ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	require.NoError(t, err)
	open := func(setting string) *sql.DB {
		to := strings.Replace(dsn(sqllock.Postgres, where), "/postgres?", "/"+table+"?", 1)
		db, err := sql.Open("pgx", to+setting)
		require.NoError(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	for _, k := range kinds {
		c, rival := k.open(t, open("&client_encoding=LATIN1")), k.open(t, open(""))
		for _, name := range []string{"it", "ü"} {
			a := adaptertest.Owner()
			adaptertest.Hold(t, rival.Mutex(name), a)
			_, err := c.Mutex(name).TryLockContext(adaptertest.Owner())
			if k.ofSessions() || name == "it" { // its key is a number that is made here
				require.NoError(t, err)
				require.True(t, held(t, c.Mutex(name)))
			} else {
				require.ErrorContains(t, err, "client_encoding has to be UTF8")
				require.ErrorIs(t, err, lease.ErrRefused)
			}
			require.NoError(t, rival.Mutex(name).UnlockContext(a))
		}
	}
	r := openRow(t, open("&client_encoding=LATIN1"))
	require.NoError(t, r.Do(background, "it", nothing))
	require.ErrorContains(t, r.Do(background, "ü", nothing), "client_encoding has to be UTF8")
}

func TestWorkSeesTheWorkOfTheHolderBefore(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		setting := map[sqllock.Dialect]string{
			sqllock.Postgres: "default_transaction_isolation=repeatable%20read",
			sqllock.MySQL:    "tx_isolation=%27REPEATABLE-READ%27&innodb_snapshot_isolation=1",
			sqllock.SQLite:   "_txlock=deferred",
		}[d.dialect]
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.set(t, where, setting)
			_, err := db.Exec("CREATE TABLE " + table + "_res (n bigint)") // numbers that may be the same
			require.NoError(t, err)
			eager := sqllock.WithBackoff(time.Microsecond, time.Millisecond)
			r, err := sqllock.NewRow(db, append(patient(), sqllock.WithTable(table), eager)...)
			require.NoError(t, err)
			defer r.Close(background)
			require.NoError(t, r.CreateSchema(background))
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					for range 60 {
						assert.NoError(t, r.Do(background, "it", func(tx *sql.Tx) error {
							var n int
							err := tx.QueryRow("SELECT COALESCE(max(n), 0) FROM " + table + "_res").Scan(&n)
							if err != nil {
								return err
							}
							_, err = tx.Exec(fmt.Sprintf("INSERT INTO %s_res VALUES (%d)", table, n+1))
							return err
						}))
					}
				})
			}
			wg.Wait()
			var different int
			require.NoError(t, db.QueryRow("SELECT count(DISTINCT n) FROM "+table+"_res").Scan(&different))
			require.Equal(t, 360, different)
		})
	}
}

func TestAConnectionReturnsToThePoolUnchanged(t *testing.T) {
	t.Parallel()
	where := inSQLite.serve(t)
	db := inSQLite.open(t, where)
	db.SetMaxOpenConns(1)
	r := openRow(t, db)
	other := openRow(t, inSQLite.open(t, where))
	for i := range 300 {
		end := func() {}
		if i%2 == 0 {
			end = work(t, other, adaptertest.Owner(), "it")
		}
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Duration(i%100)*10*time.Microsecond)
		if err := r.Do(ctx, "it", nothing); err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		cancel()
		end()
		conn, err := db.Conn(background)
		require.NoError(t, err)
		var waits int
		require.NoError(t, conn.QueryRowContext(background, "PRAGMA busy_timeout").Scan(&waits))
		require.Equal(t, 1000, waits, "milliseconds for which a connection waits")
		_, err = conn.ExecContext(background, "BEGIN")
		require.NoError(t, err, "no transaction is left")
		_, err = conn.ExecContext(background, "ROLLBACK")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
}

func TestWorkWaitsForTheConnectionsOfOtherWork(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db := d.open(t, d.serve(t))
			db.SetMaxOpenConns(1)
			r := openRow(t, db, sqllock.WithTable(fresh()), swift)
			var wg sync.WaitGroup
			for i := range 3 { // the last waits for longer than a request may take
				wg.Go(func() {
					assert.NoError(t, r.Do(background, fmt.Sprint("it", i), func(*sql.Tx) error {
						time.Sleep(2200 * time.Millisecond)
						return nil
					}))
				})
			}
			wg.Wait()
		})
	}
}

func TestWaitersWriteNothingIntoPostgresLog(t *testing.T) {
	t.Parallel()
	where := inPgx.serve(t)
	config, err := pgx.ParseConfig(dsn(sqllock.Postgres, where))
	require.NoError(t, err)
	var errors atomic.Int64 // each of which the server has written into its log
	config.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool {
		errors.Add(1)
		return true
	}
	for _, k := range kinds {
		table, name := sqllock.WithTable(fresh()), fresh()
		holder := k.open(t, inPgx.open(t, where), table).Mutex(name)
		db := stdlib.OpenDB(*config)
		defer db.Close()
		c := k.open(t, db, table)
		a := adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		waits(t, refused(c, name), lockAndUnlock(c.Mutex(name)), func() { time.Sleep(300 * time.Millisecond) },
			func() { require.NoError(t, holder.UnlockContext(a)) })
		require.Zero(t, errors.Load(), k.name)
	}
	table, name := sqllock.WithTable(fresh()), fresh()
	end := work(t, openRow(t, inPgx.open(t, where), table), adaptertest.Owner(), name)
	db := stdlib.OpenDB(*config)
	defer db.Close()
	r := openRow(t, db, table)
	waits(t, refused(r, name), func(ctx context.Context) error { return r.Do(ctx, name, nothing) },
		func() { time.Sleep(300 * time.Millisecond) }, end)
	require.Zero(t, errors.Load())
}
