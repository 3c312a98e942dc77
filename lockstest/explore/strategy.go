package explore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// passes is the option that no goroutine runs, and time passes.
const passes = -1

// decision is one choice among at least two options.
type decision struct {
	options []int // indexes of goroutines, or passes. The first option is the default
	stays   bool  // the first option is the goroutine that ran before, and could go on
	own     int   // the number of options that are goroutines of the program; the others are events
	tired   int   // the goroutine that ran before if it has to yield, or -1
	value   bool  // the options are numbers: see X.Choose
	chosen  int

	fewer  bool // the reduction has left out options: see reduce.go
	forced bool // and it has left one

	path  uint64 // stands for the choices before this one
	trail uint64 // stands for what the run has done before this decision
	state uint64 // stands for the state of the program, or is 0: see X.stateNow
}

// cost is how much a choice counts against the bound of preemptions.
func (d decision) cost(choice int) int {
	if choice > 0 && !d.forced && (d.stays || choice >= d.own) {
		return 1
	}
	return 0
}

// strategy chooses the schedules.
type strategy interface {
	// begin begins a run, and returns false if there is none left.
	begin() bool
	// choose returns an index into the options of the n-th decision, at a step of the run.
	choose(n, step int, d decision) int
	// end ends a run, of which it gets the decisions.
	end(run []decision)
}

// depthFirst tries all schedules with at most bound preemptions: first the schedules without a
// preemption, then with one, and so on. Musuvathi and Qadeer, "Iterative context bounding for
// systematic testing of multithreaded programs", PLDI 2007.
//
// With a reduction, it goes no further from a state of the program from which it has tried
// everything with as many preemptions left. Musuvathi and Qadeer, "Partial-order reduction for
// context-bounded state exploration", MSR-TR-2007-12. Such a run goes on by default choices, since
// an end in its midst would run the program's deferred functions.
type depthFirst struct {
	bound    int // the greatest
	now      int // the bound of this pass
	prefix   []int
	last     []decision
	started  bool
	pruned   bool // the pass has left out a schedule
	complete bool // all schedules up to bound were tried
	all      bool // there are no other schedules at all

	reduce  reduction
	reduced bool           // the reduction has left out something
	seen    map[uint64]int // by state: 1 + the preemptions that were left there
	spent   int
	cut     int // the decision from which on everything was tried before, or -1
}

func (s *depthFirst) begin() bool {
	s.spent, s.cut = 0, -1
	if !s.started {
		s.started = true
		return true
	}
	if s.back() {
		return true
	}
	if !s.pruned || s.now >= s.bound {
		s.complete, s.all = true, !s.pruned
		return false
	}
	s.now, s.pruned, s.prefix, s.last = s.now+1, false, nil, nil
	return true
}

// back makes prefix the prefix of the next schedule of the pass.
func (s *depthFirst) back() bool {
	spent := 0
	for _, d := range s.last {
		spent += d.cost(d.chosen)
	}
	for n := len(s.last) - 1; n >= 0; n-- {
		d := s.last[n]
		spent -= d.cost(d.chosen)
		if d.forced {
			continue
		}
		for c := d.chosen + 1; c < len(d.options); c++ {
			if spent+d.cost(c) > s.now {
				s.pruned = true
				continue
			}
			s.prefix = s.prefix[:0]
			for _, before := range s.last[:n] {
				s.prefix = append(s.prefix, before.chosen)
			}
			s.prefix = append(s.prefix, c)
			return true
		}
	}
	return false
}

func (s *depthFirst) choose(n, _ int, d decision) int {
	choice := 0
	switch {
	case n < len(s.prefix):
		if s.prefix[n] < len(d.options) {
			choice = s.prefix[n]
		}
	case s.cut < 0 && s.reduce > noReduction && d.state != 0:
		if left := s.now - s.spent; s.seen[d.state] > left {
			s.cut, s.reduced = n, true
		} else {
			if s.seen == nil {
				s.seen = map[uint64]int{}
			}
			s.seen[d.state] = left + 1
		}
	}
	s.spent += d.cost(choice)
	return choice
}

func (s *depthFirst) end(run []decision) {
	s.reduced = s.reduced || slices.ContainsFunc(run, func(d decision) bool { return d.fewer })
	if s.cut >= 0 {
		run = run[:s.cut]
	}
	s.last = run
}

