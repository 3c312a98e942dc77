package sqllock_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/internal/test/testbed"
)

var roles = map[string]testbed.Role{
	// buy is one process of a ticket test.
	"buy": func(args []string) error { return testbed.Buy(args, openLock) },

	// hold takes the lock and says so. When it hears a word, it prints the state of its hold, and
	// writes with its token.
	"hold": func(args []string) error {
		l, _, err := openLock(args)
		if err != nil {
			return err
		}
		if err := l.LockContext(background); err != nil {
			return err
		}
		h, err := l.(locks.Leased).Hold(background)
		if err != nil {
			return err
		}
		fmt.Println("held")
		if !bufio.NewScanner(os.Stdin).Scan() {
			return nil
		}
		fmt.Println("lost:", errors.Is(h.Err(), locks.ErrLost))
		db, err := sql.Open(args[2], args[3])
		if err != nil {
			return err
		}
		g, err := sqllock.NewGate(db, sqllock.Columns{Table: args[1] + "_res", Key: "id", Token: "token"})
		if err != nil {
			return err
		}
		err = g.Do(background, 1, h.Token(), nothing)
		fmt.Println("stale:", errors.Is(err, sqllock.ErrStale))
		return nil
	},

	// write keeps a database locked for writing until it is killed.
	"write": func(args []string) error {
		db, err := sql.Open(args[2], args[3])
		if err != nil {
			return err
		}
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE " + args[1] + " SET token = token + 1000"); err != nil {
			return err
		}
		fmt.Println("writing")
		bufio.NewScanner(os.Stdin).Scan()
		return nil
	},
}

// openLock returns the lock of a process, called as its table: args are the kind, the table, the
// driver, the data source, and the lease.
func openLock(args []string) (locks.TryLocker, func(), error) {
	db, err := sql.Open(args[2], args[3])
	if err != nil {
		return nil, nil, err
	}
	for _, k := range allKinds {
		if k.name == args[0] {
			lease, err := time.ParseDuration(args[4])
			if err != nil {
				return nil, nil, err
			}
			p, err := k.make(db, sqllock.WithTable(args[1]), term(lease))
			if err != nil {
				return nil, nil, err
			}
			return p.Locker(args[1]), func() {
				p.Close(background)
				db.Close()
			}, nil
		}
	}
	return nil, nil, errors.New("no such kind")
}

const leaseOfChild = 5 * short

func child(tb testing.TB, role string, k kind, d database, where, table string) *testbed.Process {
	return testbed.Child(tb, role, k.name, table, d.driver, dsn(d.dialect, where), leaseOfChild.String())
}

func TestTicketsAreSoldOnce(t *testing.T) {
	t.Parallel()
	for _, k := range allKinds {
		for _, d := range k.on {
			if d.driver == inPq.driver {
				continue
			}
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, table := d.serve(t), fresh()
				k.open(t, d.open(t, where), sqllock.WithTable(table)) // has the tables made
				args := []string{k.name, table, d.driver, dsn(d.dialect, where), "20s"}
				testbed.Tickets{Role: "buy", Args: args}.Run(t)
			})
		}
	}
}

func TestAPausedHoldersTokenIsRefused(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			rival := tableKind.open(t, db, sqllock.WithTable(table)).Mutex(table)
			resource(t, db, table+"_res", d)
			c := child(t, "hold", tableKind, d, where, table)
			require.Equal(t, "held", c.Line())
			c.Pause()
			a := adaptertest.Owner()
			h := adaptertest.Hold(t, rival, a)
			g, err := sqllock.NewGate(db, sqllock.Columns{Table: table + "_res", Key: "id", Token: "token"})
			require.NoError(t, err)
			require.NoError(t, g.Do(background, 1, h.Token(), nothing))
			c.Say("go on")
			c.Resume()
			require.Equal(t, "lost: true", c.Line())
			require.Equal(t, "stale: true", c.Line())
			require.NoError(t, h.Err())
			require.NoError(t, rival.UnlockContext(a))
		})
	}
}

// resource makes a table with a row of id 1, a text, a version, and a token.
func resource(tb testing.TB, db *sql.DB, table string, d database) {
	tb.Helper()
	_, err := db.Exec("CREATE TABLE " + table + ` (id INTEGER PRIMARY KEY, text VARCHAR(100), n INTEGER NOT NULL,
		version BIGINT NOT NULL, token BIGINT NOT NULL)`)
	require.NoError(tb, err)
	_, err = db.Exec("INSERT INTO " + table + " (id, text, n, version, token) VALUES (1, '', 0, 0, 0)")
	require.NoError(tb, err)
}

func TestAKilledWaitersPlaceEndsWithItsLease(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			holder := queueKind.open(t, db, sqllock.WithTable(table), term(time.Hour)).Mutex(table)
			next := queueKind.open(t, d.open(t, where), sqllock.WithTable(table), term(time.Hour)).Mutex(table)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, holder, a)
			c := testbed.Child(t, "hold", queueKind.name, table, d.driver, dsn(d.dialect, where), "2s")
			soon(t, func() bool { return queued(db, table) == 1 })
			got := inBackground(func() error { return next.LockContext(b) })
			soon(t, func() bool { return queued(db, table) == 2 })
			c.Kill()
			died := time.Now()
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, <-got)
			require.Less(t, time.Since(died), testbed.Hang)
			require.NoError(t, next.UnlockContext(b))
		})
	}
}

func TestAKilledProcessFreesItsLockInTime(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, d := range k.on {
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, table := d.serve(t), fresh()
				rival := k.open(t, d.open(t, where), sqllock.WithTable(table)).Mutex(table)
				c := child(t, "hold", k, d, where, table)
				require.Equal(t, "held", c.Line())
				ok, err := rival.TryLockContext(adaptertest.Owner())
				require.NoError(t, err)
				require.False(t, ok)
				c.Kill()
				a := adaptertest.Owner()
				got := inBackground(func() error { return rival.LockContext(a) })
				select {
				case err := <-got:
					require.NoError(t, err)
				case <-time.After(leaseOfChild + testbed.Hang):
					t.Fatal("it is not free")
				}
				require.NoError(t, rival.UnlockContext(a))
			})
		}
	}
}

func TestAKilledWriterOfSQLiteStopsNobody(t *testing.T) {
	t.Parallel()
	d := inSQLite
	where, table := d.serve(t), fresh()
	l := tableKind.open(t, d.open(t, where), sqllock.WithTable(table), swift).Mutex("it")
	a := adaptertest.Owner()
	token := adaptertest.Hold(t, l, a).Token()
	require.NoError(t, l.UnlockContext(a))
	c := child(t, "write", tableKind, d, where, table)
	require.Equal(t, "writing", c.Line())
	got := make(chan error, 1)
	go func() { got <- l.LockContext(a) }()
	select {
	case err := <-got:
		t.Fatalf("the database is locked, and the lock was taken: %v", err)
	case <-time.After(6 * time.Second): // more than the timeouts of database and request
	}
	c.Kill()
	require.NoError(t, <-got)
	h, err := l.Hold(a)
	require.NoError(t, err)
	require.Equal(t, token+1, h.Token(), "what was written is undone")
	require.NoError(t, l.UnlockContext(a))
}
