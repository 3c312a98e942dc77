package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/test/testbed"
)

// database is one on which locks are measured.
type database struct {
	name, driver string
	// serve returns what sql.Open gets.
	serve func(tb testing.TB) string
	// peer is its own lock, without a library, or nil.
	peer func(tb testing.TB, dsn, name string) contender
	// statements is the query that counts them, in its second column, or empty.
	statements string
}

var databases = []database{
	{"SQLite", "sqlite", func(tb testing.TB) string {
		return "file:" + filepath.Join(tb.TempDir(), "db") +
			"?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"
	}, nil, ""},
	{"PostgreSQL", "pgx", startPostgres, func(tb testing.TB, dsn, name string) contender {
		key := `(hashtext('` + name + `'))`
		return statements(tb, "pgx", dsn, `SELECT 1 FROM pg_advisory_lock`+key, `SELECT pg_advisory_unlock`+key+`::int`)
	}, `SELECT '', sum(xact_commit) FROM pg_stat_database`},
	{"MariaDB", "mysql", startMariaDB, func(tb testing.TB, dsn, name string) contender {
		return statements(tb, "mysql", dsn, `SELECT GET_LOCK('`+name+`', 30)`, `SELECT RELEASE_LOCK('`+name+`')`)
	}, `SHOW GLOBAL STATUS LIKE 'Questions'`},
}

// statements returns a contender that takes the lock by one statement, and gives it back by
// another, each of which returns 1.
func statements(tb testing.TB, driver, dsn, lock, unlock string) contender {
	tb.Helper()
	conn, err := openSQL(tb, driver, dsn).Conn(background)
	must(tb, err)
	tb.Cleanup(func() { conn.Close() })
	one := func(query string) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			n := 0
			if err := conn.QueryRowContext(ctx, query).Scan(&n); err != nil {
				return err
			}
			if n != 1 {
				return fmt.Errorf("%s: %d", query, n)
			}
			return nil
		}
	}
	return contender{lock: one(lock), unlock: one(unlock)}
}

// openSQL returns a pool of connections that is closed with the test.
func openSQL(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	must(tb, err)
	tb.Cleanup(func() { db.Close() })
	return db
}

func selectOne(db *sql.DB) probe {
	return func(ctx context.Context) error {
		one := 0
		return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	}
}

// startPostgres returns the DSN of a PostgreSQL that runs until the test ends.
func startPostgres(tb testing.TB) string {
	tb.Helper()
	dsn := func(addr string) string {
		return "postgres://postgres@" + addr + "/postgres?sslmode=disable&connect_timeout=2"
	}
	return dsn(testbed.StartPostgres(tb, answers("pgx", dsn)).Addr())
}

// startMariaDB returns the DSN of a MariaDB that runs until the test ends.
func startMariaDB(tb testing.TB) string {
	tb.Helper()
	mysql.SetLogger(nowhere{}) // of connections that are refused while it starts
	dsn := func(addr string) string {
		return "root@tcp(" + addr + ")/test?timeout=2s&readTimeout=5s&interpolateParams=true"
	}
	return dsn(testbed.StartMariaDB(tb, answers("mysql", dsn)).Addr())
}

// answers returns a function that asks a server.
func answers(driver string, dsn func(addr string) string) func(addr string) error {
	return func(addr string) error {
		db, err := sql.Open(driver, dsn(addr))
		if err != nil {
			return err
		}
		defer db.Close()
		ctx, cancel := context.WithTimeout(background, 10*time.Second)
		defer cancel()
		return db.PingContext(ctx)
	}
}

type nowhere struct{}

func (nowhere) Print(...any) {}

// inSQL returns the kinds of locks that a database has: ours, and its own.
func (d database) inSQL() []impl {
	kinds := []impl{d.tables("table")}
	if d.driver == "pgx" {
		listen := func(db *sql.DB) sqllock.Option { return sqllock.WithListener(pgxnotify.Listener(db)) }
		queue := func(*sql.DB) sqllock.Option { return sqllock.WithQueue(0) }
		block := func(*sql.DB) sqllock.Option { return sqllock.WithBlockingWait() }
		kinds = append(kinds, d.tables("table-listen", listen), d.tables("queue-listen", queue, listen),
			d.rows("row"), d.rows("row-block", block), impl{name: "raw-row", open: forUpdate},
			d.advisories("advisory-block", block))
	}
	if d.driver == "mysql" {
		kinds = append(kinds, d.advisories("advisory-block", func(*sql.DB) sqllock.Option { return sqllock.WithBlockingWait() }))
	}
	if d.peer != nil {
		kinds = append(kinds, d.advisories("advisory"), impl{name: "raw", open: d.peer})
	}
	return kinds
}

// option is one for a client on a pool.
type option func(db *sql.DB) sqllock.Option

func (d database) tables(name string, opts ...option) impl {
	return impl{name: name, open: func(tb testing.TB, dsn, name string) contender {
		db := openSQL(tb, d.driver, dsn)
		t, err := sqllock.NewTable(db, apply(db, opts)...)
		must(tb, err)
		must(tb, t.CreateSchema(background))
		tb.Cleanup(func() { t.Close(background) })
		return of(t.Mutex(name))
	}}
}

func (d database) advisories(name string, opts ...option) impl {
	return impl{name: name, open: func(tb testing.TB, dsn, name string) contender {
		db := openSQL(tb, d.driver, dsn)
		a, err := sqllock.NewAdvisory(db, apply(db, opts)...)
		must(tb, err)
		tb.Cleanup(func() { a.Close(background) })
		return of(a.Mutex(name))
	}}
}

