// Package lab is what the scenarios of the lab are made of: a place to check what a scenario
// teaches, to note what was observed, and to record pictures of it.
package lab

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/bench"
)

// Scenario is one lesson. The texts have no figures of their own, as those differ from machine
// to machine: only Found may have some, of this run. In all of them a blank line separates
// paragraphs, and `backquotes` enclose code.
type Scenario struct {
	Lesson int // where it comes in the course

	Name  string // in commands and links: lower case and hyphens
	Topic string // the group in the table of contents
	Title string

	Question string // that the scenario answers, in one sentence
	Claim    string // what textbooks say
	Look     string // what to look at in the pictures
	Found    string // text/template over the observations: what came out in this run
	Take     string // what follows for a choice
	Java     string // the same in Java

	// Shown are the files with the lines that the reader is shown, if not the scenario's own.
	Shown []string

	// Run does it. It fails by a Check that does not hold, by an error or by a panic.
	Run func(ctx context.Context, l *Lab) error
}

// Options are those of a run.
type Options struct {
	Quick bool
	Seed  uint64
	// Limit is how long a scenario may take. It is there for locks that hang.
	Limit time.Duration
	// Servers says that scenarios have servers beside them, which take processor time as other
	// programs do. Then nobody can tell whether the machine was busy.
	Servers bool
}

// Check is something that a scenario asserted.
type Check struct {
	Text string `json:"text"`
	OK   bool   `json:"ok"`
	Got  string `json:"got,omitempty"` // if it did not hold
}

// Result is what came of a scenario.
type Result struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	OK           bool           `json:"ok"`
	OutOfTime    bool           `json:"out_of_time,omitempty"` // the limit ended it, and nothing contradicted its text
	Error        string         `json:"error,omitempty"`
	Elapsed      time.Duration  `json:"elapsed_ns"`
	Busy         bench.Busy     `json:"busy"` // what other programs took meanwhile
	Found        string         `json:"found"`
	Checks       []Check        `json:"checks"`
	Observations map[string]any `json:"observations"`
	Timelines    []*Timeline    `json:"timelines"`
	Charts       []Chart        `json:"charts"`
	Tables       []Table        `json:"tables"`
	Quotes       []Quote        `json:"quotes"`
}

// Table is for what is neither a picture nor a number.
type Table struct {
	Title string     `json:"title"`
	Head  []string   `json:"head"`
	Rows  [][]string `json:"rows"`
}

// Quote is what a program said during the run, word for word.
type Quote struct {
	Title string `json:"title"`
	Desc  string `json:"desc"`
	Text  string `json:"text"`
}

// Lab is what a running scenario has to work with. Its methods may be called by any goroutine.
type Lab struct {
	Quick bool
	Rand  *rand.Rand // of the seed; for the scenario's own goroutine only

	ctx          context.Context
	mu           sync.Mutex
	res          *Result
	contradicted bool // by a check before the limit of the run
}

// aborted is the panic of a scenario that cannot continue.
type aborted struct{ err error }

// ErrHangs reports a scenario that did not come to an end.
var ErrHangs = errors.New("did not come to an end")

// Run runs s. It returns even if a lock hangs; the goroutines are left behind then.
func Run(ctx context.Context, s *Scenario, o Options) *Result {
	if o.Limit == 0 {
		o.Limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	h := fnv.New64()
	_, _ = h.Write([]byte(s.Name)) // Never fails.
	l := &Lab{Quick: o.Quick, Rand: rand.New(rand.NewPCG(o.Seed, h.Sum64())), ctx: ctx,
		res: &Result{Name: s.Name, Title: s.Title, Observations: map[string]any{},
			Checks: []Check{}, Timelines: []*Timeline{}, Charts: []Chart{}, Tables: []Table{}, Quotes: []Quote{}}}
	start, before := time.Now(), bench.TakeUsage()
	done := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			l.mu.Lock()
			timelines := l.res.Timelines
			l.mu.Unlock()
			for _, t := range timelines {
				t.cancel(err)
				t.wg.Wait()
			}
			done <- err
		}()
		err = l.guard(func() error { return s.Run(ctx, l) })
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(5 * time.Second):
			// What it has so far still belongs to it, and cannot be shown.
			return &Result{Name: s.Name, Title: s.Title, Elapsed: time.Since(start),
				OutOfTime: errors.Is(ctx.Err(), context.DeadlineExceeded),
				Error:     fmt.Errorf("%w: %w\n\n%s", ErrHangs, context.Cause(ctx), stacks()).Error()}
		}
	}
	if !o.Servers {
		l.mu.Lock()
		l.res.Busy = busy(bench.TakeUsage().Since(before), time.Since(start))
		l.mu.Unlock()
	}
	return l.finish(s, err, time.Since(start))
}

