package scenarios

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 150,
	Name:   "stages",
	Topic:  lab.T("Inside", "内部机制"),
	Title: lab.T("Three stages: the owner again, a short spin, parking",
		"三个阶段：所有者重入、短暂自旋、挂起"),
	Question: lab.T("What does a lock do to avoid putting a goroutine to sleep?",
		"锁怎样避免让 goroutine 去睡眠？"),
	Claim: lab.T(`Java's monitor went through stages: biased to its first thread, then light-weight, with a short spin,
then heavy-weight, with threads that sleep. Each stage costs more than the one before, and is used only
if the one before does not suffice. Newer releases of HotSpot have no bias, and make an idle heavy
monitor light again.

The lock here has these stages too, but decides anew at every acquisition. The owner itself only counts.
Another goroutine spins for less than a microsecond, because a holder that is nearly done will
release by then. After that it parks in the queue.`,
		`Java 的监视器经历几个阶段：先偏向第一个线程，再是短暂自旋的轻量级锁，然后是让线程睡眠的重量级锁。
后一阶段代价更高，前一阶段不够用时才进入。较新的 HotSpot 版本取消了偏向锁，并会让空闲的
重量级监视器重新变轻。

这里的锁也有这些阶段，但每次加锁都重新决定。所有者自己重入时只是计数。其他 goroutine 先自旋不到
一微秒，因为快要用完锁的持有者在这段时间里就会释放；之后它才在队列中挂起。`),
	Look: lab.T(`The table counts the stages. The line shows how many waiters were parked in the queue at the release,
over the length of the hold. Short holds end while the waiter spins; in long ones it parks. Spinning
needs a second, idle processor: on a busy machine nearly every waiter parks.`,
		`表格统计各个阶段。折线表示释放时有多少等待者已在队列中挂起，随持有时长变化。持有很短时，等待者还
在自旋就得到锁；持有很长时，它会挂起。自旋需要另一个空闲的处理器：机器很忙时，几乎每个等待者都会
挂起。`),
	Found: lab.T(`A re-entry and its unlock took {{n .reentry}}, a free lock {{n .free}}; {{n .reentries}}
re-entries parked no goroutine. Of the goroutines that asked for a held lock, {{.spun}}, and {{n .sleepers}}
were parked, and ran {{n .parked}} after the unlock at best. Of the shortest holds
{{percent .parkedShort}} had parked their waiter, of the longest {{percent .parkedLong}}.`,
		`一次重入及其解锁用了 {{n .reentry}}，空闲锁的加锁和解锁用了 {{n .free}}；{{n .reentries}} 次重入
没有让任何 goroutine 挂起。申请被占用的锁的 goroutine 中，{{.spun}}，另有 {{n .sleepers}} 个被挂
起，最快的在解锁后 {{n .parked}} 开始运行。持有时间最短时，{{percent .parkedShort}} 的等待者被挂
起；持有时间最长时为 {{percent .parkedLong}}。`),
	Take: lab.T(`Keep sections short, and the lock is cheap. There is nothing to tune.`,
		"临界区保持短小，锁就很便宜。没有什么需要调优。"),
	Java: lab.Same(`synchronized (o) {          // %s
    synchronized (o) { }    // %s
}                           // %s`).With(lab.T("the same monitor:",
		"同一个监视器："), lab.T("re-entry counts", "重入计数"), lab.T("contention inflates it", "竞争使它膨胀")),
	Run: stages,
})

//lab:show

// again counts holds of a lock that the goroutine has already. Nothing else happens.
func again(mu *reentrant.Mutex, n int) (holds int) {
	for range n {
		mu.Lock()
	}
	holds = mu.HoldCount()
	for range n {
		mu.Unlock()
	}
	return holds
}

// parkedBy holds the lock for some time after another goroutine asked for it, and reports
// whether that goroutine is parked in the queue by then.
func parkedBy(mu *reentrant.Mutex, hold time.Duration) bool {
	bench.Work(hold)
	return mu.HasQueued()
}

