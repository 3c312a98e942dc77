package scenarios

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/synchronizer"
)

var _ = register(lab.Scenario{
	Lesson: 170,
	Name:   "ten-lines",
	Topic:  lab.T("Inside", "内部机制"),
	Title:  lab.T("A synchronizer made in ten lines", "十行代码写一个同步器"),
	Question: lab.T("What does a program write to get a lock that no library has?",
		"想要一种没有任何库提供的锁，程序要写些什么？"),
	Claim: lab.T("Every lock is a word, a rule that says when it can be acquired, and a queue of waiters. The "+
		"queue is the hard part: no wake-up may get lost, a wait may end by its context, and no "+
		"waiter may starve. Java has AbstractQueuedSynchronizer for that, and this module has "+
		"`synchronizer.Sync`.\n\n"+
		"The user writes two functions of a word: what it is after an acquisition, and whether that "+
		"is possible, and the same for a release. Everything else comes with the Sync. Exclusive and "+
		"shared need no distinction: the rules say which goroutine may follow which.",
		"每一种锁都由三部分组成：一个状态字，一条说明何时可以获取的规则，一个等待者队列。队列是最难的"+
			"部分：不能丢失任何唤醒，等待可以随 context 结束，等待者不能饥饿。Java 为此提供了 "+
			"AbstractQueuedSynchronizer，"+
			"本模块提供了 `synchronizer.Sync`。\n\n"+
			"使用者只写两个以状态字为参数的函数：获取之后状态字是什么、能否获取，释放亦然。其余的都由 Sync "+
			"提供。不必区分独占与共享：规则本身说明了哪个 goroutine 可以跟着进入。"),
	Look: lab.T("The lock of this chapter is a room. Goroutines of one group may be in it together, and two "+
		"groups may not. It is neither a mutex nor a read-write lock. Ann and Bob are red, Cid and "+
		"Dot are blue. Then comes Eve, who is red. She could follow Ann and Bob at once, but the blue "+
		"ones came before her. When the last red one leaves, both blue ones enter.",
		"本章的锁是一个房间。同一组的 goroutine 可以同时在内，不同的组不可以；它既不是互斥锁，也不是"+
			"读写锁。Ann 和 Bob 是红组，Cid 和 Dot 是蓝组。随后红组的 Eve 到来，她本可以立刻跟着 Ann 和 Bob "+
			"进去，但蓝组的人比她先到。最后一个红组成员离开时，两个蓝组成员一起进入。"),
	Found: lab.T(`The order of entry was {{.order}}. At most {{.together}} goroutines of one group were in the room at once, and
never two groups. In {{n .visits}} visits of {{.groups}} groups the groups did not mix either, and up to {{.most}}
goroutines were in the room. A release by a group that was not inside was refused.`,
		`进入的顺序是：{{.order}}。同一组最多有 {{.together}} 个 goroutine 同时在房间里，从未有两组同时在
内。{{.groups}} 个组共进入 {{n .visits}} 次，组与组也从未混在一起，房间里最多有 {{.most}} 个 goroutine。
不在房间里的组，其释放被拒绝。`),
	Take: lab.T("Take a lock of this module where one fits: it is faster, and it may know its owner. For a "+
		"latch, a gate, or a lock of your own, write the rules, and leave the queue to "+
		"`synchronizer.Sync`. The rules look at their arguments only. Try all schedules of a small "+
		"test with `explore.Run`.",
		"本模块有合适的锁时就用它：它更快，而且可能知道自己的所有者。要实现门闩、闸门或自己的锁时，只"+
			"写规则，把队列交给 `synchronizer.Sync`。规则只能查看自己的参数。请用 `explore.Run` 对一个小"+
			"测试遍历所有调度。"),
	Java: lab.Same(`class Room extends AbstractQueuedSynchronizer {
    protected int tryAcquireShared(int group) {
        for (;;) {
            if (hasQueuedPredecessors()) return -1;
            int w = getState();                       // group << 16 | count
            int from = w == 0 ? group << 16 : w;
            if (from >> 16 != group) return -1;
            if (compareAndSetState(w, from + 1)) return 1;
        }
    }
    protected boolean tryReleaseShared(int group) {
        for (;;) {
            int w = getState(), to = (w & 0xffff) == 1 ? 0 : w - 1;
            if (compareAndSetState(w, to)) return to == 0;
        }
    }
}`),
	Run: tenLines,
})

//lab:show

// roomRules: the word is the group that is in the room, and in the low half how many of it are.
type roomRules struct{}

func (roomRules) Acquire(w, group uint64) (uint64, bool) {
	if w == 0 { // the room is empty
		w = group << 32
	}
	return w + 1, w>>32 == group
}

func (roomRules) Release(w, group uint64) (uint64, bool) {
	if uint32(w) == 1 { // the last one leaves
		return 0, w>>32 == group
	}
	return w - 1, w != 0 && w>>32 == group
}

// room has a queue, contexts, time limits and inspection.
type room = synchronizer.Sync[roomRules]

// visit is in the room while f runs.
func visit(ctx context.Context, r *room, group uint64, f func()) error {
	if err := r.AcquireContext(ctx, group); err != nil {
		return err
	}
	defer r.Release(group)
	f()
	return nil
}

