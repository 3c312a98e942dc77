package scenarios

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 70,
	Name:   "herd",
	Topic:  lab.T("Conditions", "条件"),
	Title:  lab.T("A herd, or a transfer to the queue", "惊群，还是转入锁的队列"),
	Question: lab.T("How many goroutines does a broadcast wake, when only one can have the lock?",
		"只有一个能得到锁时，一次广播会唤醒多少个 goroutine？"),
	Claim: lab.T(`A broadcast to many waiters can wake them all at once: a herd. One of them gets the lock, and the others
go back to sleep. A condition that knows its lock moves its waiters from its own queue to the lock's
queue instead. Each waiter wakes when the lock is its own.

The program itself makes the other kind of herd: a broadcast where only one waiter can continue. All
waiters wake, one after the other, and all but one find nothing.`,
		`向许多等待者广播，可能把它们同时唤醒，这就是惊群：一个得到锁，其余的又去睡眠。知道自己属于哪把锁
的条件变量，则把等待者从自己的队列移到锁的队列中，轮到谁得到锁，才唤醒谁。

另一种惊群是程序自己造成的：只有一个等待者能继续，却用了广播。等待者逐个醒来，除了一个，其余都一
无所获。`),
	Look: lab.T(`The bars count the waiters that woke and asked for the lock while the broadcasting goroutine still held
it. The lines count all wake-ups while as many items as waiters are handed out, one at a time.`,
		`条形图统计广播者仍持有锁时就醒来申请锁的等待者。折线显示：逐个放入与等待者一样多的元素时，
总共唤醒多少次。`),
	Found: lab.T(`Of {{n .waiters}} waiters, {{n .herdSync}} of sync.Cond woke up to find the lock taken,
{{n .herdOther}} of a condition over a foreign lock, and {{n .herdOwn}} of a condition of the lock itself. To
hand out {{n .waiters}} items one at a time took {{n .wakesBroadcast}} wake-ups with Broadcast and
{{n .wakesSignal}} with Signal.`,
		`{{n .waiters}} 个等待者中，醒来时发现锁被占用的：sync.Cond 有 {{n .herdSync}} 个，使用别的锁的条
件变量有 {{n .herdOther}} 个，锁自带的条件变量有 {{n .herdOwn}} 个。逐个发放 {{n .waiters}} 个元
素，用 Broadcast 需要 {{n .wakesBroadcast}} 次唤醒，用 Signal 需要 {{n .wakesSignal}} 次。`),
	Take: lab.T("Use `Signal` if one waiter can continue and any of them will do. Use `Broadcast` if the change "+
		"concerns all waiters. With a condition of the lock's own, a broadcast makes no herd.",
		"如果只有一个等待者能继续，而且任何一个都可以，用 `Signal`。如果变化与所有等待者有关，用 `Broadcast`。"+
			"对锁自带的条件变量来说，广播不会造成惊群。"),
	Java: lab.Same(`condition.signal();      // %s
condition.signalAll();   // %s`).With(lab.T("one",
		"一个"), lab.T("all are moved to the lock's queue", "全部移到锁的队列")),
	Run: herd,
})

// counting is a lock that counts the calls of Lock while it is held.
type counting struct {
	sync.Mutex
	inVain atomic.Int64
}

func (c *counting) Lock() {
	if !c.TryLock() {
		c.inVain.Add(1)
		c.Mutex.Lock()
	}
}

//lab:show

// handOut hands out one item at a time, and counts how often a waiter wakes for it. notify
// is Signal or Broadcast of the condition.
func handOut(mu sync.Locker, notEmpty *condition.Cond, waiters int, notify func()) (wakes int) {
	items := 0
	var done sync.WaitGroup
	for range waiters {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for items == 0 {
				notEmpty.Wait()
				wakes++
			}
			items--
		})
	}
	for left := waiters; left > 0; left-- {
		settled(mu, notEmpty, left) // all remaining goroutines wait
		mu.Lock()
		items++
		notify()
		mu.Unlock()
	}
	done.Wait()
	return wakes
}

//lab:end

// settled waits until n wait for c.
func settled(mu sync.Locker, c *condition.Cond, n int) {
	for {
		mu.Lock()
		waiting := c.WaitQueueLength()
		mu.Unlock()
		if waiting == n {
			return
		}
		time.Sleep(20 * time.Microsecond)
	}
}

