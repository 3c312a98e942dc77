package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jucgo/locks/internal/bench"
)

// Prediction is a figure of docs/guides/processors.md beside the measured one.
type Prediction struct {
	Workload  string  `json:"workload"`
	Subject   string  `json:"subject"`
	Unit      string  `json:"unit"`
	Measured  float64 `json:"measured"`
	Predicted float64 `json:"predicted"`
	Ratio     float64 `json:"ratio"` // of the measured figure to the predicted one
	Parts     bool    `json:"parts"` // the figures differ by more than partingRatio
}

// distance is how far the figures are apart, as a factor.
func (p Prediction) distance() float64 { return max(p.Ratio, 1/p.Ratio) }

// partingRatio is the factor by which a measured figure may differ from a predicted one. The
// prediction is made with the costs of another machine.
const partingRatio = 1.5

// Statement is a statement of docs/guides/processors.md about many processors, and the verdict of
// the run on it.
type Statement struct {
	Text    string `json:"text"`
	Verdict string `json:"verdict"` // holds, refuted, or not judged
	Why     string `json:"why"`
}

// measuredAs has the measured locks whose predictions have other names.
var measuredAs = map[string]string{
	"reads, shared counter": "sync.RWMutex.R",
	"reads, rwlock.RWMutex": "rwlock.RWMutex.R",
}

// predictions returns all predicted figures that were measured too. The figures that differ most
// come first.
func predictions(ms []Measured) (ps []Prediction) {
	for _, m := range ms {
		for _, f := range m.Subjects {
			name, predicted := strings.CutSuffix(f.Name, bench.Predicted)
			if other, ok := measuredAs[name]; ok {
				name = other
			}
			measured, ok := medianOf(m, name)
			if !predicted || !ok || f.Median <= 0 || measured <= 0 {
				continue
			}
			p := Prediction{
				Workload: m.Name, Subject: name, Unit: m.Unit,
				Measured: measured, Predicted: f.Median, Ratio: measured / f.Median,
			}
			p.Parts = p.distance() > partingRatio
			ps = append(ps, p)
		}
	}
	slices.SortStableFunc(ps, func(a, b Prediction) int { return -cmp.Compare(a.distance(), b.distance()) })
	return ps
}

func medianOf(m Measured, name string) (float64, bool) {
	i := slices.IndexFunc(m.Subjects, func(f Figures) bool { return f.Name == name })
	if i < 0 {
		return 0, false
	}
	return m.Subjects[i].Median, true
}

// statements judges the three statements of the page that would be refuted by measurements. Each
// needs four processors at least.
func statements(ms []Measured) []Statement {
	const least = 4
	last := 0 // the most processors
	for _, m := range ms {
		last = max(last, m.Size)
	}
	at := func(series string, processors int, name string) float64 {
		for _, m := range ms {
			if m.Series == series && m.Size == processors {
				cost, _ := medianOf(m, name)
				return cost
			}
		}
		return 0
	}
	judge := func(text string, holds func(a, b float64) bool, a, b float64, what string) Statement {
		s := Statement{Text: text, Verdict: "not judged"}
		switch {
		case last < least:
			s.Why = fmt.Sprintf("this machine has %d processors, and it takes %d", last, least)
			return s
		case a <= 0 || b <= 0:
			s.Why = "not measured"
			return s
		case holds(a, b):
			s.Verdict = "holds"
		default:
			s.Verdict = "refuted"
		}
		s.Why = fmt.Sprintf(what, cost(a, bench.Nanoseconds), cost(b, bench.Nanoseconds))
		return s
	}
	return []Statement{
		judge("FIFO stays where it is with one processor.",
			func(one, all float64) bool { return all > one/partingRatio },
			at("acquisition", 1, "fair.Mutex"), at("acquisition", last, "fair.Mutex"),
			"fair.Mutex: %s with one processor, %s with all"),
		judge("FIFO loses most where sections are short.",
			func(fifo, barging float64) bool { return barging < fifo },
			at("short section", last, "fair.Mutex"), at("short section", last, "fair.BargingMutex"),
			"fair.Mutex: %s, fair.BargingMutex: %s"),
		judge("The table of readers scales.",
			func(two, all float64) bool { return all <= two },
			at("read", 2, "rwlock.RWMutex.R"), at("read", last, "rwlock.RWMutex.R"),
			"rwlock.RWMutex.R: %s with two processors, %s with all"),
	}
}

// writePredictions writes the predictions as the tables of text.
func writePredictions(b *strings.Builder, r Report) {
	if len(r.Predictions) == 0 {
		return
	}
	b.WriteString("What docs/guides/processors.md says:\n\n")
	for _, s := range r.Statements {
		fmt.Fprintf(b, "%s: %s %s\n", s.Verdict, s.Text, s.Why)
	}
	rows := [][]string{{"workload", "lock", "measured", "predicted", "ratio", ""}}
	for _, p := range r.Predictions {
		rows = append(rows, []string{
			p.Workload, p.Subject, cost(p.Measured, p.Unit), cost(p.Predicted, p.Unit), fmt.Sprintf("%.2f", p.Ratio), p.mark(),
		})
	}
	fmt.Fprintf(b, "\nWhere measurement and prediction part, by more than a factor of %v, worst first:\n\n%s\n",
		partingRatio, align(rows))
}

func (p Prediction) mark() string {
	if p.Parts {
		return "parts"
	}
	return ""
}

// bar is the ratio as a length in percent. A figure as predicted is in the middle, and one that is
// four times as great or a quarter of it is at an end.
func (p Prediction) bar() string {
	return fmt.Sprintf("%.2f", min(100, max(0, 50+25*math.Log2(p.Ratio))))
}
