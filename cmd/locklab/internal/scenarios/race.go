package scenarios

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
)

var _ = register(lab.Scenario{
	Lesson: 10,
	Name:   "race",
	Topic:  lab.T("Why lock at all", "为什么要加锁"),
	Title:  lab.T("A race, and the updates it loses", "竞态，以及它丢失的更新"),
	Question: lab.T("What goes wrong when two goroutines add to one counter?",
		"两个 goroutine 给同一个计数器加一，会出什么错？"),
	Claim: lab.T(`Two goroutines update shared data, and the result depends on their order: a race. An addition has three
steps: read, add and write. If another goroutine writes between the read and the write, its value is
overwritten, and its update is lost.

Atomic steps do not help. The reads and the writes here are atomic, so Go's race detector is silent: in
the terms of the memory model there is no data race. There is a race nevertheless.`,
		`两个 goroutine 更新共享数据，结果取决于先后顺序，这就是竞态。一次加法有三步：读、加、写。如果读
和写之间有别的 goroutine 写入，那个值就会被覆盖，那次更新也就丢失了。

每一步都是原子操作也没有用。这里的读和写都是原子的，所以 Go 的竞态检测器不会报告：按内存模型的说
法，这里没有数据竞争。但竞态依然存在。`),
	Look: lab.T(`In the first picture both goroutines read before either writes. In the second the lock admits one
goroutine at a time between its read and its write. The other one waits, and then reads what the first
one wrote.`, `第一幅图中，两个 goroutine 都先读，然后才有人写。第二幅图中，锁在读和写之间只放行一个 goroutine，
另一个等待，之后读到的就是前者写入的值。`),
	Found: lab.T(`In the scripted meeting two additions left the counter at {{.meeting}}. In the crowd,
{{n .goroutines}} goroutines made {{n .wanted}} additions. Without a lock {{n .lost}} of them were lost
({{percent .lostShare}}); with the lock, none.`,
		`按安排好的先后执行时，两次加法之后计数器是 {{.meeting}}。在多个 goroutine 的竞争中，{{n .goroutines}}
个 goroutine 共做了 {{n .wanted}} 次加法：不加锁时丢失 {{n .lost}} 次（{{percent .lostShare}}）；
加锁时一次也没有丢失。`),
	Take: lab.T("Guard the whole of a read-modify-write, not its steps. For a single number use "+
		"`atomic.Int64.Add`. If two variables belong together, use a lock, or make them one value and "+
		"swap it as a whole (see the scenario on optimistic locking).",
		"要保护的是整个「读、改、写」过程，而不是其中的每一步。单个数字请用 `atomic.Int64.Add`。如果"+
			"两个变量必须保持一致，就用锁，或者把它们合成一个值整体替换（见乐观锁一章）。"),
	Java: lab.Same(`synchronized (this) { n = n + 1; }    // %s
lock.lock();
try { n = n + 1; } finally { lock.unlock(); }`).With(lab.T("or", "或者")),
	Run: race,
})

//lab:show

// add reads, and then writes. Each step is atomic; the whole is not.
func add(n *atomic.Int64) {
	seen := n.Load()
	runtime.Gosched() // what other goroutines write now ...
	n.Store(seen + 1) // ... is overwritten here
}

func addLocked(ctx context.Context, l locks.Locker, n *atomic.Int64) error {
	return locks.Do(ctx, l, func(context.Context) error {
		add(n)
		return nil
	})
}

//lab:end

func race(ctx context.Context, l *lab.Lab) error {
	meeting := raceMeeting(l, false)
	l.Equal(int64(1), meeting, lab.T("two additions that both read before either writes count as one",
		"两次加法若都在写入之前读，就只算一次"))
	l.Equal(int64(2), raceMeeting(l, true), lab.T("with the lock both additions count",
		"加锁后，两次加法都算数"))
	l.Observe("meeting", meeting)

	const goroutines = 8
	each := lab.Pick(l, 500, 5_000)
	crowd := func(add func(*atomic.Int64) error) int {
		var n atomic.Int64
		var wg, all sync.WaitGroup
		all.Add(goroutines)
		for range goroutines {
			wg.Go(func() {
				all.Done()
				all.Wait() // none is through before the last has begun
				for range each {
					if add(&n) != nil {
						return
					}
				}
			})
		}
		wg.Wait()
		return int(n.Load())
	}
	wanted := goroutines * each
	without := wanted
	// Where there are more Ps than processors, the system may let one goroutine after the other
	// come to its end. A race that did not take place is run again.
	for range 20 {
		if without = crowd(func(n *atomic.Int64) error { add(n); return nil }); without < wanted {
			break
		}
	}
	var mu fair.BargingMutex
	with := crowd(func(n *atomic.Int64) error { return addLocked(ctx, &mu, n) })
	l.Check(without < wanted, lab.T("the crowd without a lock loses updates",
		"多个 goroutine 不加锁会丢失更新"))
	l.Equal(wanted, with, lab.T("the crowd with a lock loses none", "多个 goroutine 加锁后不丢失更新"))
	l.Observe("goroutines", goroutines)
	l.Observe("wanted", wanted)
	l.Observe("lost", wanted-without)
	l.Observe("lostShare", float64(wanted-without)/float64(wanted))
	l.Chart(lab.Chart{
		Title: lab.T("What the counter says in the end", "计数器最后的值"),
		Desc: lab.T("The count that the crowd left, without a lock and with one, and the number of additions made.",
			"多个 goroutine 结束后计数器的值（不加锁和加锁），以及实际做的加法次数。"),
		Bars: true,
		X: lab.Axis{Ticks: []lab.Text{lab.T("additions made", "实际的加法次数"), lab.T("without a lock", "不加锁"),
			lab.T("with a lock", "加锁")}},
		Y: lab.Axis{Label: lab.T("count", "计数")},
		Series: []lab.Series{{Name: lab.T("count", "计数"), Points: []lab.Point{
			{X: 0, Y: float64(wanted)}, {X: 1, Y: float64(without)}, {X: 2, Y: float64(with)},
		}}},
	})
	return nil
}

// raceMeeting has two goroutines meet in the worst place, and returns the count.
func raceMeeting(l *lab.Lab, locked bool) int64 {
	title := lab.T("Without a lock", "不加锁")
	desc := lab.T("Both goroutines read the counter, and then both write it.",
		"两个 goroutine 都读了计数器，然后都写入。")
	if locked {
		title = lab.T("With a lock", "加锁")
		desc = lab.T("The second goroutine waits for the lock until the first has written.",
			"第二个 goroutine 等待锁，直到第一个写完。")
	}
	t := l.Timeline(title, desc)
	lock := new(fair.Mutex)
	mu := t.Wrap(lab.T("lock", "锁"), lock)
	var n atomic.Int64
	var bothRead sync.WaitGroup
	bothRead.Add(2)
	update := func(me *lab.Lane) {
		seen := n.Load()
		me.Mark(lab.T("reads %d", "读到 %d"), seen)
		me.Work(3 * time.Millisecond)
		switch {
		case !locked:
			bothRead.Done()
			bothRead.Wait()
		case seen == 0:
			l.Until(lab.T("the second goroutine waits", "第二个 goroutine 在等待"), lock.HasQueued)
		}
		n.Store(seen + 1)
		me.Mark(lab.T("writes %d", "写入 %d"), seen+1)
	}
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(lab.Same(name), func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			if !locked {
				update(me)
				me.Work(time.Millisecond)
				return nil
			}
			err := locks.Do(ctx, mu, func(context.Context) error { update(me); return nil })
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	return n.Load()
}