// pct runs the goroutine with the highest of random priorities, and lowers the priority of the
// running goroutine at depth-1 random steps. A bug that needs depth steps in a certain order is
// found with a probability of at least 1/(n*k^(depth-1)) a run, for n goroutines and k steps.
// Burckhardt and others, "A randomized scheduler with probabilistic guarantees of finding bugs",
// ASPLOS 2010.
type pct struct {
	depth    int
	grows    int // the depth is one more after each so many schedules; 0: never
	seed     uint64
	run      uint64
	r        *rand.Rand
	priority map[int]int
	changes  map[int]bool
	least    int
	longest  int // the greatest number of steps so far
}

func (s *pct) begin() bool {
	s.run++
	s.r = rand.New(rand.NewPCG(s.seed, s.run))
	s.priority, s.changes, s.least = map[int]int{}, map[int]bool{}, 0
	depth := s.depth
	if s.grows > 0 {
		depth += int(s.run-1) / s.grows
	}
	for range depth - 1 {
		s.changes[s.r.IntN(max(s.longest, 16))] = true
	}
	return true
}

func (s *pct) choose(_, step int, d decision) int {
	if d.value {
		return s.r.IntN(len(d.options))
	}
	for _, o := range d.options {
		if _, ok := s.priority[o]; !ok {
			s.priority[o] = 1 + s.r.IntN(1<<20)
		}
	}
	if d.tired >= 0 {
		s.least--
		s.priority[d.tired] = s.least
	}
	best := 0
	for c, o := range d.options {
		if s.priority[o] > s.priority[d.options[best]] {
			best = c
		}
	}
	s.longest = max(s.longest, step)
	if s.changes[step] || best >= d.own {
		s.least--
		s.priority[d.options[best]] = s.least
	}
	return best
}

func (s *pct) end([]decision) {}

// random chooses each option with the same probability.
type random struct {
	seed, run uint64
	r         *rand.Rand
}

func (s *random) begin() bool {
	s.run++
	s.r = rand.New(rand.NewPCG(s.seed, s.run))
	return true
}

func (s *random) choose(_, _ int, d decision) int { return s.r.IntN(len(d.options)) }
func (s *random) end([]decision)                  {}

// phase is a strategy with the number of schedules that it gets of a search.
type phase struct {
	strategy
	most  int
	after bool // it needs all schedules with fewer preemptions to be tried before
}

func (s *depthFirst) reduces() reduction { return s.reduce }

// reduces returns the reduction of the strategy whose turn it is.
func (s *inTurn) reduces() reduction {
	if r, ok := s.phases[0].strategy.(reducer); ok {
		return r.reduces()
	}
	return noReduction
}

// inTurn is several strategies, one after the other. A search depth first goes on where the
// strategy before it has ended.
type inTurn struct {
	phases []phase
	last   *depthFirst // the last search whose turn it was
	used   int         // schedules of the first phase
	bound  int         // all schedules with so many preemptions were tried, or -1
	all    bool
	alike  reduction // has left out some schedules, which it takes for like another schedule
}

func (s *inTurn) begin() bool {
	for len(s.phases) > 0 {
		p := s.phases[0]
		d, ok := p.strategy.(*depthFirst)
		if ok && s.used == 0 {
			d.now = s.bound + 1
			if d.now > d.bound || p.after && d.now < d.bound {
				s.phases = s.phases[1:]
				continue
			}
			s.last = d
		}
		if s.used++; s.used <= p.most && p.begin() {
			return true
		}
		s.took(p)
		s.phases, s.used = s.phases[1:], 0
		if s.all {
			return false
		}
	}
	return false
}

// resume goes on with the last search depth first, if that has not tried all schedules with up to
// wanted preemptions.
func (s *inTurn) resume(wanted int) bool {
	if s.last == nil || s.bound >= wanted || s.all {
		return false
	}
	if len(s.phases) > 0 {
		s.took(s.phases[0])
	}
	s.phases, s.used = []phase{{s.last, math.MaxInt, false}}, 0
	return true
}

