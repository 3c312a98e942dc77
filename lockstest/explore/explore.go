package explore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks/internal/keytext"
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

// finding is the mistake that a run of a program has shown.
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
	phases    func() []phase
	horizon   horizon
	wants     int // up to how many preemptions a search has to go
	schedules int
	within    time.Duration
	bound     limits
	replay    []deviation
	replays   bool
	repeats   bool // the replay may take several runs
	onces     bool // the program has locks inside of a sync.Once: see once.go
	inner     bool // a step inside of an operation is a decision
	expect    Kind
	complete  bool   // an incomplete search fails the test
	keep      string // a folder, or ""
	goesOn    bool   // an incomplete search of what it has to try goes on for some seconds
	err       error
}

// The limits of a search without options.
const (
	DefaultPreemptions = 2
	DefaultSchedules   = 10_000
	DefaultTime        = 20 * time.Second
	DefaultSteps       = 20_000
)

const (
	// unreduced is how many schedules are tried without a reduction, and then with the first
	// reduction. Most programs have fewer.
	unreduced = 2500

	// further is how long a search goes on after it has tried all schedules that it has to.
	further = 5 * time.Second

	// goingOn is how long a search by default goes on after [DefaultSchedules], if it has not tried
	// all schedules that it has to.
	goingOn = 8 * time.Second

	// A search of a program with more than long decisions begins with samples at random. Its
	// schedules without a preemption would take all of the time.
	long    = 1000
	samples = 40

	// deeper is after how many random schedules the depth of PCT grows.
	deeper = 1000
)

func configure(opts []Option) *config {
	c := &config{schedules: DefaultSchedules, within: DefaultTime, bound: limits{steps: DefaultSteps}}
	for _, o := range opts {
		o(c)
	}
	if c.phases == nil {
		part := max(c.schedules/4, 1)
		c.phases = func() []phase {
			return append(depthFirstTo(DefaultPreemptions, min(part, unreduced), part),
				phase{&depthFirst{bound: DefaultPreemptions + 1, reduce: byHolds}, part, true},
				phase{&pct{depth: 2, grows: deeper, seed: 1}, math.MaxInt, false})
		}
		c.wants, c.goesOn = DefaultPreemptions, c.schedules == DefaultSchedules
	}
	return c
}

// depthFirstTo returns the phases that try all schedules with up to n preemptions, with first
// schedules until each next reduction, and last schedules with the last reduction.
func depthFirstTo(n, first, last int) []phase {
	return []phase{
		{&depthFirst{bound: n}, first, false},
		{&depthFirst{bound: n, reduce: byStates}, first, false},
		{&depthFirst{bound: n, reduce: byHolds}, last, false},
	}
}

// Preemptions searches depth first all schedules in which at most n times a goroutine stops that
// could go on, or time passes although a goroutine could run. Schedules with fewer come first.
func Preemptions(n int) Option {
	return func(c *config) {
		c.phases = func() []phase { return depthFirstTo(n, unreduced, math.MaxInt) }
		c.wants = n
	}
}

// PCT gives the goroutines random priorities that change depth-1 times a run. It finds a bug that
// needs depth steps in a certain order with a known probability: Burckhardt and others, "A
// randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010.
func PCT(depth int, seed uint64) Option {
	return func(c *config) {
		c.phases = func() []phase { return []phase{{&pct{depth: max(depth, 1), seed: seed}, math.MaxInt, false}} }
	}
}

// Random makes each decision at random.
func Random(seed uint64) Option {
	return func(c *config) {
		c.phases = func() []phase { return []phase{{&random{seed: seed}, math.MaxInt, false}} }
	}
}

// Replay runs one schedule, as a report has printed it. The schedule ends with a ~ if the report
// says that something besides the explorer decides in the program. Such a schedule is run until it
// shows a finding, within the limits of a search.
func Replay(schedule string) Option {
	return func(c *config) {
		c.replay, c.repeats, c.horizon, c.err = parse(schedule)
		c.replays = true
	}
}

// Schedules ends the search after n schedules. The default is [DefaultSchedules]. A search that has
// tried all schedules with the preemptions that are wanted ends some seconds later in any case.
func Schedules(n int) Option { return func(c *config) { c.schedules = n } }

