// Package lab has the parts of the scenarios of the lab: a place to check what a scenario teaches,
// to note what was observed, and to record pictures of it.
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
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/bench"
)

// Scenario is one lesson. The texts contain no figures, since figures differ from machine to
// machine: only Found may have some, of this run. In all of them a blank line separates paragraphs,
// and `backquotes` enclose code.
type Scenario struct {
	Lesson int // where it comes in the course

	Name  string // in commands and links: lower case and hyphens
	Topic Text   // the group in the table of contents
	Title Text

	Question Text // that the scenario answers, in one sentence
	Claim    Text // what textbooks say
	Look     Text // what to look at in the pictures
	Found    Text // text/template over the observations: what came out in this run
	Take     Text // what follows for a choice
	Java     Text // the same in Java

	// Shown are the files with the lines that the reader is shown, if not the scenario's own.
	Shown []string

	// Run does it. It fails by a Check that does not hold, by an error or by a panic.
	Run func(ctx context.Context, l *Lab) error
}

// Options are the options of a run.
type Options struct {
	Quick bool
	Seed  uint64
	// Limit is how long a scenario may take. It is there for locks that hang.
	Limit time.Duration
}

// Check is something that a scenario asserted.
type Check struct {
	Text Text `json:"text"`
	OK   bool `json:"ok"`
	Got  Text `json:"got,omitzero"` // if it did not hold
	// Open says that times decide it, and that this run cannot tell. Why says the reason.
	Open bool `json:"open,omitempty"`
	Why  Text `json:"why,omitzero"`

	race bool
}

// Result is the outcome of a scenario.
type Result struct {
	Name         string         `json:"name"`
	Title        Text           `json:"title"`
	OK           bool           `json:"ok"`
	OutOfTime    bool           `json:"out_of_time,omitempty"` // the limit ended it, and nothing contradicted its text
	Error        Text           `json:"error,omitzero"`
	Elapsed      time.Duration  `json:"elapsed_ns"`
	Busy         bench.Busy     `json:"busy"`     // what other programs took meanwhile
	Attempts     int            `json:"attempts"` // how often it was run, until its times could be judged
	Found        Text           `json:"found"`
	Checks       []Check        `json:"checks"`
	Observations map[string]any `json:"observations"`
	Timelines    []*Timeline    `json:"timelines"`
	Charts       []Chart        `json:"charts"`
	Tables       []Table        `json:"tables"`
	Quotes       []Quote        `json:"quotes"`

	verdicts bool // of races, in words
}

// Table is for results that are neither pictures nor numbers.
type Table struct {
	Title Text     `json:"title"`
	Head  []Text   `json:"head"`
	Rows  [][]Text `json:"rows"`
}

// Quote is the output of a program during the run, word for word.
type Quote struct {
	Title Text   `json:"title"`
	Desc  Text   `json:"desc"`
	Text  string `json:"text"`
}

// Lab has the means of a running scenario. Its methods may be called by any goroutine.
type Lab struct {
	Quick bool
	Rand  *rand.Rand // of the seed; for the scenario's own goroutine only

	ctx          context.Context
	mu           sync.Mutex
	res          *Result
	contradicted bool // by a check before the limit of the run
	verdicts     map[Text]bool
}

// aborted is the panic of a scenario that cannot continue.
type aborted struct{ err error }

// ErrHangs reports a scenario that did not come to an end.
var ErrHangs error = Fail(T("did not come to an end", "没有结束"))

// attempts is how often a scenario is run, at most, whose times are to be judged.
const attempts = 3

// Run runs s. It returns even if a lock hangs; the goroutines are left behind then. If times decide
// a check and the machine was busy, or the check did not hold, s is run again: one race proves
// nothing. The last attempt is the result.
func Run(ctx context.Context, s *Scenario, o Options) *Result {
	for n := 1; ; n++ {
		r := run(ctx, s, o)
		r.Attempts = n
		if again := r.judge(o.Quick); !again || o.Quick || n == attempts || ctx.Err() != nil {
			return r
		}
	}
}

// judge opens the checks that times decide if nobody can tell, and reports whether another attempt
// could tell more.
func (r *Result) judge(quick bool) (again bool) {
	for i := range r.Checks {
		c := &r.Checks[i]
		if !c.race {
			continue
		}
		switch {
		case r.Busy.TooBig:
			c.Open, c.Why = true, taken(r)
		case !c.OK && quick:
			c.Open, c.Why = true, T("a quick run is too short to tell", "快速运行太短，无法判断")
		}
		again = again || c.Open || !c.OK
	}
	if r.verdicts && r.Busy.TooBig {
		r.Checks = append(r.Checks, Check{Text: T("which of the locks is ahead", "哪一种锁领先"), Open: true, Why: taken(r)})
		again = true
	}
	r.settle()
	return again
}

