// Package model predicts how locks behave on machines with more processors.
//
// It is a discrete-event model: processors that run goroutines, cache lines that move between
// processors, and the queue of each lock. The costs of the single steps are parameters. The model
// knows nothing of caches shared by some processors, of several sockets, of clock rates that
// change, and of the scheduler's details. So it predicts orders of magnitude and where curves
// bend, not figures. docs/guides/processors.md compares it with measurements.
package model

import "slices"

// Kind is a kind of lock.
type Kind struct {
	Name string // the Go type, or what reads under it
	make func(m *machine) lock
}

// Kinds are all kinds of locks.
var Kinds = []Kind{
	{"fair.Mutex", func(m *machine) lock { return &fifo{queue{m: m}} }},
	{"fair.BargingMutex", func(m *machine) lock { return &barging{queue: queue{m: m}} }},
	{"spin.MCS", func(m *machine) lock { return &mcs{queue{m: m}} }},
	{"reads, shared counter", func(m *machine) lock { return &counter{m: m} }},
	{"reads, rwlock.RWMutex", func(m *machine) lock { return &table{m: m, slots: map[*task]*line{}} }},
}

// enough acquisitions are simulated for a stable figure.
const enough = 100_000

// Settings are the inputs of a simulation, besides the lock and the processors.
type Settings struct {
	Costs
	PerProcessor int     // goroutines
	Inside       float64 // ns of work while the lock is held
	Outside      float64 // ns of work between a release and the next acquisition
	Span         float64 // simulated ns
}

// Defaults returns the settings of docs/guides/processors.md. The costs were measured on an AMD
// EPYC of the fourth generation, with Go 1.26.
func Defaults() Settings {
	return Settings{
		Costs: Costs{
			Atomic: 3, Transfer: 40, Wake: 110, Turn: 130, Rise: 57_000, Spin: 800, Slice: 10e6,
			Stop: 30_000, Every: 2.4e6, Jitter: 0.2,
		},
		PerProcessor: 4, Inside: 300, Outside: 300, Span: 50e6,
	}
}

// Result is the result of one simulation.
type Result struct {
	Acquisitions   int
	PerAcquisition float64 // ns, of all goroutines together
	P99            float64 // 99 % of all time waiting is in waits of at most this length
}

// Simulate predicts how the lock does with so many processors.
func Simulate(s Settings, procs int, k Kind) Result { return simulate(s, procs, k.make) }

// simulate runs goroutines that acquire one lock again and again. They queue up behind a goroutine
// that has it, and the contest begins with its release: as in bench/fairness and bench/compare.
func simulate(s Settings, procs int, kind func(*machine) lock) Result {
	m := newMachine(procs, s.Costs)
	l := kind(m)
	began := 0.0
	var waits []float64
	contestant := func(t *task) {
		var ask func()
		ask = func() {
			asked := m.now
			l.acquire(t, func() {
				waits = append(waits, m.now-max(asked, began))
				m.compute(t, s.Inside, func() {
					l.release(t, func() { m.compute(t, s.Outside, ask) })
				})
			})
		}
		ask()
	}
	begin := func() {
		for range procs * s.PerProcessor {
			m.start(contestant)
		}
	}
	if l.exclusive() {
		m.start(func(t *task) {
			l.acquire(t, func() {
				begin()
				m.yield(t, func() { // until all others have asked for the lock
					began = m.now
					l.release(t, func() { m.end(t) })
				})
			})
		})
	} else {
		begin()
	}
	m.run(func() bool { return m.now < began+s.Span && len(waits) < enough })
	r := Result{Acquisitions: len(waits), PerAcquisition: (m.now - began) / float64(max(len(waits), 1))}
	r.P99 = quantileByTime(waits, 0.99)
	return r
}

// quantileByTime returns the length that waits have at most which make up a share q of all time
// waiting. The benchmarks weigh waits in the same way.
func quantileByTime(waits []float64, q float64) float64 {
	slices.Sort(waits)
	rest := 0.0
	for _, w := range waits {
		rest += w
	}
	rest *= q
	for _, w := range waits {
		if rest -= w; rest <= 0 {
			return w
		}
	}
	return 0
}
