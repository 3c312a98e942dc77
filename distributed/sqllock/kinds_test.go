package sqllock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/internal/test/testbed"
)

// queued returns how many are in the queue of all locks of a table.
func queued(db *sql.DB, table string) (n int) {
	n = -1
	db.QueryRow("SELECT count(*) FROM " + table + "_queue").Scan(&n)
	return n
}

func TestAQueueKeepsArrivalOrderAcrossClients(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			holder := queueKind.open(t, db, sqllock.WithTable(table)).Mutex("it")
			a := adaptertest.Owner()
			last := adaptertest.Hold(t, holder, a).Token()
			var mu sync.Mutex
			var order []int
			var wg sync.WaitGroup
			for i := range 6 {
				l := queueKind.open(t, d.open(t, where), sqllock.WithTable(table)).Mutex("it")
				wg.Go(func() {
					ctx := adaptertest.Owner()
					if !assert.NoError(t, l.LockContext(ctx)) {
						return
					}
					h, err := l.Hold(ctx)
					assert.NoError(t, err)
					mu.Lock()
					order = append(order, i)
					assert.Greater(t, h.Token(), last)
					last = h.Token()
					mu.Unlock()
					assert.NoError(t, l.UnlockContext(ctx))
				})
				soon(t, func() bool { return queued(db, table) == i+1 })
			}
			require.NoError(t, holder.UnlockContext(a))
			wg.Wait()
			require.True(t, slices.IsSorted(order), "%v", order)
			require.Zero(t, queued(db, table))
		})
	}
}

func TestAWaiterSeesThatTheLockChangesHands(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		for _, k := range []kind{tableKind, advisory} {
			if k.ofSessions() && d.dialect != sqllock.MySQL {
				continue // there is nothing to see
			}
			t.Run(k.name+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, table, name := d.serve(t), sqllock.WithTable(fresh()), fresh()
				one := k.open(t, d.open(t, where), table).Mutex(name)
				two := k.open(t, d.open(t, where), table).Mutex(name)
				var told func(name string) []int64
				var waiter *lease.Mutex
				db := d.open(t, where)
				if k.ofSessions() {
					a, err := sqllock.NewAdvisory(db, patient()...)
					require.NoError(t, err)
					t.Cleanup(func() { a.Close(background) })
					told, waiter = a.Told, a.Mutex(name)
				} else {
					tb, err := sqllock.NewTable(db, append(patient(), table)...)
					require.NoError(t, err)
					t.Cleanup(func() { tb.Close(background) })
					told, waiter = tb.Told, tb.Mutex(name)
				}
				a, b := adaptertest.Owner(), adaptertest.Owner()
				h := adaptertest.Hold(t, one, a)
				ctx, cancel := context.WithCancel(adaptertest.Owner())
				defer cancel()
				got := inBackground(func() error { return waiter.LockContext(ctx) })
				seen := func() (n int64) {
					soon(t, func() bool {
						if all := told(name); len(all) == 1 {
							n = all[0]
						}
						return n != 0
					})
					return n
				}
				first := seen()
				if h.Token() != 0 {
					require.EqualValues(t, h.Token(), first)
				}
				for range 100 { // until it goes to the other one, and not to the waiter
					require.NoError(t, one.UnlockContext(a))
					if ok, err := two.TryLockContext(b); err == nil && ok {
						break
					}
					require.NoError(t, <-got)
					require.NoError(t, waiter.UnlockContext(ctx))
					adaptertest.Hold(t, one, a)
					got = inBackground(func() error { return waiter.LockContext(ctx) })
					first = seen()
				}
				soon(t, func() bool { n := seen(); return n != first })
				require.NoError(t, two.UnlockContext(b))
				require.NoError(t, <-got)
				require.NoError(t, waiter.UnlockContext(ctx))
			})
		}
	}
}