//lab:end

// The groups.
const (
	red  = 1
	blue = 2
)

func tenLines(ctx context.Context, l *lab.Lab) error {
	visitRoom(l)

	r := synchronizer.New(roomRules{}, 0, locks.NonFair)
	const groups, goroutines = 3, 4
	each := lab.Pick(l, 100, 2_000)
	var inside [groups + 1]atomic.Int32
	var mixed, most atomic.Int32
	var crowd sync.WaitGroup
	failed := make(chan error, groups*goroutines)
	for i := range groups * goroutines {
		group := uint64(1 + i%groups)
		crowd.Go(func() {
			for range each {
				err := visit(ctx, r, group, func() {
					n := inside[group].Add(1)
					for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
					}
					for other := range inside {
						if other != int(group) && inside[other].Load() > 0 {
							mixed.Add(1)
						}
					}
					runtime.Gosched() // others may enter meanwhile
					inside[group].Add(-1)
				})
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	crowd.Wait()
	close(failed)
	l.Must(<-failed)
	l.Equal(int32(0), mixed.Load(), lab.T("in a crowd two groups never mix",
		"许多 goroutine 时，两组也从不混在一起"))
	l.Equal(uint64(0), r.Word(), lab.T("in the end the room is empty", "最后房间是空的"))
	l.Observe("visits", groups*goroutines*each)
	l.Observe("groups", groups)
	l.Observe("most", most.Load())

	l.Must(r.AcquireContext(ctx, red))
	l.Check(!r.Release(blue), lab.T("a release by a group that is not inside is refused",
		"不在房间里的组，其释放被拒绝"))
	l.Check(!r.TryAcquire(blue) && r.TryAcquire(red), lab.T("the group that is inside may enter, and no other one",
		"在房间里的组可以再进人，别的组不可以"))
	l.Check(!r.Release(blue), lab.T("a release by a group that is not inside is refused",
		"不在房间里的组，其释放被拒绝"))
	limited, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	l.Is(context.DeadlineExceeded, r.AcquireContext(limited, blue), lab.T("a wait with a limit ends by it",
		"有时限的等待到时就结束"))
	first, last := r.Release(red), r.Release(red)
	l.Check(first && last && r.TryAcquire(blue), lab.T("when the last one has left, another group may enter",
		"最后一个离开之后，另一组可以进入"))
	return nil
}

// visitRoom draws two groups at one room.
func visitRoom(l *lab.Lab) {
	t := l.Timeline(lab.T("Red and blue",
		"红组与蓝组"), lab.T("The groups take turns. Several goroutines of one group are inside together.",
		"两组轮流进入，同一组的多个 goroutine 同时在内。"))
	var r room
	var mu sync.Mutex
	var order []string
	inside, together, mixed := map[uint64]int{}, 0, false
	enter := func(name string, group uint64) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, name)
		inside[group]++
		together = max(together, inside[group])
		mixed = mixed || inside[red] > 0 && inside[blue] > 0
	}
	leave := func(group uint64) {
		mu.Lock()
		defer mu.Unlock()
		inside[group]--
	}
	entered := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(order)
	}
	color := map[uint64]lab.Text{red: lab.T("red", "红组"), blue: lab.T("blue", "蓝组")}
	for i, v := range []struct {
		name  string
		group uint64
	}{{"Ann", red}, {"Bob", red}, {"Cid", blue}, {"Dot", blue}, {"Eve", red}} {
		t.Go(lab.Same(v.name), func(ctx context.Context, me *lab.Lane) error {
			l.Until(lab.T("the goroutine before has come",
				"前一个 goroutine 已到"), func() bool { return entered()+r.QueueLength() >= i })
			before := me.Spans[len(me.Spans)-1]
			me.Set(lab.Waiting, lab.T("waits, is %s", "等待，属于 %s").With(color[v.group]))
			err := visit(ctx, &r, v.group, func() {
				me.Set(lab.Shared, lab.T("is in the room, %s", "在房间里，属于 %s").With(color[v.group]))
				enter(v.name, v.group)
				defer leave(v.group)
				if i < 2 { // until the others wait
					l.Until(lab.T("three wait", "有三个在等待"), func() bool { return r.QueueLength() == 3 })
				} else if v.group == blue {
					l.Until(lab.T("both blue ones are in the room",
						"两个蓝组成员都在房间里"), func() bool { return entered() >= 4 })
				}
				me.Work(time.Duration(2+i) * time.Millisecond)
			})
			me.Set(before.State, before.Label)
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	l.Check(!mixed, lab.T("two groups are never in the room together", "两组从不同时在房间里"))
	l.Equal(2, together, lab.T("goroutines of one group are in the room together",
		"同一组的 goroutine 同时在房间里"))
	l.Equal("Eve", order[len(order)-1],
		lab.T("the one that came last does not overtake, although its group is inside",
			"最后到的虽与在内者同组，也不会超越别人"))
	var names []lab.Text
	for _, name := range order {
		names = append(names, lab.Same(name))
	}
	l.Observe("order", lab.Join(names, lab.T(", ", "、")))
	l.Observe("together", together)
}
