package scenarios

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 40,
	Name:   "fairness",
	Topic:  lab.T("Fairness", "公平性"),
	Title:  lab.T("Fair and non-fair: what it costs, what it buys", "公平与非公平：代价与收益"),
	Question: lab.T("Does the lock go to the waiter that has waited longest, and what is the price?",
		"锁是否归等待最久的等待者？代价是什么？"),
	Claim: lab.T(`A goroutine that asks for a free fair lock queues if other goroutines wait. A non-fair lock goes to a
running goroutine, and the woken waiter finds it held again. That saves context switches, and is
faster. But a waiter may starve.

Here the fair policy hands the lock off directly. The non-fair policy limits how often the first waiter
can be overtaken.`, `申请公平锁时，只要有其他 goroutine 在等待，即使锁空闲也要排队。非公平锁则归正在运行的 goroutine，
被唤醒的等待者会发现锁又被占用了。这样省去上下文切换，速度更快，但等待者可能饥饿。

这里的公平策略直接移交锁；非公平策略则限制第一个等待者被超越的次数。`),
	Look: lab.T(`In the first picture the two goroutines alternate. In the second one of them acquires the lock again and
again while the other waits. The charts show cost and benefit side by side: the time for each
acquisition, all goroutines together, and the longest wait of one goroutine. Neither figure means
anything without the other.

Look at the last chart with care. Under a non-fair lock a goroutine that has a processor acquires the
lock again and again without a wait. The few long waits of the others hide behind those many. Most of
its line is far to the left, and its end far to the right.`,
		`第一幅图中，两个 goroutine 轮流持有锁。第二幅图中，一个反复得到锁，另一个一直等待。图表把代价与
收益并排列出：所有 goroutine 合计的每次加锁耗时，以及单个 goroutine 的最长等待。只看其中一个数字
没有意义。

最后一幅图表要仔细看。非公平锁下，占着处理器的 goroutine 可以不等待就反复加锁；其他 goroutine 少
数几次漫长的等待，就淹没在这些短等待之中。所以它的曲线大部分在最左边，末端却在最右边。`),
	Found: lab.T(`The goroutine that released the lock acquired it again past a waiter {{n .fifoPasses}} times under FIFO, and
{{n .bargingPasses}} times under NonFair. With {{n .goroutines}} goroutines an acquisition took
{{n .fifoCost}} under FIFO and {{n .bargingCost}} under NonFair ({{n .syncCost}} with sync.Mutex); the
longest wait was {{n .fifoMax}} against {{n .bargingMax}} ({{n .syncMax}}), half of all waits were shorter
than {{n .fifoP50}} against {{n .bargingP50}} ({{n .syncP50}}), and one in a hundred took longer than
{{n .fifoP99}} against {{n .bargingP99}} ({{n .syncP99}}). Jain's index of the shares: {{index .fifoJain}}
against {{index .bargingJain}} ({{index .syncJain}}). Longest streak past waiters: {{n .fifoStreak}} against
{{n .bargingStreak}} ({{n .syncStreak}}).`,
		`释放锁的 goroutine 越过等待者再次得到锁：FIFO 下 {{n .fifoPasses}} 次，NonFair 下 {{n .bargingPasses}}
次。{{n .goroutines}} 个 goroutine 竞争时，一次加锁的耗时在 FIFO 下为 {{n .fifoCost}}，在 NonFair
下为 {{n .bargingCost}}（sync.Mutex 为 {{n .syncCost}}）；最长等待分别为 {{n .fifoMax}} 和 {{n .bargingMax}}（{{n .syncMax}}）；
一半的等待短于 {{n .fifoP50}} 和 {{n .bargingP50}}（{{n .syncP50}}）；百分之一的等待长于 {{n .fifoP99}}
和 {{n .bargingP99}}（{{n .syncP99}}）。份额的 Jain 指数为 {{index .fifoJain}} 和 {{index .bargingJain}}（{{index .syncJain}}）。
连续越过等待者的最长纪录为 {{n .fifoStreak}} 次和 {{n .bargingStreak}} 次（{{n .syncStreak}} 次）。`),
	Take: lab.T("A lock that can be either is non-fair by default, in Java and here. That is right for most "+
		"programs. `fair.Mutex`, `fair.RWMutex`, `spin.Ticket` and `spin.MCS` are always FIFO, and "+
		"`fair.BargingMutex` never is. Use FIFO if the longest wait counts: for requests with a deadline, "+
		"or work that must not starve. Measure either policy with work outside the lock as well as inside.",
		"两种策略都支持的锁，默认是非公平的，Java 和这里都是如此；这对多数程序是合适的。`fair.Mutex`、"+
			"`fair.RWMutex`、`spin.Ticket` 和 `spin.MCS` 总是 FIFO，而 `fair.BargingMutex` 从不是 FIFO。如果"+
			"最长等待很重要（例如有截止时间的请求，或不允许饥饿的任务），请用 FIFO。无论测量哪种策略，锁内"+
			"和锁外都要有实际工作。"),
	Java: lab.Same(`new ReentrantLock();       // %s
new ReentrantLock(true);   // %s`).With(lab.T("non-fair", "非公平"), lab.T("fair", "公平")),
	Run: fairness,
})

