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
	Lesson:   160,
	Name:     "spinning",
	Topic:    "Inside",
	Title:    "Spin or sleep, and where they cross",
	Question: `Should a waiter try again until the lock is free, or sleep until it is woken?`,
	Claim: `To put a waiter to sleep and to wake it takes two context switches. A spinning waiter saves both if
the holder releases before. If not, it wastes a processor that another goroutine could have used,
perhaps the holder.

Therefore spinning pays off for short sections, with no more goroutines than processors. With one
processor it never does: nothing can change while the waiter looks. A lock does not know how long a
section takes. It spins for about as long as sleeping would cost, and sleeps then. That is never much
worse than the better of the two.`,
	Look: `In the picture the waiter spins first, and the holder marks the moment when it finds the waiter asleep
in the queue. The charts show the cost of a turn, as a multiple of the section itself: its time, all
goroutines together, and its processor time. Compare the two that do one thing only: the loop always
spins, and the channel always puts the waiter to sleep. On a calm machine the loop may look good by time
at any length, because it is running when the lock becomes free. It pays with processor time. On a busy
machine noise may decide, and the table says so.

Then look at the locks that do both. sync.Mutex and fair.BargingMutex also spin for a moment.`,
	Found: `The waiter of the picture was asleep {{n .asleep}} after it had asked. Which was ahead, the
loop or the channel? With a goroutine for each processor, by time: {{.aloneTime}}. By processor time:
{{.aloneWork}}. With {{n .crowd}} goroutines, by time: {{.crowdedTime}}. By processor time: {{.crowdedWork}}.
With one processor, {{n .turns}} turns of {{n .crowd}} goroutines came to their end under every lock.`,
	Take: "`sync.Mutex` already spins if that looks promising, so a spin lock is seldom much faster. Use " +
		"`spin.Mutex` for sections of a few instructions, with no more goroutines than processors, and " +
		"only if it measures faster. Never write a loop that spins without an end: `spin.Backoff` yields " +
		"the processor in time.",
	Java: `while (!held.compareAndSet(false, true))
    while (held.get()) Thread.onSpinWait();   // and when to sleep?`,
	Run: spinning,
})

//lab:show

// spinLoop never sleeps: test and test-and-set. Its Backoff yields the processor when the spin
// has taken too long. Otherwise the holder might have no processor to continue on.
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
	name string
	new  func() sync.Locker
}{
	{"spin.Mutex", func() sync.Locker { return new(spin.Mutex) }},
	{"fair.BargingMutex", func() sync.Locker { return new(fair.BargingMutex) }},
	{"sync.Mutex", func() sync.Locker { return new(sync.Mutex) }},
	{"the loop", func() sync.Locker { return new(spinLoop) }},
	{"the channel", func() sync.Locker { return make(channel, 1) }},
}

// queuedSpinners are locks that admit in the order of arrival. The last one does not spin.
var queuedSpinners = []struct {
	name string
	new  func() sync.Locker
}{
	{"spin.Ticket", func() sync.Locker { return new(spin.Ticket) }},
	{"spin.MCS", func() sync.Locker { return new(spin.MCS) }},
	{"fair.Mutex", func() sync.Locker { return new(fair.Mutex) }},
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
	table := lab.Table{Title: "Where they cross", Head: []string{"goroutines", "between", "ahead by time",
		"ahead by processor time"}}
	const mutex, barging, syncMutex, loop, channel = 0, 1, 2, 3, 4
	for _, d := range []struct {
		goroutines int
		key, title string
	}{
		{max(2, procs), "alone", "a goroutine for each processor"},
		{crowd, "crowded", "many goroutines"},
	} {
		all, err := turnsTake(ctx, l, d.goroutines, lengths)
		if err != nil {
			return err
		}
		section := lab.Axis{Label: "section", Unit: lab.Nanos, Log: true}
		l.Chart(lab.Chart{Title: "Time, " + d.title, X: section, Y: lab.Axis{Label: "a turn, in sections"},
			Series: all.elapsed,
			Desc: "The time that a turn takes, all goroutines together, as a multiple of its section, over " +
				"the length of the section. Lower is better."})
		l.Chart(lab.Chart{Title: "Processor time, " + d.title, X: section, Y: lab.Axis{Label: "work of all " +
			"processors for a turn, in sections"}, Series: all.worked,
			Desc: "How long the processors worked for a turn, all together, as a multiple of its section, " +
				"over the length of the section. Lower is better: the rest is free for others."})
		for _, pair := range [][2]int{{loop, channel}, {mutex, barging}, {mutex, syncMutex}} {
			i, j := pair[0], pair[1]
			byTime, byWork := crossing(all.elapsed[i], all.elapsed[j], lab.Nanos), crossing(all.worked[i],
				all.worked[j], lab.Nanos)
			table.Rows = append(table.Rows, []string{fmt.Sprint(d.goroutines), spinners[i].name + " and " +
				"" + spinners[j].name, byTime, byWork})
			if i == loop {
				l.Observe(d.key+"Time", byTime)
				l.Observe(d.key+"Work", byWork)
			}
		}
	}
	l.Check(true, "no lock let two goroutines in at a time, at any length of the section")
	l.Table(table)
	return nil
}

