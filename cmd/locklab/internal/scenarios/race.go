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
	Lesson:   10,
	Name:     "race",
	Topic:    "Why lock at all",
	Title:    "A race, and the updates it loses",
	Question: "What goes wrong when two goroutines add to one counter?",
	Claim: `Two goroutines update shared data, and the result depends on their order: a race. An addition has three
steps: read, add and write. If another goroutine writes between the read and the write, its value is
overwritten, and its update is lost.

Atomic steps do not help. The reads and the writes here are atomic, so Go's race detector is silent: in
the terms of the memory model there is no data race. There is a race nevertheless.`,
	Look: `In the first picture both goroutines read before either writes. In the second the lock admits one
goroutine at a time between its read and its write. The other one waits, and then reads what the first
one wrote.`,
	Found: `In the scripted meeting two additions left the counter at {{.meeting}}. In the crowd,
{{n .goroutines}} goroutines made {{n .wanted}} additions. Without a lock {{n .lost}} of them were lost
({{percent .lostShare}}); with the lock, none.`,
	Take: "Guard the whole of a read-modify-write, not its steps. For a single number use " +
		"`atomic.Int64.Add`. If two variables belong together, use a lock, or make them one value and " +
		"swap it as a whole (see the scenario on optimistic locking).",
	Java: `synchronized (this) { n = n + 1; }    // or
lock.lock();
try { n = n + 1; } finally { lock.unlock(); }`,
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
	l.Equal(int64(1), meeting, "two additions that both read before either writes count as one")
	l.Equal(int64(2), raceMeeting(l, true), "with the lock both additions count")
	l.Observe("meeting", meeting)

	const goroutines = 8
	each := lab.Pick(l, 500, 5_000)
	crowd := func(add func(*atomic.Int64) error) int {
		var n atomic.Int64
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
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
	without := crowd(func(n *atomic.Int64) error { add(n); return nil })
	var mu fair.BargingMutex
	with := crowd(func(n *atomic.Int64) error { return addLocked(ctx, &mu, n) })
	l.Check(without < wanted, "the crowd without a lock loses updates")
	l.Equal(wanted, with, "the crowd with a lock loses none")
	l.Observe("goroutines", goroutines)
	l.Observe("wanted", wanted)
	l.Observe("lost", wanted-without)
	l.Observe("lostShare", float64(wanted-without)/float64(wanted))
	l.Chart(lab.Chart{
		Title: "What the counter says in the end",
		Desc:  "The count that the crowd left, without a lock and with one, and the number of additions made.",
		Bars:  true,
		X:     lab.Axis{Ticks: []string{"additions made", "without a lock", "with a lock"}},
		Y:     lab.Axis{Label: "count"},
		Series: []lab.Series{{Name: "count", Points: []lab.Point{
			{X: 0, Y: float64(wanted)}, {X: 1, Y: float64(without)}, {X: 2, Y: float64(with)},
		}}},
	})
	return nil
}

// raceMeeting has two goroutines meet in the worst place, and returns the count.
func raceMeeting(l *lab.Lab, locked bool) int64 {
	title, desc := "Without a lock", "Both goroutines read the counter, and then both write it."
	if locked {
		title, desc = "With a lock", "The second goroutine waits for the lock until the first has written."
	}
	t := l.Timeline(title, desc)
	lock := new(fair.Mutex)
	mu := t.Wrap("lock", lock)
	var n atomic.Int64
	var bothRead sync.WaitGroup
	bothRead.Add(2)
	update := func(me *lab.Lane) {
		seen := n.Load()
		me.Mark("reads %d", seen)
		me.Work(3 * time.Millisecond)
		switch {
		case !locked:
			bothRead.Done()
			bothRead.Wait()
		case seen == 0:
			l.Until("the second goroutine waits", lock.HasQueued)
		}
		n.Store(seen + 1)
		me.Mark("writes %d", seen+1)
	}
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
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
