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
	Lesson:   40,
	Name:     "fairness",
	Topic:    "Fairness",
	Title:    "Fair and non-fair: what it costs, what it buys",
	Question: "Does the lock go to the waiter that has waited longest, and what is the price?",
	Claim: `A goroutine that asks for a free fair lock queues if other goroutines wait. A non-fair lock goes to a
running goroutine, and the woken waiter finds it held again. That saves context switches, and is
faster. But a waiter may starve.

Here the fair policy hands the lock off directly. The non-fair policy limits how often the first waiter
can be overtaken.`,
	Look: `In the first picture the two goroutines alternate. In the second one of them acquires the lock again and
again while the other waits. The charts show cost and benefit side by side: the time for each
acquisition, all goroutines together, and the longest wait of one goroutine. Neither figure means
anything without the other.

Look at the last chart with care. Under a non-fair lock a goroutine that has a processor acquires the
lock again and again without a wait. The few long waits of the others hide behind those many. Most of
its line is far to the left, and its end far to the right.`,
	Found: `The goroutine that released the lock acquired it again past a waiter {{n .fifoPasses}} times under FIFO, and
{{n .bargingPasses}} times under NonFair. With {{n .goroutines}} goroutines an acquisition took
{{n .fifoCost}} under FIFO and {{n .bargingCost}} under NonFair ({{n .syncCost}} with sync.Mutex); the
longest wait was {{n .fifoMax}} against {{n .bargingMax}} ({{n .syncMax}}), half of all waits were shorter
than {{n .fifoP50}} against {{n .bargingP50}} ({{n .syncP50}}), and one in a hundred took longer than
{{n .fifoP99}} against {{n .bargingP99}} ({{n .syncP99}}). Jain's index of the shares: {{index .fifoJain}}
against {{index .bargingJain}} ({{index .syncJain}}). Longest streak past waiters: {{n .fifoStreak}} against
{{n .bargingStreak}} ({{n .syncStreak}}).`,
	Take: `A lock that can be either is non-fair by default, in Java and here. That is right for most programs. Only
fair.Mutex is always FIFO, and fair.BargingMutex never. Use FIFO if the longest wait counts: for requests with a deadline, or work that must not starve. Measure either policy with work
outside the lock as well as inside.`,
	Java: `new ReentrantLock();       // non-fair
new ReentrantLock(true);   // fair`,
	Run: fairness,
})

//lab:show

// turns has a goroutine acquire the lock again as soon as it has released it.
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
	fifo := twoInTurns(l, "FIFO", "Each release hands the lock off to the waiter.", reentrant.New(fair.FIFO))
	barging := twoInTurns(l, "NonFair", "The running goroutine acquires the lock again. The waiter is "+
		"overtaken, but not for ever.", new(reentrant.Mutex))
	l.Equal(0, fifo, "under FIFO no goroutine that releases the lock is next past a waiter")
	l.Observe("fifoPasses", fifo)
	l.Observe("bargingPasses", barging)
	return contest(ctx, l)
}

// arrivals checks that FIFO admits in the order of arrival.
func arrivals(ctx context.Context, l *lab.Lab) {
	mu := reentrant.New(fair.FIFO)
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
		l.Until("it queues", func() bool { return mu.QueueLength() == i+1 })
	}
	mu.Unlock()
	wg.Wait()
	l.Equal([]int{0, 1, 2, 3, 4, 5, 6, 7}, got, "FIFO admits in the order of arrival")
}

