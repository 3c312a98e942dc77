package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
)

var background = context.Background()

// contender takes one lock and gives it back, over connections that are not shared with another
// contender.
type contender struct {
	lock, unlock func(ctx context.Context) error
	ours         locks.Locker // if it is one of ours, for who takes it and gives it back in one goroutine
}

// impl is a kind of lock: ours, a peer's, or one made of raw requests.
type impl struct {
	name string
	// open returns a contender for the lock called name on the server at addr, which is closed
	// with tb.
	open func(tb testing.TB, addr, name string) contender
	// sticks is whether a waiter may miss a release and then wait for ever, which is not our
	// failure.
	sticks bool
}

// of returns a contender that takes l as an owner of its own, in whatever goroutine.
func of(l locks.Locker) contender {
	o := locks.NewOwner()
	return contender{
		lock:   func(ctx context.Context) error { return l.LockContext(locks.WithOwner(ctx, o)) },
		unlock: func(ctx context.Context) error { return l.UnlockContext(locks.WithOwner(ctx, o)) },
		ours:   l,
	}
}

// plainly returns a contender that takes l as the goroutine that it is called in, with nothing in
// its context.
func plainly(l locks.Locker) contender { return contender{l.LockContext, l.UnlockContext, l} }

var names atomic.Int64

// fresh returns a name that no lock has had.
func fresh() string { return fmt.Sprint("bench-", names.Add(1)) }

// must ends the test with the error, if there is one.
func must(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

// quantile returns the q-quantile of d, or 0 if there is none. It sorts d.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(float64(len(d))*q), len(d)-1)]
}

// probe is the cheapest request that a store answers, which measures one round trip.
type probe func(ctx context.Context) error

// times returns how long each of n requests took.
func (p probe) times(tb testing.TB, n int) []time.Duration {
	tb.Helper()
	took := make([]time.Duration, n)
	for i := range took {
		began := time.Now()
		must(tb, p(background))
		took[i] = time.Since(began)
	}
	return took
}

// median returns how long the median of n requests took.
func (p probe) median(tb testing.TB, n int) time.Duration {
	tb.Helper()
	return quantile(p.times(tb, n), 0.5)
}

// uncontended measures pairs of lock and unlock of c, while nobody else wants the lock. It reports
// their mean as ns/op, and their median as p50-ns. The figure x-<unit> is the ratio of this median
// to the median of the probe. Pairs and probes take turns, because other work of the machine slows
// both.
func uncontended(b *testing.B, c contender, unit string, p probe) {
	if c.ours != nil {
		c = plainly(c.ours)
	}
	pair := probe(func(ctx context.Context) error {
		if err := c.lock(ctx); err != nil {
			return err
		}
		return c.unlock(ctx)
	})
	const turn = 16
	pair.times(b, turn) // connects, and makes the scripts known
	b.ReportAllocs()
	for b.Loop() {
		must(b, pair(background))
	}
	var pairs, trips []time.Duration
	for range max(min(b.N, 2048)/turn, 1) {
		pairs = append(pairs, pair.times(b, turn)...)
		trips = append(trips, p.times(b, turn)...)
	}
	half := quantile(pairs, 0.5)
	b.ReportMetric(float64(half), "p50-ns")
	b.ReportMetric(float64(half)/float64(quantile(trips, 0.5)), "x-"+unit)
}

// contest lets contenders take a lock in turns. Each contender holds the lock for the time hold,
// and then leaves the lock alone for the time think. Therefore the contender that releases it is
// not the first to ask again.
type contest struct {
	hold, think time.Duration
}

// outcome is the outcome of a contest.
type outcome struct {
	// waits has, for each release while somebody waited and after which the lock went to another
	// contender, the time from the call of the release to the return of the next acquisition.
	waits []time.Duration
	// barged is how many acquisitions went to a goroutine that had not asked yet when the lock was
	// released, though others had.
	barged int
	// counts is how many acquisitions each contender had.
	counts []int
}

var errStuck = errors.New("nobody gets the lock any more, or rarely")

