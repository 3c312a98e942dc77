package scenarios

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/bench"
	"github.com/jucgo/locks/spin"
)

var _ = register(lab.Scenario{
	Lesson: 160,
	Name:   "spinning",
	Topic:  lab.T("Inside", "内部机制"),
	Title:  lab.T("Spin or sleep, and where they cross", "自旋还是睡眠，以及二者的交叉点"),
	Question: lab.T(`Should a waiter try again until the lock is free, or sleep until it is woken?`,
		"等待者应该不断重试直到锁空闲，还是睡眠直到被唤醒？"),
	Claim: lab.T(`To put a waiter to sleep and to wake it takes two context switches. A spinning waiter saves both if
the holder releases before. If not, it wastes a processor that another goroutine could have used,
perhaps the holder.

Therefore spinning pays off for short sections, with no more goroutines than processors. With one
processor it never does: nothing can change while the waiter looks. A lock does not know how long a
section takes. It spins for about as long as sleeping would cost, and sleeps then. That is never much
worse than the better of the two.`,
		`让等待者睡眠再唤醒它，需要两次上下文切换。如果持有者很快释放，自旋的等待者就省下了这两次；否则它
白白占用一个处理器，而别的 goroutine（也许就是持有者）本来可以使用它。

所以，临界区很短、goroutine 不多于处理器时，自旋才划算。只有一个处理器时从不划算：等待者盯着看的
时候，什么也不会改变。锁不知道临界区有多长。它自旋的时间大约等于睡眠的代价，然后才睡眠；这样，代价永
远不会比两者中较好的那个高出很多。`),
	Look: lab.T(`In the picture the waiter spins first, and the holder marks the moment when it finds the waiter asleep
in the queue. The charts show the cost of a turn, as a multiple of the section itself: its time, all
goroutines together, and its processor time. Compare the two that do one thing only: the loop always
spins, and the channel always puts the waiter to sleep. On a calm machine the loop may look good by time
at any length, because it is running when the lock becomes free. It pays with processor time. On a busy
machine noise may decide, and the table says so.

Then look at the locks that do both. `+
		"`sync.Mutex` and `fair.BargingMutex` also spin for a moment.",
		`图中等待者先自旋；持有者发现等待者已在队列中睡眠时，标出这一时刻。图表给出一轮的代价，以临界区本
身的倍数表示：所有 goroutine 合计的耗时，以及处理器时间。请比较只做一件事的两种锁：循环总是自旋，
channel 总是让等待者睡眠。机器空闲时，无论临界区多长，循环在耗时上都可能好看，因为锁空闲时它正在
运行；它付出的是处理器时间。机器很忙时，结果可能由噪声决定，表格会说明这一点。

然后再看两者兼有的锁。`+
			"`sync.Mutex` 和 `fair.BargingMutex` 也会自旋片刻。"),
	Found: lab.T(`The waiter of the picture was asleep {{n .asleep}} after it had asked. Which was ahead, the
loop or the channel? With a goroutine for each processor, by time: {{.aloneTime}}. By processor time:
{{.aloneWork}}. With {{n .crowd}} goroutines, by time: {{.crowdedTime}}. By processor time: {{.crowdedWork}}.
With one processor, {{n .turns}} turns of {{n .crowd}} goroutines came to their end under every lock.`,
		`图中的等待者在申请之后 {{n .asleep}} 进入睡眠。循环与 channel 相比，谁领先？每个处理器一个 goroutine
时，按耗时：{{.aloneTime}}；按处理器时间：{{.aloneWork}}。{{n .crowd}} 个 goroutine 时，按耗时：
{{.crowdedTime}}；按处理器时间：{{.crowdedWork}}。只有一个处理器时，在每一种锁下，{{n .crowd}}
个 goroutine 的 {{n .turns}} 轮都全部完成。`),
	Take: lab.T("`sync.Mutex` already spins if that looks promising, so a spin lock is seldom much faster. Use "+
		"`spin.Mutex` for sections of a few instructions, with no more goroutines than processors, and "+
		"only if it measures faster. Never write a loop that spins without an end: `spin.Backoff` yields "+
		"the processor in time.",
		"`sync.Mutex` 本来就会在有望得到锁时自旋，所以自旋锁很少能快多少。只有临界区仅有几条指令、goroutine "+
			"不多于处理器、而且实测更快时，才用 `spin.Mutex`。绝不要写没有上限的自旋循环：`spin.Backoff` "+
			"会及时让出处理器。"),
	Java: lab.Same(`while (!held.compareAndSet(false, true))
    while (held.get()) Thread.onSpinWait();   // %s`).With(lab.T("and when to sleep?", "那么何时睡眠？")),
	Run: spinning,
})