// twoInTurns returns how often the goroutine that released the lock got it again while the
// other one was in the queue.
func twoInTurns(l *lab.Lab, title, desc string, mu *reentrant.Mutex) (overtakes int) {
	t := l.Timeline(title, desc)
	watched := t.Wrap("lock", mu)
	last, queued := "", false // guarded by mu
	began := make(chan struct{})
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			if i > 0 {
				<-began
			}
			return turns(ctx, watched, 20, func(turn int) {
				if last == name && queued {
					overtakes++
				}
				if i == 0 && turn == 0 {
					close(began)
					l.Until("Bob waits", mu.HasQueued)
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
	table := lab.Table{Title: "Waits in the largest crowd", Head: []string{"lock", "waits", "median", "p90",
		"p99", "p99.9", "longest"}}
	for _, n := range counts {
		results := make([]bench.Result, len(contestants))
		calmest := make([]time.Duration, len(contestants))
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
				// Of several rounds the calmest counts for times: whatever else the machine
				// does makes them longer.
				sum := &results[i]
				if sum.Ops == 0 || r.PerOp() < sum.PerOp() {
					sum.Ops, sum.Elapsed = r.Ops, r.Elapsed
				}
				if longest := r.Waits.Max(); round == 0 || longest < calmest[i] {
					calmest[i] = longest
				}
				sum.Waits.Merge(&r.Waits)
				sum.Jain += r.Jain / float64(rounds)
				sum.Streak = max(sum.Streak, r.Streak)
			}
		}
		for i, c := range contestants {
			r, x := &results[i], float64(n)
			cost[i].Name, wait[i].Name, share[i].Name, waits[i].Name = c.name, c.name, c.name, c.name
			cost[i].Points = append(cost[i].Points, lab.Point{X: x, Y: r.PerOp()})
			wait[i].Points = append(wait[i].Points, lab.Point{X: x, Y: max(1, float64(calmest[i]))})
			share[i].Points = append(share[i].Points, lab.Point{X: x, Y: r.Jain})
			if n != crowd {
				continue
			}
			for nines := 0.0; nines <= 4; nines += 0.125 {
				exceeds := math.Pow(10, -nines)
				waits[i].Points = append(waits[i].Points, lab.Point{X: max(10,
					float64(r.Waits.Quantile(1-exceeds))), Y: exceeds})
			}
			row := []string{c.name, lab.Count.Format(float64(r.Waits.Count()))}
			for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
				row = append(row, lab.Duration(r.Waits.Quantile(q)))
			}
			// The chart and the text have the same one: the longest wait of the calmest round.
			table.Rows = append(table.Rows, append(row, lab.Duration(calmest[i])))
			l.Observe(c.key+"Cost", time.Duration(r.PerOp()))
			l.Observe(c.key+"Max", calmest[i])
			l.Observe(c.key+"P50", r.Waits.Quantile(0.5))
			l.Observe(c.key+"P99", r.Waits.Quantile(0.99))
			l.Observe(c.key+"Jain", r.Jain)
			l.Observe(c.key+"Streak", r.Streak)
		}
	}
	l.Check(true, "no lock let two goroutines in at a time")
	l.Observe("goroutines", crowd)

	goroutines := lab.Axis{Label: "goroutines", Log: true}
	l.Chart(lab.Chart{Title: "Cost: time for an acquisition", X: goroutines, Y: lab.Axis{Label: "for each " +
		"acquisition", Unit: lab.Nanos}, Series: cost,
		Desc: "The time that an acquisition takes, all goroutines together, over the number of goroutines. " +
			"Lower is better."})
	l.Chart(lab.Chart{Title: "Benefit: the longest wait", X: goroutines, Y: lab.Axis{Label: "wait",
		Unit: lab.Nanos, Log: true}, Series: wait,
		Desc: "The longest wait of any goroutine over the number of goroutines, in the calmest round. Lower is " +
			"better."})
	l.Chart(lab.Chart{Title: "How evenly the lock was shared", X: goroutines, Y: lab.Axis{Label: "Jain's " +
		"index", Unit: lab.Decimals}, Series: share,
		Desc: "Jain's index of the acquisitions of each goroutine: 1 if all had as many."})
	l.Chart(lab.Chart{Title: "Waits in the largest crowd", X: lab.Axis{Label: "wait", Unit: lab.Nanos, Log: true},
		Y: lab.Axis{Label: "share of waits that took longer", Unit: lab.Percent, Log: true}, Series: waits,
		Desc: "For each wait, the share of all waits that took longer. The further a line reaches to the " +
			"right, the longer the unlucky wait."})
	l.Table(table)
	return nil
}