// Within ends the search after d of real time. The default is [DefaultTime].
func Within(d time.Duration) Option { return func(c *config) { c.within = d } }

// Steps is how many steps a run may have. The default is [DefaultSteps].
func Steps(n int) Option { return func(c *config) { c.bound.steps = n } }

// Starve makes it a finding that more than n acquisitions of a lock go ahead of one waiter.
func Starve(n int) Option { return func(c *config) { c.bound.starvation = n } }

// Complete fails a test without a finding whose search was not complete, or in which something
// besides the explorer decides. Without this option such a test passes, and says so on the standard
// error.
func Complete() Option { return func(c *config) { c.complete = true } }

// Expect turns the test around: it fails unless the search has a finding of this kind. It is for
// programs that show a mistake.
func Expect(k Kind) Option { return func(c *config) { c.expect = k } }

// result is the result of a search.
type result struct {
	schedules int
	complete  string    // says up to which bound the search was complete, or ""
	alike     reduction // has left out schedules
	doubt     string    // why there are other schedules, or ""
	strayed   bool      // something besides the explorer decides in the program
	horizon   horizon   // of its runs
	finding   *finding
	list      []deviation // the schedule of the finding
	run       *X          // its run, with the lines
	once      bool        // the test itself has failed, so no other run can tell whether it fails again
	idle      bool        // no run had an operation that can be decided on
	from, to  string      // the file that had the schedule, or that has got it
	elsewhere []string    // files with schedules that lead to other steps now
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
// builds the package's tests again with it, once for each process, and runs the test of t there, on
// one processor unless GOMAXPROCS is set. So go test needs no other arguments. With go test -tags
// lockexplore there is no second process.
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
	if err := r.keep(t, c); err != nil {
		t.Log(err)
	}
	for _, path := range r.elsewhere {
		t.Logf("explore: the schedule in %s leads to other steps than it did, and to no finding: "+
			"the program has changed, and the file can be removed", path)
	}
	switch {
	case r.err != nil:
		t.Fatal(r.err)
	case r.finding == nil && r.idle:
		t.Fatal(idleSearch)
	case c.expect != "" && r.finding == nil:
		t.Fatalf("explore: %s, but a %s was expected", r.outcome(c), c.expect)
	case c.expect != "" && r.finding.Kind != c.expect:
		t.Fatalf("explore: expected a %s, not this:\n%s", c.expect, r.report())
	case c.expect != "":
		t.Logf("as expected:\n%s", r.report())
	case r.finding != nil:
		t.Fatal(r.report())
	case c.complete && !c.replays && (r.complete == "" || r.strayed):
		t.Fatalf("explore: %s", r.outcome(c))
	case !c.replays && r.complete == "":
		fmt.Fprintf(os.Stderr, "%s%s: %s\n", incomplete, t.Name(), r.outcome(c))
		t.Logf("explore: %s", r.outcome(c))
	default:
		t.Logf("explore: %s", r.outcome(c))
	}
}

// incomplete begins the line on the standard error about a search that was not complete.
const incomplete = "explore: incomplete search of "

// outcome says how far a search without a finding went.
func (r result) outcome(c *config) string {
	s := fmt.Sprintf("no finding in %d schedules", r.schedules)
	switch {
	case c.replays && r.strayed:
		return fmt.Sprintf("no finding in %d runs of the schedule. %s", r.schedules, strays)
	case c.replays:
		return fmt.Sprintf("no finding in %d schedules, a replay", r.schedules)
	case r.strayed:
		return fmt.Sprintf("%s, which are not all. %s", s, strays)
	case r.complete == "":
		return s + ", and the search was not complete"
	case r.doubt != "":
		return fmt.Sprintf("%s, which are not all: %s", s, r.doubt)
	}
	return fmt.Sprintf("%s, %s%s, if its locks alone decide what the program does", s, r.complete, r.alike)
}

// mostReplays is how often a schedule is run that shows no finding, to see whether the runs differ.
const mostReplays = 20

