package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jucgo/locks/internal/bench"
)

// Report has the figures of a run. It is the output of -json.
type Report struct {
	Go         string     `json:"go"`
	Platform   string     `json:"platform"`
	Processor  string     `json:"processor,omitempty"`
	Processors int        `json:"processors"`
	GOMAXPROCS int        `json:"gomaxprocs"`
	Modules    []string   `json:"modules"` // the modules of the peers, with versions
	Started    time.Time  `json:"started"`
	Seconds    float64    `json:"seconds"`
	Rounds     int        `json:"rounds"`
	Busy       bench.Busy `json:"busy"`
	Workloads  []Measured `json:"workloads"`
	Verdicts   []Verdict  `json:"verdicts"` // worst first

	Predictions []Prediction `json:"predictions,omitempty"` // the predictions that differ most first
	Statements  []Statement  `json:"statements,omitempty"`
	Others      []Other      `json:"others,omitempty"`
}

// Other describes a measurement of locks of another language, after the rounds.
type Other struct {
	Versions string     `json:"versions"`
	Seconds  float64    `json:"seconds"`
	Busy     bench.Busy `json:"busy"`
}

// Measured is a workload with its figures.
type Measured struct {
	Name     string     `json:"name"`
	About    string     `json:"about"`
	Unit     string     `json:"unit"`
	Series   string     `json:"series,omitempty"`
	Size     int        `json:"size,omitempty"`
	Busy     bench.Busy `json:"busy"`
	Subjects []Figures  `json:"subjects"` // cheapest first
}

// Figures are the figures of one subject.
type Figures struct {
	Name   string    `json:"name"`
	Ours   bool      `json:"ours"`
	Median float64   `json:"median"`
	Low    float64   `json:"low"`  // the lower quartile of the rounds
	High   float64   `json:"high"` // the upper quartile
	Rounds []float64 `json:"rounds"`
}

// spread is the distance of the quartiles from the median, the greater of both, as a share of it.
func (f Figures) spread() float64 {
	if f.Median == 0 {
		return 0
	}
	return max(f.High-f.Median, f.Median-f.Low) / f.Median
}

// Verdict compares a subject with the peer of its target.
type Verdict struct {
	Workload string  `json:"workload"`
	Unit     string  `json:"unit"`
	Subject  string  `json:"subject"`
	Peer     string  `json:"peer"`
	Cost     float64 `json:"cost"`
	PeerCost float64 `json:"peerCost"`
	Ratio    float64 `json:"ratio"`
	Target   float64 `json:"target"`
	Reached  bool    `json:"reached"`
}

// distance is the ratio as a multiple of its target.
func (v Verdict) distance() float64 { return v.Ratio / v.Target }

// choose returns the workloads and subjects that match. A subject is matched by the name of its
// workload, a slash, and its own name. The peers of chosen subjects are measured as well.
func choose(ws []bench.Workload, run *regexp.Regexp) []bench.Workload {
	var chosen []bench.Workload
	for _, w := range ws {
		wanted := map[string]bool{}
		for _, s := range w.Subjects {
			wanted[s.Name] = run.MatchString(w.Name + "/" + s.Name)
		}
		for _, t := range w.Targets {
			wanted[t.Peer] = wanted[t.Peer] || wanted[t.Subject]
		}
		w.Subjects = slices.DeleteFunc(slices.Clone(w.Subjects), func(s bench.Subject) bool { return !wanted[s.Name] })
		if len(w.Subjects) > 0 {
			chosen = append(chosen, w)
		}
	}
	return chosen
}