func TestADeadWaiterIsDroppedFromTheQueue(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			opts := []sqllock.Option{sqllock.WithTable(table), sqllock.WithQueue(short)}
			holder := tableKind.open(t, db, opts...).Mutex("it")
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, holder, a)
			dead := tableKind.open(t, d.open(t, where), opts...).Mutex("it")
			ctx, cancel := context.WithCancel(adaptertest.Owner())
			defer cancel()
			got := make(chan error, 1)
			go func() { got <- dead.LockContext(ctx) }()
			soon(t, func() bool { return queued(db, table) == 1 })
			// The waiter is as if dead: its place belongs to an owner that never asks.
			_, err := db.Exec("UPDATE " + table + "_queue SET owner = 'dead'")
			require.NoError(t, err)
			cancel() // before the release: the waiter must not get the lock by another place
			require.ErrorIs(t, <-got, context.Canceled)
			soon(t, func() bool { return queued(db, table) == 1 })
			l := tableKind.open(t, d.open(t, where), opts...).Mutex("it")
			require.NoError(t, holder.UnlockContext(a))
			ok, err := l.TryLockContext(b)
			require.NoError(t, err)
			if ok { // it overtakes the queue
				require.NoError(t, l.UnlockContext(b))
			}
			adaptertest.Hold(t, l, b)
			require.NoError(t, l.UnlockContext(b))
			require.Zero(t, queued(db, table))
		})
	}
}

func TestANotificationHandsALockOver(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			where, table, name := inPgx.serve(t), sqllock.WithTable(fresh()), fresh()
			make := func() *lease.Mutex {
				db := inPgx.open(t, where)
				// A waiter that relies on asking in turn is late.
				opts := []sqllock.Option{
					table, sqllock.WithListener(pgxnotify.Listener(db)), sqllock.WithBackoff(time.Hour, time.Hour),
					sqllock.WithLeaseOptions(lease.WithPoll(time.Hour)), term(time.Hour),
				}
				if k.name == queueKind.name {
					opts = append(opts, sqllock.WithQueue(time.Hour))
				}
				return k.open(t, db, opts...).Mutex(name)
			}
			holder, l := make(), make()
			a, b := adaptertest.Owner(), adaptertest.Owner()
			for range 3 {
				adaptertest.Hold(t, holder, a)
				got := inBackground(func() error { return l.LockContext(b) })
				select {
				case err := <-got:
					t.Fatalf("two holders: %v", err)
				case <-time.After(300 * time.Millisecond): // it listens
				}
				began := time.Now()
				require.NoError(t, holder.UnlockContext(a))
				require.NoError(t, <-got)
				require.Less(t, time.Since(began), testbed.Hang)
				require.NoError(t, l.UnlockContext(b))
			}
		})
	}
}

func inBackground(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func TestListeningGoesOnAfterItsConnectionWasEnded(t *testing.T) {
	t.Parallel()
	where, name := inPgx.serve(t), fresh()
	table := sqllock.WithTable(name)
	db := inPgx.open(t, where)
	holder := tableKind.open(t, db, table, sqllock.WithListener(pgxnotify.Listener(db))).Mutex("it")
	var begun atomic.Int32
	listen := pgxnotify.Listener(db)
	l := tableKind.open(t, db, table, sqllock.WithBackoff(4*time.Second, 4*time.Second),
		sqllock.WithListener(func(ctx context.Context, channel string, ready func(), notify func(string)) error {
			return listen(ctx, channel, func() { ready(); begun.Add(1) }, notify)
		})).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	got := inBackground(func() error { return l.LockContext(b) })
	soon(t, func() bool { return begun.Load() == 1 })
	kill(t, inPgx, inPgx.open(t, where), "SELECT pid FROM pg_stat_activity WHERE query = $1", `LISTEN "`+name+`"`)
	soon(t, func() bool { return begun.Load() == 2 })
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(b))
}