//lab:show

// spinLoop never sleeps: test and test-and-set. Its Backoff yields the processor when the spin has
// taken too long. Otherwise the holder might lack a processor to continue on.
type spinLoop struct{ held atomic.Bool }

func (s *spinLoop) Lock() {
	var b spin.Backoff
	for s.held.Load() || !s.held.CompareAndSwap(false, true) {
		b.Pause()
	}
}

func (s *spinLoop) Unlock() { s.held.Store(false) }

// channel never spins: a goroutine that finds it full sleeps.
type channel chan struct{}

func (c channel) Lock()   { c <- struct{}{} }
func (c channel) Unlock() { <-c }

//lab:end

// spinners are the locks compared, in the colours of the charts.
var spinners = []struct {
	name lab.Text
	new  func() sync.Locker
}{
	{lab.Same("spin.Mutex"), func() sync.Locker { return new(spin.Mutex) }},
	{lab.Same("fair.BargingMutex"), func() sync.Locker { return new(fair.BargingMutex) }},
	{lab.Same("sync.Mutex"), func() sync.Locker { return new(sync.Mutex) }},
	{lab.T("the loop", "循环"), func() sync.Locker { return new(spinLoop) }},
	{lab.T("the channel", "channel"), func() sync.Locker { return make(channel, 1) }},
}

// queuedSpinners are locks that admit in the order of arrival. The last one does not spin.
var queuedSpinners = []struct {
	name lab.Text
	new  func() sync.Locker
}{
	{lab.Same("spin.Ticket"), func() sync.Locker { return new(spin.Ticket) }},
	{lab.Same("spin.MCS"), func() sync.Locker { return new(spin.MCS) }},
	{lab.Same("fair.Mutex"), func() sync.Locker { return new(fair.Mutex) }},
}

func spinning(ctx context.Context, l *lab.Lab) error {
	bench.Rounds(time.Microsecond) // The first call takes milliseconds, which the picture has no room for.
	spinPicture(l)
	procs := runtime.GOMAXPROCS(0)
	crowd := 16 * procs
	l.Observe("crowd", crowd)
	if err := withOneProcessor(ctx, l, crowd); err != nil {
		return err
	}

	lengths := lab.Pick(l, []time.Duration{100, 1_000, 10_000, 100_000},
		[]time.Duration{50, 100, 250, 500, 1_000, 2_500, 10_000, 40_000, 160_000})
	table := lab.Table{Title: lab.T("Where they cross", "交叉点"), Head: []lab.Text{lab.T("goroutines",
		"goroutine 数"), lab.T("between",
		"比较"), lab.T("ahead by time",
		"按耗时领先"),
		lab.T("ahead by processor time", "按处理器时间领先")}}
	const mutex, barging, syncMutex, loop, channel = 0, 1, 2, 3, 4
	for _, d := range []struct {
		goroutines   int
		key          string
		time, worked lab.Text
	}{
		{max(2, procs), "alone", lab.T("Time, a goroutine for each processor",
			"耗时，每个处理器一个 goroutine"),
			lab.T("Processor time, a goroutine for each processor", "处理器时间，每个处理器一个 goroutine")},
		{crowd, "crowded", lab.T("Time, many goroutines",
			"耗时，许多 goroutine"), lab.T("Processor time, many goroutines",
			"处理器时间，许多 goroutine")},
	} {
		all, err := turnsTake(ctx, l, d.goroutines, lengths)
		if err != nil {
			return err
		}
		section := lab.Axis{Label: lab.T("section", "临界区"), Unit: lab.Nanos, Log: true}
		l.Chart(lab.Chart{Title: d.time, X: section, Y: lab.Axis{Label: lab.T("a turn, in sections",
			"一轮，以临界区为单位")},
			Series: all.elapsed,
			Desc: lab.T("The time that a turn takes, all goroutines together, as a multiple of its section, over "+
				"the length of the section. Lower is better.",
				"所有 goroutine 合计的一轮耗时，以临界区的倍数表示，随临界区的长度变化。越低越好。")})
		l.Chart(lab.Chart{Title: d.worked, X: section, Y: lab.Axis{Label: lab.T("work of all "+
			"processors for a turn, in sections", "所有处理器一轮的工作量，以临界区为单位")}, Series: all.worked,
			Desc: lab.T("How long the processors worked for a turn, all together, as a multiple of its section, "+
				"over the length of the section. Lower is better: the rest is free for others.",
				"所有处理器合计为一轮工作了多久，以临界区的倍数表示，随临界区的长度变化。越低越好：其"+
					"余的时间可供他人使用。")})
		for _, pair := range [][2]int{{loop, channel}, {mutex, barging}, {mutex, syncMutex}} {
			i, j := pair[0], pair[1]
			byTime := l.Verdict(crossing(all.elapsed[i], all.elapsed[j], lab.Nanos))
			byWork := l.Verdict(crossing(all.worked[i], all.worked[j], lab.Nanos))
			table.Rows = append(table.Rows, []lab.Text{lab.Same(fmt.Sprint(d.goroutines)),
				lab.T("%s and %s", "%s 与 %s").With(spinners[i].name, spinners[j].name), byTime, byWork})
			if i == loop {
				l.Observe(d.key+"Time", byTime)
				l.Observe(d.key+"Work", byWork)
			}
		}
	}
	l.Check(true, lab.T("no lock let two goroutines in at a time, at any length of the section",
		"无论临界区多长，没有一把锁同时放进两个 goroutine"))
	l.Table(table)
	return nil
}

