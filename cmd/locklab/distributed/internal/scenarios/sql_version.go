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
	Lesson: 100,
	Name:   "sql-version",
	Topic:  lab.T("Databases", "数据库"),
	Title:  lab.T("A version column, or a lock on the row", "版本列，还是行锁"),
	Question: lab.T(`How does a change in a database avoid overwriting another one?`,
		"数据库中的一次改动，怎样避免覆盖另一次改动？"),
	Claim: lab.T("Two processes read a number, compute with it, and write the result: the second write overwrites "+
		"the first one. There are two ways to prevent that without a lock outside of the database.\n\n"+
		"The optimistic way is a version in the row. The update names the version that it was computed "+
		"from. If that is not the current version any more, the update changes nothing; otherwise it adds "+
		"one. No process waits or holds anything. But the second process has worked in vain, and starts "+
		"again.\n\n"+
		"The pessimistic way is `SELECT ... FOR UPDATE`: the row is locked until the transaction ends, "+
		"and the second process waits. There is no lease that could expire too early. If the holder dies, "+
		"the database ends its transaction, frees the lock, and undoes the work. This takes a connection "+
		"for the time of the work, and without a unique index it may lock more than the row.",
		"两个进程读出一个数字，进行计算，再写回结果：第二次写入覆盖了第一次。不用数据库之外的锁，有两"+
			"种办法可以避免。\n\n"+
			"乐观的办法是在行中加一个版本。更新时写明计算所依据的版本：如果它已不是当前版本，更新就什么也"+
			"不改；否则版本加一。没有进程需要等待，也不占用任何资源，但第二个进程的工作白费了，要重新开始。\n\n"+
			"悲观的办法是 `SELECT ... FOR UPDATE`：行被锁住，直到事务结束，第二个进程等待。没有会提前到期"+
			"的租约。持有者死去时，数据库结束它的事务，释放锁，并撤销已做的工作。这种办法在工作期间占用一"+
			"个连接；没有唯一索引时，锁住的可能不止这一行。"),
	Look: lab.T(`In the first picture both read the same number, and one sale is lost. In the second Ann's update finds
another version, and she computes again. In the third Ann dies in the middle of her transaction, and
Bob, who waited, finds the row as it was before. This runs on SQLite, which locks the whole database
instead of a row. The table has the cost with several processes at once.`,
		`第一幅图中，双方读到同一个数字，丢了一笔销售。第二幅图中，Ann 的更新发现版本变了，她重新计算。
第三幅图中，Ann 在事务中途死去，等待的 Bob 看到的行与原先一样。这里使用 SQLite，它锁住的是整个数
据库，而不是一行。表格是多个进程同时进行时的代价。`),
	Found: lab.T(`Of two sales {{.blind}} was left in the number without a version. With it both were, and Ann
computed {{times .tries}}. In the third picture Ann sold number {{.died}} and died; Bob sold number
{{.after}}, and the list of what was sold had {{.rows}} entry of the two. {{.changes}} changes by
{{.workers}} processes at once took {{.versioned}} computations with the version, and {{.locked}} under the lock.`,
		`没有版本时，两次销售在数字中只剩下 {{.blind}} 次。有版本时两次都在，Ann 计算了 {{times .tries}}。
第三幅图中，Ann 卖出第 {{.died}} 号后死去；Bob 卖出第 {{.after}} 号，两人的销售记录共有 {{.rows}}
条。{{.workers}} 个进程同时做 {{.changes}} 次改动：用版本计算了 {{.versioned}} 次，用锁计算了 {{.locked}}
次。`),
	Take: lab.T("Use `sqllock.Versioned` if changes seldom meet and only compute: a change may compute several "+
		"times. Use `sqllock.Row.Do` if changes often meet, or if more than one row has to change: the "+
		"lock and the work are one transaction. Both are for work in one database. Effects of the work "+
		"elsewhere are not undone.",
		"如果改动很少冲突，而且只是计算，用 `sqllock.Versioned`：一次改动可能计算多次。如果改动经常冲"+
			"突，或者要改动不止一行，用 `sqllock.Row.Do`：锁和工作在同一个事务里。两者都用于单个数据库内"+
			"的工作；工作在别处产生的影响不会撤销。"),
	Java: lab.Same(`@Version private long version;                 // %s

@Lock(LockModeType.PESSIMISTIC_WRITE)          // %s
Optional<Stock> findByItem(String item);`).With(lab.T("JPA: OptimisticLockException, retry",
		"JPA：OptimisticLockException，然后重试"), lab.T("JPA: SELECT ... FOR UPDATE", "JPA：SELECT ... FOR UPDATE")),
	Run: sqlVersion,
})