// run lets the contenders take the lock n times in all.
func (x contest) run(cs []contender, n int) (outcome, error) {
	patience := 20*time.Second + time.Duration(4*n)*(x.hold+x.think+time.Millisecond)
	limit, end := context.WithTimeoutCause(background, patience, errStuck)
	defer end()
	ctx, cancel := context.WithCancelCause(limit)
	defer cancel(nil)
	out := outcome{counts: make([]int, len(cs))}
	var (
		mu       sync.Mutex
		asked    = make([]time.Time, len(cs)) // zero: does not wait
		released time.Time
		by       int
		awaited  bool // a goroutine waited at the release
		begun    atomic.Int64
		wg       sync.WaitGroup
	)
	took := func(i int) {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		late := asked[i].After(released)
		asked[i] = time.Time{}
		out.counts[i]++
		if awaited && by != i {
			out.waits = append(out.waits, now.Sub(released))
		}
		if awaited && late {
			out.barged++
		}
	}
	gives := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		awaited, by = slices.ContainsFunc(asked, func(t time.Time) bool { return !t.IsZero() }), i
		released = time.Now()
	}
	for i, c := range cs {
		wg.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= int64(n) {
				mu.Lock()
				asked[i] = time.Now()
				mu.Unlock()
				err := c.lock(ctx)
				if err == nil {
					took(i)
					pause(x.hold)
					gives(i)
					err = c.unlock(background)
				}
				if err != nil && ctx.Err() == nil {
					cancel(fmt.Errorf("contender %d: %w", i, err))
					return
				}
				pause(x.think)
			}
		})
	}
	wg.Wait()
	return out, context.Cause(ctx)
}

func pause(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}

// share returns how many times as often as the unluckiest contender the luckiest had the lock.
func (o outcome) share() float64 {
	return float64(slices.Max(o.counts)) / float64(slices.Min(o.counts))
}

// report reports the hand-overs, also in relation to one round trip, if that is known.
func (o outcome) report(b *testing.B, unit string, trip time.Duration) {
	half, tail := quantile(o.waits, 0.5), quantile(o.waits, 0.99)
	b.ReportMetric(float64(half), "p50-ns")
	b.ReportMetric(float64(tail), "p99-ns")
	if trip > 0 {
		b.ReportMetric(float64(half)/float64(trip), "p50-x-"+unit)
		b.ReportMetric(float64(tail)/float64(trip), "p99-x-"+unit)
	}
	b.ReportMetric(o.share(), "max/min-share")
	n := 0
	for _, c := range o.counts {
		n += c
	}
	b.ReportMetric(100*float64(o.barged)/float64(n), "%barged")
}

// crowds are numbers of contenders, with the times for which they hold the lock and leave it alone.
// A contender waits at any time. A contender that comes back does so in the middle of a hold, not
// just when the lock is released.
var crowds = []struct {
	clients int
	contest
}{
	{2, contest{hold: 30 * time.Millisecond, think: 10 * time.Millisecond}},
	{8, contest{hold: 5 * time.Millisecond, think: 13 * time.Millisecond}},
}

// crowded is the last of these, for any number of contenders.
var crowded = contest{hold: 5 * time.Millisecond, think: 13 * time.Millisecond}

// several returns n contenders for a fresh lock. Each has had it.
func (k impl) several(tb testing.TB, addr string, n int) []contender {
	tb.Helper()
	name := fresh()
	cs := make([]contender, n)
	for i := range cs {
		cs[i] = k.open(tb, addr, name)
		must(tb, cs[i].lock(background))
		must(tb, cs[i].unlock(background))
	}
	return cs
}

// counter begins to count something of a server. The returned function reports the count.
type counter func(b *testing.B) (report func())

// handover measures how the lock changes between clients of one kind. also, if not nil, counts
// during the measurement.
func handover(b *testing.B, kinds []impl, addr, unit string, p probe, also counter) {
	for _, k := range kinds {
		for _, x := range crowds {
			b.Run(fmt.Sprintf("%s/clients=%d", k.name, x.clients), func(b *testing.B) {
				k.handover(b, x.contest, k.several(b, addr, x.clients), unit, p, also)
			})
		}
	}
}

// handover measures the hand-overs of one kind and contest.
func (k impl) handover(b *testing.B, x contest, cs []contender, unit string, p probe, also counter) {
	trips := []time.Duration{p.median(b, 300)}
	report := func() {}
	if also != nil {
		report = also(b)
	}
	b.ResetTimer()
	out, err := x.run(cs, b.N)
	b.StopTimer()
	if k.sticks && errors.Is(err, errStuck) {
		b.Skip(err)
	}
	must(b, err)
	report()
	trips = append(trips, p.median(b, 300))
	out.report(b, unit, (trips[0]+trips[1])/2)
}

// hot has goroutines, each with its contender, take a lock and give it back b.N times in all,
// with no pause. Nothing but that is done in the time that is measured.
func hot(b *testing.B, cs []contender) {
	out := outcome{counts: make([]int, len(cs))}
	errs := make([]error, len(cs))
	var begun atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i, c := range cs {
		wg.Go(func() {
			n := 0
			for ; errs[i] == nil && begun.Add(1) <= int64(b.N); n++ {
				if errs[i] = c.lock(background); errs[i] == nil {
					errs[i] = c.unlock(background)
				}
			}
			out.counts[i] = n
		})
	}
	wg.Wait()
	b.StopTimer()
	must(b, errors.Join(errs...))
	b.ReportMetric(out.share(), "max/min-share")
}
