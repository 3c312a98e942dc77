package sqllock_test

import (
	"database/sql"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

func BenchmarkSelect1(b *testing.B) {
	for _, d := range []database{inSQLite, inPgx, inPq, inMaria} {
		b.Run(d.name, func(b *testing.B) {
			db := d.open(b, d.serve(b))
			var one int
			for b.Loop() {
				if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUncontended(b *testing.B) {
	for _, k := range kinds {
		for _, d := range k.on {
			b.Run(k.name+" on "+d.name, func(b *testing.B) {
				l := k.open(b, d.open(b, d.serve(b)), sqllock.WithTable(fresh())).Mutex(fresh())
				b.ReportAllocs()
				for b.Loop() {
					if err := l.LockContext(background); err != nil {
						b.Fatal(err)
					}
					if err := l.UnlockContext(background); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkReentry(b *testing.B) {
	l := tableKind.open(b, inSQLite.open(b, inSQLite.serve(b))).Mutex("it")
	adaptertest.Hold(b, l, background)
	defer l.UnlockContext(background)
	b.ReportAllocs()
	for b.Loop() {
		l.LockContext(background)
		l.UnlockContext(background)
	}
}

// BenchmarkHandOver is the time from a release to the next holder, by another client, which has
// waited for 30 ms.
func BenchmarkHandOver(b *testing.B) {
	for _, k := range allKinds {
		for _, d := range k.on {
			for _, listening := range []bool{false, true} {
				if d.name == inPq.name || listening && d.dialect != sqllock.Postgres {
					continue
				}
				name := k.name + " on " + d.name
				if listening {
					name += ", listening"
				}
				b.Run(name, func(b *testing.B) { handOver(b, k, d, listening) })
			}
		}
	}
}

func handOver(b *testing.B, k kind, d database, listening bool) {
	where, table, name := d.serve(b), sqllock.WithTable(fresh()), fresh()
	var ls [2]*lease.Mutex
	for i := range ls {
		db := d.open(b, where)
		opts := []sqllock.Option{table}
		if listening {
			opts = append(opts, sqllock.WithListener(pgxnotify.Listener(db)))
		}
		ls[i] = k.open(b, db, opts...).Mutex(name)
	}
	a := adaptertest.Owner()
	adaptertest.Hold(b, ls[0], a)
	var times []time.Duration
	var wg sync.WaitGroup
	for i := range b.N {
		l, next := ls[i%2], ls[(i+1)%2]
		var got time.Time
		wg.Go(func() {
			if err := next.LockContext(a); err == nil {
				got = time.Now()
			}
		})
		time.Sleep(30 * time.Millisecond)
		released := time.Now()
		if err := l.UnlockContext(a); err != nil {
			b.Fatal(err)
		}
		wg.Wait()
		times = append(times, got.Sub(released))
	}
	report(b, times)
}

func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
}

// BenchmarkHandOverInTheServer is BenchmarkHandOver for a statement that waits in the server, which
// keeps a connection for each waiter.
func BenchmarkHandOverInTheServer(b *testing.B) {
	for _, way := range []struct {
		name       string
		d          database
		take, free string
	}{
		{"pg_advisory_lock", inPgx, "SELECT pg_advisory_lock(1)", "SELECT pg_advisory_unlock(1)"},
		{"FOR UPDATE on PostgreSQL", inPgx, "BEGIN; SELECT 1 FROM {t} FOR UPDATE", "COMMIT"},
		{"GET_LOCK on MariaDB", inMaria, "SELECT GET_LOCK('bench', 60)", "SELECT RELEASE_LOCK('bench')"},
		{"FOR UPDATE on MariaDB", inMaria, "BEGIN; SELECT n FROM {t} FOR UPDATE", "COMMIT"},
	} {
		b.Run(way.name, func(b *testing.B) {
			db, table := way.d.open(b, way.d.serve(b)), fresh()
			resource(b, db, table, way.d)
			var conns [2]*sql.Conn
			for i := range conns {
				var err error
				conns[i], err = db.Conn(background)
				if err != nil {
					b.Fatal(err)
				}
				defer conns[i].Close()
			}
			exec := func(conn *sql.Conn, statements string) {
				for s := range strings.SplitSeq(strings.ReplaceAll(statements, "{t}", table), "; ") {
					if _, err := conn.ExecContext(background, s); err != nil {
						b.Error(err)
					}
				}
			}
			exec(conns[0], way.take)
			var times []time.Duration
			var wg sync.WaitGroup
			for i := range b.N {
				var got time.Time
				wg.Go(func() {
					exec(conns[(i+1)%2], way.take)
					got = time.Now()
				})
				time.Sleep(30 * time.Millisecond)
				released := time.Now()
				exec(conns[i%2], way.free)
				wg.Wait()
				times = append(times, got.Sub(released))
			}
			report(b, times)
		})
	}
}