//lab:show

// sellBlindly writes the result that it computed from an earlier read, even if the row changed in
// between. It is wrong.
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

// sellLocked reads and writes in the transaction that has the lock. If the transaction ends in any
// other way than by a commit, none of its changes stay.
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
	t := l.Timeline(lab.T("Without a version",
		"没有版本"), lab.T("Both read the same number. Ann writes after Bob, and his sale is lost.",
		"双方读到同一个数字。Ann 在 Bob 之后写入，他的销售丢失了。"))
	annRead, bobWrote := make(chan struct{}), make(chan struct{})
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		err := sellBlindly(ctx, dbs[0], func(left int64) int64 {
			me.Mark(lab.T("has read %d", "读到 %d"), left)
			close(annRead)
			<-bobWrote
			me.Work(step)
			return left - 1
		})
		me.Mark(lab.T("writes", "写入"))
		me.Work(step)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annRead
		defer close(bobWrote)
		err := sellBlindly(ctx, dbs[1], func(left int64) int64 {
			me.Mark(lab.T("has read %d", "读到 %d"), left)
			me.Work(step)
			return left - 1
		})
		me.Mark(lab.T("writes", "写入"))
		me.Work(step)
		return err
	})
	t.Wait()
	left := number(ctx, l, dbs[0], stockLeft)
	l.Equal(int64(all-1), left, lab.T("of two sales one is lost", "两次销售丢失了一次"))
	l.Observe("blind", all-left)

	t = l.Timeline(lab.T("With a version",
		"有版本"), lab.T("Ann's update finds Bob's version, and changes nothing. She starts "+
		"over from his number.", "Ann 的更新发现已是 Bob 的版本，什么也不改。她从他的数字重新开始。"))
	annRead, bobWrote = make(chan struct{}), make(chan struct{})
	before := number(ctx, l, dbs[0], stockVersion)
	tries := 0
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		stock, err := stockIn(dbs[0])
		if err != nil {
			return err
		}
		_, err = stock.Update(ctx, func(left int64) (int64, error) {
			me.Mark(lab.T("has read %d", "读到 %d"), left)
			if tries++; tries == 1 {
				close(annRead)
				<-bobWrote
			}
			me.Work(step)
			return left - 1, nil
		})
		me.Mark(lab.T("has written", "已写入"))
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
			me.Mark(lab.T("has read %d", "读到 %d"), left)
			me.Work(step)
			return left - 1, nil
		})
		me.Mark(lab.T("has written", "已写入"))
		me.Work(step)
		return err
	})
	t.Wait()
	l.Equal(left-2, number(ctx, l, dbs[0], stockLeft), lab.T("with a version no sale is lost",
		"有版本时不丢失销售"))
	l.Equal(before+2, number(ctx, l, dbs[0], stockVersion), lab.T("every change has its version",
		"每次改动都有自己的版本"))
	l.Equal(2, tries, lab.T("the second one computes again", "后来的一方重新计算"))
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
	t := l.Timeline(lab.T("The lock and the work are one transaction",
		"锁与工作在同一个事务里"), lab.T("Ann dies in the middle, by which her "+
		"connection ends. Bob gets the lock, and finds nothing of what she had done.",
		"Ann 中途死去，连接随之断开。Bob 得到锁，看不到她所做的任何改动。"))
	annIn, bobIn := make(chan struct{}), make(chan struct{})
	var after int64
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		ctx, die := context.WithCancelCause(ctx)
		defer die(nil)
		me.Set(lab.Waiting, lab.T("waits for lock", "等待锁"))
		err := sellLocked(ctx, locks[0], func(left int64) (int64, error) {
			me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
			me.Mark(lab.T("sells number %d", "卖出第 %d 号"), left)
			close(annIn)
			me.Work(step)
			select {
			case <-bobIn:
				l.Check(false, lab.T("Bob waits while Ann has the lock", "Ann 持有锁时，Bob 在等待"))
			default:
			}
			me.Work(step)
			me.Mark(lab.T("crashes", "崩溃"))
			me.Set(lab.Running, lab.T("is dead", "已死"))
			die(errCrash)
			return left - 1, nil
		})
		l.Is(errCrash, context.Cause(ctx), lab.T("Ann dies in the middle", "Ann 中途死去"))
		l.Check(errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone), lab.T("she never commits",
			"她没有提交"))
		return nil
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annIn
		me.Set(lab.Waiting, lab.T("waits for lock", "等待锁"))
		err := sellLocked(ctx, locks[1], func(now int64) (int64, error) {
			close(bobIn)
			me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
			me.Mark(lab.T("sells number %d", "卖出第 %d 号"), now)
			after = now
			me.Work(step)
			return now - 1, nil
		})
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(step)
		return err
	})
	t.Wait()
	l.Equal(left, after, lab.T("Bob finds the number as it was before Ann", "Bob 看到的数字与 Ann 之前一样"))
	l.Equal(left-1, number(ctx, l, dbs[2], stockLeft), lab.T("what was left in the middle is undone",
		"做到一半的改动被撤销"))
	rows := number(ctx, l, dbs[2], `SELECT count(*) FROM sold`)
	l.Equal(int64(1), rows, lab.T("so is what was done to another table", "对另一张表的改动也被撤销"))
	l.Observe("died", left)
	l.Observe("after", after)
	l.Observe("rows", rows)
}

