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
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 90,
	Name:   "deadlock",
	Topic:  lab.T("Deadlock", "死锁"),
	Title:  lab.T("A deadlock made, and avoided", "制造死锁，避免死锁"),
	Question: lab.T(`What happens if goroutines acquire two locks in two orders, and what prevents it?`,
		"如果 goroutine 以不同的顺序获取两把锁，会发生什么？怎样预防？"),
	Claim: lab.T(`A deadlock needs four things at once: exclusion, an owner that holds one lock while it waits for
another, locks that cannot be taken away, and a cycle of waiters. If one of them is missing, there is
no deadlock.

A wait for the second lock that ends by a time limit releases the first lock. A common order has no cycles. Fewer locks and
shorter sections make cycles rarer. Locks that know their owners can find a cycle afterwards. As in
databases, they can also refuse the request that would close it.`,
		`死锁需要四个条件同时成立：互斥；所有者持有一把锁的同时等待另一把；锁不能被强行夺走；等待者构成环
路。缺少任何一个，就没有死锁。

给第二把锁的等待设时限，超时就释放第一把锁。统一的加锁顺序不会形成环路。锁更少、临界区更短，环路就
更罕见。知道自己所有者的锁可以在死锁发生之后找出环路；也可以像数据库那样，拒绝会使环路闭合的那次申请。`),
	Look: lab.T("In the first picture each goroutine holds one lock and waits for the other's. `deadlock.Find` "+
		"describes the cycle, and the scenario cancels one wait. In the second picture the second wait "+
		"has a time limit. When it ends, the goroutine releases its first lock, and tries again. In the "+
		"third, `locks.Multi` acquires both locks in an order of its own, in whatever order the caller lists "+
		"them.\n\n"+
		"In the last picture cycles are refused. The goroutine that would close one gets an error at "+
		"once, releases its lock, and waits for its turn.",
		"第一幅图中，每个 goroutine 持有一把锁，等待对方的锁。`deadlock.Find` 描述了环路，场景随后取"+
			"消了其中一次等待。第二幅图中，第二次等待有时限，到时后 goroutine 释放第一把锁，再重试。第三"+
			"幅图中，无论调用者以什么顺序列出两把锁，`locks.Multi` 都按自己的顺序获取。\n\n"+
			"最后一幅图中，环路会被拒绝。将使环路闭合的 goroutine 立即得到错误，释放自己的锁，再等待轮到"+
			"自己。"),
	Found: lab.T(`deadlock.Find saw the cycle, which stood for {{n .stuck}} until one wait was cancelled, and none
afterwards. With time limits both finished; they backed off {{times .backOffs}}. With Multi,
{{.transfers}} transfers in opposite orders all went through, and left the sum as it was. With refusal
{{.refused}} got locks.ErrDeadlock after {{n .refusedAfter}}, {{times .refusals}} in all, and both finished.`,
		`deadlock.Find 发现了环路，它持续了 {{n .stuck}}，直到一次等待被取消；之后不再有环路。使用时限时，
两者都完成了，共退让 {{times .backOffs}}。使用 Multi 时，{{.transfers}} 次方向相反的转账全部完成，
总和不变。启用拒绝时，{{.refused}} 在 {{n .refusedAfter}} 后得到 locks.ErrDeadlock，共拒绝 {{times .refusals}}，
最后两者都完成了。`),
	Take: lab.T("Use `locks.Multi` if you know all locks beforehand. Otherwise give every wait a context with a "+
		"deadline. After a failure release everything, and try again after a pause of a random length. "+
		"Call `deadlock.Find` in the handler of a health check to see what hangs. `deadlock.Refuse` acts "+
		"on the whole process, and is for programs that can start again.",
		"如果事先知道所有的锁，用 `locks.Multi`。否则给每次等待一个带截止时间的 context；失败之后释放"+
			"全部锁，停顿一段随机的时间再重试。在健康检查的处理函数中调用 `deadlock.Find`，可以看到卡在"+
			"哪里。`deadlock.Refuse` 作用于整个进程，适合能够从头重试的程序。"),
	Java: lab.Same(`if (a.tryLock(50, MILLISECONDS)) try {
    if (b.tryLock(50, MILLISECONDS)) try { transfer(); }
    finally { b.unlock(); }
} finally { a.unlock(); }`),
	Run: deadlocks,
})

