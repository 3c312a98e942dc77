package scenarios

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 50,
	Name:   "bounded-buffer",
	Topic:  lab.T("Conditions", "条件"),
	Title:  lab.T("A bounded buffer with two conditions", "用两个条件变量实现有界缓冲区"),
	Question: lab.T("How do producers and consumers wait for different things under one lock?",
		"生产者和消费者怎样在同一把锁下等待不同的条件？"),
	Claim: lab.T(`A condition variable is a place to wait for a predicate; the wait releases the lock meanwhile. Java's
built-in monitor has one for each object. Producers and consumers then wait in the same place, and every
signal has to go to all of them. An explicit lock can have several conditions: here one for "not full"
and one for "not empty". A signal then goes to a waiter that can use it.`,
		`条件变量是等待某个谓词成立的地方，等待期间会释放锁。Java 的内置监视器每个对象只有一个条件，生产
者和消费者只能在同一处等待，每个信号都要发给所有人。显式锁可以有多个条件变量：这里一个表示「未满」，
一个表示「非空」。这样信号只发给用得上它的等待者。`),
	Look: lab.T(`Producers wait while the buffer is full, and consumers while it is empty, never both at once. A waiter
holds nothing: other goroutines have the lock meanwhile.`,
		`缓冲区满时生产者等待，空时消费者等待，两者不会同时等待。等待者什么也不持有，其间锁归其他 goroutine。`),
	Found: lab.T(`{{n .items}} items went through a buffer for {{.room}}. Producers found it full
{{times .full}}, consumers found it empty {{times .empty}}. {{n .signals}} signals were sent, each to one
waiter at most.`, `{{n .items}} 个元素经过了容量为 {{.room}} 的缓冲区。生产者发现缓冲区已满 {{times .full}}，消费者
发现缓冲区为空 {{times .empty}}。共发出 {{n .signals}} 个信号，每个至多发给一个等待者。`),
	Take: lab.T("Make one condition for each predicate. Use `Signal` when one waiter can continue, and always "+
		"wait in a loop or with `WaitWhile`. If a channel says what you mean, use a channel: this buffer "+
		"is one. Conditions pay off when the predicate is richer than \"there is room\".",
		"每个谓词用一个条件变量。只有一个等待者能继续时用 `Signal`；等待一律写在循环里，或者用 `WaitWhile`。"+
			"如果 channel 就能表达你的意思，就用 channel：这个缓冲区本身就相当于一个。谓词比「有空位」更"+
			"复杂时，条件变量才有优势。"),
	Java: lab.Same(`Condition notFull = lock.newCondition(), notEmpty = lock.newCondition();
while (count == items.length) notFull.await();
...
notEmpty.signal();`),
	Run: boundedBuffer,
})

//lab:show

type buffer struct {
	mu                *reentrant.Mutex
	notFull, notEmpty *condition.Cond
	items             []int
	room              int
}

func newBuffer(room int) *buffer {
	mu := reentrant.New(locks.FIFO)
	return &buffer{mu: mu, notFull: mu.NewCond(), notEmpty: mu.NewCond(), room: room}
}

// put and take are called with the lock held.
func (b *buffer) put(ctx context.Context, item int) error {
	err := b.notFull.WaitWhile(ctx, func() bool { return len(b.items) == b.room })
	if err != nil {
		return err
	}
	b.items = append(b.items, item)
	b.notEmpty.Signal()
	return nil
}

func (b *buffer) take(ctx context.Context) (int, error) {
	err := b.notEmpty.WaitWhile(ctx, func() bool { return len(b.items) == 0 })
	if err != nil {
		return 0, err
	}
	item := b.items[0]
	b.items = b.items[1:]
	b.notFull.Signal()
	return item, nil
}

//lab:end

