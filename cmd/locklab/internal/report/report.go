// Package report writes what a run of the lab found: as a page, for a terminal, as JSON, and,
// without the run, as chapters of the documentation.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

// Schema names the form of the JSON report. It changes when a reader of the old form would
// fail.
const Schema = "locklab/1"

// Report is a run. Durations are in nanoseconds.
type Report struct {
	Schema     string        `json:"schema"`
	OK         bool          `json:"ok"`
	Go         string        `json:"go"`
	OS         string        `json:"os"`
	Arch       string        `json:"arch"`
	CPUs       int           `json:"cpus"`
	GOMAXPROCS int           `json:"gomaxprocs"`
	Seed       uint64        `json:"seed"`
	Quick      bool          `json:"quick"`
	Started    time.Time     `json:"started"`
	Elapsed    time.Duration `json:"elapsed_ns"`
	Scenarios  []*lab.Result `json:"scenarios"`

	course *lab.Course
}

// New begins a report of a course on this machine.
func New(course *lab.Course, o lab.Options) *Report {
	return &Report{course: course, Schema: Schema, OK: true, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH,
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Seed: o.Seed, Quick: o.Quick,
		Started: time.Now(), Scenarios: []*lab.Result{}}
}

// Add adds a scenario's result.
func (r *Report) Add(result *lab.Result) {
	r.Scenarios = append(r.Scenarios, result)
	r.OK = r.OK && result.OK
	r.Elapsed = time.Since(r.Started)
}

// Held returns how many scenarios were observed as they are taught.
func (r *Report) Held() (n int) {
	for _, s := range r.Scenarios {
		if s.OK {
			n++
		}
	}
	return n
}

// Busy returns during how many scenarios other programs took too much of the machine.
func (r *Report) Busy() (n int) {
	for _, s := range r.Scenarios {
		if s.Busy.TooBig {
			n++
		}
	}
	return n
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("the JSON report: %w", err)
	}
	return nil
}
