package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// passes is the option that no goroutine runs, and time passes.
const passes = -1

// decision is one choice among at least two options.
type decision struct {
	options []int // indexes of goroutines, or passes. The first one is the default
	stays   bool  // the first one is the goroutine that ran before, and could go on
	own     int   // the number of options that are goroutines of the program; the others are events
	tired   int   // the goroutine that ran before if it has to yield, or -1
	chosen  int
}

// cost is what a choice counts against the bound of preemptions.
func (d decision) cost(choice int) int {
	if choice > 0 && (d.stays || choice >= d.own) {
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

// depthFirst tries all schedules with at most bound preemptions: those without any first, then
// those with one, and so on. Musuvathi and Qadeer, "Iterative context bounding for systematic
// testing of multithreaded programs", PLDI 2007.
type depthFirst struct {
	bound    int // the greatest
	now      int // the bound of this pass
	prefix   []int
	last     []decision
	started  bool
	pruned   bool // the pass has left out a schedule
	complete bool // all schedules up to bound were tried
	all      bool // there are no other schedules at all
	strayed  bool // a prefix of decisions has led to other options than before
}

func (s *depthFirst) begin() bool {
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

// back makes prefix that of the next schedule of the pass.
func (s *depthFirst) back() bool {
	spent := 0
	for _, d := range s.last {
		spent += d.cost(d.chosen)
	}
	for n := len(s.last) - 1; n >= 0; n-- {
		d := s.last[n]
		spent -= d.cost(d.chosen)
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
	if n >= len(s.prefix) {
		return 0
	}
	if !slices.Equal(d.options, s.last[n].options) {
		s.strayed = true
	}
	if s.prefix[n] < len(d.options) {
		return s.prefix[n]
	}
	return 0
}

func (s *depthFirst) end(run []decision) {
	s.strayed = s.strayed || len(run) < len(s.prefix)
	s.last = run
}

// pct runs the goroutine with the highest of random priorities, and lowers that of the running
// one at depth-1 random steps. A bug that needs depth steps in a certain order is found with a
// probability of at least 1/(n*k^(depth-1)) a run, for n goroutines and k steps. Burckhardt and
// others, "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010.
type pct struct {
	depth    int
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
	for range s.depth - 1 {
		s.changes[s.r.IntN(max(s.longest, 16))] = true
	}
	return true
}

func (s *pct) choose(_, step int, d decision) int {
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

// mixed is depth first for the first half of the schedules, and then pct.
type mixed struct {
	first depthFirst
	then  pct
	left  int
}

func (s *mixed) begin() bool {
	if s.left > 0 {
		s.left--
		return s.first.begin()
	}
	return s.then.begin()
}

func (s *mixed) choose(n, step int, d decision) int {
	s.then.longest = max(s.then.longest, step)
	if s.left > 0 || s.then.run == 0 {
		return s.first.choose(n, step, d)
	}
	return s.then.choose(n, step, d)
}

func (s *mixed) end(run []decision) {
	if s.then.run == 0 {
		s.first.end(run)
	}
}

// deviation is a decision that is not the default.
type deviation struct{ at, option int }

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

// parse returns the schedule of a text.
func parse(text string) (list []deviation, err error) {
	for _, part := range strings.Fields(text) {
		n, who, ok := strings.Cut(part, ":")
		at, err := strconv.Atoi(n)
		option := passes
		if err == nil && who != "t" {
			option, err = strconv.Atoi(who)
		}
		if !ok || err != nil || at < 0 || option < passes {
			return nil, fmt.Errorf("explore: %q is no schedule: %q is not of the form 7:2 or 7:t", text, part)
		}
		list = append(list, deviation{at, option})
	}
	return list, nil
}

// guided follows deviations. It notes those that do not fit the program.
type guided struct {
	list  []deviation
	unfit []deviation
	used  bool
}

func (s *guided) begin() bool {
	was := s.used
	s.used = true
	return !was
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