//lab:end

func stages(_ context.Context, l *lab.Lab) error {
	var mu reentrant.Mutex
	const n = 20_000
	free := bestOf(func() {
		for range n {
			mu.Lock()
			mu.Unlock() //lint:ignore SA2001 There is nothing else to measure.
		}
	}) / n
	mu.Lock()
	var holds int
	reentry := bestOf(func() { holds = again(&mu, n) }) / n
	l.Equal(n+1, holds, lab.T("every re-entry is counted", "每次重入都有计数"))
	l.Check(!mu.HasQueued(), lab.T("a re-entry parks no goroutine", "重入不会让 goroutine 挂起"))
	mu.Unlock()
	l.Check(!mu.IsLocked(), lab.T("after as many unlocks the lock is free", "解锁同样多次之后，锁空闲"))

	rounds := lab.Pick(l, 30, 150)
	series := lab.Series{Name: lab.T("parked", "挂起的比例")}
	all := met{awake: time.Hour, woken: time.Hour}
	for _, hold := range []time.Duration{50, 200, 800, 3_000, 12_000, 50_000, 200_000} {
		s := meetings(l, &mu, rounds, hold)
		share := float64(s.parked) / float64(rounds)
		series.Points = append(series.Points, lab.Point{X: float64(hold), Y: share})
		all.spun += s.spun
		all.parked += s.parked
		all.awake = min(all.awake, s.awake)
		all.woken = min(all.woken, s.woken)
		switch hold {
		case 50:
			l.Observe("parkedShort", share)
		case 200_000:
			l.Observe("parkedLong", share)
			l.Check(share > 0.5, lab.T("a long hold parks most waiters", "持有很久时，多数等待者被挂起"))
		}
	}
	spun, spinning := lab.T("none got the lock while it was spinning", "没有一个在自旋时得到锁"), "-"
	if all.spun > 0 {
		spinning = lab.Duration(all.awake)
		spun = lab.T("%d got the lock while they were spinning, the quickest %s after the unlock",
			"有 %d 个在自旋时得到锁，最快的在解锁后 %s 得到").
			With(all.spun, spinning)
	}
	l.Table(lab.Table{Title: lab.T("The stages, counted",
		"各阶段的统计"), Head: []lab.Text{lab.T("stage", "阶段"), lab.T("how often",
		"次数"), lab.T("parked",
		"挂起的比例"), lab.T("at "+
		"best, each", "每次最快")}, Rows: [][]lab.Text{
		{lab.T("a free lock",
			"空闲的锁"), lab.Same(strconv.Itoa(tries * n)), lab.Same("0"), lab.Same(lab.Duration(free))},
		{lab.T("the owner again",
			"所有者重入"), lab.Same(strconv.Itoa(tries * n)), lab.Same("0"), lab.Same(lab.Duration(reentry))},
		{lab.T("another, a short spin",
			"其他 goroutine，短暂自旋"), lab.Same(strconv.Itoa(all.spun)), lab.Same("0"), lab.Same(spinning)},
		{lab.T("another, parked",
			"其他 goroutine，挂起"), lab.Same(strconv.Itoa(all.parked)), lab.Same(strconv.Itoa(all.parked)),
			lab.Same(lab.Duration(all.woken))},
	}})
	l.Observe("reentry", reentry)
	l.Observe("free", free)
	l.Observe("spun", spun)
	l.Observe("parked", all.woken)
	l.Observe("sleepers", all.parked)
	l.Observe("reentries", tries*n)
	l.Chart(lab.Chart{
		Title: lab.T("Waiters that were parked, over the time of the hold", "被挂起的等待者，随持有时长变化"),
		Desc: lab.T("The share of waiters that were parked in the queue when the lock was released, over how "+
			"long it was held after they had asked.",
			"释放锁时已在队列中挂起的等待者所占比例，随提出申请之后锁继续被持有的时长变化。"),
		X: lab.Axis{Label: lab.T("held for, after a goroutine asked", "申请之后继续持有的时长"), Unit: lab.Nanos,
			Log: true}, Y: lab.Axis{Label: lab.T("parked", "挂起的比例"), Unit: lab.Percent},
		Series: []lab.Series{series},
	})
	stagesPicture(l)
	return nil
}