func herd(_ context.Context, l *lab.Lab) error {
	waiters := lab.Pick(l, 16, 64)
	herdSync := broadcastSync(l, waiters)
	herdOther := broadcastOther(waiters)
	herdOwn, queued := broadcastOwn(l, waiters)
	l.Equal(waiters, herdSync, lab.T("sync.Cond wakes every waiter at once", "sync.Cond 同时唤醒所有等待者"))
	l.Check(herdOther <= 1, lab.T("a condition over another lock wakes its waiters one after the other",
		"使用别的锁的条件变量逐个唤醒等待者"))
	l.Equal(0, herdOwn, lab.T("a condition of the lock's own wakes no waiter before the lock is free",
		"锁自带的条件变量在锁空闲之前不唤醒任何等待者"))
	l.Equal(waiters, queued, lab.T("when Broadcast returns, all waiters are in the lock's queue",
		"Broadcast 返回时，所有等待者都已在锁的队列中"))
	l.Observe("waiters", waiters)
	l.Observe("herdSync", herdSync)
	l.Observe("herdOther", herdOther)
	l.Observe("herdOwn", herdOwn)
	l.Chart(lab.Chart{
		Title: lab.T("Woken to find the lock taken", "醒来时发现锁被占用"), Bars: true,
		Desc: lab.T("Waiters that a broadcast woke while the lock was still held.",
			"锁仍被持有时就被广播唤醒的等待者。"),
		X: lab.Axis{Ticks: []lab.Text{lab.T("sync.Cond", "sync.Cond"), lab.T("condition.Cond, foreign lock",
			"condition.Cond，别的锁"), lab.T("condition.Cond, own lock",
			"condition.Cond，自己的锁")}},
		Y: lab.Axis{Label: lab.T("waiters", "等待者数")},
		Series: []lab.Series{{Name: lab.T("waiters", "等待者数"), Points: []lab.Point{
			{X: 0, Y: float64(herdSync)}, {X: 1, Y: float64(herdOther)}, {X: 2, Y: float64(herdOwn)},
		}}},
	})

	signal, broadcast := lab.Series{Name: lab.T("Signal",
		"Signal")}, lab.Series{Name: lab.T("Broadcast", "Broadcast")}
	for n := 2; n <= waiters; n *= 2 {
		var mu reentrant.Mutex
		c := mu.NewCond()
		one, all := handOut(&mu, c, n, c.Signal), handOut(&mu, c, n, c.Broadcast)
		l.Equal(n, one, lab.T("Signal wakes one waiter for each item", "每个元素，Signal 只唤醒一个等待者"))
		l.Equal(n*(n+1)/2, all, lab.T("Broadcast wakes every remaining waiter for each item",
			"每个元素，Broadcast 唤醒所有剩余的等待者"))
		signal.Points = append(signal.Points, lab.Point{X: float64(n), Y: float64(one)})
		broadcast.Points = append(broadcast.Points, lab.Point{X: float64(n), Y: float64(all)})
		l.Observe("wakesSignal", one)
		l.Observe("wakesBroadcast", all)
	}
	l.Chart(lab.Chart{
		Title: lab.T("Wake-ups to hand out one item each", "每人发一个元素所需的唤醒次数"),
		Desc: lab.T("All wake-ups until every waiter has an item, over the number of waiters, with Signal and "+
			"with Broadcast.",
			"直到每个等待者都拿到元素为止的全部唤醒次数，随等待者数变化，分别用 Signal 和 Broadcast。"),
		X: lab.Axis{Label: lab.T("waiters", "等待者数"), Log: true}, Y: lab.Axis{Label: lab.T("wake-ups",
			"唤醒次数"), Log: true},
		Series: []lab.Series{broadcast, signal},
	})
	herdPicture(l)
	return nil
}

// grace is how long waiters get to wake up where they should not.
const grace = 3 * time.Millisecond

func broadcastSync(l *lab.Lab, waiters int) int {
	var mu counting
	c := sync.NewCond(&mu)
	waiting := 0
	var done sync.WaitGroup
	for range waiters {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			waiting++
			c.Wait()
		})
	}
	l.Until(lab.T("all wait", "全部在等待"), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return waiting == waiters
	})
	mu.Lock()
	mu.inVain.Store(0)
	c.Broadcast()
	l.Until(lab.T("the herd is awake", "惊群已醒来"), func() bool { return int(mu.inVain.Load()) == waiters })
	woken := int(mu.inVain.Load())
	mu.Unlock()
	done.Wait()
	return woken
}

func broadcastOther(waiters int) int {
	var mu counting
	c := condition.New(&mu)
	var done sync.WaitGroup
	for range waiters {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			c.Wait()
		})
	}
	settled(&mu, c, waiters)
	mu.Lock()
	mu.inVain.Store(0)
	c.Broadcast()
	time.Sleep(grace)
	woken := int(mu.inVain.Load())
	mu.Unlock()
	done.Wait()
	return woken
}

func broadcastOwn(l *lab.Lab, waiters int) (woken, queued int) {
	var mu reentrant.Mutex
	c := mu.NewCond()
	var done sync.WaitGroup
	for range waiters {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			c.Wait()
		})
	}
	settled(&mu, c, waiters)
	mu.Lock()
	c.Broadcast()
	queued = mu.QueueLength()
	time.Sleep(grace)
	// A goroutine that woke up too early would have left the queue to ask for the lock.
	woken = queued - mu.QueueLength()
	mu.Unlock()
	done.Wait()
	return woken, queued
}

func herdPicture(l *lab.Lab) {
	t := l.Timeline(lab.T("A broadcast to four waiters",
		"向四个等待者广播"), lab.T("After the broadcast all four are in the lock's queue. "+
		"Each runs when the lock is its own.", "广播之后，四个等待者都在锁的队列中，轮到谁得到锁谁才运行。"))
	var mu reentrant.Mutex
	watched := t.Wrap(lab.T("lock", "锁"), &mu)
	c := mu.NewCond()
	for i := range 4 {
		t.Go(lab.T("waiter %d", "等待者 %d").With(i+1), func(ctx context.Context, me *lab.Lane) error {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Is(lab.Waiting, lab.T("waits for the broadcast", "等待广播"), c.Wait)
			me.Work(time.Millisecond)
			if err := watched.UnlockContext(ctx); err != nil {
				return err
			}
			me.Work(time.Millisecond)
			return nil
		})
	}
	settled(&mu, c, 4)
	t.Go(lab.T("announcer", "广播者"), func(ctx context.Context, me *lab.Lane) error {
		me.Work(time.Millisecond)
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		c.Broadcast()
		me.Mark(lab.T("broadcasts", "广播"))
		me.Work(2 * time.Millisecond)
		if err := watched.UnlockContext(ctx); err != nil {
			return err
		}
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
}