func TestAListeningHolderLearnsOfForceAtOnce(t *testing.T) {
	t.Parallel()
	for _, k := range inTables {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			where, name := inPgx.serve(t), fresh()
			db, table := inPgx.open(t, where), sqllock.WithTable(name)
			listen := pgxnotify.Listener(db)
			var listens atomic.Bool
			c := k.open(t, db, table, term(time.Hour), sqllock.WithListener(
				func(ctx context.Context, channel string, ready func(), notify func(string)) error {
					return listen(ctx, channel, func() { ready(); listens.Store(true) }, notify)
				}))
			forcing := inPgx.open(t, where)
			deaf := k.open(t, forcing, table)
			hears := k.open(t, forcing, table, sqllock.WithListener(pgxnotify.Listener(forcing)))
			a := adaptertest.Owner()
			other := adaptertest.Hold(t, c.Mutex("other"), a)
			for _, by := range []provider{deaf, hears} { // the client that frees it need not listen
				h := adaptertest.Hold(t, c.Mutex("it"), a)
				soon(t, listens.Load)
				// A notice about a hold that is still there means nothing.
				_, err := forcing.Exec("SELECT pg_notify($1, owner || ' ' || name) FROM "+name, name)
				require.NoError(t, err)
				b := adaptertest.Owner()
				got := inBackground(func() error { return by.Mutex("it").LockContext(b) })
				freed, err := by.Mutex("it").ForceUnlock(background)
				require.NoError(t, err)
				require.True(t, freed)
				select {
				case <-h.Lost():
				case <-time.After(testbed.Hang):
					require.Fail(t, "the holder was not told")
				}
				require.ErrorIs(t, h.Err(), locks.ErrLost)
				require.NoError(t, other.Err())
				require.NoError(t, <-got)
				require.NoError(t, by.Mutex("it").UnlockContext(b))
				require.ErrorIs(t, c.Mutex("it").UnlockContext(a), locks.ErrLost)
			}
			require.NoError(t, c.Mutex("other").UnlockContext(a))
		})
	}
}

func TestWorkAsksItsContextWithoutTheLock(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		for how, opts := range map[string][]sqllock.Option{"": nil, "blocking": {sqllock.WithBlockingWait()}} {
			if d.dialect != sqllock.Postgres && opts != nil {
				continue // no waiter of a Row waits in the database
			}
			t.Run(d.name+how, func(t *testing.T) {
				t.Parallel()
				r := openRow(t, d.open(t, d.serve(t)), append(opts, sqllock.WithTable(fresh()))...)
				ctx := &testbed.Slow{Context: background}
				ctx.Arm(func() {
					short, cancel := context.WithTimeout(background, testbed.Hang)
					defer cancel()
					assert.NoError(t, r.Do(short, "it", nothing), "while a method of a context runs")
				})
				require.NoError(t, r.Do(ctx, "it", nothing))
			})
		}
	}
}

func TestWorkIsDoneInItsTransactionOnly(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			resource(t, db, table+"_res", d)
			r := openRow(t, db, sqllock.WithTable(table))
			count := func() (n int) {
				require.NoError(t, db.QueryRow("SELECT n FROM "+table+"_res").Scan(&n))
				return n
			}
			add := func(tx *sql.Tx) error { // not atomic by itself
				var n int
				if err := tx.QueryRow("SELECT n FROM " + table + "_res").Scan(&n); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
				_, err := tx.Exec(fmt.Sprintf("UPDATE %s_res SET n = %d", table, n+1))
				return err
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 3 {
						assert.NoError(t, r.Do(background, "it", add))
					}
				})
			}
			wg.Wait()
			require.Equal(t, 24, count())

			wrong := errors.New("wrong")
			fail := func(tx *sql.Tx) error { return errors.Join(add(tx), wrong) }
			require.ErrorIs(t, r.Do(background, "it", fail), wrong)
			require.Panics(t, func() { r.Do(background, "it", func(tx *sql.Tx) error { add(tx); panic("!") }) })
			require.Equal(t, 24, count(), "rolled back")
			unpinned(t, db)

			end := work(t, r, adaptertest.Owner(), "it")
			ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, r.Do(ctx, "it", add), context.DeadlineExceeded)
			end()
			require.Error(t, r.Do(background, "it", nil))
			require.ErrorIs(t, r.Do(nil, "it", add), locks.ErrNilContext)
			require.Error(t, r.Do(background, "", add))

			end = work(t, r, adaptertest.Owner(), "it")
			other := openRow(t, db, sqllock.WithTable(table))
			closed := make(chan error, 1)
			go func() { closed <- other.Do(background, "it", add) }()
			soon(t, refused(other, "it"))
			require.NoError(t, other.Close(background))
			require.ErrorIs(t, <-closed, locks.ErrClosed)
			require.ErrorIs(t, other.Do(background, "free", add), locks.ErrClosed)
			end()
			if d.dialect == sqllock.Postgres {
				err := r.Do(background, "it", func(tx *sql.Tx) error {
					require.NoError(t, add(tx))
					var pid int64
					require.NoError(t, tx.QueryRow("SELECT pg_backend_pid()").Scan(&pid))
					kill(t, d, db, "SELECT $1::bigint", pid)
					return nil
				})
				require.ErrorIs(t, err, locks.ErrLost)
			}
			require.Equal(t, 24, count())
		})
	}
}

