package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// sums describe the simulated lives of one world.
type sums struct {
	Hours        float64 `json:"hours"`
	Lives        int     `json:"lives"`
	Acquisitions int     `json:"acquisitions"`
	Requests     int     `json:"requests"`
	Losses       int     `json:"losses"`
	Faults       int     `json:"faults"`
	Processor    float64 `json:"processor"` // seconds
	Failures     int     `json:"failures"`
}

func (s *sums) add(t *sums) {
	s.Hours += t.Hours
	s.Lives += t.Lives
	s.Acquisitions += t.Acquisitions
	s.Requests += t.Requests
	s.Losses += t.Losses
	s.Faults += t.Faults
	s.Processor += t.Processor
	s.Failures += t.Failures
}

// account is the ledger.
type account struct {
	file string

	mu     sync.Mutex
	worlds map[string]*sums
}

// openAccount reads the ledger, if there is one.
func openAccount(file string) (*account, error) {
	a := &account{file: file, worlds: make(map[string]*sums)}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &a.worlds)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger %s: %w", file, err)
	}
	return a, nil
}

// add adds a run of a test, by its subtests, and writes the ledger.
func (a *account) add(j job, run map[string]*sums) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	density := "faults"
	switch {
	case j.service:
		density = "service"
	case j.gate:
		density = "gate"
	}
	for test, s := range run {
		name := path.Base(j.pkg) + " " + strings.TrimPrefix(test, "TestLives") + " " + density
		if a.worlds[name] == nil {
			a.worlds[name] = new(sums)
		}
		a.worlds[name].add(s)
	}
	text, err := json.MarshalIndent(a.worlds, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.file+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(a.file+".new", a.file)
}

// print prints the table of all worlds.
func (a *account) print(out io.Writer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "hours\tacquisitions\tfaults\tlosses\tfailures\thours of a processor's second\tworld\t")
	var total sums
	line := func(name string, s *sums) {
		fmt.Fprintf(w, "%.1f\t%d\t%d\t%d\t%d\t%.2f\t%s\t\n", s.Hours, s.Acquisitions, s.Faults, s.Losses, s.Failures,
			s.Hours/max(s.Processor, 0.001), name)
	}
	for _, name := range slices.Sorted(maps.Keys(a.worlds)) {
		line(name, a.worlds[name])
		total.add(a.worlds[name])
	}
	line("all", &total)
	w.Flush()
}

// comparePage compares the hours of the gate in a page's table with those of the account. The page
// has them to one decimal. A life may end some seconds earlier or later, by the goroutines that the
// runtime happens to run first.
func (a *account) comparePage(page string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	lived := map[bool]float64{} // as a service, or full of faults
	for name, s := range a.worlds {
		if s.Failures > 0 {
			return fmt.Errorf("the lives of the gate failed: %s", name)
		}
		lived[strings.Contains(name, "AServiceLives")] += s.Hours
	}
	for service, row := range map[bool]*regexp.Regexp{true: serviceRow, false: faultsRow} {
		m := row.FindSubmatch(text)
		if m == nil {
			return fmt.Errorf("%s has no row for %s", page, row)
		}
		told, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil || math.Abs(told-lived[service]) > 0.1 {
			return fmt.Errorf("%s tells of %s hours, and the gate lives %.2f: %s", page, m[1], lived[service], m[0])
		}
	}
	return nil
}

// The rows of the gate in docs/guides/stores.md.
var (
	faultsRow  = regexp.MustCompile(`(?m)^\| each gate, full of faults[^|]*\| ([\d.]+) \|`)
	serviceRow = regexp.MustCompile(`(?m)^\| each gate, as a service[^|]*\| ([\d.]+) \|`)
)

var (
	begun = regexp.MustCompile(`^=== (?:RUN|NAME|CONT) +(\S+)`)
	lived = regexp.MustCompile(`^ +\S+\.go:\d+: seed \d+: (\S+) simulated in (\d+) lives: (\d+) acquisitions, ` +
		`(\d+) requests, (\d+) losses, (\d+) faults, in (\S+)$`)
	broken = regexp.MustCompile(`^ +\S+\.go:\d+: (seed \d+ is broken) at `)
)

// read returns what each test has simulated, by the output of a run that took this long. The run
// may have ended in the middle of a life.
func read(out string, processor time.Duration) map[string]*sums {
	all := make(map[string]*sums)
	took := make(map[string]float64)
	findings := make(map[string]bool)
	test := ""
	whole := 0.0
	of := func() *sums {
		if all[test] == nil {
			all[test] = new(sums)
		}
		return all[test]
	}
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := begun.FindStringSubmatch(line); m != nil {
			test = m[1]
		} else if m := lived.FindStringSubmatch(line); m != nil {
			d, err := time.ParseDuration(m[1])
			real, err2 := time.ParseDuration(m[7])
			if err != nil || err2 != nil {
				continue
			}
			var n [5]int
			for i := range n {
				n[i], _ = strconv.Atoi(m[i+2])
			}
			of().add(&sums{
				Hours: d.Hours(), Lives: n[0], Acquisitions: n[1], Requests: n[2], Losses: n[3], Faults: n[4],
			})
			took[test] += real.Seconds()
			whole += real.Seconds()
		} else if m := broken.FindStringSubmatch(line); m != nil && !findings[test+m[1]] { // it is told twice
			findings[test+m[1]] = true
			of().Failures++
		}
	}
	for test, s := range all { // a world has the share of its time
		if whole > 0 {
			s.Processor = processor.Seconds() * took[test] / whole
		}
	}
	return all
}

// failures returns how many lives have failed.
func failures(run map[string]*sums) (n int) {
	for _, s := range run {
		n += s.Failures
	}
	return n
}
