package scenarios

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/sqllock"
)

var _ = register(lab.Scenario{
	Lesson:   100,
	Name:     "sql-version",
	Topic:    lab.T("Databases"),
	Title:    lab.T("A version column, or a lock on the row"),
	Question: lab.T(`How does a change in a database avoid overwriting another one?`),
	Claim: lab.T("Two processes read a number, compute with it, and write the result: the second write overwrites " +
		"the first one. There are two ways to prevent that without a lock outside of the database.\n\n" +
		"The optimistic way is a version in the row. The update names the version that it was computed " +
		"from. If that is not the current version any more, the update changes nothing; otherwise it adds " +
		"one. No process waits or holds anything. But the second process has worked in vain, and starts " +
		"again.\n\n" +
		"The pessimistic way is `SELECT ... FOR UPDATE`: the row is locked until the transaction ends, " +
		"and the second process waits. There is no lease that could expire too early. If the holder dies, " +
		"the database ends its transaction, frees the lock, and undoes the work. This takes a connection " +
		"for the time of the work, and without a unique index it may lock more than the row."),
	Look: lab.T(`In the first picture both read the same number, and one sale is lost. In the second Ann's update finds
another version, and she computes again. In the third Ann dies in the middle of her transaction, and
Bob, who waited, finds the row as it was before. This runs on SQLite, which locks the whole database
instead of a row. The table has the cost with several processes at once.`),
	Found: lab.T(`Of two sales {{.blind}} was left in the number without a version. With it both were, and Ann
computed {{times .tries}}. In the third picture Ann sold number {{.died}} and died; Bob sold number
{{.after}}, and the list of what was sold had {{.rows}} entry of the two. {{.changes}} changes by
{{.workers}} processes at once took {{.versioned}} computations with the version, and {{.locked}} under the lock.`),
	Take: lab.T("Use `sqllock.Versioned` if changes seldom meet and only compute: a change may compute several " +
		"times. Use `sqllock.Row.Do` if changes often meet, or if more than one row has to change: the " +
		"lock and the work are one transaction. Both are for work in one database. Effects of the work " +
		"elsewhere are not undone."),
	Java: `@Version private long version;                 // JPA: OptimisticLockException, retry

@Lock(LockModeType.PESSIMISTIC_WRITE)          // JPA: SELECT ... FOR UPDATE
Optional<Stock> findByItem(String item);`,
	Run: sqlVersion,
})

//lab:show

// sellBlindly writes what it computed from what it read, even if the row changed in between. It
// is wrong.
func sellBlindly(ctx context.Context, db *sql.DB, compute func(left int64) int64) error {
	var left int64
	if err := db.QueryRowContext(ctx, `SELECT left FROM stock WHERE item = 'ticket'`).Scan(&left); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `UPDATE stock SET left = ? WHERE item = 'ticket'`, compute(left))
	return err
}

// stockIn returns the number with its version. Its Update computes again after a conflict.
func stockIn(db *sql.DB) (*sqllock.Versioned[int64], error) {
	return sqllock.NewVersioned[int64](db, sqllock.Columns{Table: "stock", Key: "item", Value: "left",
		Version: "version"}, "ticket")
}

// sellLocked reads and writes in the transaction that has the lock. If it ends in any other way
// than by a commit, nothing of what was done in it stays.
func sellLocked(ctx context.Context, row *sqllock.Row, compute func(left int64) (int64, error)) error {
	return row.Do(ctx, "stock", func(tx *sql.Tx) error {
		var left int64
		if err := tx.QueryRowContext(ctx, `SELECT left FROM stock WHERE item = 'ticket'`).Scan(&left); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO sold (number) VALUES (?)`, left); err != nil {
			return err
		}
		left, err := compute(left)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE stock SET left = ?, version = version + 1 WHERE item = 'ticket'`, left)
		return err
	})
}

//lab:end

const (
	stockLeft    = `SELECT left FROM stock`
	stockVersion = `SELECT version FROM stock`
)