func TestWorkInsideItsOwnLockIsADeadlock(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), sqllock.WithTable(fresh())
			r := openRow(t, d.open(t, where), table)
			rival := openRow(t, d.open(t, where), table)
			for _, owner := range []context.Context{background, adaptertest.Owner()} { // a goroutine, and an explicit one
				ctx, cancel := context.WithTimeout(owner, testbed.Hang)
				defer cancel()
				require.NoError(t, r.Do(ctx, "it", func(*sql.Tx) error {
					require.ErrorIs(t, r.Do(ctx, "it", nothing), locks.ErrDeadlock)
					require.NoError(t, ctx.Err(), "at once")
					if d.dialect == sqllock.SQLite {
						require.ErrorIs(t, r.Do(ctx, "other", nothing), locks.ErrDeadlock, "all names are one lock")
					} else {
						require.NoError(t, r.Do(ctx, "other", nothing))
					}
					soon, end := context.WithTimeout(adaptertest.Owner(), 200*time.Millisecond)
					defer end()
					require.ErrorIs(t, r.Do(soon, "it", nothing), context.DeadlineExceeded, "another owner waits")
					soon, end = context.WithTimeout(owner, 200*time.Millisecond)
					defer end()
					require.ErrorIs(t, rival.Do(soon, "it", nothing), context.DeadlineExceeded, "and another client")
					return nil
				}))
				require.Panics(t, func() { r.Do(ctx, "it", func(*sql.Tx) error { panic("!") }) })
				require.NoError(t, r.Do(ctx, "it", nothing))
				require.NoError(t, rival.Do(ctx, "it", nothing))
			}
		})
	}
}

func TestALockThatAppearsMeanwhileIsRefused(t *testing.T) {
	t.Parallel()
	where, table, name := inMaria.serve(t), fresh(), fresh()
	rival := openRow(t, inMaria.open(t, where), sqllock.WithTable(table))
	var end func()
	appear := sync.OnceFunc(func() { end = work(t, rival, adaptertest.Owner(), name) })
	db := sql.OpenDB(observer{inMaria.open(t, where).Driver(), dsn(sqllock.MySQL, where), func(query string) {
		if strings.HasPrefix(query, "SET TRANSACTION") { // the client has seen that there is no row
			appear()
		}
	}})
	t.Cleanup(func() { db.Close() })
	r := openRow(t, db, sqllock.WithTable(table))
	got := inBackground(func() error { return r.Do(background, name, nothing) })
	soon(t, refused(r, name), "and waits for nobody")
	end()
	require.NoError(t, <-got)
}

func TestNewLocksOfOtherNamesDoNotWait(t *testing.T) {
	t.Parallel()
	where, table := inMaria.serve(t), sqllock.WithTable(fresh())
	var wg sync.WaitGroup
	for range 6 {
		r := openRow(t, inMaria.open(t, where), table)
		wg.Go(func() {
			end := func() error { return nil }
			for range 10 { // each stays held until the last one is
				inner := end
				end = func() error { return r.Do(adaptertest.Owner(), fresh(), func(*sql.Tx) error { return inner() }) }
			}
			assert.NoError(t, r.Do(adaptertest.Owner(), fresh(), func(*sql.Tx) error { return end() }))
		})
	}
	wg.Wait()
}

