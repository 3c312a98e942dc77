package scenarios

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   60,
	Name:     "lost-wake-up",
	Topic:    "Conditions",
	Title:    "Why a wait needs a loop",
	Question: `May the waiter continue after the signal without another look?`,
	Claim: `Between the signal and the waiter's turn another goroutine may have the lock, and may take away what the
signal announced: a stolen wake-up. Some systems also wake waiters without a signal. Therefore a wait always stands in a
loop that checks the predicate again.

The loop also checks before the first wait, because a condition does not remember signals. If the signal
came before the wait, the waiter waits for ever: the lost wake-up.`,
	Look: "The pictures show a stolen wake-up. The consumer is signalled, but the thief was in the " +
		"queue before it and takes the item. With `if` the consumer then finds nothing. With a loop it " +
		"waits again, for the second item.",
	Found: `With if, the consumer woke up and found {{.foundByIf}} items. With a loop it waited
{{times .waitsOfLoop}} and got its item. A wait for a signal that had been sent before lasted the whole
{{n .lost}} of its limit; a goroutine that checked the predicate first did not wait.`,
	Take: "Never use `if`, always `for` or `WaitWhile`. Change the predicate's data with the lock held, and " +
		"wait only while the predicate requires it.",
	Java: `while (queue.isEmpty())     // never: if (queue.isEmpty())
    notEmpty.await();`,
	Run: lostWakeUp,
})

//lab:show

// takeIf looks once. It is wrong.
func takeIf(items *int, notEmpty *condition.Cond) {
	if *items == 0 {
		notEmpty.Wait()
	}
	*items--
}

// takeLoop looks again after each wait.
func takeLoop(items *int, notEmpty *condition.Cond) {
	for *items == 0 {
		notEmpty.Wait()
	}
	*items--
}

//lab:end

func lostWakeUp(ctx context.Context, l *lab.Lab) error {
	left, _ := theft(l, "With if", "The consumer does not look again, and takes an item that is not there.", takeIf)
	l.Equal(-1, left, "with if, the consumer takes an item that is not there")
	l.Observe("foundByIf", left+1)
	left, waits := theft(l, "With a loop", "The consumer looks again, waits again, and gets the second "+
		"item.", takeLoop)
	l.Equal(0, left, "with a loop, no goroutine takes an item that is not there")
	l.Equal(2, waits, "with a loop, the consumer waits again after the theft")
	l.Observe("waitsOfLoop", waits)

	mu := new(reentrant.Mutex)
	notEmpty := mu.NewCond()
	items := 0
	mu.Lock()
	defer mu.Unlock()
	items++
	notEmpty.Signal() // Nobody waits.
	start := time.Now()
	l.Check(!notEmpty.WaitUntil(start.Add(10*time.Millisecond)), "a signal without a waiter is not remembered")
	l.Observe("lost", time.Since(start))
	l.Must(notEmpty.WaitWhile(ctx, func() bool { return items == 0 }))
	l.Check(true, "a goroutine that checks the predicate first does not need the signal")
	return nil
}

// theft has a thief take the item before the consumer that was signalled. It returns how many
// items there are in the end and how often the consumer waited. The order is certain: the lock
// is FIFO, and the thief is in its queue before the signal puts the consumer there.
func theft(l *lab.Lab, title, desc string, take func(*int, *condition.Cond)) (left, waits int) {
	t := l.Timeline(title, desc)
	mu := reentrant.New(fair.FIFO)
	watched := t.Wrap("lock", mu)
	notEmpty := mu.NewCond()
	items, loop := 0, false
	waiting := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		return notEmpty.WaitQueueLength()
	}
	t.Go("consumer", func(ctx context.Context, me *lab.Lane) error {
		return locks.Do(ctx, watched, func(context.Context) error {
			me.Is(lab.Waiting, "waits for an item", func() { take(&items, notEmpty) })
			me.Mark("takes, %d left", items)
			me.Work(time.Millisecond)
			return nil
		})
	})
	l.Until("the consumer waits", func() bool { return waiting() == 1 })
	waits = 1

	producing := make(chan struct{})
	t.Go("producer", func(ctx context.Context, me *lab.Lane) error {
		me.Work(time.Millisecond)
		err := locks.Do(ctx, watched, func(context.Context) error {
			close(producing)
			l.Until("the thief queues", mu.HasQueued)
			me.Work(2 * time.Millisecond)
			items++
			notEmpty.Signal()
			me.Mark("puts an item, signals")
			return nil
		})
		if err != nil {
			return err
		}
		// Whether the consumer waits again or is through, it does so by the time that the lock
		// has been free.
		l.Until("the consumer has looked", func() bool {
			mu.Lock()
			defer mu.Unlock()
			loop = notEmpty.HasWaiters()
			return loop || items < 0
		})
		if !loop {
			return nil
		}
		waits++
		me.Mark("sees it wait again")
		me.Work(3 * time.Millisecond)
		return locks.Do(ctx, watched, func(context.Context) error {
			items++
			notEmpty.Signal()
			me.Mark("puts an item, signals")
			me.Work(time.Millisecond)
			return nil
		})
	})
	t.Go("thief", func(ctx context.Context, me *lab.Lane) error {
		<-producing
		err := locks.Do(ctx, watched, func(context.Context) error {
			items--
			me.Mark("takes the item")
			me.Work(2 * time.Millisecond)
			return nil
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	return items, waits
}