// leastElapsed is the least time for which processor time is counted exactly enough.
const leastElapsed = 200 * time.Millisecond

// busy returns what others took in a scenario of that length. Short scenarios are not judged.
func busy(b bench.Busy, elapsed time.Duration) bench.Busy {
	if elapsed < leastElapsed {
		return bench.Busy{}
	}
	return b
}

func stacks() []byte {
	b := make([]byte, 1<<16)
	return b[:runtime.Stack(b, true)]
}

// errExited is what became of a call that did not return.
var errExited = errors.New("called runtime.Goexit")

// guard calls f, and makes an error of its panic. It does not return if f calls runtime.Goexit.
func (l *Lab) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		switch p := recover().(type) {
		case aborted:
			err = p.err
		case nil: // runtime.Goexit, which continues
		default:
			err = fmt.Errorf("panic: %v\n\n%s", p, debug.Stack())
		}
	}()
	err = f()
	returned = true
	return err
}

func (l *Lab) finish(s *Scenario, err error, elapsed time.Duration) *Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.res
	r.Elapsed = elapsed
	if err == nil {
		r.Found, err = expand(s.Found, r.Observations)
	}
	if err == nil && r.Busy.TooBig {
		r.Found += "\n\nThe machine was busy: other programs took " + Percent.Format(r.Busy.Others) + " of its " +
			"processors during this scenario. So its times are not to be trusted, the longest waits least of all. " +
			"Run it again on an idle machine."
	}
	r.OK = err == nil
	if err != nil {
		r.Error = err.Error()
	}
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
	r.OutOfTime = !r.OK && !l.contradicted && errors.Is(l.ctx.Err(), context.DeadlineExceeded)
	for _, t := range r.Timelines {
		t.seal()
	}
	return r
}

// Check asserts what the scenario teaches. The text is a sentence that holds if ok.
func (l *Lab) Check(ok bool, text string) { l.check(Check{Text: text, OK: ok}) }

// Equal is Check for a value.
func (l *Lab) Equal(want, got any, text string) {
	c := Check{Text: text, OK: reflect.DeepEqual(want, got)}
	if !c.OK {
		c.Got = fmt.Sprintf("want %v, got %v", want, got)
	}
	l.check(c)
}

// Is is Check for an error.
func (l *Lab) Is(target, err error, text string) {
	c := Check{Text: text, OK: errors.Is(err, target)}
	if !c.OK {
		c.Got = fmt.Sprintf("want %v, got %v", target, err)
	}
	l.check(c)
}

func (l *Lab) check(c Check) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Said once however often it was checked, unless it was wrong.
	for _, old := range l.res.Checks {
		if old.Text == c.Text && (old.OK == c.OK || !old.OK) {
			return
		}
	}
	l.res.Checks = append(l.res.Checks, c)
	l.contradicted = l.contradicted || !c.OK && l.ctx.Err() == nil
}

// Must ends the scenario if err is not nil.
func (l *Lab) Must(err error) {
	if err != nil {
		panic(aborted{err})
	}
}

// Observe notes a value for Found and for the JSON report.
func (l *Lab) Observe(key string, value any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.res.Observations[key] = value
}

// Table adds a table.
func (l *Lab) Table(t Table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.res.Tables = append(l.res.Tables, t)
}

// Quote adds a quotation.
func (l *Lab) Quote(q Quote) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.res.Quotes = append(l.res.Quotes, q)
}

// Chart adds a chart.
func (l *Lab) Chart(c Chart) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.res.Charts = append(l.res.Charts, c)
}

// Until waits until cond holds.
func (l *Lab) Until(what string, cond func() bool) {
	for i := 0; !cond(); i++ {
		if i < 1000 { // Mostly it takes a moment only, and timers are coarse.
			runtime.Gosched()
			continue
		}
		select {
		case <-l.ctx.Done():
			panic(aborted{fmt.Errorf("waiting until %s: %w", what, context.Cause(l.ctx))})
		case <-time.After(50 * time.Microsecond):
		}
	}
}

// Pick returns quick in a quick run, else full.
func Pick[T any](l *Lab, quick, full T) T {
	if l.Quick {
		return quick
	}
	return full
}
