package scenarios

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/synchronizer"
)

var _ = register(lab.Scenario{
	Lesson:   170,
	Name:     "ten-lines",
	Topic:    "Inside",
	Title:    "A synchronizer made in ten lines",
	Question: "What does a program write to get a lock that no library has?",
	Claim: "Every lock is a word, a rule that says when it can be acquired, and a queue of waiters. The " +
		"queue is the hard part: no wake-up may get lost, a wait may end by its context, and no " +
		"waiter may starve. Java has AbstractQueuedSynchronizer for that, and this module has " +
		"`synchronizer.Sync`.\n\n" +
		"The user writes two functions of a word: what it is after an acquisition, and whether that " +
		"is possible, and the same for a release. Everything else comes with the Sync. Exclusive and " +
		"shared need no distinction: the rules say which goroutine may follow which.",
	Look: "The lock of this chapter is a room. Goroutines of one group may be in it together, and two " +
		"groups may not. It is neither a mutex nor a read-write lock. Ann and Bob are red, Cid and " +
		"Dot are blue. Then comes Eve, who is red. She could follow Ann and Bob at once, but the blue " +
		"ones came before her. When the last red one leaves, both blue ones enter.",
	Found: `The order of entry was {{.order}}. At most {{.together}} goroutines of one group were in the room at once, and
never two groups. In {{n .visits}} visits of {{.groups}} groups the groups did not mix either, and up to {{.most}}
goroutines were in the room. A release by a group that was not inside was refused.`,
	Take: "Take a lock of this module where one fits: it is faster, and it may know its owner. For a " +
		"latch, a gate, or a lock of your own, write the rules, and leave the queue to " +
		"`synchronizer.Sync`. The rules look at their arguments only. Try all schedules of a small " +
		"test with `explore.Run`.",
	Java: `class Room extends AbstractQueuedSynchronizer {
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
}`,
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

	r := synchronizer.New(roomRules{}, 0, fair.NonFair)
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
	l.Equal(int32(0), mixed.Load(), "in a crowd two groups never mix")
	l.Equal(uint64(0), r.Word(), "in the end the room is empty")
	l.Observe("visits", groups*goroutines*each)
	l.Observe("groups", groups)
	l.Observe("most", most.Load())

	l.Must(r.AcquireContext(ctx, red))
	l.Check(!r.Release(blue), "a release by a group that is not inside is refused")
	l.Check(!r.TryAcquire(blue) && r.TryAcquire(red), "the group that is inside may enter, and no other one")
	l.Check(!r.Release(blue), "a release by a group that is not inside is refused")
	limited, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	l.Is(context.DeadlineExceeded, r.AcquireContext(limited, blue), "a wait with a limit ends by it")
	first, last := r.Release(red), r.Release(red)
	l.Check(first && last && r.TryAcquire(blue), "when the last one has left, another group may enter")
	return nil
}

// visitRoom draws two groups at one room.
func visitRoom(l *lab.Lab) {
	t := l.Timeline("Red and blue", "The groups take turns. Several goroutines of one group are inside together.")
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
	color := map[uint64]string{red: "red", blue: "blue"}
	for i, v := range []struct {
		name  string
		group uint64
	}{{"Ann", red}, {"Bob", red}, {"Cid", blue}, {"Dot", blue}, {"Eve", red}} {
		t.Go(v.name, func(ctx context.Context, me *lab.Lane) error {
			l.Until("the goroutine before has come", func() bool { return entered()+r.QueueLength() >= i })
			before := me.Spans[len(me.Spans)-1]
			me.Set(lab.Waiting, "waits, is "+color[v.group])
			err := visit(ctx, &r, v.group, func() {
				me.Set(lab.Shared, "is in the room, "+color[v.group])
				enter(v.name, v.group)
				defer leave(v.group)
				if i < 2 { // until the others wait
					l.Until("three wait", func() bool { return r.QueueLength() == 3 })
				} else if v.group == blue {
					l.Until("both blue ones are in the room", func() bool { return entered() >= 4 })
				}
				me.Work(time.Duration(2+i) * time.Millisecond)
			})
			me.Set(before.State, before.Label)
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	l.Check(!mixed, "two groups are never in the room together")
	l.Equal(2, together, "goroutines of one group are in the room together")
	l.Equal("Eve", order[len(order)-1], "the one that came last does not overtake, although its group is inside")
	l.Observe("order", strings.Join(order, ", "))
	l.Observe("together", together)
}