// replay runs one schedule.
func replay(t *testing.T, c *config, f func(*X)) (r result) {
	t.Helper()
	g, paths, began := &guided{list: c.replay}, known{}, time.Now()
	r.horizon = c.horizon
	for r.finding == nil {
		g.begin()
		x := execute(t, c, f, g, true)
		r.schedules++
		r.finding, r.list, r.run, r.once = x.finding, deviations(x.decisions), x, t.Failed()
		r.strayed = paths.strays(x) || r.strayed
		for _, d := range c.replay {
			if d.at >= len(x.decisions) && x.finding == nil {
				g.unfit = append(g.unfit, d)
			}
		}
		repeats := c.repeats || r.strayed
		if len(g.unfit) > 0 && !repeats {
			r.err = fmt.Errorf("explore: the schedule does not fit the program: nothing to choose at %s",
				schedule(g.unfit))
			return r
		}
		if !repeats && r.schedules >= mostReplays || r.schedules >= c.schedules || time.Since(began) > c.within {
			break
		}
	}
	r.strayed = r.strayed || c.repeats
	return r
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
		return replay(t, c, f)
	}
	r.idle = true
	s := &inTurn{phases: c.phases(), bound: -1}
	paths := known{}
	began, told := time.Now(), time.Now()
	var done time.Time // when the search had tried what it has to
	unsure, tries := false, false
	begun, learned, probes := s, 0, 0
	again, sure := repetition(), strategy(&turns{of: []strategy{&guided{}, &endless{bound: c.wants}}})
	try := func(s strategy) (found bool) {
		x := newRun(t, c, f, s)
		x.signs, x.unsure, x.tries = r.schedules <= unreduced || s == again || s == sure, unsure, tries
		x.looks = x.looks || x.signs
		x.execute(t)
		if r.err = x.hangs; r.err != nil {
			return true
		}
		s.end(x.decisions)
		r.idle = r.idle && x.idle()
		unsure, tries = x.unsure, x.tries
		if r.doubt == "" {
			r.doubt = x.doubt
		}
		r.horizon = c.horizon
		c.onces = c.onces || x.sawOnce
		if x.beside && x.finding == nil && c.horizon.most == 0 && probes < mostProbes && s == strategy(begun) {
			// It may wait for a timer as well, which fires only if no other goroutine runs.
			probes++
			y := newRun(t, c, f, &guided{list: choices(x.decisions)})
			y.probes, y.probed = true, -1
			y.execute(t)
			if r.err = y.hangs; r.err != nil {
				return true
			}
			x.timers.learn(y.timers.most, y.timers.always)
		}
		if x.timers.most > c.horizon.most && x.finding == nil && learned < mostLearned {
			// From now on, time may pass where no time passed before. So the search begins again.
			learned++
			c.horizon.learn(x.timers.most, x.timers.always)
			paths = known{}
			*begun = inTurn{phases: c.phases(), bound: -1}
			return false
		}
		r.strayed = r.strayed || x.signs && paths.strays(x)
		if x.finding != nil {
			r.found(t, c, f, x)
		}
		return x.finding != nil
	}
	over := func() bool {
		took := time.Since(began)
		if r.schedules >= c.schedules && c.goesOn && !r.strayed {
			c.goesOn = false
			if s.resume(c.wants) {
				c.schedules, c.within = math.MaxInt, min(c.within, took+goingOn)
			}
		}
		if r.schedules >= c.schedules || took > c.within {
			return true
		}
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			t.Logf("explore: %d schedules in %v, no finding yet", r.schedules, took.Round(time.Second))
		}
		if s.bound >= c.wants && done.IsZero() {
			done = time.Now()
		}
		return !done.IsZero() && time.Since(done) > further
	}
	if !over() && c.wants > 0 {
		before := t.Failed()
		x := newRun(t, c, f, &guided{})
		x.probes, x.probed, x.looks = true, -1, true
		x.execute(t)
		if r.err = x.hangs; r.err != nil {
			return r
		}
		c.onces = x.sawOnce
		if len(x.decisions) > long {
			ordered := c.phases
			c.phases = func() []phase { return append([]phase{{repetition(), samples, false}}, ordered()...) }
			s.phases = c.phases()
		}
		if c.horizon = x.timers; t.Failed() && !before {
			r.found(t, c, f, x)
			return r
		}
	}
	if r.tryKept(t, c, f) {
		return r
	}
	for !r.strayed && s.begin() && !over() {
		r.schedules++
		if try(s) {
			return r
		}
	}
	r.complete = s.completeness(c.wants)
	r.alike = s.alike
	// Something besides the explorer may show only if a schedule is run again.
	for n := min(r.schedules, enough/2); !r.strayed && r.complete != "" && n < enough; n++ {
		sure.begin()
		if try(sure) {
			return r
		}
	}
	for r.strayed && !over() {
		r.schedules++
		again.begin()
		if try(again) {
			return r
		}
	}
	if r.strayed {
		r.complete, r.doubt = "", strays
	}
	return r
}