// turn is the time of a turn under each lock, over the length of the section.
type turn struct{ elapsed, worked []lab.Series }

func turnsTake(ctx context.Context, l *lab.Lab, goroutines int, lengths []time.Duration) (turn, error) {
	rounds, slot := lab.Pick(l, 2, 4), lab.Pick(l, 8*time.Millisecond, 20*time.Millisecond)
	all := turn{make([]lab.Series, len(spinners)), make([]lab.Series, len(spinners))}
	for _, length := range lengths {
		elapsed, worked := make([]float64, len(spinners)), make([]float64, len(spinners))
		for round := range rounds {
			for j := range spinners {
				// There and back, so that a machine which gets busier does so for all.
				i := j
				if round%2 == 1 {
					i = len(spinners) - 1 - j
				}
				var before, after time.Duration
				r, err := bench.Contend(ctx, spinners[i].new(), bench.Contest{Goroutines: goroutines,
					For: slot, Inside: length, Outside: length / 4,
					Begin: func() { before = processorTime() }, End: func() { after = processorTime() }})
				if err != nil {
					return turn{}, fmt.Errorf("%s with sections of %v: %w", spinners[i].name, length, err)
				}
				// The best counts: whatever else the machine does makes it slower.
				least := func(v *float64, now float64) {
					if round == 0 || now < *v {
						*v = now
					}
				}
				turns := float64(max(r.Ops, 1)) // None is the least that can be said of a very slow one.
				least(&elapsed[i], float64(r.Elapsed)/turns/float64(length))
				least(&worked[i], float64(after-before)/turns/float64(length))
			}
		}
		for i, s := range spinners {
			all.elapsed[i].Name, all.worked[i].Name = s.name, s.name
			all.elapsed[i].Points = append(all.elapsed[i].Points, lab.Point{X: float64(length), Y: elapsed[i]})
			all.worked[i].Points = append(all.worked[i].Points, lab.Point{X: float64(length), Y: worked[i]})
		}
	}
	return all, nil
}

// processorTime returns how much time the processors have worked, all together. The runtime
// counts it at each collection of garbage.
func processorTime() time.Duration {
	runtime.GC()
	samples := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindFloat64 {
			return 0
		}
	}
	return time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second))
}

// level is by how much two figures must differ to count as different.
const level = 1.05