func boundedBuffer(ctx context.Context, l *lab.Lab) error {
	const room, parties, each = 2, 2, 6
	t := l.Timeline(lab.T("Two producers, two consumers", "两个生产者，两个消费者"),
		lab.T("Producers are quick at first and wait for room; later they are slow, and consumers wait for items.",
			"开始时生产者快，要等空位；之后生产者慢，消费者要等元素。"))
	b := newBuffer(room)
	watched := t.Wrap(lab.T("lock", "锁"), b.mu)
	var taken []int                // guarded by the lock, as are these
	full, empty, beyond := 0, 0, 0 // how often a goroutine had to wait, and broken bounds
	waits := func(c *condition.Cond) func() bool {
		return func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return c.HasWaiters()
		}
	}
	// Somebody may wait for so short a time that not all see it.
	var producerWaited, consumerWaited atomic.Bool
	seen := func(once *atomic.Bool, now func() bool) func() bool {
		return func() bool {
			if !once.Load() && now() {
				once.Store(true)
			}
			return once.Load()
		}
	}
	look := func() {
		if len(b.items) > room {
			beyond++
		}
	}
	for p := range parties {
		t.Go(lab.T("producer %d", "生产者 %d").With(p+1), func(ctx context.Context, me *lab.Lane) error {
			for i := range each {
				if i == each/2 {
					l.Until(lab.T("a consumer waits", "有消费者在等待"), seen(&consumerWaited, waits(b.notEmpty)))
				}
				if i >= each/2 {
					me.Work(4 * time.Millisecond)
				}
				err := locks.Do(ctx, watched, func(ctx context.Context) (err error) {
					put := func() { err = b.put(ctx, p*each+i) }
					if len(b.items) == room {
						full++
						me.Is(lab.Waiting, lab.T("waits until the buffer is not full", "等待缓冲区未满"), put)
					} else {
						put()
					}
					look()
					me.Mark(lab.T("put, %d inside", "放入，内有 %d 个"), len(b.items))
					me.Work(200 * time.Microsecond)
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for c := range parties {
		t.Go(lab.T("consumer %d", "消费者 %d").With(c+1), func(ctx context.Context, me *lab.Lane) error {
			l.Until(lab.T("a producer waits", "有生产者在等待"), seen(&producerWaited, waits(b.notFull)))
			me.Work(2 * time.Millisecond)
			for range each {
				err := locks.Do(ctx, watched, func(ctx context.Context) (err error) {
					var item int
					take := func() { item, err = b.take(ctx) }
					if len(b.items) == 0 {
						empty++
						me.Is(lab.Waiting, lab.T("waits until the buffer is not empty", "等待缓冲区非空"), take)
					} else {
						take()
					}
					if err == nil {
						taken = append(taken, item)
					}
					look()
					me.Mark(lab.T("take, %d left", "取出，还剩 %d 个"), len(b.items))
					me.Work(200 * time.Microsecond)
					return err
				})
				if err != nil {
					return err
				}
				me.Work(1500 * time.Microsecond)
			}
			return nil
		})
	}
	t.Wait()
	slices.Sort(taken)
	want := make([]int, parties*each)
	for i := range want {
		want[i] = i
	}
	l.Equal(want, taken, lab.T("every item comes out once", "每个元素恰好取出一次"))
	l.Equal(0, beyond, lab.T("there are never more items than there is room", "元素从不超出容量"))
	l.Check(full > 0 && empty > 0, lab.T("producers wait for room, and consumers for items",
		"生产者等待空位，消费者等待元素"))

	foreign := new(reentrant.Mutex).NewCond()
	b.mu.Lock()
	l.Is(locks.ErrNotHeld, foreign.SignalContext(ctx), lab.T("a signal needs the condition's own lock",
		"发信号必须持有条件变量所属的锁"))
	b.mu.Unlock()
	l.Observe("items", len(taken))
	l.Observe("room", room)
	l.Observe("full", full)
	l.Observe("empty", empty)
	l.Observe("signals", 2*len(taken))
	return nil
}