// tries is how often bestOf measures.
const tries = 5

// bestOf returns the shortest time of several: whatever disturbs makes it longer.
func bestOf(f func()) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best
}

type met struct {
	spun, parked int           // goroutines that got the lock without parking, and after parking
	awake, woken time.Duration // the shortest ways from unlock to having the lock
}

// watch waits until n is at least as much. It gives way seldom, and never sleeps: the two
// should be awake at once, if there are processors for both.
func watch(n *atomic.Int64, least int64) {
	for i := 1; n.Load() < least; i++ {
		if i%5_000 == 0 {
			runtime.Gosched()
		}
	}
}

// awake is how soon a goroutine answers that is running on another processor. One that must be
// given a processor first takes longer.
const awake = 2 * time.Microsecond

// meetings makes a goroutine ask for the lock while another goroutine holds it. Both are running
// when it asks, if possible: the holder calls until the other answers at once, some hundred times
// at most. Only the wait for the lock sleeps.
func meetings(l *lab.Lab, mu *reentrant.Mutex, rounds int, hold time.Duration) met {
	m := met{awake: time.Hour, woken: time.Hour}
	var called, answered, ask, asking, took atomic.Int64
	began := time.Now()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		for round := range int64(rounds) {
			for i := 1; ask.Load() <= round; i++ {
				if c := called.Load(); c != answered.Load() {
					answered.Store(c)
				}
				if i%5_000 == 0 {
					runtime.Gosched()
				}
			}
			asking.Store(round + 1)
			mu.Lock()
			at := time.Since(began)
			mu.Unlock()
			took.Store(int64(at))
		}
	})
	calls := 1000
	for round := range int64(rounds) {
		mu.Lock()
		for calls > 0 {
			calls--
			start := time.Now()
			watch(&answered, called.Add(1))
			if time.Since(start) < awake {
				break
			}
		}
		took.Store(0)
		ask.Store(round + 1)
		watch(&asking, round+1)
		parked := parkedBy(mu, hold)
		released := time.Since(began)
		mu.Unlock()
		watch(&took, 1)
		after := time.Duration(took.Load()) - released
		if parked {
			m.parked++
			m.woken = min(m.woken, after)
		} else {
			m.spun++
			m.awake = min(m.awake, after)
		}
	}
	return m
}

func stagesPicture(l *lab.Lab) {
	t := l.Timeline(lab.T("Held for long",
		"长时间持有"), lab.T("The waiter spins for too short a time to be seen here, is parked, "+
		"and wakes up with the lock.", "等待者自旋的时间短得在图中看不见，随后被挂起，醒来时已得到锁。"))
	mu := new(reentrant.Mutex)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		for range 2 {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Mark(lab.T("hold %d", "第 %d 次持有"), mu.HoldCount())
		}
		l.Until(lab.T("the other is parked", "另一个已挂起"), mu.HasQueued)
		me.Mark(lab.T("the other is parked", "另一个已挂起"))
		me.Work(4 * time.Millisecond)
		for range 2 {
			if err := watched.UnlockContext(ctx); err != nil {
				return err
			}
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go(lab.T("waiter", "等待者"), func(ctx context.Context, me *lab.Lane) error {
		l.Until(lab.T("it is held twice", "锁被持有两次"), mu.IsLocked)
		me.Work(time.Millisecond)
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		me.Work(2 * time.Millisecond)
		return watched.UnlockContext(ctx)
	})
	t.Wait()
}
