package explore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/stacks"
)

// Kind is a kind of finding.
type Kind string

// The kinds of findings.
const (
	Deadlock   Kind = "deadlock"           // goroutines wait for locks, and none can go on
	LostWakeup Kind = "lost wake-up"       // goroutines wait for a signal, and none is left to send it
	Leak       Kind = "goroutine leak"     // a goroutine is blocked forever outside of locks
	Panic      Kind = "panic"              // a goroutine has panicked
	Failure    Kind = "failed check"       // Errorf, Check, or a failure of the test
	Starvation Kind = "starvation"         // others overtook a waiter too often: see option Starve
	Endless    Kind = "run without an end" // see option Steps
	Race       Kind = "data race"          // the race detector has reported one
)

// finding is what a run of a program has shown.
type finding struct {
	Kind Kind
	Text string

	who string
	pcs []uintptr
}

// String returns the kind, the goroutine, the text and the line.
func (f *finding) String() string {
	s := string(f.Kind)
	if f.who != "" {
		s += " in " + f.who
	}
	return s + at(f.pcs) + ":\n  " + f.Text
}

// Option changes how [Run] searches.
type Option func(*config)

type config struct {
	strategy  func() strategy
	name      string
	schedules int
	within    time.Duration
	bound     limits
	replay    []deviation
	replays   bool
	expect    Kind
	err       error
}

// The limits of a search without options.
const (
	DefaultPreemptions = 2
	DefaultSchedules   = 10_000
	DefaultTime        = 20 * time.Second
	DefaultSteps       = 20_000
)

func configure(opts []Option) *config {
	c := &config{schedules: DefaultSchedules, within: DefaultTime, bound: limits{steps: DefaultSteps}}
	for _, o := range opts {
		o(c)
	}
	if c.strategy == nil {
		c.name = fmt.Sprintf("depth first, %d preemptions, then PCT", DefaultPreemptions)
		c.strategy = func() strategy {
			first, then := depthFirst{bound: DefaultPreemptions}, pct{depth: 3, seed: 1}
			return &mixed{first: first, then: then, left: max(c.schedules/2, 1)}
		}
	}
	return c
}

// Preemptions searches depth first all schedules in which at most n times a goroutine stops that
// could go on, or time passes although a goroutine could run. Schedules with fewer come first.
func Preemptions(n int) Option {
	return func(c *config) {
		c.name = fmt.Sprintf("depth first, %d preemptions", n)
		c.strategy = func() strategy { return &depthFirst{bound: n} }
	}
}

// PCT gives the goroutines random priorities that change depth-1 times a run. It finds a bug that
// needs depth steps in a certain order with a known probability: Burckhardt and others, "A
// randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010.
func PCT(depth int, seed uint64) Option {
	return func(c *config) {
		c.name = fmt.Sprintf("PCT, depth %d, seed %d", depth, seed)
		c.strategy = func() strategy { return &pct{depth: max(depth, 1), seed: seed} }
	}
}

// Random makes each decision at random.
func Random(seed uint64) Option {
	return func(c *config) {
		c.name = fmt.Sprintf("random, seed %d", seed)
		c.strategy = func() strategy { return &random{seed: seed} }
	}
}

// Replay runs one schedule, the one that a report has printed.
func Replay(schedule string) Option {
	return func(c *config) {
		c.replay, c.err = parse(schedule)
		c.replays = true
	}
}

// Schedules ends the search after n schedules. The default is [DefaultSchedules].
func Schedules(n int) Option { return func(c *config) { c.schedules = n } }

// Within ends the search after d of real time. The default is [DefaultTime].
func Within(d time.Duration) Option { return func(c *config) { c.within = d } }

// Steps is how many steps a run may have. The default is [DefaultSteps].
func Steps(n int) Option { return func(c *config) { c.bound.steps = n } }

// Starve makes it a finding that more than n acquisitions of a lock go ahead of one waiter.
func Starve(n int) Option { return func(c *config) { c.bound.starvation = n } }

// Expect turns the test around: it fails unless the search has a finding of this kind. It is for
// programs that show a mistake.
func Expect(k Kind) Option { return func(c *config) { c.expect = k } }

// result is what a search has shown.
type result struct {
	schedules int
	complete  string // what the search was complete up to, or ""
	doubt     string // why there are other schedules, or ""
	finding   *finding
	list      []deviation // the schedule of the finding
	run       *X          // its run, with the lines
	once      bool        // the test itself has failed, so no other run can tell whether it fails again
	idle      bool        // no run had an operation that can be decided on
	err       error
}