//lab:show

// turns lets a goroutine acquire the lock again as soon as it has released it.
func turns(ctx context.Context, l locks.Locker, n int, work func(turn int)) error {
	for turn := range n {
		err := locks.Do(ctx, l, func(context.Context) error {
			work(turn)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

//lab:end

func fairness(ctx context.Context, l *lab.Lab) error {
	bench.Rounds(time.Microsecond) // The first call takes milliseconds, which the pictures have no room for.
	arrivals(ctx, l)
	fifo := twoInTurns(l, lab.T("FIFO", "FIFO"), lab.T("Each release hands the lock off to the waiter.",
		"每次释放都把锁移交给等待者。"), reentrant.New(locks.FIFO))
	barging := twoInTurns(l, lab.T("NonFair",
		"NonFair"), lab.T("The running goroutine acquires the lock again. The waiter is "+
		"overtaken, but not for ever.",
		"正在运行的 goroutine 再次得到锁。等待者被超越，但不会永远如此。"), new(reentrant.Mutex))
	l.Equal(0, fifo, lab.T("under FIFO no goroutine that releases the lock is next past a waiter",
		"在 FIFO 下，释放锁的 goroutine 不会越过等待者再次得到锁"))
	l.Observe("fifoPasses", fifo)
	l.Observe("bargingPasses", barging)
	return contest(ctx, l)
}

// arrivals checks that FIFO admits in the order of arrival.
func arrivals(ctx context.Context, l *lab.Lab) {
	mu := reentrant.New(locks.FIFO)
	mu.Lock()
	var got []int
	var wg sync.WaitGroup
	const n = 8
	for i := range n {
		wg.Go(func() {
			if mu.LockContext(ctx) == nil {
				got = append(got, i)
				mu.Unlock()
			}
		})
		l.Until(lab.T("it queues", "它已排队"), func() bool { return mu.QueueLength() == i+1 })
	}
	mu.Unlock()
	wg.Wait()
	l.Equal([]int{0, 1, 2, 3, 4, 5, 6, 7}, got, lab.T("FIFO admits in the order of arrival",
		"FIFO 按到达顺序放行"))
}

// twoInTurns returns how often the goroutine that released the lock got it again while the
// other one was in the queue.
func twoInTurns(l *lab.Lab, title, desc lab.Text, mu *reentrant.Mutex) (overtakes int) {
	t := l.Timeline(title, desc)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	last, queued := "", false // guarded by mu
	began := make(chan struct{})
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(lab.Same(name), func(ctx context.Context, me *lab.Lane) error {
			if i > 0 {
				<-began
			}
			return turns(ctx, watched, 20, func(turn int) {
				if last == name && queued {
					overtakes++
				}
				if i == 0 && turn == 0 {
					close(began)
					l.Until(lab.T("Bob waits", "Bob 在等待"), mu.HasQueued)
				}
				me.Compute(150 * time.Microsecond)
				last, queued = name, mu.HasQueued()
			})
		})
	}
	t.Wait()
	return overtakes
}

// contestants are the locks compared, in the colours of the charts.
var contestants = []struct {
	key, name string
	new       func() sync.Locker
}{
	{"fifo", "FIFO", func() sync.Locker { return new(fair.Mutex) }},
	{"barging", "NonFair", func() sync.Locker { return new(fair.BargingMutex) }},
	{"sync", "sync.Mutex", func() sync.Locker { return new(sync.Mutex) }},
}

func contest(ctx context.Context, l *lab.Lab) error {
	counts := lab.Pick(l, []int{2, 8, 32}, []int{2, 4, 8, 16, 32, 64})
	slot := lab.Pick(l, 25*time.Millisecond, 100*time.Millisecond)
	rounds := lab.Pick(l, 2, 4)
	crowd := counts[len(counts)-1]
	cost := make([]lab.Series, len(contestants))
	wait := make([]lab.Series, len(contestants))
	share := make([]lab.Series, len(contestants))
	waits := make([]lab.Series, len(contestants))
	table := lab.Table{Title: lab.T("Waits in the largest crowd",
		"goroutine 最多时的等待"), Head: []lab.Text{lab.T("lock",
		"锁"), lab.T("waits",
		"等待"), lab.T("median",
		"中位数"), lab.T("p90",
		"p90"),
		lab.T("p99", "p99"), lab.T("p99.9", "p99.9"), lab.T("longest", "最长")}}
	for _, n := range counts {
		results := make([]bench.Result, len(contestants))
		perOp := make([]float64, len(contestants))
		for round := range rounds {
			for j := range contestants {
				// There and back, so that a machine which gets busier does so for all.
				i := j
				if round%2 == 1 {
					i = len(contestants) - 1 - j
				}
				r, err := bench.Contend(ctx, contestants[i].new(), bench.Contest{Goroutines: n, For: slot,
					Inside: 300 * time.Nanosecond, Outside: 300 * time.Nanosecond, Sample: 1, Streaks: true})
				if err != nil {
					return fmt.Errorf("%s with %d goroutines: %w", contestants[i].name, n, err)
				}
				// Of several rounds the calmest counts: the round with the shortest longest wait,
				// since other work of the machine makes waits longer. All figures of waits are of
				// this round, so that charts and texts have the same longest wait.
				if best := &results[i]; round == 0 || r.Waits.Max() < best.Waits.Max() {
					*best = r
				}
				if cost := r.PerOp(); round == 0 || cost < perOp[i] {
					perOp[i] = cost
				}
			}
		}
		for i, c := range contestants {
			r, x := &results[i], float64(n)
			name := lab.Same(c.name)
			cost[i].Name, wait[i].Name, share[i].Name, waits[i].Name = name, name, name, name
			cost[i].Points = append(cost[i].Points, lab.Point{X: x, Y: perOp[i]})
			wait[i].Points = append(wait[i].Points, lab.Point{X: x, Y: max(1, float64(r.Waits.Max()))})
			share[i].Points = append(share[i].Points, lab.Point{X: x, Y: r.Jain})
			if n != crowd {
				continue
			}
			for nines := 0.0; nines <= 4; nines += 0.125 {
				exceeds := math.Pow(10, -nines)
				if exceeds*float64(r.Waits.Count()) <= 1 {
					break // the longest wait comes next
				}
				waits[i].Points = append(waits[i].Points, lab.Point{X: max(10,
					float64(r.Waits.Quantile(1-exceeds))), Y: exceeds})
			}
			row := []lab.Text{name, lab.Same(lab.Count.Format(float64(r.Waits.Count())))}
			for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
				row = append(row, lab.Same(lab.Duration(r.Waits.Quantile(q))))
			}
			waits[i].Points = append(waits[i].Points, lab.Point{X: max(10, float64(r.Waits.Max())),
				Y: 1 / float64(max(r.Waits.Count(), 1))})
			table.Rows = append(table.Rows, append(row, lab.Same(lab.Duration(r.Waits.Max()))))
			l.Observe(c.key+"Cost", time.Duration(perOp[i]))
			l.Observe(c.key+"Max", r.Waits.Max())
			l.Observe(c.key+"P50", r.Waits.Quantile(0.5))
			l.Observe(c.key+"P99", r.Waits.Quantile(0.99))
			l.Observe(c.key+"Jain", r.Jain)
			l.Observe(c.key+"Streak", r.Streak)
		}
		if n == crowd {
			fifo, barging := &results[0], &results[1]
			l.Race(fifo.Waits.Max() < barging.Waits.Max(),
				lab.T("in the largest crowd the longest wait under FIFO is shorter than under NonFair",
					"goroutine 最多时，FIFO 的最长等待短于 NonFair"))
			l.Race(perOp[0] > perOp[1],
				lab.T("in the largest crowd an acquisition under FIFO takes longer than under NonFair",
					"goroutine 最多时，FIFO 的一次加锁耗时长于 NonFair"))
		}
	}
	l.Check(true, lab.T("no lock let two goroutines in at a time", "没有一把锁同时放进两个 goroutine"))
	l.Observe("goroutines", crowd)

	goroutines := lab.Axis{Label: lab.T("goroutines", "goroutine 数"), Log: true}
	l.Chart(lab.Chart{Title: lab.T("Cost: time for an acquisition",
		"代价：每次加锁的耗时"), X: goroutines, Y: lab.Axis{Label: lab.T("for each "+
		"acquisition", "每次加锁"), Unit: lab.Nanos}, Series: cost,
		Desc: lab.T("The time that an acquisition takes, all goroutines together, over the number of goroutines. "+
			"Lower is better.", "所有 goroutine 合计的每次加锁耗时，随 goroutine 数变化。越低越好。")})
	l.Chart(lab.Chart{Title: lab.T("Benefit: the longest wait",
		"收益：最长等待"), X: goroutines, Y: lab.Axis{Label: lab.T("wait",
		"等待"),
		Unit: lab.Nanos, Log: true}, Series: wait,
		Desc: lab.T("The longest wait of any goroutine over the number of goroutines, in the calmest round. Lower is "+
			"better.", "任一 goroutine 的最长等待，随 goroutine 数变化，取自最平静的一轮。越低越好。")})
	l.Chart(lab.Chart{Title: lab.T("How evenly the lock was shared",
		"锁分配得有多均匀"), X: goroutines, Y: lab.Axis{Label: lab.T("Jain's "+
		"index", "Jain 指数"), Unit: lab.Decimals}, Series: share,
		Desc: lab.T("Jain's index of the acquisitions of each goroutine: 1 if all had as many.",
			"各 goroutine 加锁次数的 Jain 指数：次数完全相同时为 1。")})
	l.Chart(lab.Chart{Title: lab.T("Waits in the largest crowd",
		"goroutine 最多时的等待"), X: lab.Axis{Label: lab.T("wait",
		"等待"), Unit: lab.Nanos, Log: true},
		Y: lab.Axis{Label: lab.T("share of waits that took longer",
			"更长的等待所占比例"), Unit: lab.Percent, Log: true}, Series: waits,
		Desc: lab.T("For each wait, the share of all waits that took longer. The further a line reaches to the "+
			"right, the longer the unlucky wait.",
			"对每个等待时长，给出比它更长的等待所占的比例。曲线越往右延伸，运气最差的那次等待就越长。")})
	l.Table(table)
	return nil
}