func TestAnOptimisticUpdateLosesNothing(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, table := d.serve(t), fresh()
			db := d.open(t, where)
			resource(t, db, table, d)
			columns := sqllock.Columns{Table: table, Key: "id", Value: "n", Version: "version"}
			v, err := sqllock.NewVersioned[int](db, columns, 1)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 10 {
						_, err := v.Update(background, func(n int) (int, error) { return n + 1, nil })
						assert.NoError(t, err)
					}
				})
			}
			wg.Wait()
			n, version, err := v.Load(background)
			require.NoError(t, err)
			require.Equal(t, 40, n)
			require.EqualValues(t, 40, version)
			ok, err := v.CompareAndSwap(background, 39, 0)
			require.NoError(t, err)
			require.False(t, ok)
			ok, err = v.CompareAndSwap(background, 40, 40)
			require.NoError(t, err)
			require.True(t, ok, "the same value is a change as well")
			require.NoError(t, v.Store(background, 7))
			n, version, err = v.Load(background)
			require.NoError(t, err)
			require.Equal(t, 7, n)
			require.EqualValues(t, 42, version)

			wrong := errors.New("wrong")
			_, err = v.Update(background, func(int) (int, error) { return 0, wrong })
			require.Equal(t, wrong, err)
			ctx, cancel := context.WithCancelCause(background)
			_, err = v.Update(ctx, func(n int) (int, error) {
				require.NoError(t, v.Store(background, n+1)) // another writer is always quicker
				if n == 10 {
					cancel(wrong)
				}
				return 0, nil
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, wrong)
			n, _, err = v.Load(background)
			require.NoError(t, err)
			require.Equal(t, 11, n)
			none, err := sqllock.NewVersioned[int](db, columns, 2)
			require.NoError(t, err)
			_, _, err = none.Load(background)
			require.ErrorIs(t, err, sql.ErrNoRows)
			require.ErrorIs(t, none.Store(background, 1), sql.ErrNoRows)
			_, err = none.Update(background, func(n int) (int, error) { return n, nil })
			require.ErrorIs(t, err, sql.ErrNoRows)
			_, _, err = v.Load(nil)
			require.ErrorIs(t, err, locks.ErrNilContext)
		})
	}
}

func TestAGateRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	for _, d := range everywhere {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			db, table := d.open(t, d.serve(t)), fresh()
			resource(t, db, table, d)
			g, err := sqllock.NewGate(db, sqllock.Columns{Table: table, Key: "id", Token: "token"})
			require.NoError(t, err)
			write := func(token uint64, text string) error {
				return g.Do(background, 1, token, func(tx *sql.Tx) error {
					_, err := tx.Exec("UPDATE " + table + " SET text = '" + text + "' WHERE id = 1")
					return err
				})
			}
			require.NoError(t, write(2, "first"))
			require.NoError(t, write(2, "again"))
			require.ErrorIs(t, write(1, "stale"), sqllock.ErrStale)
			require.NoError(t, write(5, "later"))
			require.ErrorIs(t, write(4, "stale"), sqllock.ErrStale)
			var text string
			require.NoError(t, db.QueryRow("SELECT text FROM "+table).Scan(&text))
			require.Equal(t, "later", text)
			require.ErrorIs(t, g.Do(background, 2, 1, nothing), sql.ErrNoRows)
			require.Error(t, write(1<<63, "too much"))
			require.ErrorIs(t, write(4, "stale"), fence.ErrStale)
			require.ErrorIs(t, write(4, "stale"), locks.ErrLost)
			_, err = db.Exec("UPDATE " + table + " SET token = 0")
			require.NoError(t, err)
			require.ErrorIs(t, write(0, "without a token"), fence.ErrNoToken)
			require.ErrorIs(t, g.Do(background, 1, 5, nil), locks.ErrNilFunc)
			unpinned(t, db)
		})
	}
}

