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

	// Lang is the language that the page shows first.
	Lang lab.Lang `json:"-"`

	course *lab.Course
}

// New begins a report of a course on this machine.
func New(course *lab.Course, o lab.Options) *Report {
	return &Report{course: course, Schema: Schema, OK: true, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH,
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Seed: o.Seed, Quick: o.Quick,
		Started: time.Now(), Scenarios: []*lab.Result{}, Lang: lab.English}
}

// Add adds a scenario's result.
func (r *Report) Add(result *lab.Result) {
	r.Scenarios = append(r.Scenarios, result)
	r.OK = r.OK && result.OK
	r.Elapsed = time.Since(r.Started)
}

// Held returns how many scenarios were observed as they are taught.
func (r *Report) Held() int {
	return r.count(func(s *lab.Result) bool { return s.OK && !s.Open() })
}

// Open returns how many scenarios contradicted nothing, but have a check that was not judged.
func (r *Report) Open() int { return r.count((*lab.Result).Open) }

// Busy returns during how many scenarios other programs took too much of the machine.
func (r *Report) Busy() int {
	return r.count(func(s *lab.Result) bool { return s.Busy.TooBig })
}

func (r *Report) count(is func(*lab.Result) bool) (n int) {
	for _, s := range r.Scenarios {
		if is(s) {
			n++
		}
	}
	return n
}

// OthersKnown reports whether this system tells the processor time of other programs.
func (r *Report) OthersKnown() bool {
	return r.count(func(s *lab.Result) bool { return s.Busy.Known }) > 0
}

// OthersMost returns the largest share of all processors that other programs took during a
// scenario.
func (r *Report) OthersMost() string {
	share := 0.0
	for _, s := range r.Scenarios {
		share = max(share, s.Busy.Others)
	}
	return lab.Percent.Format(share)
}

// Machine describes the other work of the machine during a scenario. It is empty if nobody can
// tell, as with a scenario that takes a moment only.
func Machine(r *lab.Result) lab.Text {
	if !r.Busy.Known {
		return lab.Text{}
	}
	others := lab.Percent.Format(r.Busy.Others)
	text := lab.T("Other programs took %s of the processors meanwhile.",
		"其间其他程序占用了 %s 的处理器时间。").With(others)
	if r.Busy.TooBig {
		text = lab.T("The machine was busy: other programs took %s of its processors during this scenario. So its "+
			"times are not to be trusted, the longest waits least of all. Run it again on an idle machine.",
			"机器当时很忙：本场景运行期间，其他程序占用了 %s 的处理器时间。因此这里的时间不可信，最长等待尤其"+
				"不可信。"+
				"请在空闲的机器上重新运行。").With(others)
	}
	if r.Attempts > 1 {
		again := lab.T("It was run %d times, as times decide some of its statements.",
			"部分论断取决于时间，因此共运行了 %d 次。").With(r.Attempts)
		text = lab.Join([]lab.Text{text, again}, lab.Text{EN: " "})
	}
	return text
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
