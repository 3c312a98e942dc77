package scenarios

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/sqllock"
)

var _ = register(lab.Scenario{
	Lesson: 90,
	Name:   "sql-row",
	Topic:  lab.T("Databases", "数据库"),
	Title: lab.T(`A row as a lock: without lease and owner, and with both`,
		"用一行作锁：从没有租约和所有者，到两者都有"),
	Question: lab.T(`Is a unique row in a table a sufficient lock?`, "表中唯一的一行，足以作锁吗？"),
	Claim: lab.T(`A database that exists anyway can keep the locks. The usual recipe is a table with a unique name:
inserting the row acquires the lock, deleting it releases the lock, and of two inserts one fails.

The row has no owner and no lease. If its holder dies, no process deletes it. If another process deletes
it by mistake, the holder loses the lock without notice. And the insert does not wait: a process that
does not get the lock has to ask again. Three columns are missing. Every release compares the owner.
Every acquisition compares the end of the lease with the database's clock. A token that grows from
holder to holder is for fencing.`,
		`已有的数据库可以顺便用来存放锁。通常的做法是一张名字列唯一的表：插入一行就是获取锁，删除它就是释放
锁，两个插入中必有一个失败。

这一行没有所有者，也没有租约。持有者死去之后，没有进程会删除它。别的进程误删了它，持有者会毫不知情地
失去锁。而且插入不会等待：没得到锁的进程只能再次申请。缺少的是三列：所有者，每次释放都要比较；租约的
结束时间，每次获取都用数据库的时钟比较；令牌，随持有者递增，用于隔离。`),
	Look: lab.T(`In the first picture the holder crashes, and the next process asks in vain until it stops asking. In the
second Bob does not get the lock, but cleans up nevertheless: Cid gets the lock while Ann has it. In the
third, on a table with all columns, the holder crashes, another process's release does nothing, and the
next process has the lock when the lease has expired. The table has the contents of the row.`,
		`第一幅图中，持有者崩溃，下一个进程一直申请不到，最后放弃。第二幅图中，Bob 没有得到锁，却照样清理：
Ann 持有锁时，Cid 也得到了锁。第三幅图使用包含所有列的表：持有者崩溃，别的进程的释放不起作用，租约
到期时下一个进程得到锁。表格是这一行的内容。`),
	Found: lab.T(`With the bare row the next process asked {{times .asked}} in vain, for {{n .inVain}}, and would
ask for ever. After a delete by another process there were {{.most}} holders at a time. With owner,
lease and token the answer to the stranger was "{{.answer}}"; the holder crashed, and the next process had
the lock {{n .waited}} after the holder had taken it, with the token {{.next}} after {{.first}}.`,
		`只有一行时，下一个进程白白申请了 {{times .asked}}，历时 {{n .inVain}}，而且会永远申请下去。别的
进程删除之后，同时有 {{.most}} 个持有者。有了所有者、租约和令牌，陌生者得到的答复是「{{.answer}}」；
持有者崩溃，从它获取锁算起 {{n .waited}} 之后，下一个进程得到锁，令牌从 {{.first}} 变为 {{.next}}。`),
	Take: lab.T("Use `sqllock.Table` if the locks belong into a database that you have: it needs no connection "+
		"while a lock is held. A row for each name stays, because it keeps the token. A database is not "+
		"the best store for many short locks under load.",
		"如果锁应放在已有的数据库里，用 `sqllock.Table`：持有锁期间不占用连接。每个名字的行会保留下来，"+
			"因为其中有令牌。对于高负载下大量短时的锁，数据库不是最好的存储。"),
	Java: lab.Same(`INSERT INTO locks (name) VALUES (?);            -- %s
DELETE FROM locks WHERE name = ?;

// %s
Lock lock = registry.obtain("order");`).With(lab.T("wrong: no owner, no end",
		"错误：没有所有者，也没有结束时间"),
		lab.T("ShedLock, Spring Integration's JdbcLockRegistry: owner and end in the row",
			"ShedLock、Spring Integration 的 JdbcLockRegistry：行中有所有者和结束时间")),
	Run: sqlRow,
})

//lab:show