// pooled is a connection behind a pooler. Each statement goes to another session, or, if moved
// is not nil, all go to the other session as soon as that is set.
type pooled struct {
	driver.Conn
	other driver.Conn
	n     atomic.Int32
	moved *atomic.Bool
}

func (p *pooled) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c := p.Conn
	if p.moved != nil && p.moved.Load() || p.moved == nil && p.n.Add(1)%2 == 0 {
		c = p.other
	}
	return c.(driver.QueryerContext).QueryContext(ctx, q, args)
}

func (p *pooled) Close() error { return errors.Join(p.Conn.Close(), p.other.Close()) }

type pooler struct {
	driver.Driver
	dsn   string
	moved *atomic.Bool
}

func (p pooler) Connect(ctx context.Context) (driver.Conn, error) {
	a, err := p.Driver.Open(p.dsn)
	if err != nil {
		return nil, err
	}
	b, err := p.Driver.Open(p.dsn)
	return &pooled{Conn: a, other: b, moved: p.moved}, err
}

func TestAPoolerThatSharesSessionsIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			where, name := d.serve(t), fresh()
			plain := d.open(t, where)
			to := dsn(d.dialect, where)
			if d.dialect == sqllock.MySQL {
				to += "&interpolateParams=true" // one statement, and not two
			}
			db := sql.OpenDB(connector2{pooler{plain.Driver(), to, nil}})
			defer db.Close()
			l := advisory.open(t, db, sqllock.WithDialect(d.dialect)).Mutex(name)
			require.ErrorIs(t, l.LockContext(background), sqllock.ErrUnsupportedTopology)
			_, err := l.TryLockContext(background)
			require.ErrorIs(t, err, sqllock.ErrUnsupportedTopology)
			require.False(t, held(t, advisory.open(t, plain).Mutex(name)), "nothing is left")
		})
	}
}

func TestRenewalAndUnlockFindAMovedSession(t *testing.T) {
	t.Parallel()
	for _, d := range servers {
		for _, way := range []string{"renewal", "unlock"} {
			t.Run(way+" on "+d.name, func(t *testing.T) {
				t.Parallel()
				where, name := d.serve(t), fresh()
				plain := d.open(t, where)
				to := dsn(d.dialect, where)
				if d.dialect == sqllock.MySQL {
					to += "&interpolateParams=true" // one statement, and not two
				}
				var moved atomic.Bool
				db := sql.OpenDB(connector2{pooler{plain.Driver(), to, &moved}})
				defer db.Close()
				l := advisory.open(t, db, sqllock.WithDialect(d.dialect), term(9*time.Second)).Mutex(name)
				a := adaptertest.Owner()
				rival := advisory.open(t, plain).Mutex(name)
				h := adaptertest.Hold(t, l, a)
				require.True(t, held(t, rival))
				moved.Store(true)
				if way == "renewal" {
					<-h.Lost()
					require.ErrorIs(t, h.Err(), sqllock.ErrUnsupportedTopology)
				}
				require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
				soon(t, func() bool { return !held(t, rival) }, "its sessions are ended")
			})
		}
	}
}

type connector2 struct{ pooler }

func (c connector2) Driver() driver.Driver { return opaque{c.pooler.Driver} }

func TestAKeyOfItsOwnExcludesOtherPrograms(t *testing.T) {
	t.Parallel()
	db := inPgx.open(t, inPgx.serve(t))
	conn, err := db.Conn(background)
	require.NoError(t, err)
	defer conn.Close()
	l := advisory.open(t, db, sqllock.WithKey(func(string) int64 { return -4711 })).Mutex("it")
	_, err = conn.ExecContext(background, "SELECT pg_advisory_lock(-4711)")
	require.NoError(t, err)
	require.True(t, held(t, l))
	_, err = conn.ExecContext(background, "SELECT pg_advisory_unlock(-4711)")
	require.NoError(t, err)
	require.False(t, held(t, l))
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	require.NoError(t, h.Extend(background, time.Minute), "the session is found to have a lock of a negative key")
	require.NoError(t, l.UnlockContext(a))
}
