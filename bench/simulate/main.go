// Command simulate predicts how the locks behave on machines with more processors than this one.
//
//	go run ./bench/simulate
//
// It is a discrete-event model: processors that run goroutines, cache lines that move between
// processors, and the queue of each lock. The costs of the single steps are parameters, measured
// on a machine at hand. The model knows nothing of caches shared by some processors, of several
// sockets, of clock rates that change, and of the scheduler's details. So it predicts orders of
// magnitude and where curves bend, not figures. docs/processors.md compares it with measurements.
//
// The table goes to standard output. The command exits with 2 if the flags are wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings are what the flags say.
type settings struct {
	costs
	procs           []int
	perProc         int
	inside, outside float64
	span            float64
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "simulate: %v\nRun with -h for help.\n", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d goroutines a processor, %g ns inside, %g ns outside. For each lock: ns per "+
		"acquisition, all goroutines together, and the p99 wait: 99 %% of all time waiting is in waits of at "+
		"most this length.\n\n", s.perProc, s.inside, s.outside)
	fmt.Fprintf(stdout, "%10s", "processors")
	for _, k := range kinds {
		fmt.Fprintf(stdout, "%26s", k.name)
	}
	fmt.Fprintln(stdout)
	for _, procs := range s.procs {
		fmt.Fprintf(stdout, "%10d", procs)
		for _, k := range kinds {
			r := simulate(s, procs, k.make)
			fmt.Fprintf(stdout, "%12.1f %13s", r.perAcquisition, duration(r.p99))
		}
		fmt.Fprintln(stdout)
	}
	return 0
}

func parse(args []string, output io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	procs := f.String("procs", "1,2,4,8,16,32,64", "numbers of processors")
	f.IntVar(&s.perProc, "per", 4, "goroutines per processor")
	f.Float64Var(&s.inside, "inside", 300, "ns of work while the lock is held")
	f.Float64Var(&s.outside, "outside", 300, "ns of work between a release and the next acquisition")
	f.Float64Var(&s.span, "span", 20e6, "simulated ns")
	f.Float64Var(&s.atomic, "atomic", 3, "ns of an atomic operation on a line that the processor has")
	f.Float64Var(&s.transfer, "transfer", 40, "ns until a line has come from another processor")
	f.Float64Var(&s.wake, "wake", 110, "ns that it takes to make a goroutine runnable")
	f.Float64Var(&s.turn, "turn", 130, "ns from the park of a goroutine to the start of the next")
	f.Float64Var(&s.rise, "rise", 57_000, "ns until an idle processor takes what another one was to run next")
	f.Float64Var(&s.spin, "spin", 800, "ns for which a goroutine spins before it parks, if its lock does so")
	f.Float64Var(&s.slice, "slice", 10e6, "ns of a goroutine's turn while others want the processor")
	f.Float64Var(&s.jitter, "jitter", 0.2, "by what share times vary at random, from 0 to 1")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(output, "Predicts how locks behave with more processors. Flags:")
			f.SetOutput(output)
			f.PrintDefaults()
		}
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("there are no arguments: %q", f.Arg(0))
	}
	for _, n := range strings.Split(*procs, ",") {
		p, err := strconv.Atoi(n)
		if err != nil || p < 1 || p > 1024 {
			return s, fmt.Errorf("-procs %q: want numbers from 1 to 1024, separated by commas", *procs)
		}
		s.procs = append(s.procs, p)
	}
	if s.perProc < 1 || s.perProc > 1024 {
		return s, fmt.Errorf("-per %d: want 1 to 1024", s.perProc)
	}
	f.VisitAll(func(each *flag.Flag) {
		if v, is := each.Value.(flag.Getter).Get().(float64); is && !(v >= 0 && v <= 1e12) && err == nil {
			err = fmt.Errorf("-%s %v: want 0 to 1e12", each.Name, v)
		}
	})
	if err == nil && s.jitter > 1 {
		err = fmt.Errorf("-jitter %g: want 0 to 1", s.jitter)
	}
	if err == nil && s.atomic <= 0 {
		err = fmt.Errorf("-atomic %g: want more than 0", s.atomic)
	}
	return s, err
}

// kinds are the locks of the table.
var kinds = []struct {
	name string
	make func(m *machine) lock
}{
	{"fair.Mutex", func(m *machine) lock { return &fifo{queue{m: m}} }},
	{"fair.BargingMutex", func(m *machine) lock { return &barging{queue: queue{m: m}} }},
	{"spin.MCS", func(m *machine) lock { return &mcs{queue{m: m}} }},
	{"reads, shared counter", func(m *machine) lock { return &counter{m: m} }},
	{"reads, rwlock.RWMutex", func(m *machine) lock { return &table{m: m, slots: map[*task]*line{}} }},
}

// enough acquisitions are simulated for a stable figure.
const enough = 100_000

// result is what came of one simulation.
type result struct {
	acquisitions   int
	perAcquisition float64
	p99            float64
}

// simulate runs goroutines that acquire one lock again and again. They queue up behind a goroutine
// that has it, and the contest begins with its release: as in bench/fairness and bench/compare.
func simulate(s settings, procs int, kind func(*machine) lock) result {
	m := newMachine(procs, s.costs)
	l := kind(m)
	began := 0.0
	var waits []float64
	contestant := func(t *task) {
		var ask func()
		ask = func() {
			asked := m.now
			l.acquire(t, func() {
				waits = append(waits, m.now-max(asked, began))
				m.compute(t, s.inside, func() {
					l.release(t, func() { m.compute(t, s.outside, ask) })
				})
			})
		}
		ask()
	}
	begin := func() {
		for range procs * s.perProc {
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
	m.run(func() bool { return m.now < began+s.span && len(waits) < enough })
	r := result{acquisitions: len(waits), perAcquisition: (m.now - began) / float64(max(len(waits), 1))}
	r.p99 = quantileByTime(waits, 0.99)
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

// duration formats a number of nanoseconds.
func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f us", ns/1e3)
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}
