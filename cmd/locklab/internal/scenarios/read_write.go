package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/rwlock"
)

var _ = register(lab.Scenario{
	Lesson: 80,
	Name:   "read-write",
	Topic:  lab.T("Sharing", "共享"),
	Title:  lab.T("Readers together, writers alone", "读者共享，写者独占"),
	Question: lab.T(`Which holders may be inside together, and may a reader become a writer?`,
		"哪些持有者可以同时持有锁？读者能变成写者吗？"),
	Claim: lab.T(`A read-write lock has a shared side and an exclusive side: any number of readers, or one writer. Readers
must not starve a waiting writer, so a new reader queues behind it.

A writer may acquire the read lock and then release the write lock. This is a downgrade, with no writer
in between. A reader may not ask for the write lock: two such readers would each wait for the other.
Java lets such a reader hang; here it gets an error at once.`,
		`读写锁有共享和独占两种持有方式：可以有任意多个读者，或者一个写者。读者不能让等待的写者饥饿，所以
后到的读者要排在写者后面。

写者可以先获取读锁，再释放写锁，这称为锁降级，其间没有别的写者。读者不能申请写锁：两个这样的读者
会互相等待。在 Java 中，这样的读者会一直卡住；在这里，它立即得到一个错误。`),
	Look: lab.T(`In the first picture reader 3 comes while other readers are inside. It waits nevertheless, behind the
writer. In the second the writer downgrades without a gap, and a reader joins it. The next writer has to
wait for both. In the third the upgrade is refused while another reader is inside, and granted to the
only reader.`, `第一幅图中，读者 3 到来时已有读者在内，但它仍要排在写者后面等待。第二幅图中，写者降级，中间没有
空隙，一个读者加入进来；下一个写者要等两者都结束。第三幅图中，还有别的读者在内时，升级被拒绝；只
剩一个读者时，升级得到允许。`),
	Found: lab.T(`The order of admission was {{.order}}: the writer, which waited {{n .writerWaited}}, was not
overtaken by a later reader. After the downgrade {{.together}} readers were inside at once. The refused
upgrade returned after {{n .refused}}.`,
		`放行的顺序是：{{.order}}。写者等待了 {{n .writerWaited}}，没有被后来的读者超越。降级之后，同时在
内的读者有 {{.together}} 个。被拒绝的升级在 {{n .refused}} 后返回。`),
	Take: lab.T("A read-write lock pays off if reads are frequent and long. If sections take a few nanoseconds, "+
		"or writes are frequent, a plain mutex is often faster: see the scenario on write shares. If a "+
		"reader has to decide whether to write, release the read lock, acquire the write lock, and look "+
		"again. Or use `TryUpgrade`, which may fail.",
		"读操作频繁而且耗时长时，读写锁才划算。如果临界区只有几纳秒，或者写操作频繁，普通互斥锁往往更"+
			"快：见关于写比例的一章。如果读者要先看数据再决定是否写入，就先释放读锁，再获取写锁，然后重新"+
			"检查；或者用可能失败的 `TryUpgrade`。"),
	Java: lab.Same(`rw.writeLock().lock();
rw.readLock().lock();       // %s
rw.writeLock().unlock();
...
rw.writeLock().lock();      // %s`).With(lab.T("downgrade",
		"锁降级"), lab.T("while reading: hangs for ever", "正在读时：永远挂住")),
	Run: readWrite,
})

//lab:show

// downgrade writes, and then reads what it wrote. No writer comes in between. With a
// rwlock.RWMutex at hand it is one call, Downgrade.
func downgrade(ctx context.Context, rw locks.ReadWriteLocker, write, read func()) error {
	if err := rw.WriteLocker().LockContext(ctx); err != nil {
		return err
	}
	write()
	if err := rw.ReadLocker().LockContext(ctx); err != nil { // a writer may read as well
		return errors.Join(err, rw.WriteLocker().UnlockContext(ctx))
	}
	if err := rw.WriteLocker().UnlockContext(ctx); err != nil {
		return err
	}
	read()
	return rw.ReadLocker().UnlockContext(ctx)
}

