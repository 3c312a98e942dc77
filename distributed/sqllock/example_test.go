package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lib/pq"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

// openExample returns a database in a file of its own. Yours is a real one, with the driver of
// your choice.
func openExample() (db *sql.DB, done func()) {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		panic(err)
	}
	const settings = "?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)"
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+settings)
	if err != nil {
		panic(err)
	}
	return db, func() {
		db.Close()
		os.RemoveAll(dir)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleTable() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	provider, err := sqllock.NewTable(db)
	must(err)
	defer provider.Close(ctx)
	must(provider.CreateSchema(ctx))

	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error {
		// ctx ends when the lock is lost, because the database could not be reached for too
		// long.
		fmt.Println("worked")
		return ctx.Err()
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
	// Output: worked
}

// The work is done in the transaction that has the lock: all of it or nothing.
// At most three jobs run at once in all processes. Permits of a process that died return with
// their lease.
func ExampleTable_Semaphore() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	table, err := sqllock.NewTable(db)
	must(err)
	defer table.Close(ctx)
	must(table.CreateSchema(ctx))

	permits, err := table.Semaphore("jobs", 3).AcquireContext(ctx, 2) // two of three, in all processes
	must(err)
	_, ok, err := table.Semaphore("jobs", 3).TryAcquireContext(ctx, 2)
	fmt.Println(permits.Count(), ok, err)
	err = permits.ReleaseContext(ctx)
	fmt.Println(err)
	// Output:
	// 2 false <nil>
	// <nil>
}

func ExampleRow_Do() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	rows, err := sqllock.NewRow(db)
	must(err)
	defer rows.Close(ctx)
	must(rows.CreateSchema(ctx))
	_, err = db.Exec("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)")
	must(err)
	_, err = db.Exec("INSERT INTO account VALUES (7, 100)")
	must(err)

	withdraw := func(sum int) error {
		return rows.Do(ctx, "account/7", func(tx *sql.Tx) error {
			var balance int
			if err := tx.QueryRow("SELECT balance FROM account WHERE id = 7").Scan(&balance); err != nil {
				return err
			}
			if balance < sum {
				return errors.New("not enough")
			}
			_, err := tx.Exec("UPDATE account SET balance = ? WHERE id = 7", balance-sum)
			return err
		})
	}
	fmt.Println(withdraw(70))
	fmt.Println(withdraw(70))
	// Output:
	// <nil>
	// not enough
}

// A writer sends the token of its hold along. A holder that does not know yet that its lock is
// lost is refused.
func ExampleGate() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	_, err := db.Exec("CREATE TABLE document (id INTEGER PRIMARY KEY, text TEXT, token INTEGER NOT NULL)")
	must(err)
	_, err = db.Exec("INSERT INTO document VALUES (1, '', 0)")
	must(err)
	gate, err := sqllock.NewGate(db, sqllock.Columns{Table: "document", Key: "id", Token: "token"})
	must(err)
	write := func(token uint64, text string) {
		err := gate.Do(ctx, 1, token, func(tx *sql.Tx) error {
			_, err := tx.Exec("UPDATE document SET text = ? WHERE id = 1", text)
			return err
		})
		fmt.Println(text, errors.Is(err, sqllock.ErrStale))
	}

	provider, err := sqllock.NewTable(db)
	must(err)
	defer provider.Close(ctx)
	must(provider.CreateSchema(ctx))
	lock := provider.Mutex("document/1")
	var tokens []uint64
	for range 2 { // two holders, one after the other
		must(lock.LockContext(ctx))
		hold, err := lock.Hold(ctx)
		must(err)
		tokens = append(tokens, hold.Token())
		must(lock.UnlockContext(ctx))
	}
	write(tokens[1], "new")
	write(tokens[0], "late")
	// Output:
	// new false
	// late true
}

func ExampleVersioned() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	_, err := db.Exec("CREATE TABLE stock (item TEXT PRIMARY KEY, amount INTEGER NOT NULL, version INTEGER NOT NULL)")
	must(err)
	_, err = db.Exec("INSERT INTO stock VALUES ('nut', 5, 0)")
	must(err)

	columns := sqllock.Columns{Table: "stock", Key: "item", Value: "amount", Version: "version"}
	nuts, err := sqllock.NewVersioned[int](db, columns, "nut")
	must(err)
	left, err := nuts.Update(ctx, func(n int) (int, error) {
		if n < 3 {
			return 0, errors.New("sold out")
		}
		return n - 3, nil
	})
	fmt.Println(left, err)
	// Output: 2 <nil>
}

// With lib/pq, waiters are woken by a listener such as this. For pgx there is package
// pgxnotify.
func ExampleListener() {
	dsn := "postgres://localhost/app"
	var listener sqllock.Listener = func(ctx context.Context, channel string, ready func(), notify func(string)) error {
		l := pq.NewListener(dsn, 1e8, 1e10, func(e pq.ListenerEventType, err error) {
			if e == pq.ListenerEventReconnected {
				ready()
			}
		})
		defer l.Close()
		if err := l.Listen(channel); err != nil {
			return err
		}
		ready()
		for {
			select {
			case n := <-l.Notify:
				if n != nil {
					notify(n.Extra)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	_ = sqllock.WithListener(listener)
}

// An Advisory needs no table. A hold lasts as long as the connection that it keeps.
func ExampleAdvisory() {
	db, err := sql.Open("postgres", "postgres://localhost/app?connect_timeout=2")
	must(err)
	defer db.Close()
	ctx := context.Background()
	provider, err := sqllock.NewAdvisory(db)
	must(err)
	defer provider.Close(ctx)

	err = locks.Do(ctx, provider.Locker("orders"), func(ctx context.Context) error {
		return ctx.Err() // ctx ends when the connection breaks
	})
	if errors.Is(err, locks.ErrLost) {
		fmt.Println("another process may have worked too")
	}
}

// A hold has a token and an end. Renewals move the end while the process runs.
func ExampleTable_Mutex() {
	db, done := openExample()
	defer done()
	ctx := context.Background()
	provider, err := sqllock.NewTable(db, sqllock.WithTTL(10*time.Second))
	must(err)
	defer provider.Close(ctx)
	must(provider.CreateSchema(ctx))

	var orders *lease.Mutex = provider.Mutex("orders")
	must(orders.LockContext(ctx))
	hold, err := orders.Hold(ctx)
	must(err)
	end, limited := hold.Deadline()
	fmt.Println(hold.Token() > 0, limited, time.Until(end) <= 10*time.Second)
	must(orders.UnlockContext(ctx))
	// Output: true true true
}

// A driver whose database cannot be detected needs the Dialect. The schema is for a migration.
func ExampleDialect() {
	var dialect sqllock.Dialect = sqllock.SQLite
	schema, err := sqllock.Schema(dialect, sqllock.DefaultTable)
	must(err)
	fmt.Println(dialect, strings.Contains(schema, "CREATE TABLE"))

	db, done := openExample()
	defer done()
	provider, err := sqllock.NewTable(db, sqllock.WithDialect(dialect))
	must(err)
	must(provider.Close(context.Background()))
	// Output: SQLite true
}