func sqlVersion(ctx context.Context, l *lab.Lab) error {
	const all = 1000
	d := newDatabase(ctx, l, `CREATE TABLE stock (item TEXT PRIMARY KEY, left INTEGER NOT NULL, version
INTEGER NOT NULL)`,
		`INSERT INTO stock VALUES ('ticket', `+strconv.Itoa(all)+`, 1)`, `CREATE TABLE sold (number INTEGER
PRIMARY KEY)`)
	const workers = 4
	var dbs []*sql.DB
	var rows []*sqllock.Row
	var closers []interface{ Close(context.Context) error }
	defer func() { d.end(closers...) }()
	for range workers {
		db := d.process(l)
		row, err := sqllock.NewRow(db)
		l.Must(err)
		l.Must(row.CreateSchema(ctx))
		dbs, rows, closers = append(dbs, db), append(rows, row), append(closers, row)
	}
	const step = 10 * time.Millisecond

	// Both read before either writes.
	t := l.Timeline(lab.T("Without a version"), lab.T("Both read the same number. Ann writes after Bob, and his sale is lost."))
	annRead, bobWrote := make(chan struct{}), make(chan struct{})
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		err := sellBlindly(ctx, dbs[0], func(left int64) int64 {
			me.Mark(lab.T("has read %d"), left)
			close(annRead)
			<-bobWrote
			me.Work(step)
			return left - 1
		})
		me.Mark(lab.T("writes"))
		me.Work(step)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annRead
		defer close(bobWrote)
		err := sellBlindly(ctx, dbs[1], func(left int64) int64 {
			me.Mark(lab.T("has read %d"), left)
			me.Work(step)
			return left - 1
		})
		me.Mark(lab.T("writes"))
		me.Work(step)
		return err
	})
	t.Wait()
	left := number(ctx, l, dbs[0], stockLeft)
	l.Equal(int64(all-1), left, lab.T("of two sales one is lost"))
	l.Observe("blind", all-left)

	t = l.Timeline(lab.T("With a version"), lab.T("Ann's update finds Bob's version, and changes nothing. She starts "+
		"over from his number."))
	annRead, bobWrote = make(chan struct{}), make(chan struct{})
	before := number(ctx, l, dbs[0], stockVersion)
	tries := 0
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		stock, err := stockIn(dbs[0])
		if err != nil {
			return err
		}
		_, err = stock.Update(ctx, func(left int64) (int64, error) {
			me.Mark(lab.T("has read %d"), left)
			if tries++; tries == 1 {
				close(annRead)
				<-bobWrote
			}
			me.Work(step)
			return left - 1, nil
		})
		me.Mark(lab.T("has written"))
		me.Work(step)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annRead
		defer close(bobWrote)
		stock, err := stockIn(dbs[1])
		if err != nil {
			return err
		}
		_, err = stock.Update(ctx, func(left int64) (int64, error) {
			me.Mark(lab.T("has read %d"), left)
			me.Work(step)
			return left - 1, nil
		})
		me.Mark(lab.T("has written"))
		me.Work(step)
		return err
	})
	t.Wait()
	l.Equal(left-2, number(ctx, l, dbs[0], stockLeft), lab.T("with a version no sale is lost"))
	l.Equal(before+2, number(ctx, l, dbs[0], stockVersion), lab.T("every change has its version"))
	l.Equal(2, tries, lab.T("the second one computes again"))
	l.Observe("tries", tries)
	left -= 2

	dying(ctx, l, dbs, rows, left)
	left--
	contend(ctx, l, dbs, rows, left)
	return nil
}