// idleSearch is the text of a search without operations.
const idleSearch = "explore: the program has used no lock of this module, so there was nothing to decide. " +
	"Replace its locks of package sync: see docs/guides/finding-mistakes.md. If that is meant, call X.Step"

// failedBefore is the text of a failure that the test has reported itself.
const failedBefore = "the test has failed: see above"

// one explores at a time: the locks know one scheduler.
var one sync.Mutex

// Run runs program under one schedule after the other, and fails the test with a report of the
// first finding. The program is everything that f does and starts. It must make its locks itself,
// and do the same in each run but for the schedule.
//
// Run needs locks that announce their operations: the build tag lockexplore. Without the tag, Run
// builds the package's tests again with it, once for each process, and runs the test of t there. So
// go test needs no other arguments. With go test -tags lockexplore there is no second process.
//
// The first call of Run in a test stands for the whole test then: the code after it sees no other
// state than the code before it.
func Run(t *testing.T, f func(x *X), opts ...Option) {
	t.Helper()
	if !sched.On {
		again(t)
		return
	}
	c := configure(opts)
	r := search(t, c, f)
	switch {
	case r.err != nil:
		t.Fatal(r.err)
	case r.finding == nil && r.idle:
		t.Fatal(idleSearch)
	case c.expect != "" && r.finding == nil:
		t.Fatalf("explore: no finding in %d schedules, but a %s was expected", r.schedules, c.expect)
	case c.expect != "" && r.finding.Kind != c.expect:
		t.Fatalf("explore: expected a %s, not this:\n%s", c.expect, r.report())
	case c.expect != "":
		t.Logf("as expected:\n%s", r.report())
	case r.finding != nil:
		t.Fatal(r.report())
	case r.complete == "" && !c.replays:
		t.Logf("explore: no finding in %d schedules (%s), and the search was not complete", r.schedules, c.name)
	case r.doubt != "":
		t.Logf("explore: no finding in %d schedules, which are not all: %s", r.schedules, r.doubt)
	case c.replays:
		t.Logf("explore: no finding in %d schedules, %s", r.schedules, r.complete)
	default:
		t.Logf("explore: no finding in %d schedules, %s, if its locks alone decide what the program does",
			r.schedules, r.complete)
	}
}

// search runs f until there is a finding, or nothing is left to try.
func search(t *testing.T, c *config, f func(*X)) (r result) {
	t.Helper()
	one.Lock()
	defer one.Unlock()
	if c.err != nil {
		return result{err: c.err}
	}
	if c.replays {
		g := &guided{list: c.replay}
		x := execute(t, c, f, g, true)
		r = result{schedules: 1, finding: x.finding, list: deviations(x.decisions), run: x, complete: "a replay"}
		for _, d := range c.replay {
			if d.at >= len(x.decisions) && x.finding == nil {
				g.unfit = append(g.unfit, d)
			}
		}
		if len(g.unfit) > 0 {
			r.err = fmt.Errorf("explore: the schedule does not fit the program: nothing to choose at %s",
				schedule(g.unfit))
		}
		return r
	}
	r.idle = true
	s := c.strategy()
	began, told := time.Now(), time.Now()
	for s.begin() {
		if r.schedules >= c.schedules || time.Since(began) > c.within {
			return r
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			t.Logf("explore: %d schedules in %v, no finding yet", r.schedules, time.Since(began).Round(time.Second))
		}
		r.schedules++
		x := execute(t, c, f, s, false)
		s.end(x.decisions)
		r.idle = r.idle && x.idle()
		if r.doubt == "" {
			r.doubt = x.doubt
		}
		if x.finding != nil {
			r.list = deviations(x.decisions)
			r.finding = x.finding
			if r.once = t.Failed(); !r.once {
				r.list = shrink(t, c, f, x)
			}
			r.run = execute(t, c, f, &guided{list: r.list}, true)
			if r.run.finding != nil {
				r.finding = r.run.finding
			}
			return r
		}
	}
	var first *depthFirst
	switch d := s.(type) {
	case *depthFirst:
		first = d
	case *mixed:
		first = &d.first
	}
	if first != nil {
		r.complete = first.completeness()
		if first.strayed {
			r.doubt = strays
		}
	}
	return r
}

