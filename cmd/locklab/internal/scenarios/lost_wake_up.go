package scenarios

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 60,
	Name:   "lost-wake-up",
	Topic:  lab.T("Conditions", "条件"),
	Title:  lab.T("Why a wait needs a loop", "等待为什么要写在循环里"),
	Question: lab.T(`May the waiter continue after the signal without another look?`,
		"收到信号之后，等待者可以不再检查就继续吗？"),
	Claim: lab.T(`Between the signal and the waiter's turn another goroutine may have the lock, and may take away what the
signal announced: a stolen wake-up. Some systems also wake waiters without a signal. Therefore a wait always stands in a
loop that checks the predicate again.

The loop also checks before the first wait, because a condition does not remember signals. If the signal
came before the wait, the waiter waits for ever: the lost wake-up.`,
		`信号发出之后、轮到等待者之前，另一个 goroutine 可能先得到锁，取走信号所指的东西：这就是被抢走
的唤醒。有些系统还会在没有信号时唤醒等待者，即虚假唤醒。所以等待总要写在循环里，每次都重新检查谓
词。

循环在第一次等待之前也要检查，因为条件变量不会记住信号。如果信号先于等待，等待者就会永远等下去：
这就是唤醒丢失。`),
	Look: lab.T("The pictures show a stolen wake-up. The consumer is signalled, but the thief was in the "+
		"queue before it and takes the item. With `if` the consumer then finds nothing. With a loop it "+
		"waits again, for the second item.",
		"两幅图都是被抢走的唤醒。消费者收到了信号，但抢先者在它之前已经排在队列里，把元素取走了。用 `if` "+
			"时，消费者醒来后什么也找不到；用循环时，它会再次等待，得到第二个元素。"),
	Found: lab.T(`With if, the consumer woke up and found {{.foundByIf}} items. With a loop it waited
{{times .waitsOfLoop}} and got its item. A wait for a signal that had been sent before lasted the whole
{{n .lost}} of its limit; a goroutine that checked the predicate first did not wait.`,
		`用 if 时，消费者醒来发现有 {{.foundByIf}} 个元素。用循环时，它等待了 {{times .waitsOfLoop}}，得
到了元素。信号先发出、等待后开始时，等待持续到时限，即 {{n .lost}}；先检查谓词的 goroutine 没有
等待。`),
	Take: lab.T("Never use `if`, always `for` or `WaitWhile`. Change the predicate's data with the lock held, and "+
		"wait only while the predicate requires it.",
		"不要用 `if`，一律用 `for` 或 `WaitWhile`。修改谓词所涉及的数据时要持有锁；只在谓词要求时才等"+
			"待。"),
	Java: lab.Same(`while (queue.isEmpty())     // %s
    notEmpty.await();`).With(lab.T("never: if (queue.isEmpty())", "绝不要写：if (queue.isEmpty())")),
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
	left, _ := theft(l, lab.T("With if",
		"用 if"), lab.T("The consumer does not look again, and takes an item that is not there.",
		"消费者没有再检查，取走了并不存在的元素。"), takeIf)
	l.Equal(-1, left, lab.T("with if, the consumer takes an item that is not there",
		"用 if 时，消费者取走了并不存在的元素"))
	l.Observe("foundByIf", left+1)
	left, waits := theft(l, lab.T("With a loop",
		"用循环"), lab.T("The consumer looks again, waits again, and gets the second "+
		"item.", "消费者再次检查、再次等待，得到第二个元素。"), takeLoop)
	l.Equal(0, left, lab.T("with a loop, no goroutine takes an item that is not there",
		"用循环时，没有 goroutine 取走并不存在的元素"))
	l.Equal(2, waits, lab.T("with a loop, the consumer waits again after the theft",
		"用循环时，元素被抢走后消费者会再次等待"))
	l.Observe("waitsOfLoop", waits)

	mu := new(reentrant.Mutex)
	notEmpty := mu.NewCond()
	items := 0
	mu.Lock()
	defer mu.Unlock()
	items++
	notEmpty.Signal() // Nobody waits.
	start := time.Now()
	l.Check(!notEmpty.WaitUntil(start.Add(10*time.Millisecond)), lab.T("a signal without a waiter is not remembered",
		"没有等待者时发出的信号不会被记住"))
	l.Observe("lost", time.Since(start))
	l.Must(notEmpty.WaitWhile(ctx, func() bool { return items == 0 }))
	l.Check(true, lab.T("a goroutine that checks the predicate first does not need the signal",
		"先检查谓词的 goroutine 不需要信号"))
	return nil
}

// theft lets a thief take the item before the signalled consumer. It returns how many items there
// are in the end and how often the consumer waited. The order is certain: the lock is FIFO, and the
// thief is in its queue before the signal puts the consumer there.
func theft(l *lab.Lab, title, desc lab.Text, take func(*int, *condition.Cond)) (left, waits int) {
	t := l.Timeline(title, desc)
	mu := reentrant.New(locks.FIFO)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	notEmpty := mu.NewCond()
	items, loop := 0, false
	waiting := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		return notEmpty.WaitQueueLength()
	}
	t.Go(lab.T("consumer", "消费者"), func(ctx context.Context, me *lab.Lane) error {
		return locks.Do(ctx, watched, func(context.Context) error {
			me.Is(lab.Waiting, lab.T("waits for an item", "等待资源"), func() { take(&items, notEmpty) })
			me.Mark(lab.T("takes, %d left", "取走，还剩 %d 个"), items)
			me.Work(time.Millisecond)
			return nil
		})
	})
	l.Until(lab.T("the consumer waits", "消费者在等待"), func() bool { return waiting() == 1 })
	waits = 1

	producing := make(chan struct{})
	t.Go(lab.T("producer", "生产者"), func(ctx context.Context, me *lab.Lane) error {
		me.Work(time.Millisecond)
		err := locks.Do(ctx, watched, func(context.Context) error {
			close(producing)
			l.Until(lab.T("the thief queues", "抢先者已排队"), mu.HasQueued)
			me.Work(2 * time.Millisecond)
			items++
			notEmpty.Signal()
			me.Mark(lab.T("puts an item, signals", "放入元素，发信号"))
			return nil
		})
		if err != nil {
			return err
		}
		// Whether the consumer waits again or is through, it does so by the time that the lock
		// has been free.
		l.Until(lab.T("the consumer has looked", "消费者已检查过"), func() bool {
			mu.Lock()
			defer mu.Unlock()
			loop = notEmpty.HasWaiters()
			return loop || items < 0
		})
		if !loop {
			return nil
		}
		waits++
		me.Mark(lab.T("sees it wait again", "看到它再次等待"))
		me.Work(3 * time.Millisecond)
		return locks.Do(ctx, watched, func(context.Context) error {
			items++
			notEmpty.Signal()
			me.Mark(lab.T("puts an item, signals", "放入元素，发信号"))
			me.Work(time.Millisecond)
			return nil
		})
	})
	t.Go(lab.T("thief", "抢先者"), func(ctx context.Context, me *lab.Lane) error {
		<-producing
		err := locks.Do(ctx, watched, func(context.Context) error {
			items--
			me.Mark(lab.T("takes the item", "取走元素"))
			me.Work(2 * time.Millisecond)
			return nil
		})
		me.Work(time.Millisecond)
		return err
	})
	t.Wait()
	return items, waits
}