// measure measures the workloads. Each subject gets about the time slot in each of the rounds.
func measure(ctx context.Context, ws []bench.Workload, rounds int, slot time.Duration, progress io.Writer,
) (Report, error) {
	r := Report{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Processor: processor(),
		Processors: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Modules: modules(),
		Started: time.Now().UTC().Truncate(time.Second), Rounds: rounds,
	}
	start, before := time.Now(), bench.TakeUsage()
	defer fmt.Fprintf(progress, "\r%-70s\r", "")
	for i := range ws {
		fmt.Fprintf(progress, "\r%-70s", fmt.Sprintf("%d of %d: %s", i+1, len(ws), ws[i].Name))
		m, err := measureOne(ctx, &ws[i], rounds, slot)
		if err != nil {
			return r, err
		}
		r.Workloads = append(r.Workloads, m)
		r.Verdicts = append(r.Verdicts, verdicts(&ws[i], m)...)
	}
	slices.SortStableFunc(r.Verdicts, func(a, b Verdict) int { return -cmp.Compare(a.distance(), b.distance()) })
	if r.Predictions = predictions(r.Workloads); r.Predictions != nil {
		r.Statements = statements(r.Workloads)
	}
	r.Busy = bench.TakeUsage().Since(before)
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// measureOne measures the subjects that have a New. They take turns, so that a machine that becomes
// slower or busier does so for all of them. Every second round goes backwards, as no subject is to
// follow the same one always.
func measureOne(ctx context.Context, w *bench.Workload, rounds int, slot time.Duration) (Measured, error) {
	before := bench.TakeUsage()
	subjects := slices.DeleteFunc(slices.Clone(w.Subjects), func(s bench.Subject) bool { return s.New == nil })
	m := Measured{
		Name: w.Name, About: w.About, Unit: w.Unit, Series: w.Series, Size: w.Size,
		Subjects: make([]Figures, len(subjects)),
	}
	runs := make([]func(int) (float64, error), len(subjects))
	sizes := make([]int, len(subjects))
	for i, s := range subjects {
		m.Subjects[i] = Figures{Name: s.Name, Ours: s.Ours()}
		runs[i] = s.New()
		var err error
		if sizes[i], err = size(runs[i], slot); err != nil {
			return m, fmt.Errorf("%s: %s: %w", w.Name, s.Name, err)
		}
	}
	for round := range rounds {
		for i := range runs {
			if err := ctx.Err(); err != nil {
				return m, err
			}
			if round%2 == 1 {
				i = len(runs) - 1 - i
			}
			runtime.GC() // now, and not during the measurement, for the garbage of the subject before
			cost, err := runs[i](sizes[i])
			if err != nil {
				return m, fmt.Errorf("%s: %s: %w", w.Name, subjects[i].Name, err)
			}
			m.Subjects[i].Rounds = append(m.Subjects[i].Rounds, cost)
		}
	}
	for i := range m.Subjects {
		f := &m.Subjects[i]
		f.Low, f.Median, f.High = quartiles(f.Rounds)
	}
	slices.SortStableFunc(m.Subjects, func(a, b Figures) int { return cmp.Compare(a.Median, b.Median) })
	m.Busy = bench.TakeUsage().Since(before)
	return m, nil
}

// size returns the number of operations that take about the time slot. The operations that it
// takes to find out also warm up what there is to warm up.
func size(run func(int) (float64, error), slot time.Duration) (int, error) {
	for n := 1; ; {
		start := time.Now()
		if _, err := run(n); err != nil {
			return 0, err
		}
		took := max(time.Since(start), 1)
		if took >= slot/4 || n >= 1<<30 {
			return max(1, int(float64(n)*min(4, float64(slot)/float64(took)))), nil
		}
		n = int(float64(n) * min(8, 1+float64(slot)/float64(took)))
	}
}

func verdicts(w *bench.Workload, m Measured) (vs []Verdict) {
	find := func(name string) (float64, bool) {
		i := slices.IndexFunc(m.Subjects, func(f Figures) bool { return f.Name == name })
		if i < 0 {
			return 0, false
		}
		return m.Subjects[i].Median, true
	}
	for _, t := range w.Targets {
		cost, ok := find(t.Subject)
		peer, has := find(t.Peer)
		if !ok || !has || peer == 0 {
			continue
		}
		vs = append(vs, Verdict{
			Workload: w.Name, Unit: w.Unit, Subject: t.Subject, Peer: t.Peer, Cost: cost, PeerCost: peer,
			Ratio: cost / peer, Target: t.Ratio, Reached: cost/peer <= t.Ratio,
		})
	}
	return vs
}

// quartiles returns the lower quartile, the median and the upper quartile of xs, which must not
// be empty.
func quartiles(xs []float64) (low, median, high float64) {
	xs = slices.Sorted(slices.Values(xs))
	at := func(q float64) float64 {
		x := q * float64(len(xs)-1)
		i := int(x)
		next := xs[min(i+1, len(xs)-1)]
		return xs[i] + (x-float64(i))*(next-xs[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

// modules returns the modules of the peers, with their versions.
func modules() (ms []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/linkdata/deadlock", "github.com/moby/locker", "github.com/neilotoole/fifomu",
			"github.com/puzpuzpuz/xsync/v4", "github.com/sasha-s/go-deadlock", "golang.org/x/sync":
			ms = append(ms, d.Path+" "+d.Version)
		}
	}
	return ms
}
