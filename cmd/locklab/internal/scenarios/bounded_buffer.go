package scenarios

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   50,
	Name:     "bounded-buffer",
	Topic:    "Conditions",
	Title:    "A bounded buffer with two conditions",
	Question: "How do producers and consumers wait for different things under one lock?",
	Claim: `A condition variable is a place to wait for a predicate; the wait releases the lock meanwhile. Java's
built-in monitor has one for each object. Producers and consumers then wait in the same place, and every
signal has to go to all of them. An explicit lock can have several conditions: here one for "not full"
and one for "not empty". A signal then goes to a waiter that can use it.`,
	Look: `Producers wait while the buffer is full, and consumers while it is empty, never both at once. A waiter
holds nothing: other goroutines have the lock meanwhile.`,
	Found: `{{n .items}} items went through a buffer for {{.room}}. Producers found it full
{{times .full}}, consumers found it empty {{times .empty}}. {{n .signals}} signals were sent, each to one
waiter at most.`,
	Take: "Make one condition for each predicate. Use `Signal` when one waiter can continue, and always " +
		"wait in a loop or with `WaitWhile`. If a channel says what you mean, use a channel: this buffer " +
		"is one. Conditions pay off when the predicate is richer than \"there is room\".",
	Java: `Condition notFull = lock.newCondition(), notEmpty = lock.newCondition();
while (count == items.length) notFull.await();
...
notEmpty.signal();`,
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
	mu := reentrant.New(fair.FIFO)
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
	t := l.Timeline("Two producers, two consumers",
		"Producers are quick at first and wait for room; later they are slow, and consumers wait for items.")
	b := newBuffer(room)
	watched := t.Wrap("lock", b.mu)
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
		t.Go("producer "+strconv.Itoa(p+1), func(ctx context.Context, me *lab.Lane) error {
			for i := range each {
				if i == each/2 {
					l.Until("a consumer waits", seen(&consumerWaited, waits(b.notEmpty)))
				}
				if i >= each/2 {
					me.Work(4 * time.Millisecond)
				}
				err := locks.Do(ctx, watched, func(ctx context.Context) (err error) {
					put := func() { err = b.put(ctx, p*each+i) }
					if len(b.items) == room {
						full++
						me.Is(lab.Waiting, "waits until the buffer is not full", put)
					} else {
						put()
					}
					look()
					me.Mark("put, %d inside", len(b.items))
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
		t.Go("consumer "+strconv.Itoa(c+1), func(ctx context.Context, me *lab.Lane) error {
			l.Until("a producer waits", seen(&producerWaited, waits(b.notFull)))
			me.Work(2 * time.Millisecond)
			for range each {
				err := locks.Do(ctx, watched, func(ctx context.Context) (err error) {
					var item int
					take := func() { item, err = b.take(ctx) }
					if len(b.items) == 0 {
						empty++
						me.Is(lab.Waiting, "waits until the buffer is not empty", take)
					} else {
						take()
					}
					if err == nil {
						taken = append(taken, item)
					}
					look()
					me.Mark("take, %d left", len(b.items))
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
	l.Equal(want, taken, "every item comes out once")
	l.Equal(0, beyond, "there are never more items than there is room")
	l.Check(full > 0 && empty > 0, "producers wait for room, and consumers for items")

	foreign := new(reentrant.Mutex).NewCond()
	b.mu.Lock()
	l.Is(locks.ErrNotHeld, foreign.SignalContext(ctx), "a signal needs the condition's own lock")
	b.mu.Unlock()
	l.Observe("items", len(taken))
	l.Observe("room", room)
	l.Observe("full", full)
	l.Observe("empty", empty)
	l.Observe("signals", 2*len(taken))
	return nil
}
