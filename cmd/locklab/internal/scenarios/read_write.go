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
	Lesson:   80,
	Name:     "read-write",
	Topic:    "Sharing",
	Title:    "Readers together, writers alone",
	Question: `Which holders may be inside together, and may a reader become a writer?`,
	Claim: `A read-write lock has a shared side and an exclusive side: any number of readers, or one writer. Readers
must not starve a waiting writer, so a new reader queues behind it.

A writer may acquire the read lock and then release the write lock. This is a downgrade, with no writer
in between. A reader may not ask for the write lock: two such readers would each wait for the other.
Java lets such a reader hang; here it gets an error at once.`,
	Look: `In the first picture reader 3 comes while other readers are inside. It waits nevertheless, behind the
writer. In the second the writer downgrades without a gap, and a reader joins it. The next writer has to
wait for both. In the third the upgrade is refused while another reader is inside, and granted to the
only reader.`,
	Found: `The order of admission was {{.order}}: the writer, which waited {{n .writerWaited}}, was not
overtaken by a later reader. After the downgrade {{.together}} readers were inside at once. The refused
upgrade returned after {{n .refused}}.`,
	Take: "A read-write lock pays off if reads are frequent and long. If sections take a few nanoseconds, " +
		"or writes are frequent, a plain mutex is often faster: see the scenario on write shares. If a " +
		"reader has to decide whether to write, release the read lock, acquire the write lock, and look " +
		"again. Or use `TryUpgrade`, which may fail.",
	Java: `rw.writeLock().lock();
rw.readLock().lock();       // downgrade
rw.writeLock().unlock();
...
rw.writeLock().lock();      // while reading: hangs for ever`,
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

func notStarved(l *lab.Lab) {
	t := l.Timeline("A writer is not starved", "Two readers are inside. A writer comes, then a third "+
		"reader: it waits behind the writer.")
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite("data", rw)
	var mu sync.Mutex
	var order []string
	enter := func(who string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, who)
		}
	}
	for i, name := range []string{"reader 1", "reader 2"} {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * 500 * time.Microsecond)
			err := use(ctx, me, watched.ReadLocker(), time.Duration(6-i)*time.Millisecond, func() {
				enter(name)()
				// The first stays until both late ones queue, the second until one does, so
				// that the two are inside at once.
				l.Until("the late ones queue", func() bool { return rw.QueueLength() >= 2-i })
			})
			me.Work(time.Millisecond)
			return err
		})
	}
	var waited time.Duration
	t.Go("writer", func(ctx context.Context, me *lab.Lane) error {
		l.Until("both read", func() bool { return rw.ReadLockCount() == 2 })
		me.Work(time.Millisecond)
		asked := time.Now()
		err := use(ctx, me, watched.WriteLocker(), 2*time.Millisecond, func() {
			waited = time.Since(asked)
			enter("writer")()
			l.Equal(0, rw.ReadLockCount(), "no goroutine reads while one writes")
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go("reader 3", func(ctx context.Context, me *lab.Lane) error {
		l.Until("the writer queues", func() bool { return rw.QueueLength() == 1 })
		me.Work(time.Millisecond)
		err := use(ctx, me, watched.ReadLocker(), 2*time.Millisecond, enter("reader 3"))
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	slices.Sort(order[:2])
	l.Equal([]string{"reader 1", "reader 2", "writer", "reader 3"}, order, "a new reader does not overtake "+
		"a writer that waits")
	l.Observe("order", strings.Join(order, ", "))
	l.Observe("writerWaited", waited)
}

func downgrades(l *lab.Lab) {
	t := l.Timeline("Downgrade", "The first writer keeps reading when it stops writing. A reader joins it "+
		"at once; the second writer waits for both.")
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite("data", rw)
	version, together := 0, 0 // version is guarded by the lock
	joined := make(chan struct{})
	t.Go("writer 1", func(ctx context.Context, me *lab.Lane) error {
		err := downgrade(ctx, watched, func() {
			version++
			l.Until("both others queue", func() bool { return rw.QueueLength() == 2 })
			me.Work(2 * time.Millisecond)
		}, func() {
			<-joined
			me.Work(3 * time.Millisecond)
			l.Equal(1, version, "no goroutine writes between a writer's write and its read after the downgrade")
		})
		me.Work(time.Millisecond)
		return err
	})
	l.Until("it writes", func() bool { return rw.IsWriteLocked() })
	t.Go("reader", func(ctx context.Context, me *lab.Lane) error {
		me.Work(500 * time.Microsecond)
		err := use(ctx, me, watched.ReadLocker(), 4*time.Millisecond, func() {
			together = rw.ReadLockCount()
			close(joined)
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go("writer 2", func(ctx context.Context, me *lab.Lane) error {
		l.Until("the reader queues", rw.HasQueued)
		me.Work(500 * time.Microsecond)
		err := use(ctx, me, watched.WriteLocker(), 2*time.Millisecond, func() { version++ })
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	l.Equal(2, together, "after a downgrade, readers join in")
	l.Observe("together", together)
}

func upgrades(l *lab.Lab) {
	t := l.Timeline("Upgrade", "A reader asks for the write lock while another one reads, and is refused "+
		"at once. As the sole reader it may try.")
	rw := new(rwlock.RWMutex)
	watched := t.WrapReadWrite("data", rw)
	var refused time.Duration
	done := make(chan struct{})
	t.Go("upgrader", func(ctx context.Context, me *lab.Lane) error {
		l.Until("the other reads", rw.IsReadLocked)
		me.Work(time.Millisecond)
		asked := time.Now()
		l.Is(locks.ErrUpgrade, upgrade(ctx, watched), "a reader that asks for the write lock is refused, "+
			"and does not hang")
		refused = time.Since(asked)
		err := use(ctx, me, watched.ReadLocker(), time.Millisecond, func() {
			me.Work(time.Millisecond)
			l.Check(!rw.TryUpgrade(), "one of several readers is not upgraded")
			me.Mark("TryUpgrade: no")
			l.Check(rw.IsReadHeld(), "a refused upgrade leaves the read hold")
			close(done)
			l.Until("no other goroutine reads", func() bool { return rw.ReadLockCount() == 1 })
			me.Work(time.Millisecond)
			l.Check(rw.TryUpgrade(), "a sole reader can be upgraded")
			me.Mark("TryUpgrade: yes")
			me.Is(lab.Exclusive, "has data", func() { me.Work(2 * time.Millisecond) })
			rw.Downgrade()
			me.Mark("Downgrade")
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Go("reader", func(ctx context.Context, me *lab.Lane) error {
		return use(ctx, me, watched.ReadLocker(), time.Millisecond, func() { <-done })
	})
	t.Wait()
	l.Observe("refused", refused)
}