// The reasons why a search has not tried all schedules. It notices them in a run, or between two.
const (
	strays = "one schedule led to different operations in two runs. Something other than locks decides, " +
		"such as a select, the order of a map, or a random number"
	outside = "a goroutine has waited outside of locks, where the search decides nothing"
	unseen  = "X.Go has not started a goroutine, so the search does not see its waits outside of locks"
	elapsed = "time has passed, and the search does not try all moments at which it could"
)

// completeness says what the search was complete up to.
func (s *depthFirst) completeness() string {
	switch {
	case s.all:
		return "which are all that there are"
	case s.complete:
		return fmt.Sprintf("which are all with up to %d preemptions", s.bound)
	}
	return ""
}

// hang is how long a run may take of real time.
var hang = 30 * time.Second

// hanging says why a run does not go on. It cannot be ended: the root of the bubble waits.
func hanging() string {
	s := "explore: a run does not go on. A goroutine spins without a lock, or waits for a lock of package " +
		"sync whose holder is stopped at a decision"
	all, _ := stacks.All()
	for id, g := range all {
		if strings.HasPrefix(g.State, "sync.Mutex") || strings.HasPrefix(g.State, "sync.RWMutex") {
			s += fmt.Sprintf("\n\ngoroutine %d waits in %s:\n%s", id, g.State, g.Frames)
		}
	}
	return s
}

// execute runs the program once in a bubble of its own.
func execute(t *testing.T, c *config, f func(*X), s strategy, record bool) *X {
	t.Helper()
	x := &X{tb: t, program: f, choose: s, bound: c.bound, record: record,
		asks: make(chan struct{}), clock: make(chan time.Time)}
	failed := t.Failed()
	over := make(chan any, 1)
	go func() {
		returned := false
		defer func() {
			v := recover()
			if !returned && v == nil && x.finding == nil {
				x.finding = &finding{Kind: Failure, Text: failedBefore}
				if raceEnabled {
					x.finding = &finding{Kind: Race, Text: "the report of the race detector is above"}
				}
			}
			over <- v
		}()
		synctest.Test(t, func(*testing.T) { x.root() })
		returned = true
	}()
	if !c.replays { // a person may be looking at a replay in a debugger
		stuck := time.AfterFunc(hang, func() { panic(hanging()) })
		defer stuck.Stop()
	}
	v := x.await(over)
	if v != nil && x.finding == nil {
		x.finding = &finding{Kind: Leak, Text: fmt.Sprint(v)}
	}
	if x.finding == nil && !failed && t.Failed() {
		x.finding = &finding{Kind: Failure, Text: failedBefore}
	}
	return x
}

// await returns what over delivers, and meanwhile tells the run the time.
func (x *X) await(over <-chan any) any {
	for {
		select {
		case v := <-over:
			return v
		case <-x.asks:
			x.clock <- time.Now()
		}
	}
}

// mostShrinks is how many runs a shorter schedule may take to find.
const mostShrinks = 400

// shrink returns a short schedule with the same kind of finding as x. One is shorter if fewer of
// its decisions differ from the default, or else if it has fewer steps. It first leaves
// decisions out, half of them at a time and then fewer. If x was not found depth first, it then
// looks for a schedule with fewer preemptions.
func shrink(t *testing.T, c *config, f func(*X), x *X) []deviation {
	t.Helper()
	best, steps, cost := deviations(x.decisions), x.steps, preemptions(x.decisions)
	runs := 0
	try := func(s strategy) bool {
		runs++
		y := execute(t, c, f, s, false)
		s.end(y.decisions)
		list := deviations(y.decisions)
		if y.finding == nil || y.finding.Kind != x.finding.Kind ||
			len(list) > len(best) || len(list) == len(best) && y.steps >= steps {
			return false
		}
		best, steps, cost = list, y.steps, preemptions(y.decisions)
		return true
	}
	for size := len(best); size >= 1; size /= 2 {
		for at := 0; at < len(best) && runs < mostShrinks; {
			end := min(at+size, len(best))
			if !try(&guided{list: slices.Concat(best[:at], best[end:])}) {
				at = end
			}
		}
	}
	if _, ok := x.choose.(*depthFirst); ok || cost == 0 {
		return best
	}
	runs = 0
	for s := (&depthFirst{bound: cost}); s.begin() && s.now <= cost && runs < mostShrinks; {
		try(s)
	}
	return best
}

// preemptions returns what the decisions of a run count against a bound.
func preemptions(run []decision) (n int) {
	for _, d := range run {
		n += d.cost(d.chosen)
	}
	return n
}