// contend has all sell at once, in both ways.
func contend(ctx context.Context, l *lab.Lab, dbs []*sql.DB, rows []*sqllock.Row, left int64) {
	each := lab.Pick(l, 5, 25)
	changes := int64(each * len(dbs))
	table := lab.Table{Title: lab.T("All at once", "同时进行"), Head: []lab.Text{lab.T("by", "方式"), lab.T("changes",
		"改动次数"), lab.T("computations",
		"计算次数"), lab.T("in vain",
		"白费"), lab.T("took",
		"耗时")}}
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
	ways := map[string]lab.Text{"version": lab.T("version", "版本"), "lock": lab.T("lock", "锁")}
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
		l.Equal(left, number(ctx, l, dbs[0], stockLeft), lab.T("no change is lost when several sell at once",
			"多个进程同时销售，不丢失改动"))
		n := computed.Load()
		count := func(n int64) lab.Text { return lab.Same(strconv.FormatInt(n, 10)) }
		table.Rows = append(table.Rows, []lab.Text{ways[by], count(changes), count(n), count(n - changes),
			lab.Same(lab.Duration(took))})
		if by == "lock" {
			l.Equal(changes, n, lab.T("under the lock nothing is computed in vain", "用锁时没有白费的计算"))
			l.Observe("locked", n)
		} else {
			l.Check(n >= changes, lab.T("with a version every change is computed once at least",
				"用版本时，每次改动至少计算一次"))
			l.Observe("versioned", n)
		}
	}
	l.Observe("changes", changes)
	l.Observe("workers", len(dbs))
	l.Table(table)
}
