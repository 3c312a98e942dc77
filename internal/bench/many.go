package bench

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/bench/model"
)

// many are the locks whose behaviour on many processors docs/guides/processors.md predicts, with
// the reference.
var many = []string{Reference, "fair.Mutex", "fair.BargingMutex", "spin.MCS"}

// Predicted is behind the name of a subject that the model answers for, and nothing measures.
const Predicted = ", predicted"

// Many returns workloads that show how locks behave with 1, 2, 4 and so on up to so many
// processors, by series. Beside each figure is the figure that package model predicts with the
// costs of another machine.
func Many(processors int) (ws []Workload) {
	for _, c := range []struct {
		series, about   string
		inside, outside time.Duration
		p99             bool
	}{
		{"acquisition", "4 goroutines for each processor, 300 ns inside and 300 ns outside.", 300, 300, false},
		{"p99 wait", "The same. 99 % of all time waiting is in waits of at most this length.", 300, 300, true},
		{"short section", "4 goroutines for each processor, 30 ns inside and 3 µs outside.", 30, 3000, false},
	} {
		for _, p := range powers(processors) {
			w := Workload{
				Series: c.series, Size: p, Name: fmt.Sprintf("%s, %d processors", c.series, p),
				Unit: Nanoseconds, About: c.about,
			}
			for _, l := range Locks() {
				if slices.Contains(many, l.Name) {
					contest := Contest{Goroutines: 4 * p, Inside: c.inside, Outside: c.outside}
					if c.p99 {
						contest.Sample = 1
					}
					w.Subjects = append(w.Subjects, onProcessors(p, contendOn(l, contest)))
				}
			}
			w.Subjects = append(w.Subjects, predictions(p, model.Kinds[:3], func(s *model.Settings) {
				s.Inside, s.Outside = float64(c.inside), float64(c.outside)
			}, c.p99)...)
			ws = append(ws, w)
		}
	}
	for _, p := range powers(processors) {
		w := Workload{
			Series: "read", Size: p, Name: fmt.Sprintf("read, %d processors", p), Unit: Nanoseconds,
			About: "4 goroutines for each processor read and do nothing else.",
		}
		for _, l := range RWLocks() {
			if l.Name == "sync.RWMutex.R" || l.Name == "rwlock.RWMutex.R" {
				w.Subjects = append(w.Subjects, onProcessors(p, Parallel(l.Name, 4*p, l.Pairs)))
			}
		}
		w.Subjects = append(w.Subjects, predictions(p, model.Kinds[3:], func(s *model.Settings) {
			s.Inside, s.Outside = 0, 0
		}, false)...)
		ws = append(ws, w)
	}
	return ws
}

// powers returns the powers of two up to most, and most.
func powers(most int) (ps []int) {
	for p := 1; p < most; p *= 2 {
		ps = append(ps, p)
	}
	return append(ps, most)
}

func contendOn(l Lock, c Contest) Subject {
	return Contended(l.Name, func() sync.Locker { return l.New() }, c)
}

// onProcessors returns s so that it runs with GOMAXPROCS p.
func onProcessors(p int, s Subject) Subject {
	prepare := s.New
	s.New = func() func(int) (float64, error) {
		run := prepare()
		return func(n int) (float64, error) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
			return run(n)
		}
	}
	return s
}

// predictions returns a subject for each kind of lock, whose cost the model predicts.
func predictions(p int, kinds []model.Kind, set func(*model.Settings), p99 bool) (subjects []Subject) {
	for _, k := range kinds {
		predict := sync.OnceValue(func() float64 {
			s := model.Defaults()
			set(&s)
			r := model.Simulate(s, p, k)
			if p99 {
				return r.P99
			}
			return r.PerAcquisition
		})
		subjects = append(subjects, Cost(k.Name+Predicted, func(int) (float64, error) { return predict(), nil }))
	}
	return subjects
}