// taken says how busy the machine was.
func taken(r *Result) Text {
	return T("other programs took %s of the processors meanwhile", "其间其他程序占用了 %s 的处理器时间").
		With(Percent.Format(r.Busy.Others))
}

// notJudged stands for a verdict that a busy machine would have decided.
var notJudged = T("not judged, as the machine was busy", "机器很忙，未判定")

// refuse replaces the verdicts of races in observations and tables.
func (l *Lab) refuse() {
	for key, value := range l.res.Observations {
		if text, ok := value.(Text); ok && l.verdicts[text] {
			l.res.Observations[key] = notJudged
		}
	}
	for _, table := range l.res.Tables {
		for _, row := range table.Rows {
			for i, cell := range row {
				if l.verdicts[cell] {
					row[i] = notJudged
				}
			}
		}
	}
}

// settle sets OK from the checks: an open one neither holds nor contradicts.
func (r *Result) settle() {
	r.OK = r.Error.IsZero()
	for _, c := range r.Checks {
		r.OK = r.OK && (c.OK || c.Open)
	}
}

// Open reports whether the scenario contradicted nothing, but a check could not be judged.
func (r *Result) Open() bool {
	return r.OK && slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Open })
}

func run(ctx context.Context, s *Scenario, o Options) *Result {
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
			// The scenario still owns its results so far, so they cannot be shown.
			return &Result{Name: s.Name, Title: s.Title, Elapsed: time.Since(start),
				OutOfTime: errors.Is(ctx.Err(), context.DeadlineExceeded),
				Error:     T("%v: %v\n\n%s", "%v：%v\n\n%s").With(ErrHangs, context.Cause(ctx), stacks())}
		}
	}
	l.mu.Lock()
	l.res.Busy = busy(bench.TakeUsage().Since(before), time.Since(start))
	l.mu.Unlock()
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

// errExited is the error of a call that did not return.
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
	r.verdicts = len(l.verdicts) > 0
	if r.Busy.TooBig {
		l.refuse()
	}
	if err == nil {
		r.Found, err = expand(s.Found, r.Observations)
	}
	if err != nil {
		r.Error = Text{Explain(err, English), Explain(err, Chinese)}
	}
	r.settle()
	r.OutOfTime = !r.OK && !l.contradicted && errors.Is(l.ctx.Err(), context.DeadlineExceeded)
	for _, t := range r.Timelines {
		t.seal()
	}
	return r
}

// Check asserts what the scenario teaches. The text is a sentence that holds if ok.
func (l *Lab) Check(ok bool, text Text) { l.check(Check{Text: text, OK: ok}) }

// Race is Check for results that depend on times. A busy machine decides nothing: then the scenario
// is run again, and if no attempt is calm the check stays open.
func (l *Lab) Race(ok bool, text Text) { l.check(Check{Text: text, OK: ok, race: true}) }

// Verdict returns text, which gives the outcome of a race. On a busy machine another text replaces
// it among the observations and in a table.
func (l *Lab) Verdict(text Text) Text {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.verdicts == nil {
		l.verdicts = map[Text]bool{}
	}
	l.verdicts[text] = true
	return text
}

// Equal is Check for a value.
func (l *Lab) Equal(want, got any, text Text) {
	l.wanted(reflect.DeepEqual(want, got), want, got, text)
}

// Is is Check for an error.
func (l *Lab) Is(target, err error, text Text) { l.wanted(errors.Is(err, target), target, err, text) }

func (l *Lab) wanted(ok bool, want, got any, text Text) {
	c := Check{Text: text, OK: ok}
	if !ok {
		c.Got = T("want %v, got %v", "应为 %v，实为 %v").With(want, got)
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
	l.contradicted = l.contradicted || !c.OK && !c.race && l.ctx.Err() == nil
}

// Must ends the scenario if err is not nil.
func (l *Lab) Must(err error) {
	if err != nil {
		panic(aborted{err})
	}
}

// Observe notes a value for Found and for the JSON report. A Text stands for its words.
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
func (l *Lab) Until(what Text, cond func() bool) {
	for i := 0; !cond(); i++ {
		if i < 1000 { // Mostly it takes a moment only, and timers are coarse.
			runtime.Gosched()
			continue
		}
		select {
		case <-l.ctx.Done():
			panic(aborted{Fail(T("waiting until %s: %v", "等待「%s」时：%v"), what, context.Cause(l.ctx))})
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