// mostLearned is how often a search begins again because it has seen time pass.
const mostLearned = 3

// mostProbes is how many schedules are run again to see whether they wait for timers.
const mostProbes = 20

// enough is how many runs tell whether something besides the explorer decides in a program.
const enough = 50

// repetition returns the strategy for a program in which something else decides as well.
func repetition() strategy {
	return &turns{of: []strategy{&guided{}, &random{seed: 1}, &pct{depth: 2, seed: 1}, &pct{depth: 3, seed: 1}}}
}

// found takes in the finding of a run, and looks for a shorter schedule.
func (r *result) found(t *testing.T, c *config, f func(*X), x *X) {
	t.Helper()
	r.list, r.finding, r.run = deviations(x.decisions), x.finding, x
	if r.once = t.Failed(); !r.once {
		if slices.ContainsFunc(x.decisions, func(d decision) bool { return d.fewer }) {
			// Without the reduction, other choices are the default.
			all := choices(x.decisions)
			for range mostShrinks {
				y := execute(t, c, f, &guided{list: all}, false)
				if y.finding != nil && y.finding.Kind == x.finding.Kind {
					x = y
					break
				}
				r.strayed = true
			}
		}
		r.list = shrink(t, c, f, x)
	}
	// If something else decides, the same schedule may need several runs.
	for n := range 1000 {
		if r.once && n > 0 {
			break
		}
		y := execute(t, c, f, &guided{list: r.list}, true)
		if y.finding != nil && (y.finding.Kind == x.finding.Kind || r.once) {
			r.finding, r.run = y.finding, y
			break
		}
		r.strayed = true
	}
	for n := 0; !r.once && !r.strayed && n < mostReplays; n++ {
		y := execute(t, c, f, &guided{list: r.list}, false)
		r.strayed = y.finding == nil || y.finding.Kind != r.finding.Kind
	}
}

// strays is the message about a program that has done two things after the same decisions.
const strays = "Something besides the explorer decides in this program: a select, the order of a map, " +
	"random numbers, or time. See X.Select and X.Choose"

// The reasons why a search has not tried all schedules, which it notices in a run.
const (
	outside = "a goroutine has waited outside of locks, so channels, timers and atomics had one order"
	unseen  = "X.Go has not started a goroutine, so its waits outside of locks had one order"
	elapsed = "time has passed, and the search does not try all moments at which it could"
)

// completeness says up to which bound the search was complete, or nothing if the bound is less than
// wanted.
func (s *inTurn) completeness(wanted int) string {
	if len(s.phases) > 0 {
		s.took(s.phases[0])
	}
	switch {
	case s.all:
		s.alike = min(s.alike, byStates) // no preemptions are counted
		return "which are all that there are"
	case s.bound >= wanted:
		return fmt.Sprintf("which are all with up to %d preemptions", s.bound)
	}
	return ""
}

// hang is how long a run may take of real time.
var hang = 30 * time.Second