// turn is what a turn takes under each lock, over the length of the section.
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

// level is by how much two figures have to differ to count as different.
const level = 1.05

// crossing says in words which of two lines is the lower one, and where that changes.
func crossing(a, b lab.Series, x lab.Unit) string {
	type stretch struct {
		ahead    string
		from, to float64
	}
	var stretches []stretch
	differ := 0 // at how many places
	for i := range a.Points {
		who := ""
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
		return "neither: they were level"
	}
	first, last := stretches[0], stretches[len(stretches)-1]
	upTo := "up to " + x.Format(first.to)
	if first.to == a.Points[0].X {
		upTo = "at " + x.Format(first.to)
	}
	switch n := len(stretches) - 1; {
	case n == 0 && first.from == first.to:
		return fmt.Sprintf("%s at %s; elsewhere they were level", first.ahead, x.Format(first.from))
	case n == 0 && differ == len(a.Points):
		return first.ahead + " everywhere"
	case n == 0:
		return first.ahead + " wherever they were not level"
	case n == 1:
		return fmt.Sprintf("%s %s, %s from %s", first.ahead, upTo, last.ahead, x.Format(last.from))
	case n%2 == 0:
		return fmt.Sprintf("%s at both ends; they were too close to tell in between, and crossed %d times",
			first.ahead, n)
	default:
		return fmt.Sprintf("first %s and last %s; they were too close to tell in between, and crossed %d "+
			"times", first.ahead, last.ahead, n)
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
		l.Equal(turns, r.Ops, "with one processor and many goroutines, all come to their end")
	}
	l.Observe("turns", turns)
	return nil
}

// giveWayUntil waits for what takes microseconds, which timers are too coarse for.
func giveWayUntil(ctx context.Context, cond func() bool) {
	for !cond() && ctx.Err() == nil {
		runtime.Gosched()
	}
}

func spinPicture(l *lab.Lab) {
	t := l.Timeline("From spinning to sleeping", "The waiter spins for about the time of a hand-off. The "+
		"holder marks when it finds the other in the queue, asleep.")
	mu := new(spin.Mutex)
	watched := t.Wrap("lock", mu)
	var asks atomic.Int64 // when the waiter asked, on the clock of began
	began := time.Now()
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		giveWayUntil(ctx, mu.HasQueued)
		l.Observe("asleep", time.Since(began)-time.Duration(asks.Load()))
		me.Mark("the other is asleep")
		l.Check(mu.QueueLength() == 1, "a waiter for a long section sleeps in the queue, and uses no processor")
		me.Compute(60 * time.Microsecond)
		if err := watched.UnlockContext(ctx); err != nil {
			return err
		}
		me.Compute(15 * time.Microsecond)
		return nil
	})
	t.Go("waiter", func(ctx context.Context, me *lab.Lane) error {
		giveWayUntil(ctx, mu.IsLocked)
		me.Compute(20 * time.Microsecond)
		me.Mark("asks")
		asks.Store(int64(time.Since(began)))
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		me.Compute(20 * time.Microsecond)
		return watched.UnlockContext(ctx)
	})
	t.Wait()
}
