package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   90,
	Name:     "deadlock",
	Topic:    "Deadlock",
	Title:    "A deadlock made, and avoided",
	Question: `What happens if goroutines acquire two locks in two orders, and what prevents it?`,
	Claim: `A deadlock needs four things at once: exclusion, an owner that holds one lock while it waits for
another, locks that cannot be taken away, and a cycle of waiters. If one of them is missing, there is
no deadlock.

A time limit on the second lock releases the first one. A common order has no cycles. Fewer locks and
shorter sections make cycles rarer. Locks that know their owners can find a cycle afterwards. As in
databases, they can also refuse the request that would close it.`,
	Look: "In the first picture each goroutine holds one lock and waits for the other's. `deadlock.Find` " +
		"describes the cycle, and the scenario cancels one wait. In the second picture the second wait " +
		"has a time limit. When it ends, the goroutine releases its first lock, and tries again. In the " +
		"third, Multi acquires both locks in an order of its own, in whatever order the caller lists " +
		"them.\n\n" +
		"In the last picture cycles are refused. The goroutine that would close one gets an error at " +
		"once, releases its lock, and waits for its turn.",
	Found: `deadlock.Find saw the cycle, which stood for {{n .stuck}} until one wait was cancelled, and none
afterwards. With time limits both finished; they backed off {{times .backOffs}}. With Multi,
{{.transfers}} transfers in opposite orders all went through, and left the sum as it was. With refusal
{{.refused}} got locks.ErrDeadlock after {{n .refusedAfter}}, {{times .refusals}} in all, and both finished.`,
	Take: "Use `locks.Multi` if you know all locks beforehand. Otherwise give every wait a context with a " +
		"deadline. After a failure release everything, and try again after a pause of a random length. " +
		"Call `deadlock.Find` in the handler of a health check to see what hangs. `deadlock.Refuse` acts " +
		"on the whole process, and is for programs that can start again.",
	Java: `if (a.tryLock(50, MILLISECONDS)) try {
    if (b.tryLock(50, MILLISECONDS)) try { transfer(); }
    finally { b.unlock(); }
} finally { a.unlock(); }`,
	Run: deadlocks,
})

//lab:show

// inOrder acquires first and then second. Another goroutine acquires them the other way round.
func inOrder(ctx context.Context, first, second locks.Locker, work func()) error {
	return locks.Do(ctx, first, func(ctx context.Context) error {
		return locks.Do(ctx, second, func(context.Context) error { work(); return nil })
	})
}

// timed waits for the second lock for at most patience, and then releases the first one.
func timed(ctx context.Context, first, second locks.Locker, patience time.Duration, work func()) error {
	return locks.Do(ctx, first, func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return locks.Do(limited, second, func(context.Context) error { work(); return nil })
	})
}

// both acquires all or none, in an order that is the same for every caller.
func both(ctx context.Context, first, second locks.TryLocker, work func()) error {
	return locks.Do(ctx, locks.Multi(first, second), func(context.Context) error { work(); return nil })
}

// startAgain starts again whenever an acquisition is refused because it would close a cycle.
func startAgain(ctx context.Context, first, second locks.Locker, work func()) (refusals int, err error) {
	for {
		err = inOrder(ctx, first, second, work)
		if !errors.Is(err, locks.ErrDeadlock) {
			return refusals, err
		}
		refusals++ // inOrder has released the first lock
	}
}

//lab:end

func deadlocks(_ context.Context, l *lab.Lab) error {
	made(l)
	avoidedByTime(l)
	avoidedByOrder(l)
	refused(l)
	return nil
}

func made(l *lab.Lab) {
	t := l.Timeline("Made", "Each has one lock and waits for the other. Neither can continue until one wait is "+
		"cancelled.")
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
		l.Is(context.Canceled, err, "a wait that is cancelled ends, and its locks are released")
		return nil
	})
	start := time.Now()
	var cycles []deadlock.Cycle
	l.Until("the cycle is closed", func() bool { cycles = deadlock.Find(); return len(cycles) > 0 })
	l.Equal(1, len(cycles), "deadlock.Find finds the one cycle")
	cycle := cycles[0]
	ann, bob := muA.Owner(), muB.Owner()
	l.Check(ann != bob && muB.IsQueued(ann) && muA.IsQueued(bob), "each owner waits for the other's lock: a cycle")
	parties := map[locks.Owner]locks.Owner{}
	table := lab.Table{Title: "The cycle, as deadlock.Find describes it", Head: []string{"who", "waits for",
		"which has"}}
	name := func(o locks.Owner) string {
		n, _ := names.Load(o)
		return fmt.Sprint(n)
	}
	for _, w := range cycle {
		parties[w.Party] = w.For
		lock := "A"
		if w.Party == ann {
			lock = "B"
		}
		table.Rows = append(table.Rows, []string{name(w.Party), lock, name(w.For)})
	}
	l.Equal(map[locks.Owner]locks.Owner{ann: bob, bob: ann}, parties, "it names who waits for whom")
	l.Table(table)
	l.Quote(lab.Quote{Title: "What deadlock.Find said", Desc: "Its description of the cycle. Of the " +
		"stacks only the lines of the scenario and of the lock are left.", Text: concise(cycle.String())})
	time.Sleep(5 * time.Millisecond)
	l.Check(muB.IsQueued(ann) && muA.IsQueued(bob), "the cycle does not go away by itself")
	l.Observe("stuck", time.Since(start))
	cancel()
	t.Wait()
	l.Equal(0, len(deadlock.Find()), "after that there is none any more")
}