// crossing says in words which of two lines is the lower one, and where that changes.
func crossing(a, b lab.Series, x lab.Unit) lab.Text {
	type stretch struct {
		ahead    lab.Text
		from, to float64
	}
	var stretches []stretch
	differ := 0 // at how many places
	for i := range a.Points {
		var who lab.Text
		switch of, against := a.Points[i].Y, b.Points[i].Y; {
		case of*level < against:
			who = a.Name
		case against*level < of:
			who = b.Name
		default:
			continue
		}
		differ++
		at := a.Points[i].X
		if n := len(stretches); n > 0 && stretches[n-1].ahead == who {
			stretches[n-1].to = at
		} else {
			stretches = append(stretches, stretch{who, at, at})
		}
	}
	if len(stretches) == 0 {
		return lab.T("neither: they were level", "不分上下")
	}
	first, last := stretches[0], stretches[len(stretches)-1]
	switch n := len(stretches) - 1; {
	case n == 0 && first.from == first.to:
		return lab.T("%s at %s; elsewhere they were level",
			"在 %[2]s 处 %[1]s 领先，其余不分上下").With(first.ahead, x.Format(first.from))
	case n == 0 && differ == len(a.Points):
		return lab.T("%s everywhere", "%s 处处领先").With(first.ahead)
	case n == 0:
		return lab.T("%s wherever they were not level", "凡能分出上下之处，都是 %s 领先").With(first.ahead)
	case n == 1:
		text := lab.T("%s up to %s, %s from %s", "到 %[2]s 为止 %[1]s 领先，从 %[4]s 起 %[3]s 领先")
		if first.to == a.Points[0].X {
			text = lab.T("%s at %s, %s from %s", "在 %[2]s 处 %[1]s 领先，从 %[4]s 起 %[3]s 领先")
		}
		return text.With(first.ahead, x.Format(first.to), last.ahead, x.Format(last.from))
	case n%2 == 0:
		return lab.T("%s at both ends; they were too close to tell in between, and crossed %d times",
			"两端都是 %s 领先；中间相差太小，无法分辨，共交叉 %d 次").
			With(first.ahead, n)
	default:
		return lab.T("first %s and last %s; they were too close to tell in between, and crossed %d times",
			"开始 %s 领先，最后 %s 领先；中间相差太小，无法分辨，共交叉 %d 次").
			With(first.ahead, last.ahead, n)
	}
}

// withOneProcessor checks that every goroutine gets its turns where spinning is useless.
func withOneProcessor(ctx context.Context, l *lab.Lab, goroutines int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns := lab.Pick(l, 1_000, 5_000)
	for _, s := range append(spinners[:len(spinners):len(spinners)], queuedSpinners...) {
		r, err := bench.Contend(ctx, s.new(), bench.Contest{Goroutines: goroutines, Ops: turns,
			Inside: 200 * time.Nanosecond, Outside: 200 * time.Nanosecond})
		if err != nil {
			return fmt.Errorf("%s with one processor: %w", s.name, err)
		}
		l.Equal(turns, r.Ops, lab.T("with one processor and many goroutines, all come to their end",
			"一个处理器、许多 goroutine 时，全部都能完成"))
	}
	l.Observe("turns", turns)
	return nil
}

// giveWayUntil waits for microseconds, for which timers are too coarse.
func giveWayUntil(ctx context.Context, cond func() bool) {
	for !cond() && ctx.Err() == nil {
		runtime.Gosched()
	}
}

func spinPicture(l *lab.Lab) {
	t := l.Timeline(lab.T("From spinning to sleeping",
		"从自旋到睡眠"), lab.T("The waiter spins for about the time of a hand-off. The "+
		"holder marks when it finds the other in the queue, asleep.",
		"等待者自旋的时间大约等于一次移交。持有者发现对方已在队列中睡眠时，作出标记。"))
	mu := new(spin.Mutex)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	var asks atomic.Int64 // when the waiter asked, on the clock of began
	began := time.Now()
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		giveWayUntil(ctx, mu.HasQueued)
		l.Observe("asleep", time.Since(began)-time.Duration(asks.Load()))
		me.Mark(lab.T("the other is asleep", "另一个已睡眠"))
		l.Check(mu.QueueLength() == 1, lab.T("a waiter for a long section sleeps in the queue, and uses no processor",
			"等待长临界区的等待者在队列中睡眠，不占用处理器"))
		me.Compute(60 * time.Microsecond)
		if err := watched.UnlockContext(ctx); err != nil {
			return err
		}
		me.Compute(15 * time.Microsecond)
		return nil
	})
	t.Go(lab.T("waiter", "等待者"), func(ctx context.Context, me *lab.Lane) error {
		giveWayUntil(ctx, mu.IsLocked)
		me.Compute(20 * time.Microsecond)
		me.Mark(lab.T("asks", "申请"))
		asks.Store(int64(time.Since(began)))
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		me.Compute(20 * time.Microsecond)
		return watched.UnlockContext(ctx)
	})
	t.Wait()
}