// hanging says why a run does not go on. It cannot be ended: the root of the bubble waits.
func (x *X) hanging() error {
	s := "explore: a run does not go on. A goroutine spins without a lock, or waits for a lock of package " +
		"sync, or a sync.Once, whose holder is stopped at a decision"
	all, _ := stacks.All()
	if _, stalled := x.stalled(all); stalled {
		s = x.stalls(all)
	}
	for id, g := range all {
		in := x.has(g)
		spins := strings.HasPrefix(g.State, "running") || strings.HasPrefix(g.State, "runnable")
		if in && spins || strings.HasPrefix(g.State, "sync.Mutex") || strings.HasPrefix(g.State, "sync.RWMutex") {
			s += fmt.Sprintf("\n\ngoroutine %d is in %s:\n%s", id, g.State, g.Frames)
		}
	}
	return errors.New(s)
}

// newRun returns a new X, whose program has not run.
func newRun(t *testing.T, c *config, f func(*X), s strategy) *X {
	return &X{tb: t, program: f, choose: s, bound: c.bound, endless: c.replays, horizon: c.horizon,
		asks: make(chan struct{}), clock: make(chan time.Time), looks: c.onces || c.replays, inner: c.inner}
}

// execute runs the program once, and notes its places for a report if record is true.
func execute(t *testing.T, c *config, f func(*X), s strategy, record bool) *X {
	t.Helper()
	x := newRun(t, c, f, s)
	x.record, x.signs = record, record
	x.looks = x.looks || record
	x.execute(t)
	return x
}

// execute runs the program once in a bubble of its own.
func (x *X) execute(t *testing.T) {
	t.Helper()
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
	if !x.endless { // a person may be looking at a replay in a debugger
		stuck := time.NewTimer(hang)
		defer stuck.Stop()
		x.stuckAt = stuck.C
	}
	v := x.await(over)
	if x.hangs != nil {
		return
	}
	if v != nil && x.finding == nil {
		x.finding = &finding{Kind: Leak, Text: fmt.Sprint(keytext.Panic(v))}
	}
	if x.vain {
		x.finding = nil // time has passed for no reason that the program has
	}
	if x.finding == nil && !failed && t.Failed() {
		x.finding = &finding{Kind: Failure, Text: failedBefore}
	}
}

// await returns what over delivers, and meanwhile tells the run the time.
func (x *X) await(over <-chan any) any {
	var look <-chan time.Time
	if !x.endless {
		ticker := time.NewTicker(stall / looksOfStall)
		defer ticker.Stop()
		look = ticker.C
	}
	stalls, which := 0, ""
	stop := func() {
		// Its goroutines stay. They end if they come to an operation of a lock.
		x.hangs = x.hanging()
		order.Ignore()
		x.aborted.Store(true)
		order.Heed()
		install(nil)
	}
	for {
		select {
		case v := <-over:
			return v
		case <-look:
			all, _ := stacks.All()
			ids, stalled := x.stalled(all)
			if !stalled || ids != which {
				stalls, which = 0, ids
			}
			if stalls++; stalled && stalls > looksOfStall {
				stop()
				return nil
			}
		case <-x.asks:
			x.clock <- time.Now()
		case <-x.stuckAt:
			stop()
			return nil
		}
	}
}

// mostShrinks is how many runs a shorter schedule may take to find.
const mostShrinks = 400

// shrinking is how much time a shorter schedule may take to find.
var shrinking = 5 * time.Second

// shrink returns a short schedule with the same kind of finding as x. A schedule is shorter if
// fewer of its decisions differ from the default, or else if it has fewer steps. First shrink
// leaves decisions out, half of them at a time and then fewer. If x was not found depth first, it
// then looks for a schedule with fewer preemptions.
func shrink(t *testing.T, c *config, f func(*X), x *X) []deviation {
	t.Helper()
	best, steps, cost := deviations(x.decisions), x.steps, preemptions(x.decisions)
	runs, began := 0, time.Now()
	over := func() bool { return runs >= mostShrinks || time.Since(began) > shrinking }
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
		for at := 0; at < len(best) && !over(); {
			end := min(at+size, len(best))
			if !try(&guided{list: slices.Concat(best[:at], best[end:])}) {
				at = end
			}
		}
	}
	if _, ok := x.choose.(*depthFirst); ok || cost == 0 {
		return best
	}
	runs, began = 0, time.Now()
	for s := (&depthFirst{bound: cost}); s.begin() && s.now <= cost && !over(); {
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