//lab:show

// inOrder acquires first and then second. Another goroutine acquires them the other way round.
func inOrder(ctx context.Context, first, second locks.Locker, work func()) error {
	return locks.Do(ctx, first, func(ctx context.Context) error {
		return locks.Do(ctx, second, func(context.Context) error { work(); return nil })
	})
}

// timed waits for the second lock for at most patience, and then releases the first lock.
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
	t := l.Timeline(lab.T("Made",
		"制造死锁"), lab.T("Each has one lock and waits for the other. Neither can continue until one wait is "+
		"cancelled.", "双方各持一把锁，等待另一把。直到其中一次等待被取消，谁也无法继续。"))
	muA, muB := new(reentrant.Mutex), new(reentrant.Mutex)
	a, b := t.Wrap(lab.Same("A"), muA), t.Wrap(lab.Same("B"), muB)
	first, second := firstLocks(a, b)
	giveUp, cancel := context.WithCancel(context.Background())
	defer cancel()
	var names sync.Map // of the goroutines, by owner
	t.Go(lab.Same("Ann"), func(ctx context.Context, me *lab.Lane) error {
		names.Store(locks.CurrentOwner(ctx), me.Name.EN)
		defer me.Work(time.Millisecond)
		return inOrder(ctx, first, b, func() { me.Work(2 * time.Millisecond) })
	})
	t.Go(lab.Same("Bob"), func(_ context.Context, me *lab.Lane) error {
		names.Store(locks.CurrentOwner(giveUp), me.Name.EN)
		defer me.Work(time.Millisecond)
		err := inOrder(giveUp, second, a, func() {})
		l.Is(context.Canceled, err, lab.T("a wait that is cancelled ends, and its locks are released",
			"被取消的等待会结束，它的锁也会释放"))
		return nil
	})
	start := time.Now()
	var cycles []deadlock.Cycle
	l.Until(lab.T("the cycle is closed",
		"环路已闭合"), func() bool { cycles = deadlock.Find(); return len(cycles) > 0 })
	l.Equal(1, len(cycles), lab.T("deadlock.Find finds the one cycle", "deadlock.Find 找到了这个环路"))
	cycle := cycles[0]
	ann, bob := muA.Owner(), muB.Owner()
	l.Check(ann != bob && muB.IsQueued(ann) && muA.IsQueued(bob),
		lab.T("each owner waits for the other's lock: a cycle",
			"双方都在等待对方的锁：构成环路"))
	parties := map[locks.Owner]locks.Owner{}
	table := lab.Table{Title: lab.T("The cycle, as deadlock.Find describes it",
		"deadlock.Find 描述的环路"), Head: []lab.Text{lab.T("who",
		"谁"), lab.T("waits for",
		"等待"),
		lab.T("which has", "其持有者")}}
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
		table.Rows = append(table.Rows, []lab.Text{lab.Same(name(w.Party)), lab.Same(lock), lab.Same(name(w.For))})
	}
	l.Equal(map[locks.Owner]locks.Owner{ann: bob, bob: ann}, parties, lab.T("it names who waits for whom",
		"它指出谁在等谁"))
	l.Table(table)
	l.Quote(lab.Quote{Title: lab.T("What deadlock.Find said",
		"deadlock.Find 的输出"), Desc: lab.T("Its description of the cycle. Of the "+
		"stacks only the lines of the scenario and of the lock are left.",
		"它对环路的描述。调用栈中只保留了场景和锁的行。"), Text: concise(cycle.String())})
	time.Sleep(5 * time.Millisecond)
	l.Check(muB.IsQueued(ann) && muA.IsQueued(bob), lab.T("the cycle does not go away by itself",
		"环路不会自行消失"))
	l.Observe("stuck", time.Since(start))
	cancel()
	t.Wait()
	l.Equal(0, len(deadlock.Find()), lab.T("after that there is none any more", "之后不再有环路"))
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
	t := l.Timeline(lab.T("Avoided by a time limit",
		"用时限避免"), lab.T("Who does not get the second lock in time gives the first "+
		"one back, pauses, and tries again.", "没能按时得到第二把锁的一方归还第一把锁，停顿一下再重试。"))
	a, b := t.Wrap(lab.Same("A"), new(reentrant.Mutex)), t.Wrap(lab.Same("B"), new(reentrant.Mutex))
	first, second := firstLocks(a, b)
	var mu sync.Mutex
	backOffs, through := 0, 0
	for i, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", first, b}, {"Bob", second, a}} {
		t.Go(lab.Same(p.name), func(ctx context.Context, me *lab.Lane) error {
			defer me.Work(time.Millisecond)
			for {
				err := timed(ctx, p.first, p.second, 3*time.Millisecond, func() {
					me.Mark(lab.T("has both", "两把都已持有"))
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
	l.Equal(2, through, lab.T("with a time limit, both get both locks in the end",
		"使用时限，双方最后都得到两把锁"))
	l.Check(backOffs >= 1, lab.T("one goroutine had to back off", "有一个 goroutine 不得不退让"))
	l.Observe("backOffs", backOffs)
}

func avoidedByOrder(l *lab.Lab) {
	t := l.Timeline(lab.T("Avoided by Multi",
		"用 Multi 避免"), lab.T("Both list the locks in opposite orders. Multi takes them in the same one.",
		"双方以相反的顺序列出两把锁，Multi 以相同的顺序获取。"))
	a, b := t.Wrap(lab.Same("A"), new(reentrant.Mutex)), t.Wrap(lab.Same("B"), new(reentrant.Mutex))
	left, right := 100, 100 // guarded by both locks
	transfers := 0
	for i, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", a, b}, {"Bob", b, a}} {
		t.Go(lab.Same(p.name), func(ctx context.Context, me *lab.Lane) error {
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
	l.Equal([]int{6, 100, 100}, []int{transfers, left, right}, lab.T("with Multi, opposite orders do no harm",
		"使用 Multi，相反的顺序没有危害"))
	l.Observe("transfers", transfers)
}

func refused(l *lab.Lab) {
	defer deadlock.Refuse(deadlock.Refuse(true)) // It is for the whole process.
	t := l.Timeline(lab.T("Refused",
		"拒绝"), lab.T("The last one to ask would close the cycle. It is refused, gives its lock "+
		"back, and queues for it again.", "最后一个申请者会使环路闭合。它被拒绝，归还自己的锁，再重新排队。"))
	// FIFO hands the returned lock to the waiting goroutine. Otherwise the refused goroutine might
	// have it again at once, and be refused again.
	a, b := t.Wrap(lab.Same("A"), reentrant.New(locks.FIFO)), t.Wrap(lab.Same("B"), reentrant.New(locks.FIFO))
	first, second := firstLocks(a, b)
	var mu sync.Mutex
	refusals, through := 0, 0
	for _, p := range []struct {
		name          string
		first, second locks.TryLocker
	}{{"Ann", first, b}, {"Bob", second, a}} {
		t.Go(lab.Same(p.name), func(ctx context.Context, me *lab.Lane) error {
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
	l.Equal(1, refusals, lab.T("of two parties exactly one is refused with locks.ErrDeadlock",
		"双方之中恰好有一个被拒绝，错误为 locks.ErrDeadlock"))
	l.Equal(2, through, lab.T("both get through, the refused one when it tries again",
		"双方都能完成，被拒绝的一方在重试时完成"))
	l.Observe("refusals", refusals)
}

// patient is a lock for which a goroutine asks after some work, and that tells how long a refusal
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