func (d database) rows(name string, opts ...option) impl {
	return impl{name: name, open: func(tb testing.TB, dsn, name string) contender {
		db := openSQL(tb, d.driver, dsn)
		r, err := sqllock.NewRow(db, apply(db, opts)...)
		must(tb, err)
		must(tb, r.CreateSchema(background))
		tb.Cleanup(func() { r.Close(background) })
		return whileDoing(func(ctx context.Context, work func()) error {
			return r.Do(ctx, name, func(*sql.Tx) error {
				work()
				return nil
			})
		})
	}}
}

func apply(db *sql.DB, opts []option) (all []sqllock.Option) {
	for _, o := range opts {
		all = append(all, o(db))
	}
	return all
}

// whileDoing returns a contender that has the lock while do works.
func whileDoing(do func(ctx context.Context, work func()) error) contender {
	var ends chan struct{}
	var done chan error
	return contender{
		lock: func(ctx context.Context) error {
			begun, over, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				result <- do(ctx, func() {
					close(begun)
					<-over
				})
			}()
			select {
			case <-begun:
				ends, done = over, result
				return nil
			case err := <-result:
				return err
			}
		},
		unlock: func(context.Context) error {
			close(ends)
			return <-done
		},
	}
}

// forUpdate returns a contender that locks a row, with no library. It does so in a goroutine of
// its own, as a Row does.
func forUpdate(tb testing.TB, dsn, name string) contender {
	db := openSQL(tb, "pgx", dsn)
	_, err := db.Exec(`CREATE TABLE IF NOT EXISTS raw_rows (name text PRIMARY KEY)`)
	for range 5 { // PostgreSQL answers the second of two clients with an error
		if err == nil {
			break
		}
		_, err = db.Exec(`CREATE TABLE IF NOT EXISTS raw_rows (name text PRIMARY KEY)`)
	}
	must(tb, err)
	_, err = db.Exec(`INSERT INTO raw_rows VALUES ($1) ON CONFLICT DO NOTHING`, name)
	must(tb, err)
	return whileDoing(func(ctx context.Context, work func()) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `SELECT 1 FROM raw_rows WHERE name = $1 FOR UPDATE`, name); err != nil {
			return err
		}
		work()
		return tx.Commit()
	})
}

// BenchmarkSQLUncontended is a lock and an unlock that nobody else wants, compared with a plain
// SELECT. raw is pg_advisory_lock or GET_LOCK, and raw-row SELECT ... FOR UPDATE, with no
// library.
func BenchmarkSQLUncontended(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			dsn := d.serve(b)
			p := selectOne(openSQL(b, d.driver, dsn))
			b.Run("SELECT 1", func(b *testing.B) {
				for b.Loop() {
					must(b, p(background))
				}
			})
			for _, k := range d.inSQL() {
				b.Run(k.name, func(b *testing.B) { uncontended(b, k.open(b, dsn, fresh()), "SELECT", p) })
			}
		})
	}
}

// BenchmarkSQLHandover is the time from the call of a release to the next holder, who is another
// client.
func BenchmarkSQLHandover(b *testing.B) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			dsn := d.serve(b)
			handover(b, d.inSQL(), dsn, "SELECT", selectOne(openSQL(b, d.driver, dsn)), nil)
		})
	}
}

// BenchmarkSQLShare is eight clients that want one lock all the time. Each holds it for 1 ms, and
// leaves it alone for as long. p50-ns and p99-ns are how long a client waits from its call on.
// statements/s is counted by the server.
func BenchmarkSQLShare(b *testing.B) {
	const clients = 8
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			dsn := d.serve(b)
			db := openSQL(b, d.driver, dsn)
			statements := func() (n int64) {
				query := d.statements
				if query == "" {
					return 0
				}
				must(b, db.QueryRow(query).Scan(new(any), &n))
				return n
			}
			for _, k := range d.inSQL() {
				b.Run(k.name, func(b *testing.B) {
					cs := k.several(b, dsn, clients)
					waits := make([][]time.Duration, clients)
					errs := make([]error, clients)
					var begun atomic.Int64
					var wg sync.WaitGroup
					before := statements()
					b.ResetTimer()
					for i, c := range cs {
						wg.Go(func() {
							for errs[i] == nil && begun.Add(1) <= int64(b.N) {
								asked := time.Now()
								if errs[i] = c.lock(background); errs[i] == nil {
									waits[i] = append(waits[i], time.Since(asked))
									time.Sleep(time.Millisecond)
									errs[i] = c.unlock(background)
								}
								time.Sleep(time.Millisecond)
							}
						})
					}
					wg.Wait()
					b.StopTimer()
					must(b, errors.Join(errs...))
					out := outcome{counts: make([]int, clients)}
					for i, w := range waits {
						out.counts[i] = len(w)
					}
					all := slices.Sorted(slices.Values(slices.Concat(waits...)))
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acquisitions/s")
					b.ReportMetric(out.share(), "max/min-share")
					b.ReportMetric(float64(all[len(all)/2]), "p50-ns")
					b.ReportMetric(float64(all[len(all)*99/100]), "p99-ns")
					b.ReportMetric(float64(all[len(all)-1]), "max-ns")
					if d.statements != "" {
						b.ReportMetric(float64(statements()-before)/b.Elapsed().Seconds(), "statements/s")
					}
				})
			}
		})
	}
}
