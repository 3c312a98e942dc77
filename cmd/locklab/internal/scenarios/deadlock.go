package scenarios

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   90,
	Name:     "deadlock",
	Topic:    "Deadlock",
	Title:    "A deadlock made, and avoided",
	Question: "Two locks, taken in two orders: what happens, and what prevents it?",
	Claim: `A deadlock needs four things at once: exclusion, somebody who holds one thing while waiting for another, nothing that takes it away again, and a circle of those who wait. Take away any of them and there is none.

A time limit on the second lock gives the first one back. A common order has no circles. Fewer locks and smaller sections make circles rarer.`,
	Look:  "In the first picture each holds one lock and waits for the other's, until the scenario cancels one wait. In the second, each gives back what it has when the second lock does not come in time, and tries again. In the third, Multi takes both in an order of its own, whatever order they are listed in.",
	Found: `The circle stood: each lock's owner was in the other's queue, for {{n .stuck}} until one wait was cancelled. With timed tries both got through; somebody backed off {{times .backOffs}}. With Multi, {{.transfers}} transfers in opposite orders all went through, and left the sum as it was.`,
	Take:  "`locks.Multi` when you know all locks beforehand. Otherwise a context with a deadline on every wait, and a retry that starts from nothing, with a pause that differs from party to party.",
	Java: `if (a.tryLock(50, MILLISECONDS)) try {
    if (b.tryLock(50, MILLISECONDS)) try { transfer(); }
    finally { b.unlock(); }
} finally { a.unlock(); }`,
	Run: deadlock,
})

//lab:show

// inOrder takes first and then second. Somebody else takes them the other way round.
func inOrder(ctx context.Context, first, second locks.Locker, work func()) error {
	return locks.Do(ctx, first, func(ctx context.Context) error {
		return locks.Do(ctx, second, func(context.Context) error { work(); return nil })
	})
}

// timed waits for the second lock for patience only, and then gives back the first one.
func timed(ctx context.Context, first, second locks.Locker, patience time.Duration, work func()) error {
	return locks.Do(ctx, first, func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return locks.Do(limited, second, func(context.Context) error { work(); return nil })
	})
}

// both takes all or none, in an order that is the same for everybody.
func both(ctx context.Context, first, second locks.TryLocker, work func()) error {
	return locks.Do(ctx, locks.Multi(first, second), func(context.Context) error { work(); return nil })
}

//lab:end

func deadlock(_ context.Context, l *lab.Lab) error {
	made(l)
	avoidedByTime(l)
	avoidedByOrder(l)
	return nil
}

func made(l *lab.Lab) {
	t := l.Timeline("Made", "Each has one lock and waits for the other. Nobody can go on until one wait is cancelled.")
	muA, muB := new(reentrant.Mutex), new(reentrant.Mutex)
	a, b := t.Wrap("A", muA), t.Wrap("B", muB)
	first, second := firstLocks(a, b)
	giveUp, cancel := context.WithCancel(context.Background())
	defer cancel()
	var names sync.Map // of the goroutines, by owner
	t.Go("Ann", func(ctx context.Context, me *lab.Lane) error {
		names.Store(locks.CurrentOwner(ctx), me.Name)
		defer me.Work(time.Millisecond)
		return inOrder(ctx, first, b, func() { me.Work(2 * time.Millisecond) })
	})
	t.Go("Bob", func(_ context.Context, me *lab.Lane) error {
		names.Store(locks.CurrentOwner(giveUp), me.Name)
		defer me.Work(time.Millisecond)
		err := inOrder(giveUp, second, a, func() {})
		l.Is(context.Canceled, err, "a wait that is cancelled ends, and its locks are given back")
		return nil
	})
	start := time.Now()
	l.Until("the circle is closed", func() bool { return muA.QueueLength() == 1 && muB.QueueLength() == 1 })
	ann, bob := muA.Owner(), muB.Owner()
	l.Check(ann != bob && muB.IsQueued(ann) && muA.IsQueued(bob), "each owner waits for the other's lock: a circle")
	l.Table(lab.Table{Title: "The circle, as the locks tell it", Head: []string{"lock", "held by", "waited for by"},
		Rows: circle(&names, map[string]*reentrant.Mutex{"A": muA, "B": muB}, "A")})
	time.Sleep(5 * time.Millisecond)
	l.Check(muB.IsQueued(ann) && muA.IsQueued(bob), "the circle does not go away by itself")
	l.Observe("stuck", time.Since(start))
	cancel()
	t.Wait()
}

