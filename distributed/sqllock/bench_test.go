package sqllock_test

import (
	"slices"
	"sync"
	"testing"
	"time"

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
	hold(b, l, background)
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
	for _, k := range kinds {
		for _, d := range everywhere {
			for _, listening := range []bool{false, true} {
				if listening && d.dialect != sqllock.Postgres ||
					k.name == advisory.name && d.dialect == sqllock.SQLite {
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
	var ls [2]*sqllock.Mutex
	for i := range ls {
		db := d.open(b, where)
		opts := []sqllock.Option{table}
		if listening {
			opts = append(opts, sqllock.WithListener(pgxnotify.Listener(db)))
		}
		ls[i] = k.open(b, db, opts...).Mutex(name)
	}
	a := someone()
	hold(b, ls[0], a)
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
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-us")
}