// lockByInsert acquires the lock by inserting the row of its name, which is unique. It is wrong:
// the row lacks an owner and a lease.
func lockByInsert(ctx context.Context, db *sql.DB, name string) (bool, error) {
	r, err := db.ExecContext(ctx, `INSERT INTO bare_locks (name) VALUES (?) ON CONFLICT DO NOTHING`, name)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// unlockByDelete frees the lock of any holder. It is wrong.
func unlockByDelete(ctx context.Context, db *sql.DB, name string) error {
	_, err := db.ExecContext(ctx, `DELETE FROM bare_locks WHERE name = ?`, name)
	return err
}

// byTable returns locks in rows that have an owner, an end and a token.
func byTable(ctx context.Context, db *sql.DB, opts ...lease.Option) (*sqllock.Table, error) {
	t, err := sqllock.NewTable(db, sqllock.WithLeaseOptions(opts...))
	if err != nil {
		return nil, err
	}
	return t, t.CreateSchema(ctx)
}

//lab:end

func sqlRow(ctx context.Context, l *lab.Lab) error {
	d := newDatabase(ctx, l, `CREATE TABLE bare_locks (name TEXT PRIMARY KEY)`)
	step := lab.Pick(l, 300*time.Millisecond, 400*time.Millisecond)
	term := lab.Pick(l, 5*time.Second, 2*time.Second) // a slow test has to renew in time
	holder, next, stranger := d.process(l), d.process(l), d.process(l)
	var closers []interface{ Close(context.Context) error }
	defer func() { d.end(closers...) }()
	bareCrash(l, holder, next, step)
	bareDelete(l, [3]*sql.DB{holder, next, stranger})

	var tables [3]*sqllock.Table
	for i, db := range []*sql.DB{holder, next, stranger} {
		var err error
		// The margin is larger than by default, as the scenario must hold on a busy machine too.
		tables[i], err = byTable(ctx, db, lease.WithTTL(term), lease.WithMargin(term/4))
		l.Must(err)
		closers = append(closers, tables[i])
	}
	tableCrash(l, holder, next, tables, term)
	return nil
}

// bareCrash has the holder of a bare row die.
func bareCrash(l *lab.Lab, holder, next *sql.DB, term time.Duration) {
	const name = "order"
	crashed := make(chan struct{})
	t := l.Timeline(lab.T("A bare row, and a crash",
		"只有一行，然后崩溃"), lab.T("The holder dies before it deletes the row. The next "+
		"process asks again and again, until it stops.",
		"持有者在删除这一行之前死去。下一个进程反复申请，最后放弃。"))
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		ok, err := lockByInsert(ctx, holder, name)
		l.Check(ok && err == nil, lab.T("a free lock is taken by an insert", "一次插入就获取空闲的锁"))
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		me.Work(term / 10)
		me.Mark(lab.T("crashes", "崩溃"))
		return err
	})
	t.Go(lab.T("next", "下一个"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		began, asked := time.Now(), 0
		me.Set(lab.Waiting, lab.T("asks for lock in vain", "白白申请锁"))
		for time.Since(began) < 3*term {
			ok, err := lockByInsert(ctx, next, name)
			if err != nil {
				return err
			}
			l.Check(!ok, lab.T("a row without an end stays locked, however long its holder has been dead",
				"没有结束时间的行一直锁着，无论持有者死了多久"))
			asked++
			me.Work(term / 10)
		}
		l.Observe("asked", asked)
		l.Observe("inVain", time.Since(began))
		me.Mark(lab.T("stops asking", "不再申请"))
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(term / 4)
		return nil
	})
	t.Wait()
}

// bareDelete has a process delete the row that does not have the lock.
func bareDelete(l *lab.Lab, all [3]*sql.DB) {
	const name, step = "account", 10 * time.Millisecond
	var in inside
	annHas, deleted, cidIn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	t := l.Timeline(lab.T("A bare row, deleted by another",
		"只有一行，被他人删除"), lab.T("Bob does not get the lock, and deletes the row all "+
		"the same. Cid gets in while Ann is inside.",
		"Bob 没有得到锁，却照样删除了这一行。Ann 还在内时，Cid 进入。"))
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		ok, err := lockByInsert(ctx, all[0], name)
		l.Check(ok && err == nil, lab.T("Ann gets the free lock", "Ann 得到空闲的锁"))
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		in.enter()
		me.Work(step)
		close(annHas)
		<-cidIn
		me.Work(step)
		in.leave()
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(step)
		return err
	})
	t.Go(lab.Same("Bob"), func(ctx context.Context, me *lab.Lane) error {
		<-annHas
		defer close(deleted)
		ok, err := lockByInsert(ctx, all[1], name)
		l.Check(!ok && err == nil, lab.T("Bob does not get the lock while Ann has it",
			"Ann 持有锁时，Bob 得不到锁"))
		me.Work(step)
		me.Mark(lab.T("deletes the row", "删除这一行"))
		return unlockByDelete(ctx, all[1], name)
	})
	t.Go(lab.Same("Cid"), func(ctx context.Context, me *lab.Lane) error {
		<-deleted
		defer close(cidIn)
		ok, err := lockByInsert(ctx, all[2], name)
		l.Check(ok && err == nil, lab.T("after any process's delete the lock is free",
			"任何进程删除之后，锁都会空闲"))
		me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
		in.enter()
		me.Work(step)
		in.leave()
		me.Set(lab.Running, lab.T("works", "运行"))
		me.Work(step)
		return err
	})
	t.Wait()
	l.Equal(int64(2), in.most.Load(), lab.T("then two are inside", "于是有两个同时在内"))
	l.Observe("most", in.most.Load())
}