// circle follows those who wait: from a lock to its owner, on to the lock that this owner waits for, and so on
// until it comes back to where it began.
func circle(names *sync.Map, all map[string]*reentrant.Mutex, from string) (rows [][]string) {
	name := func(o locks.Owner) string {
		if n, ok := names.Load(o); ok {
			return n.(string)
		}
		return o.String()
	}
	for at := from; len(rows) < len(all); {
		owner := all[at].Owner()
		row := []string{at, name(owner), ""}
		for _, waiter := range all[at].Queued() {
			row[2] = name(waiter)
		}
		rows = append(rows, row)
		for next, mu := range all {
			if mu.IsQueued(owner) {
				at = next
			}
		}
		if at == from {
			break
		}
	}
	return rows
}

// meet is a lock of which the holder goes on when the other party has its own.
type meet struct {
	locks.TryLocker
	have *sync.WaitGroup
	once sync.Once
}

func (m *meet) LockContext(ctx context.Context) error {
	err := m.TryLocker.LockContext(ctx)
	m.once.Do(func() {
		m.have.Done()
		m.have.Wait()
	})
	return err
}

// firstLocks returns a and b as those who take them first see them: both parties have their first
// lock before either asks for its second.
func firstLocks(a, b locks.TryLocker) (first, second locks.TryLocker) {
	var have sync.WaitGroup
	have.Add(2)
	return &meet{TryLocker: a, have: &have}, &meet{TryLocker: b, have: &have}
}

func avoidedByTime(l *lab.Lab) {
	t := l.Timeline("Avoided by a time limit", "Who does not get the second lock in time gives the first one back, pauses, and tries again.")
	a, b := t.Wrap("A", new(reentrant.Mutex)), t.Wrap("B", new(reentrant.Mutex))
	first, second := firstLocks(a, b)
	var mu sync.Mutex
	backOffs, through := 0, 0
	for i, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", first, b}, {"Bob", second, a}} {
		t.Go(p.name, func(ctx context.Context, me *lab.Lane) error {
			defer me.Work(time.Millisecond)
			for {
				err := timed(ctx, p.first, p.second, 3*time.Millisecond, func() {
					me.Mark("has both")
					me.Work(2 * time.Millisecond)
				})
				mu.Lock()
				if err == nil {
					through++
					mu.Unlock()
					return nil
				}
				backOffs++
				mu.Unlock()
				if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
					return err
				}
				// Of different length, or else they would meet again.
				me.Work(time.Duration(1+6*i) * time.Millisecond)
			}
		})
	}
	t.Wait()
	l.Equal(2, through, "with a time limit, both get both locks in the end")
	l.Check(backOffs >= 1, "somebody had to back off")
	l.Observe("backOffs", backOffs)
}

func avoidedByOrder(l *lab.Lab) {
	t := l.Timeline("Avoided by Multi", "Both list the locks in opposite orders. Multi takes them in the same one.")
	a, b := t.Wrap("A", new(reentrant.Mutex)), t.Wrap("B", new(reentrant.Mutex))
	left, right := 100, 100 // guarded by both locks
	transfers := 0
	for i, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", a, b}, {"Bob", b, a}} {
		t.Go(p.name, func(ctx context.Context, me *lab.Lane) error {
			for range 3 {
				err := both(ctx, p.first, p.second, func() {
					transfers++
					left, right = left-1+2*i, right+1-2*i
					me.Work(1500 * time.Microsecond)
				})
				if err != nil {
					return err
				}
				me.Work(700 * time.Microsecond)
			}
			return nil
		})
	}
	t.Wait()
	l.Equal([]int{6, 100, 100}, []int{transfers, left, right}, "with Multi, opposite orders do no harm")
	l.Observe("transfers", transfers)
}
