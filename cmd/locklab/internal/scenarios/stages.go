package scenarios

import (
	"context"
	"fmt"
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
	Lesson:   150,
	Name:     "stages",
	Topic:    "Inside",
	Title:    "Three stages: the owner again, a short spin, parking",
	Question: "What does a lock do to avoid putting a goroutine to sleep?",
	Claim: `Java's monitor went through stages: biased to its first thread, then light-weight, with a short spin,
then heavy-weight, with threads that sleep. Each stage costs more than the one before, and is used only
if the one before does not suffice. Newer releases of HotSpot have no bias, and make an idle heavy
monitor light again.

The lock here has these stages too, but decides anew at every acquisition. The owner itself only counts.
Another goroutine spins for less than a microsecond, because a holder that is nearly done will
release by then. After that it parks in the queue.`,
	Look: `The table counts the stages. The line shows how many waiters were parked in the queue at the release,
over the length of the hold. Short holds end while the waiter spins; in long ones it parks. Spinning
needs a second, idle processor: on a busy machine nearly every waiter parks.`,
	Found: `A re-entry and its unlock took {{n .reentry}}, a free lock {{n .free}}; {{n .reentries}}
re-entries parked no goroutine. Of the goroutines that asked for a held lock, {{.spun}}, and {{n .sleepers}}
were parked, and ran {{n .parked}} after the unlock at best. Of the shortest holds
{{percent .parkedShort}} had parked their waiter, of the longest {{percent .parkedLong}}.`,
	Take: `Keep sections short, and the lock is cheap. There is nothing to tune.`,
	Java: `synchronized (o) {          // the same monitor:
    synchronized (o) { }    // re-entry counts
}                           // contention inflates it`,
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
	l.Equal(n+1, holds, "every re-entry is counted")
	l.Check(!mu.HasQueued(), "a re-entry parks no goroutine")
	mu.Unlock()
	l.Check(!mu.IsLocked(), "after as many unlocks the lock is free")

	rounds := lab.Pick(l, 30, 150)
	series := lab.Series{Name: "parked"}
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
			l.Check(share > 0.5, "a long hold parks most waiters")
		}
	}
	spun, spinning := "none got the lock while it was spinning", "-"
	if all.spun > 0 {
		spinning = lab.Duration(all.awake)
		spun = fmt.Sprintf("%d got the lock while they were spinning, the quickest %s after the unlock",
			all.spun, spinning)
	}
	l.Table(lab.Table{Title: "The stages, counted", Head: []string{"stage", "how often", "parked", "at " +
		"best, each"}, Rows: [][]string{
		{"a free lock", strconv.Itoa(tries * n), "0", lab.Duration(free)},
		{"the owner again", strconv.Itoa(tries * n), "0", lab.Duration(reentry)},
		{"another, a short spin", strconv.Itoa(all.spun), "0", spinning},
		{"another, parked", strconv.Itoa(all.parked), strconv.Itoa(all.parked), lab.Duration(all.woken)},
	}})
	l.Observe("reentry", reentry)
	l.Observe("free", free)
	l.Observe("spun", spun)
	l.Observe("parked", all.woken)
	l.Observe("sleepers", all.parked)
	l.Observe("reentries", tries*n)
	l.Chart(lab.Chart{
		Title: "Waiters that were parked, over the time of the hold",
		Desc: "The share of waiters that were parked in the queue when the lock was released, over how " +
			"long it was held after they had asked.",
		X: lab.Axis{Label: "held for, after a goroutine asked", Unit: lab.Nanos,
			Log: true}, Y: lab.Axis{Label: "parked", Unit: lab.Percent},
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

// awake is how soon a goroutine answers that is running on another processor. One that has to
// be given a processor first takes longer.
const awake = 2 * time.Microsecond

// meetings makes a goroutine ask for the lock while another one holds it. Both are running when
// it asks, if possible: the holder calls until the other answers at once, some hundred times at
// most. Only the wait for the lock sleeps.
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
	t := l.Timeline("Held for long", "The waiter spins for too short a time to be seen here, is parked, "+
		"and wakes up with the lock.")
	mu := new(reentrant.Mutex)
	watched := t.Wrap("lock", mu)
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		for range 2 {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Mark("hold %d", mu.HoldCount())
		}
		l.Until("the other is parked", mu.HasQueued)
		me.Mark("the other is parked")
		me.Work(4 * time.Millisecond)
		for range 2 {
			if err := watched.UnlockContext(ctx); err != nil {
				return err
			}
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go("waiter", func(ctx context.Context, me *lab.Lane) error {
		l.Until("it is held twice", mu.IsLocked)
		me.Work(time.Millisecond)
		if err := watched.LockContext(ctx); err != nil {
			return err
		}
		me.Work(2 * time.Millisecond)
		return watched.UnlockContext(ctx)
	})
	t.Wait()
}