// tableCrash has a holder of a row with an owner and an end die, after a stranger has tried to
// release its lock.
func tableCrash(l *lab.Lab, holder, next *sql.DB, all [3]*sqllock.Table, term time.Duration) {
	const name = "order"
	table := lab.Table{Title: lab.T("What is in the row",
		"行的内容"), Head: []lab.Text{lab.T("while", "时刻"), lab.T("name",
		"名字"), lab.T("owner",
		"所有者"), lab.T("token",
		"令牌")}}
	row := func(ctx context.Context, while lab.Text) {
		var owner string
		var token int64
		l.Must(next.QueryRowContext(ctx, `SELECT owner, token FROM sql_locks WHERE name = ?`,
			name).Scan(&owner, &token))
		table.Rows = append(table.Rows, []lab.Text{while, lab.Same(name),
			lab.Same(owner[:min(len(owner), 8)] + "..."), lab.Same(fmt.Sprint(token))})
	}
	has, tried, crashed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var at time.Time
	var token uint64
	t := l.Timeline(lab.T("A row with an owner and an end",
		"有所有者和结束时间的行"), lab.T("A stranger cannot release the lock. The holder "+
		"dies, and the next process has the lock when the lease is over.",
		"陌生者不能释放锁。持有者死去，租约到期时下一个进程得到锁。"))
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		at = time.Now()
		lock := all[0].Mutex(name)
		if err := t.Wrap(lab.T("lock", "锁"), lock).LockContext(ctx); err != nil {
			return err
		}
		hold, err := lock.Hold(ctx)
		if err != nil {
			return err
		}
		token = hold.Token()
		row(ctx, lab.T("the first has it", "第一个持有时"))
		close(has)
		<-tried
		l.Check(hold.Err() == nil, lab.T("the holder still has it after a stranger's release",
			"陌生者释放之后，持有者仍然持有"))
		me.Work(term / 10)
		me.Mark(lab.T("crashes", "崩溃"))
		return holder.Close() // No renewal gets through any more.
	})
	t.Go(lab.T("stranger", "陌生者"), func(ctx context.Context, me *lab.Lane) error {
		<-has
		defer close(tried)
		lock := all[2].Mutex(name)
		err := lock.UnlockContext(ctx)
		l.Is(locks.ErrNotHeld, err, lab.T("a stranger cannot release the lock", "陌生者不能释放锁"))
		l.Observe("answer", locks.ErrNotHeld.Error())
		ok, err := lock.TryLockContext(ctx)
		l.Check(!ok && err == nil, lab.T("nor take it, while its lease is not over",
			"租约未到期时，也不能获取它"))
		me.Mark(lab.T("is refused", "被拒绝"))
		me.Work(term / 10)
		return nil
	})
	t.Go(lab.T("next", "下一个"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		lock := all[1].Mutex(name)
		return locks.Do(ctx, t.Wrap(lab.T("lock", "锁"), lock), func(ctx context.Context) error {
			waited := time.Since(at)
			hold, err := lock.Hold(ctx)
			if err != nil {
				return err
			}
			row(ctx, lab.T("the next one has it", "下一个持有时"))
			const coarse = 10 * time.Millisecond // clocks differ by that much
			l.Check(waited > term-coarse, lab.T("the next one has it after the lease, and not before",
				"下一个在租约到期之后才得到锁，不会提前"))
			l.Check(hold.Token() > token, lab.T("the token of the next holder is greater",
				"下一个持有者的令牌更大"))
			l.Observe("waited", waited)
			l.Observe("first", token)
			l.Observe("next", hold.Token())
			me.Work(term / 10)
			return nil
		})
	})
	t.Wait()
	l.Table(table)
}