// dying has Ann die in the transaction that has the lock, while Bob waits for it.
func dying(ctx context.Context, l *lab.Lab, dbs []*sql.DB, locks []*sqllock.Row, left int64) {
	const step = 20 * time.Millisecond
	t := l.Timeline(lab.T("The lock and the work are one transaction"), lab.T("Ann dies in the middle, by which her "+
		"connection ends. Bob gets the lock, and finds nothing of what she had done."))
	annIn, bobIn := make(chan struct{}), make(chan struct{})
	var after int64
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		ctx, die := context.WithCancelCause(ctx)
		defer die(nil)
		me.Set(lab.Waiting, lab.T("waits for lock"))
		err := sellLocked(ctx, locks[0], func(left int64) (int64, error) {
			me.Set(lab.Exclusive, lab.T("has lock"))
			me.Mark(lab.T("sells number %d"), left)
			close(annIn)
			me.Work(step)
			select {
			case <-bobIn:
				l.Check(false, lab.T("Bob waits while Ann has the lock"))
			default:
			}
			me.Work(step)
			me.Mark(lab.T("crashes"))
			me.Set(lab.Running, lab.T("is dead"))
			die(errCrash)
			return left - 1, nil
		})
		l.Is(errCrash, context.Cause(ctx), lab.T("Ann dies in the middle"))
		l.Check(errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone), lab.T("she never commits"))
		return nil
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annIn
		me.Set(lab.Waiting, lab.T("waits for lock"))
		err := sellLocked(ctx, locks[1], func(now int64) (int64, error) {
			close(bobIn)
			me.Set(lab.Exclusive, lab.T("has lock"))
			me.Mark(lab.T("sells number %d"), now)
			after = now
			me.Work(step)
			return now - 1, nil
		})
		me.Set(lab.Running, lab.T("works"))
		me.Work(step)
		return err
	})
	t.Wait()
	l.Equal(left, after, lab.T("Bob finds the number as it was before Ann"))
	l.Equal(left-1, number(ctx, l, dbs[2], stockLeft), lab.T("what was left in the middle is undone"))
	rows := number(ctx, l, dbs[2], `SELECT count(*) FROM sold`)
	l.Equal(int64(1), rows, lab.T("so is what was done to another table"))
	l.Observe("died", left)
	l.Observe("after", after)
	l.Observe("rows", rows)
}

// contend has all sell at once, in both ways.
func contend(ctx context.Context, l *lab.Lab, dbs []*sql.DB, rows []*sqllock.Row, left int64) {
	each := lab.Pick(l, 5, 25)
	changes := int64(each * len(dbs))
	table := lab.Table{Title: lab.T("All at once"), Head: []lab.Text{lab.T("by"), lab.T("changes"), lab.T("computations"), lab.T("in vain"), lab.T("took")}}
	var computed atomic.Int64
	sell := map[string]func(ctx context.Context, i int) error{
		"version": func(ctx context.Context, i int) error {
			stock, err := stockIn(dbs[i])
			if err != nil {
				return err
			}
			_, err = stock.Update(ctx, func(left int64) (int64, error) {
				computed.Add(1)
				time.Sleep(time.Millisecond)
				return left - 1, nil
			})
			return err
		},
		"lock": func(ctx context.Context, i int) error {
			return sellLocked(ctx, rows[i], func(left int64) (int64, error) {
				computed.Add(1)
				time.Sleep(time.Millisecond)
				return left - 1, nil
			})
		},
	}
	ways := map[string]lab.Text{"version": lab.T("version"), "lock": lab.T("lock")}
	for _, by := range []string{"version", "lock"} {
		computed.Store(0)
		began := time.Now()
		failed := make(chan error, len(dbs))
		for i := range dbs {
			go func() {
				for range each {
					if err := sell[by](ctx, i); err != nil {
						failed <- err
						return
					}
				}
				failed <- nil
			}()
		}
		for range dbs {
			l.Must(<-failed)
		}
		took := time.Since(began)
		left -= changes
		l.Equal(left, number(ctx, l, dbs[0], stockLeft), lab.T("no change is lost when several sell at once"))
		n := computed.Load()
		count := func(n int64) lab.Text { return lab.Same(strconv.FormatInt(n, 10)) }
		table.Rows = append(table.Rows, []lab.Text{ways[by], count(changes), count(n), count(n - changes),
			lab.Same(lab.Duration(took))})
		if by == "lock" {
			l.Equal(changes, n, lab.T("under the lock nothing is computed in vain"))
			l.Observe("locked", n)
		} else {
			l.Check(n >= changes, lab.T("with a version every change is computed once at least"))
			l.Observe("versioned", n)
		}
	}
	l.Observe("changes", changes)
	l.Observe("workers", len(dbs))
	l.Table(table)
}