// upgrade asks for the write lock while it reads. It is refused.
func upgrade(ctx context.Context, rw locks.ReadWriteLocker) error {
	return locks.Do(ctx, rw.ReadLocker(), func(ctx context.Context) error {
		return rw.WriteLocker().LockContext(ctx) // locks.ErrUpgrade
	})
}

//lab:end

func readWrite(_ context.Context, l *lab.Lab) error {
	notStarved(l)
	downgrades(l)
	upgrades(l)
	return nil
}

// use takes one side for some time.
func use(ctx context.Context, me *lab.Lane, side locks.Locker, d time.Duration, inside func()) error {
	return locks.Do(ctx, side, func(context.Context) error {
		inside()
		me.Work(d)
		return nil
	})
}

// The lanes of the pictures.
var reader, writer = lab.T("reader %d", "读者 %d"), lab.T("writer", "写者")

func notStarved(l *lab.Lab) {
	t := l.Timeline(lab.T("A writer is not starved",
		"写者不会饥饿"), lab.T("Two readers are inside. A writer comes, then a third "+
		"reader: it waits behind the writer.",
		"两个读者在内。写者到来，然后第三个读者到来，它排在写者后面等待。"))
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite(lab.T("data", "数据"), rw)
	var mu sync.Mutex
	var order []lab.Text
	enter := func(who lab.Text) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, who)
		}
	}
	for i := range 2 {
		name := reader.With(i + 1)
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * 500 * time.Microsecond)
			err := use(ctx, me, watched.ReadLocker(), time.Duration(6-i)*time.Millisecond, func() {
				enter(name)()
				// The first reader stays until both late readers queue, the second until one of
				// them does, so that the two are inside at once.
				l.Until(lab.T("the late ones queue", "后到者已排队"), func() bool { return rw.QueueLength() >= 2-i })
			})
			me.Work(time.Millisecond)
			return err
		})
	}
	var waited time.Duration
	t.Go(writer, func(ctx context.Context, me *lab.Lane) error {
		l.Until(lab.T("both read", "两者都在读"), func() bool { return rw.ReadLockCount() == 2 })
		me.Work(time.Millisecond)
		asked := time.Now()
		err := use(ctx, me, watched.WriteLocker(), 2*time.Millisecond, func() {
			waited = time.Since(asked)
			enter(writer)()
			l.Equal(0, rw.ReadLockCount(), lab.T("no goroutine reads while one writes",
				"有 goroutine 在写时，没有 goroutine 在读"))
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go(reader.With(3), func(ctx context.Context, me *lab.Lane) error {
		l.Until(lab.T("the writer queues", "写者已排队"), func() bool { return rw.QueueLength() == 1 })
		me.Work(time.Millisecond)
		err := use(ctx, me, watched.ReadLocker(), 2*time.Millisecond, enter(reader.With(3)))
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	slices.SortFunc(order[:2], func(a, b lab.Text) int { return strings.Compare(a.EN, b.EN) })
	l.Equal([]lab.Text{reader.With(1), reader.With(2), writer, reader.With(3)}, order,
		lab.T("a new reader does not overtake "+
			"a writer that waits", "新来的读者不会超越等待中的写者"))
	l.Observe("order", lab.Join(order, lab.T(", ", "、")))
	l.Observe("writerWaited", waited)
}

func downgrades(l *lab.Lab) {
	t := l.Timeline(lab.T("Downgrade",
		"锁降级"), lab.T("The first writer keeps reading when it stops writing. A reader joins it "+
		"at once; the second writer waits for both.",
		"第一个写者停止写入后继续读，一个读者立即加入；第二个写者要等两者都结束。"))
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite(lab.T("data", "数据"), rw)
	version, together := 0, 0 // version is guarded by the lock
	joined := make(chan struct{})
	t.Go(lab.T("writer 1", "写者 1"), func(ctx context.Context, me *lab.Lane) error {
		err := downgrade(ctx, watched, func() {
			version++
			l.Until(lab.T("both others queue", "另外两个都已排队"), func() bool { return rw.QueueLength() == 2 })
			me.Work(2 * time.Millisecond)
		}, func() {
			<-joined
			me.Work(3 * time.Millisecond)
			l.Equal(1, version, lab.T("no goroutine writes between a writer's write and its read after the downgrade",
				"从写者的写入到它降级后的读取，其间没有 goroutine 写入"))
		})
		me.Work(time.Millisecond)
		return err
	})
	l.Until(lab.T("it writes", "它在写"), func() bool { return rw.IsWriteLocked() })
	t.Go(lab.T("reader", "读者"), func(ctx context.Context, me *lab.Lane) error {
		me.Work(500 * time.Microsecond)
		err := use(ctx, me, watched.ReadLocker(), 4*time.Millisecond, func() {
			together = rw.ReadLockCount()
			close(joined)
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go(lab.T("writer 2", "写者 2"), func(ctx context.Context, me *lab.Lane) error {
		l.Until(lab.T("the reader queues", "读者已排队"), rw.HasQueued)
		me.Work(500 * time.Microsecond)
		err := use(ctx, me, watched.WriteLocker(), 2*time.Millisecond, func() { version++ })
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	l.Equal(2, together, lab.T("after a downgrade, readers join in", "降级之后，读者可以加入"))
	l.Observe("together", together)
}

func upgrades(l *lab.Lab) {
	t := l.Timeline(lab.T("Upgrade",
		"锁升级"), lab.T("A reader asks for the write lock while another one reads, and is refused "+
		"at once. As the sole reader it may try.",
		"另一个读者还在读时，一个读者申请写锁，立即被拒绝。成为唯一的读者之后，它可以尝试升级。"))
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite(lab.T("data", "数据"), rw)
	var refused time.Duration
	done := make(chan struct{})
	t.Go(lab.T("upgrader", "升级者"), func(ctx context.Context, me *lab.Lane) error {
		l.Until(lab.T("the other reads", "另一个在读"), rw.IsReadLocked)
		me.Work(time.Millisecond)
		asked := time.Now()
		l.Is(locks.ErrUpgrade, upgrade(ctx, watched), lab.T("a reader that asks for the write lock is refused, "+
			"and does not hang", "申请写锁的读者被拒绝，而不会挂住"))
		refused = time.Since(asked)
		err := use(ctx, me, watched.ReadLocker(), time.Millisecond, func() {
			me.Work(time.Millisecond)
			l.Check(!rw.TryUpgrade(), lab.T("one of several readers is not upgraded", "多个读者之一不能升级"))
			me.Mark(lab.T("TryUpgrade: no", "TryUpgrade：失败"))
			l.Check(rw.IsReadHeld(), lab.T("a refused upgrade leaves the read hold",
				"升级被拒绝后，读锁仍然持有"))
			close(done)
			l.Until(lab.T("no other goroutine reads",
				"没有其他 goroutine 在读"), func() bool { return rw.ReadLockCount() == 1 })
			me.Work(time.Millisecond)
			l.Check(rw.TryUpgrade(), lab.T("a sole reader can be upgraded", "唯一的读者可以升级"))
			me.Mark(lab.T("TryUpgrade: yes", "TryUpgrade：成功"))
			me.Is(lab.Exclusive, lab.T("has data", "持有数据"), func() { me.Work(2 * time.Millisecond) })
			rw.Downgrade()
			me.Mark(lab.T("Downgrade", "锁降级"))
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go(lab.T("reader", "读者"), func(ctx context.Context, me *lab.Lane) error {
		return use(ctx, me, watched.ReadLocker(), time.Millisecond, func() { <-done })
	})
	t.Wait()
	l.Observe("refused", refused)
}