// took takes in how far a phase went that has begun.
func (s *inTurn) took(p phase) {
	d, ok := p.strategy.(*depthFirst)
	if !ok || s.used == 0 {
		return
	}
	if d.reduced && (d.done() > s.bound || d.all) {
		s.alike = max(s.alike, d.reduce)
	}
	s.bound, s.all = max(s.bound, d.done()), d.all
}

func (s *inTurn) choose(n, step int, d decision) int { return s.phases[0].choose(n, step, d) }
func (s *inTurn) end(run []decision)                 { s.phases[0].end(run) }

// done returns the number of preemptions with which all schedules were tried, or -1.
func (s *depthFirst) done() int {
	if s.complete {
		return s.now
	}
	return s.now - 1
}

// endless searches depth first, over and over.
type endless struct {
	depthFirst
	bound int
}

func (s *endless) begin() bool {
	if !s.depthFirst.started || !s.depthFirst.begin() {
		s.depthFirst = depthFirst{bound: s.bound}
		s.depthFirst.begin()
	}
	return true
}

// turns is several strategies that alternate without an end.
type turns struct {
	of []strategy
	n  int
}

func (s *turns) begin() bool {
	s.n = (s.n + 1) % len(s.of)
	return s.of[s.n].begin()
}

func (s *turns) choose(n, step int, d decision) int { return s.of[s.n].choose(n, step, d) }
func (s *turns) end(run []decision)                 { s.of[s.n].end(run) }

// deviation is a decision that is not the default.
type deviation struct{ at, option int }

// choices returns all decisions of a run.
func choices(run []decision) (list []deviation) {
	for n, d := range run {
		list = append(list, deviation{n, d.options[d.chosen]})
	}
	return list
}

// deviations returns the decisions of a run that are not the default.
func deviations(run []decision) (list []deviation) {
	for n, d := range run {
		if d.chosen > 0 {
			list = append(list, deviation{n, d.options[d.chosen]})
		}
	}
	return list
}

// schedule returns a schedule as text.
func schedule(list []deviation) string {
	parts := make([]string, len(list))
	for i, d := range list {
		who := strconv.Itoa(d.option)
		if d.option == passes {
			who = "t"
		}
		parts[i] = fmt.Sprintf("%d:%s", d.at, who)
	}
	return strings.Join(parts, " ")
}

// repeated marks a schedule of a program in which something else decides as well.
const repeated = "~"

// The parts of a schedule that say how much time may pass begin with one of these: see horizon.
const (
	waits       = "w"
	waitsAlways = "W"
)

// String returns the part of a schedule that stands for h, or "".
func (h horizon) String() string {
	switch {
	case h.most == 0:
		return ""
	case h.always:
		return waitsAlways + h.most.String()
	}
	return waits + h.most.String()
}

// parse returns the schedule of a text, whether it may take several runs to show its finding, and
// how much time may pass.
func parse(text string) (list []deviation, repeat bool, h horizon, err error) {
	for _, part := range strings.Fields(text) {
		if part == repeated {
			repeat = true
			continue
		}
		if strings.HasPrefix(part, waits) || strings.HasPrefix(part, waitsAlways) {
			h.always = strings.HasPrefix(part, waitsAlways)
			if h.most, err = time.ParseDuration(part[1:]); err != nil || h.most <= 0 {
				return nil, false, h, fmt.Errorf("explore: %q is no schedule: %q is not of the form w1s", text, part)
			}
			continue
		}
		n, who, ok := strings.Cut(part, ":")
		at, err := strconv.Atoi(n)
		option := passes
		if err == nil && who != "t" {
			option, err = strconv.Atoi(who)
		}
		if !ok || err != nil || at < 0 || option < passes {
			return nil, false, h, fmt.Errorf("explore: %q is no schedule: %q is not of the form 7:2 or 7:t", text, part)
		}
		list = append(list, deviation{at, option})
	}
	return list, repeat, h, nil
}

// guided follows deviations. It notes the deviations that do not fit the program.
type guided struct {
	list  []deviation
	unfit []deviation
}

func (s *guided) begin() bool {
	s.unfit = nil
	return true
}

func (s *guided) choose(n, _ int, d decision) int {
	for _, v := range s.list {
		if v.at != n {
			continue
		}
		for c, o := range d.options {
			if o == v.option {
				return c
			}
		}
		s.unfit = append(s.unfit, v)
	}
	return 0
}

func (s *guided) end([]decision) {}
