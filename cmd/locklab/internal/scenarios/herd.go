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
	Lesson:   70,
	Name:     "herd",
	Topic:    "Conditions",
	Title:    "A herd, or a transfer to the queue",
	Question: "How many goroutines does a broadcast wake, when only one can have the lock?",
	Claim: `A broadcast to many waiters can wake them all at once: a herd. One of them gets the lock, and the others
go back to sleep. A condition that knows its lock moves its waiters from its own queue to the lock's
queue instead. Each waiter wakes when the lock is its own.

The program itself makes the other kind of herd: a broadcast where only one waiter can continue. All
waiters wake, one after the other, and all but one find nothing.`,
	Look: `The bars count the waiters that woke and asked for the lock while the broadcasting goroutine still held
it. The lines count all wake-ups while as many items as waiters are handed out, one at a time.`,
	Found: `Of {{n .waiters}} waiters, {{n .herdSync}} of sync.Cond woke up to find the lock taken,
{{n .herdOther}} of a condition over a foreign lock, and {{n .herdOwn}} of a condition of the lock itself. To
hand out {{n .waiters}} items one at a time took {{n .wakesBroadcast}} wake-ups with Broadcast and
{{n .wakesSignal}} with Signal.`,
	Take: "Use `Signal` if one waiter can continue and any of them will do. Use `Broadcast` if the change " +
		"concerns all waiters. With a condition of the lock's own, a broadcast makes no herd.",
	Java: `condition.signal();      // one
condition.signalAll();   // all are moved to the lock's queue`,
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
	l.Equal(waiters, herdSync, "sync.Cond wakes every waiter at once")
	l.Check(herdOther <= 1, "a condition over another lock wakes its waiters one after the other")
	l.Equal(0, herdOwn, "a condition of the lock's own wakes no waiter before the lock is free")
	l.Equal(waiters, queued, "when Broadcast returns, all waiters are in the lock's queue")
	l.Observe("waiters", waiters)
	l.Observe("herdSync", herdSync)
	l.Observe("herdOther", herdOther)
	l.Observe("herdOwn", herdOwn)
	l.Chart(lab.Chart{
		Title: "Woken to find the lock taken", Bars: true,
		Desc: "Waiters that a broadcast woke while the lock was still held.",
		X:    lab.Axis{Ticks: []string{"sync.Cond", "condition.Cond, foreign lock", "condition.Cond, own lock"}},
		Y:    lab.Axis{Label: "waiters"},
		Series: []lab.Series{{Name: "waiters", Points: []lab.Point{
			{X: 0, Y: float64(herdSync)}, {X: 1, Y: float64(herdOther)}, {X: 2, Y: float64(herdOwn)},
		}}},
	})

	signal, broadcast := lab.Series{Name: "Signal"}, lab.Series{Name: "Broadcast"}
	for n := 2; n <= waiters; n *= 2 {
		var mu reentrant.Mutex
		c := mu.NewCond()
		one, all := handOut(&mu, c, n, c.Signal), handOut(&mu, c, n, c.Broadcast)
		l.Equal(n, one, "Signal wakes one waiter for each item")
		l.Equal(n*(n+1)/2, all, "Broadcast wakes every remaining waiter for each item")
		signal.Points = append(signal.Points, lab.Point{X: float64(n), Y: float64(one)})
		broadcast.Points = append(broadcast.Points, lab.Point{X: float64(n), Y: float64(all)})
		l.Observe("wakesSignal", one)
		l.Observe("wakesBroadcast", all)
	}
	l.Chart(lab.Chart{
		Title: "Wake-ups to hand out one item each",
		Desc: "All wake-ups until every waiter has an item, over the number of waiters, with Signal and " +
			"with Broadcast.",
		X: lab.Axis{Label: "waiters", Log: true}, Y: lab.Axis{Label: "wake-ups", Log: true},
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
	l.Until("all wait", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return waiting == waiters
	})
	mu.Lock()
	mu.inVain.Store(0)
	c.Broadcast()
	l.Until("the herd is awake", func() bool { return int(mu.inVain.Load()) == waiters })
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
	t := l.Timeline("A broadcast to four waiters", "After the broadcast all four are in the lock's queue. "+
		"Each runs when the lock is its own.")
	var mu reentrant.Mutex
	watched := t.Wrap("lock", &mu)
	c := mu.NewCond()
	for _, name := range []string{"waiter 1", "waiter 2", "waiter 3", "waiter 4"} {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Is(lab.Waiting, "waits for the broadcast", c.Wait)
			me.Work(time.Millisecond)
			if err := watched.UnlockContext(ctx); err != nil {
				return err
			}
			me.Work(time.Millisecond)
			return nil
		})
	}
	settled(&mu, c, 4)
	t.Go("announcer", func(ctx context.Context, me *lab.Lane) error {
		me.Work(time.Millisecond)
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		c.Broadcast()
		me.Mark("broadcasts")
		me.Work(2 * time.Millisecond)
		if err := watched.UnlockContext(ctx); err != nil {
			return err
		}
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
}