var (
	frame     = regexp.MustCompile(`(?m)^( *)(\S+)\(.*\)\n *\t(\S+?)([^/\s]+/[^/\s]+:\d+)( \+0x[0-9a-f]+)?\n`)
	createdBy = regexp.MustCompile(`(?m)^ *created by .*\n.*\n`)
	ours      = regexp.MustCompile(`/reentrant\.|/scenarios\.`)
)

// concise leaves of the stacks in a description what the locks' users did, without arguments
// and folders.
func concise(text string) string {
	text = createdBy.ReplaceAllString(strings.TrimRight(text, "\n")+"\n", "")
	return frame.ReplaceAllStringFunc(text, func(f string) string {
		part := frame.FindStringSubmatch(f)
		if !ours.MatchString(part[2]) {
			return ""
		}
		return part[1] + path.Base(part[2]) + "(...) " + part[4] + "\n"
	})
}

// meet is a lock whose holder continues when the other goroutine has its own.
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

// firstLocks returns a and b as those who take them first see them: both parties have their
// first lock before either asks for its second.
func firstLocks(a, b locks.TryLocker) (first, second locks.TryLocker) {
	var have sync.WaitGroup
	have.Add(2)
	return &meet{TryLocker: a, have: &have}, &meet{TryLocker: b, have: &have}
}

func avoidedByTime(l *lab.Lab) {
	t := l.Timeline("Avoided by a time limit", "Who does not get the second lock in time gives the first "+
		"one back, pauses, and tries again.")
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
				// Of different lengths, so that they do not meet again.
				me.Work(time.Duration(1+6*i) * time.Millisecond)
			}
		})
	}
	t.Wait()
	l.Equal(2, through, "with a time limit, both get both locks in the end")
	l.Check(backOffs >= 1, "one goroutine had to back off")
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

func refused(l *lab.Lab) {
	defer deadlock.Refuse(deadlock.Refuse(true)) // It is for the whole process.
	t := l.Timeline("Refused", "The last one to ask would close the cycle. It is refused, gives its lock "+
		"back, and queues for it again.")
	// FIFO hands the lock that is given back to the one who waits. Otherwise the refused one
	// might have it again at once, and be refused again.
	a, b := t.Wrap("A", reentrant.New(fair.FIFO)), t.Wrap("B", reentrant.New(fair.FIFO))
	first, second := firstLocks(a, b)
	var mu sync.Mutex
	refusals, through := 0, 0
	for _, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", first, b}, {"Bob", second, a}} {
		t.Go(p.name, func(ctx context.Context, me *lab.Lane) error {
			defer me.Work(time.Millisecond)
			watched := &patient{TryLocker: p.second, ask: func() { me.Work(time.Millisecond) },
				told: func(d time.Duration) {
					l.Observe("refusedAfter", d)
					l.Observe("refused", p.name)
				}}
			n, err := startAgain(ctx, p.first, watched, func() { me.Work(2 * time.Millisecond) })
			mu.Lock()
			defer mu.Unlock()
			refusals += n
			if err == nil {
				through++
			}
			return err
		})
	}
	t.Wait()
	l.Equal(1, refusals, "of two parties exactly one is refused with locks.ErrDeadlock")
	l.Equal(2, through, "both get through, the refused one when it tries again")
	l.Observe("refusals", refusals)
}

// patient is a lock that somebody works before asking for, and that tells how long a refusal
// took.
type patient struct {
	locks.TryLocker
	ask  func()
	told func(time.Duration)
}

func (p *patient) LockContext(ctx context.Context) error {
	p.ask()
	start := time.Now()
	err := p.TryLocker.LockContext(ctx)
	if errors.Is(err, locks.ErrDeadlock) {
		p.told(time.Since(start))
	}
	return err
}
