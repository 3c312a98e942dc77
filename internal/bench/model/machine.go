package model

import (
	"container/heap"
	"math"
	"math/rand/v2"
)

// Costs are the times that operations take, in nanoseconds.
type Costs struct {
	Atomic   float64 // an atomic operation on a cache line that the processor has
	Transfer float64 // the same operation takes this longer on a line that another processor has
	Wake     float64 // to make a parked goroutine runnable, for the goroutine that does it
	Turn     float64 // from the park of a goroutine until the next one runs on that processor
	Rise     float64 // until an idle processor takes what another one was to run next
	Spin     float64 // for how long a goroutine spins before it parks, if its lock does so
	Slice    float64 // for how long a goroutine runs while others want its processor
	Stop     float64 // for how long the system takes a processor for itself now and then, on average
	Every    float64 // how long a goroutine computes between two such stops, on average; 0: for ever
	Jitter   float64 // by what share each of these times, and each piece of work, varies at random
}

// machine has processors that run goroutines as Go's scheduler does, in simple terms. A goroutine
// that is made runnable comes next on the processor that made it runnable. An idle processor
// takes the goroutine from there, but late: Go's scheduler sleeps for 3 µs first, and on Linux
// that takes more than 50 µs. All others are in one queue.
type machine struct {
	Costs
	now    float64
	events events
	count  int
	random *rand.Rand // seeded, so that a run can be repeated
	procs  []*proc
	idle   []*proc
	queue  []*task
}

type proc struct {
	next  *task   // made runnable by what runs here
	since float64 // when the present goroutine began to run
}

// task is a goroutine. resume is the rest of its work.
type task struct {
	p      *proc
	resume func()
}

func newMachine(procs int, c Costs) *machine {
	m := &machine{Costs: c, random: rand.New(rand.NewPCG(1, 2))}
	for range procs {
		p := new(proc)
		m.procs, m.idle = append(m.procs, p), append(m.idle, p)
	}
	return m
}

// event is something that happens at a time. Of two at one time, the first made happens first.
type event struct {
	at float64
	n  int
	f  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// after calls f after about d. Without variation the steps of goroutines would fall into a rhythm
// in which one of them comes too late each time.
func (m *machine) after(d float64, f func()) {
	m.count++
	d *= 1 + m.Jitter*(2*m.random.Float64()-1)
	heap.Push(&m.events, event{m.now + d, m.count, f})
}

// run lets time go on while on returns true and something happens.
func (m *machine) run(on func() bool) {
	for len(m.events) > 0 && on() {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.f()
	}
}

// start makes a new goroutine runnable.
func (m *machine) start(f func(t *task)) {
	t := new(task)
	t.resume = func() { f(t) }
	m.queue = append(m.queue, t)
	m.call()
}

// call makes an idle processor look for work.
func (m *machine) call() {
	if len(m.idle) > 0 {
		p := m.idle[0]
		m.idle = m.idle[1:]
		m.after(m.Rise, func() {
			if !m.look(p) {
				m.steal(p)
			}
		})
	}
}

// rest makes p look for a task to run, and makes p idle if there is none. p takes the next task
// of another processor only later.
func (m *machine) rest(p *proc) {
	if m.look(p) {
		return
	}
	m.idle = append(m.idle, p)
	for _, other := range m.procs {
		if other.next != nil {
			m.call()
			return
		}
	}
}

// look gives p something to run, and reports whether there was anything.
func (m *machine) look(p *proc) bool {
	t := p.next
	switch {
	case t != nil:
		p.next = nil
	case len(m.queue) > 0:
		t, m.queue = m.queue[0], m.queue[1:]
	default:
		return false
	}
	m.turnTo(p, t)
	return true
}

// steal gives p what another processor is to run next, if there is any.
func (m *machine) steal(p *proc) {
	for _, other := range m.procs {
		if t := other.next; t != nil {
			other.next = nil
			m.turnTo(p, t)
			return
		}
	}
	m.idle = append(m.idle, p)
}

func (m *machine) turnTo(p *proc, t *task) {
	m.after(m.Turn, func() {
		t.p, p.since = p, m.now
		t.resume()
	})
}

// compute keeps t's processor busy for d, and then goes on with then, unless others have waited for
// the processor for long. The system may stop the processor meanwhile, as for an interrupt.
func (m *machine) compute(t *task, d float64, then func()) {
	if m.Every > 0 && m.random.Float64()*m.Every < d {
		d += m.Stop * m.random.ExpFloat64()
	}
	m.after(d, func() {
		if m.now-t.p.since < m.Slice || len(m.queue) == 0 && t.p.next == nil {
			then()
			return
		}
		m.yield(t, then)
	})
}

// yield lets all runnable goroutines run before t goes on with then.
func (m *machine) yield(t *task, then func()) {
	t.resume = then
	m.queue = append(m.queue, t)
	m.rest(t.p)
}

// end ends t.
func (m *machine) end(t *task) { m.rest(t.p) }

// park ends t's turn. It goes on with then when it was made runnable.
func (m *machine) park(t *task, then func()) {
	t.resume = then
	m.rest(t.p)
}

// ready makes t runnable on by's processor, and calls an idle one that may take it.
func (m *machine) ready(by, t *task) {
	if displaced := by.p.next; displaced != nil {
		m.queue = append(m.queue, displaced)
	}
	by.p.next = t
	m.call()
}

// line is a cache line that goroutines change by atomic operations, one after the other.
type line struct {
	at   *proc   // the processor that has it
	free float64 // when the last operation so far has ended
}

// touch is one atomic operation of t on l.
func (m *machine) touch(t *task, l *line, then func()) {
	d := m.Atomic
	if l.at != t.p && l.at != nil {
		d += m.Transfer
	}
	l.at, l.free = t.p, math.Max(m.now, l.free)+d
	m.compute(t, l.free-m.now, then)
}
