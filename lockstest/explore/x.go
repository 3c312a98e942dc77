package explore

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/stacks"
)

// X is one run of a program under one schedule. Its methods may be called by every goroutine of
// the program. It implements the interfaces of assertion libraries, such as require.TestingT. An
// X must not be copied.
//
// # How a run goes
//
// One goroutine of the program runs at a time. Before each operation it stops at its gate, a
// channel of the bubble. The root of the bubble waits until all goroutines are durably blocked, at
// their gates or anywhere else. Then it picks a goroutine at a gate, and lets it go.
//
// # The race detector
//
// The race detector must not take a change of goroutines for synchronization of the program: it
// would report no race. So every step of X on a goroutine of the program is hidden from it. The
// writes of such a goroutine for the root are ordered by synctest.Wait, which orders the blocked
// goroutines before its return. The root's messages to a goroutine are atomic.
type X struct {
	tb      failer
	bubble  string                 // how the state of each goroutine in the bubble ends in a stack trace
	suffix  atomic.Pointer[string] // the end of the state of such a goroutine, for other goroutines
	program func(*X)
	choose  strategy
	bound   limits
	record  bool // the lines of all operations
	endless bool // the run may take any time
	inner   bool // a step inside of an operation is a decision

	goroutines [maxGoroutines]atomic.Pointer[goroutine]
	count      atomic.Int32
	addresses  [maxGoroutines]atomic.Uintptr // of locks: see hooks.Address
	deadline   atomic.Int64                  // the next known deadline of a context, or 0
	crowd      atomic.Pointer[finding]       // there are too many goroutines
	aborted    atomic.Bool
	joined     atomic.Int64 // orders the ends of goroutines before the return of Wait
	advancing  atomic.Bool
	tick       chan struct{}
	hangs      error // why the run does not go on
	stuckAt    <-chan time.Time
	asks       chan struct{} // outside of the bubble, as clock is: see realTime
	clock      chan time.Time
	ctx        context.Context
	cancel     context.CancelFunc

	// Of the root.
	list      []*goroutine // by index
	current   *goroutine
	alone     int // steps that current has made in a row
	steps     int
	decisions []decision
	locks     []*lockState
	events    []event
	finding   *finding
	doubt     string  // why the run depends on more than its decisions, or ""
	path      uint64  // stands for the choices so far
	trail     uint64  // stands for what the run has done so far
	global    uint64  // stands for what had an order with everything: see state.go
	horizon   horizon // how much time may pass as a decision: see patience
	timers    horizon // how much time has passed until a timer
	vain      bool    // time has passed as a decision, and nothing has come of it
	probes    bool    // time passes at each step, to see whether the program has timers
	probed    int     // the last step at which it did
	beside    bool    // a goroutine has waited outside of locks while another one could run
	unsure    bool    // goroutines act on each other, or may, without the root's knowledge
	signs     bool    // trail has the places of operations as well, if looks is set
	looks     bool    // goroutines say whether they stop inside of a sync.Once: see once.go
	sawOnce   bool    // one of them has done so
	atOnce    bool    // one waits for a sync.Once, so that time cannot pass
	tries     bool    // goroutines try to acquire locks without a wait, in this run or in earlier ones
}

// doubts notes the first reason why the run depends on more than its decisions.
func (x *X) doubts(why string) {
	if x.doubt == "" {
		x.doubt = why
	}
}

// failer is the part of a testing.T that X needs.
type failer interface{ Failed() bool }

// limits are the bounds of one run.
type limits struct {
	steps      int // of one run
	starvation int // acquisitions of others ahead of a waiter; 0: no bound
}

const (
	maxGoroutines = 256
	crowded       = "explore: more than 256 goroutines"
	maxAlone      = 64 // steps after which a goroutine that others wait behind yields

	// If no goroutine can go on, a day passes, then another day, then two days, and so on up to
	// idleTime. A ticker of the program would take minutes to get there. So the time ends to pass
	// as soon as that has taken patience of real time.
	idleTime = 150 * 365 * 24 * time.Hour

	// probing is how far a run looks for timers that fire beside its work.
	probing = 24 * time.Hour
)

// patience is how much real time the time of a run may take to pass: see idleTime.
var patience = 100 * time.Millisecond

// The states of a goroutine.
const (
	running int32 = iota // or blocked outside of a gate
	ready                // at its gate
	joining              // at its gate, until all other goroutines have ended
	done
)

// goroutine is one goroutine of a program.
type goroutine struct {
	x      *X
	id     atomic.Int64
	name   string
	gate   chan struct{}
	state  atomic.Int32
	event  bool         // it stands for an event from outside, which may never come
	number atomic.Int64 // what Choose returns
	void   atomic.Bool  // the event cannot come any more
	alien  bool         // it was not started by Go, so its end is not seen
	inside bool         // it is at its gate inside of the function of a sync.Once

	// Written by the goroutine before it blocks, and read by the root after that.
	op      operation   // that it is about to do, or does
	ended   []operation // operations that are over, which the root has not seen
	woken   bool        // it is at its gate because a wait has ended
	nested  int         // the depth of announced operations
	timed   bool        // it waits, and a time limit can end that
	failure *finding
	place   interface{ Unpark() } // where it waits
	under   context.Context       // of the operation, or nil
	told    atomic.Int32          // orders what is above before the root's look at it: see settle

	// Of the root.
	index     int    // in its list
	handled   int    // of ended
	last      int    // its last event
	overtaken int    // how often, in its wait
	history   uint64 // stands for what it has done and seen: see state.go
	suspended []hold // that its wait for a condition has given up
	since     int    // the step at which its last operation began
	within    bool   // it was inside of a sync.Once at the last look
}

// seen is the state of a blocked goroutine, as far as the root may know it.
type seen struct {
	op      operation
	ended   []operation
	woken   bool
	timed   bool
	failure *finding
	place   interface{ Unpark() }
	nested  int
	under   context.Context
	inside  bool
}

// blocked reports whether the goroutine, which is at no gate, has announced operations and is
// blocked in one of them, or at a place.
func (s seen) blocked() bool { return s.op.name != "" && (s.place != nil || s.nested > 0) }

// inLock reports whether the goroutine, which is at no gate, is blocked in its last operation. If
// not, that operation is over. Only acquisitions and waits for conditions park. So after any other
// operation the goroutine waits at a primitive that announces nothing.
func (s seen) inLock() bool {
	switch effectOf(s.op.name) {
	case acquires, shares, suspends, joins:
		return s.blocked()
	}
	return s.op.name != "" && s.nested > 0
}

// seen returns what the root may know. The race detector does not see these reads: the goroutine
// writes again when the root lets it go, and that order is hidden from the detector.
//
//go:norace
func (g *goroutine) seen() seen {
	return seen{g.op, g.ended, g.woken, g.timed, g.failure, g.place, g.nested, g.under, g.inside}
}

// operation is one announced operation.
type operation struct {
	name string
	lock any
	ok   bool
	pcs  []uintptr
	sign uint64 // stands for the place in the program, or is 0
	from int    // of how many numbers Choose takes one, or 0
}

var order raceorder.Order

// Go starts a goroutine of the program. It runs when the schedule says so. The name is shown in
// reports; it need not be unique.
func (x *X) Go(name string, f func()) {
	switch {
	case x.program == nil:
		panic("explore: a zero X runs nothing: use Run")
	case f == nil:
		panic("explore: Go with a nil function")
	}
	if g := x.add(name, false); g != nil {
		go g.run(f)
	}
}

// add returns a new goroutine.
func (x *X) add(name string, event bool) *goroutine {
	order.Ignore()
	defer order.Heed()
	// The count never exceeds the number of places: other goroutines read the places meanwhile.
	n := x.count.Load()
	for ; n == maxGoroutines || !x.count.CompareAndSwap(n, n+1); n = x.count.Load() {
		if n == maxGoroutines {
			x.crowd.CompareAndSwap(nil, &finding{Kind: Panic, pcs: callers(), Text: crowded})
			return nil
		}
	}
	g := &goroutine{x: x, name: name, gate: make(chan struct{}, 1), event: event}
	x.goroutines[n].Store(g)
	return g
}

// run is the whole life of g.
func (g *goroutine) run(f func()) {
	order.Ignore()
	g.id.Store(goid.Get())
	order.Heed()
	normal := false
	defer func() {
		if v := recover(); v != nil && !g.x.isAborted() {
			g.failure = &finding{Kind: Panic, Text: fmt.Sprint(keytext.Panic(v)), pcs: callers()}
		} else if !normal && g.failure == nil && g.x.tb.Failed() {
			g.failure = &finding{Kind: Failure, Text: failedBefore}
		}
		g.x.joined.Add(1)
		g.end()
		order.Ignore()
		g.state.Store(done)
		g.x.notice()
		order.Heed()
	}()
	begins := startOp
	if g.event {
		begins = happensOp
	}
	g.stop(operation{name: begins}, ready)
	f()
	normal = true
}

// number is how an error names a goroutine that is an owner.
var number = regexp.MustCompile(`\bgoroutine \d+\b`)

// withNames returns text with the names of goroutines in place of their numbers, which differ from
// run to run. Only the root calls it: nothing orders the other goroutines behind the start of one
// that has a name.
func withNames(all []*goroutine, text string) string {
	return number.ReplaceAllStringFunc(text, func(owner string) string {
		for _, g := range all {
			if locks.Owner(g.id.Load()).String() == owner {
				return fmt.Sprintf("goroutine %q", g.name)
			}
		}
		return owner
	})
}

func (x *X) isAborted() bool {
	order.Ignore()
	defer order.Heed()
	return x.aborted.Load()
}

// stop waits at the gate until the root lets g go.
func (g *goroutine) stop(op operation, state int32) {
	if g.x.record {
		op.pcs = callers()
	}
	g.inside = false
	if g.x.looks {
		var room callStack
		pcs := room[:runtime.Callers(2, room[:])]
		g.inside = inOnce(pcs)
		if g.x.signs {
			op.sign = sign(pcs)
		}
	}
	g.end()
	g.op, g.under = op, nil
	g.wait(state)
}

// wait is stop within an operation. The receive is not hidden from the race detector, so that it
// orders what the goroutine did before what the root does. The send of the root is.
func (g *goroutine) wait(state int32) {
	g.told.Store(1)
	if !g.x.isAborted() {
		order.Ignore()
		g.state.Store(state)
		g.x.notice()
		order.Heed()
		<-g.gate
	}
	if g.x.isAborted() {
		runtime.Goexit()
	}
}

// notice tells a root that lets time pass that there is something to decide.
func (x *X) notice() {
	if x.advancing.Load() {
		select {
		case x.tick <- struct{}{}:
		default:
		}
	}
}

// end is the end of an operation that cannot fail.
func (g *goroutine) end() {
	if g.op.name != "" {
		g.op.ok = true
		g.ended = append(g.ended, g.op)
		g.op = operation{}
	}
	g.told.Store(1)
}

// find returns the calling goroutine of the program. A goroutine of the bubble that was not started
// by Go is added. It returns nil for all others.
func (x *X) find(add bool) *goroutine {
	id := goid.Get()
	order.Ignore()
	for i := range x.count.Load() {
		if g := x.goroutines[i].Load(); g != nil && g.id.Load() == id {
			order.Heed()
			return g
		}
	}
	order.Heed()
	if !add || x.bubble == "" {
		return nil
	}
	var header [128]byte
	n := runtime.Stack(header[:], false)
	if !strings.HasSuffix(stacks.State(string(header[:n])), x.bubble) {
		return nil
	}
	g := x.add("", false)
	if g == nil {
		return nil
	}
	g.alien = true
	order.Ignore()
	g.id.Store(id)
	order.Heed()
	return g
}

// hooks are the functions that the locks call.
type hooks struct{ x *X }

// Begin stops the goroutine before an operation.
func (h hooks) Begin(op string, lock any, nests bool) {
	g := h.x.find(true)
	if g == nil {
		return
	}
	if nests {
		g.nested++
	}
	if g.nested > 1 || g.nested == 1 && !nests {
		return
	}
	g.stop(operation{name: op, lock: lock}, ready)
}

// Step stops the goroutine inside of an operation, in a search that explores these steps.
func (h hooks) Step() {
	if !h.x.inner {
		return
	}
	if g := h.x.find(true); g != nil && g.nested == 0 && g.op.lock != nil {
		g.stop(operation{name: "step", lock: g.op.lock}, ready)
	}
}

// End ends an operation that nests.
func (h hooks) End(ok bool) {
	g := h.x.find(false)
	if g == nil {
		return
	}
	if g.nested--; g.nested == 0 && g.op.name != "" {
		g.op.ok = ok
		g.ended = append(g.ended, g.op)
		g.op = operation{}
		if ok && h.x.canEnd(g.under) {
			g.stop(operation{name: returnOp}, ready) // the context may end before the next statement
		}
	}
}

// canEnd reports whether ctx can end while the program runs.
func (x *X) canEnd(ctx context.Context) bool {
	return ctx != nil && ctx.Done() != nil && ctx.Done() != x.ctx.Done() && ctx.Err() == nil
}

// Under notes the context of the operation.
func (h hooks) Under(ctx context.Context) {
	g := h.x.find(true)
	if g == nil {
		return
	}
	g.under = ctx
	if end, ok := ctx.Deadline(); ok {
		order.Ignore()
		defer order.Heed()
		if first := h.x.deadline.Load(); first == 0 || end.UnixNano() < first || first <= time.Now().UnixNano() {
			h.x.deadline.Store(end.UnixNano())
		}
	}
}

// Limited notes that a limit can end the wait that follows.
func (h hooks) Limited(d time.Duration) {
	if g := h.x.find(true); g != nil {
		g.timed = d > 0
	}
}

// Parks notes where the goroutine is about to wait.
func (h hooks) Parks(p interface{ Unpark() }) {
	if g := h.x.find(true); g != nil {
		g.place = p
	}
}

// Woken stops the goroutine after a wait.
func (h hooks) Woken() {
	g := h.x.find(true)
	if g == nil {
		return
	}
	g.place, g.timed, g.woken, g.inside = nil, false, true, false
	if g.x.looks {
		var room callStack
		g.inside = inOnce(room[:runtime.Callers(1, room[:])])
	}
	g.wait(ready)
	g.woken = false
}

// Address returns the number of an address, from 1 on in the order of the calls.
func (h hooks) Address(address uintptr) uintptr {
	if h.x.find(true) == nil {
		return address
	}
	order.Ignore()
	defer order.Heed()
	for i := range h.x.addresses {
		// One goroutine of the program runs at a time.
		if h.x.addresses[i].CompareAndSwap(0, address) || h.x.addresses[i].Load() == address {
			return uintptr(i) + 1
		}
	}
	return address
}

// Explored reports whether the calling goroutine is one of the program.
func (h hooks) Explored() bool { return h.x.find(true) != nil }

// me returns the calling goroutine, which must be one of the program.
func (x *X) me(method string) *goroutine {
	g := x.find(true)
	if g == nil {
		panic("explore: " + method + " of a goroutine outside of the program")
	}
	return g
}

// Step is a decision: other goroutines may run here. Use it between operations of which the locks
// know nothing, such as sync/atomic.
func (x *X) Step() { x.me("Step").stop(operation{name: "Step"}, ready) }

// Choose returns one of the numbers from 0 to n-1, which is a decision. Use it for choices that
// would otherwise be random: a number, the order of a map, which answer comes first.
func (x *X) Choose(n int) int {
	if n < 1 {
		panic(fmt.Sprintf("explore: Choose of %d numbers", n))
	}
	g := x.me("Choose")
	g.stop(operation{name: "Choose", from: n}, ready)
	order.Ignore()
	defer order.Heed()
	return int(g.number.Load())
}

// Wait returns when all other goroutines of the program have ended that were started by Go, and
// those that were not can go no further. Only one goroutine may call it: usually the program's
// first, before its checks, or before it ends the goroutines that the program has started itself.
func (x *X) Wait() {
	x.me("Wait").stop(operation{name: joinOp}, joining)
	x.joined.Load()
}

// Context returns a context that ends when the run is over.
func (x *X) Context() context.Context { return x.ctx }

// Name gives a lock a name for reports. The lock is a pointer, or a lock of package keyed.
func (x *X) Name(lock any, name string) {
	x.me("Name").stop(operation{name: "name " + name, lock: lock}, ready)
}

// Helper is there for assertion libraries.
func (x *X) Helper() {}

// Errorf fails the run. The goroutine goes on until its next operation.
func (x *X) Errorf(format string, args ...any) {
	g := x.me("Errorf")
	if g.failure == nil {
		g.failure = &finding{Kind: Failure, Text: fmt.Sprintf(format, args...), pcs: callers()}
	}
}

// FailNow fails the run, and ends the goroutine.
func (x *X) FailNow() {
	g := x.me("FailNow")
	if g.failure == nil {
		g.failure = &finding{Kind: Failure, Text: "FailNow", pcs: callers()}
	}
	runtime.Goexit()
}

// Fatalf is Errorf and FailNow.
func (x *X) Fatalf(format string, args ...any) {
	x.Errorf(format, args...)
	x.FailNow()
}

// Check fails the run if ok is false. It is Errorf for programs without an assertion library.
func (x *X) Check(ok bool, format string, args ...any) {
	if !ok {
		x.Errorf(format, args...)
	}
}

// root runs the program to its end, or to a finding. It is the first goroutine of the bubble.
func (x *X) root() {
	var header [128]byte
	state := stacks.State(string(header[:runtime.Stack(header[:], false)]))
	if _, number, ok := strings.Cut(state, ", synctest bubble "); ok {
		suffix := "synctest bubble " + number
		x.bubble = ", " + suffix
		x.suffix.Store(&suffix)
	}
	x.tick = make(chan struct{}, 1)
	x.ctx, x.cancel = context.WithCancel(context.Background())
	install(x)
	defer install(nil)
	x.Go("main", func() { x.program(x) })
	for x.next() {
	}
	x.abort()
	synctest.Wait()
}

// all returns the goroutines. New goroutines get their indexes: first the goroutines of Go in the
// order of the calls, and then the others in the order of their ids. All of them may arrive at the
// same time, but the ids of goroutines increase that the same goroutine starts.
func (x *X) all() []*goroutine {
	known := len(x.list)
	for i := known; i < int(x.count.Load()); i++ {
		x.list = append(x.list, x.goroutines[i].Load())
	}
	fresh := x.list[known:]
	slices.SortStableFunc(fresh, func(a, b *goroutine) int {
		switch {
		case a.alien && b.alien:
			return cmp.Compare(a.id.Load(), b.id.Load())
		case a.alien:
			return 1
		case b.alien:
			return -1
		}
		return 0
	})
	for i, g := range fresh {
		if g.index = known + i; g.alien {
			g.name = fmt.Sprintf("go %d", g.index)
		}
	}
	return x.list
}

// next lets one goroutine go, and reports false at the end of the run.
func (x *X) next() bool {
	x.settle()
	all := x.all()
	x.look(all)
	if crowd := x.crowd.Load(); crowd != nil && x.finding == nil {
		x.finding = crowd
	}
	if x.finding != nil {
		return false
	}
	var can, events []*goroutine
	left, started, timed := 0, 0, false // started: of those left, by Go
	idle := 0                           // of those left: workers that wait for a signal until the end of the run
	away := false                       // one waits outside of locks
	var join *goroutine
	for _, g := range all {
		switch g.state.Load() {
		case ready:
			if g.event {
				if !g.void.Load() {
					events = append(events, g)
				}
				continue
			}
			can = append(can, g)
		case joining:
			join = g
		case running:
			s := g.seen()
			switch {
			case g.event || s.blocked():
			case g.alien:
				x.unsure = true
				x.doubts(unseen)
			default:
				x.unsure, away = true, true
				x.doubts(outside)
			}
			if effectOf(s.op.name) == suspends && s.inLock() && s.under != nil && s.under.Done() == x.ctx.Done() {
				idle++
				if !g.alien {
					started--
				}
			}
			if timed = timed || s.timed; g.alien && !s.blocked() {
				continue // it has ended, or is blocked outside of locks
			}
		}
		if g.state.Load() != done {
			left++
			if !g.alien {
				started++
			}
		}
	}
	if left == 0 {
		return false
	}
	if join != nil && left == 1 {
		can = append(can, join)
	}
	if x.steps >= x.bound.steps {
		x.finding = &finding{Kind: Endless, Text: fmt.Sprintf("the run has not ended after %d steps", x.steps)}
		return false
	}
	if len(can) == 0 {
		if x.atOnce && x.dead() {
			x.finding = x.stuck(all)
			return false
		}
		if began := time.Now(); x.advance(idleTime) {
			if away {
				x.timers.learn(time.Since(began), false)
			}
			return true
		}
		switch {
		case join != nil && started <= 1:
			can, timed = append(can, join), false
		case idle > 0 && idle == left:
			return false // the workers end with the run
		default:
			x.finding = x.stuck(all)
			return false
		}
	}
	x.beside = x.beside || away
	if x.atOnce {
		timed = false
	} else if x.probes && x.probed < x.steps {
		x.probed = x.steps
		if began := time.Now(); x.advance(probing) {
			x.timers.learn(time.Since(began), !away)
			return true
		}
	}
	most := idleTime
	if x.atOnce {
		most = 0
	} else if !timed {
		most = x.patience(away)
	}
	g := x.pick(can, events, timed || most > 0)
	if g == nil {
		x.events = append(x.events, event{time: true})
		end := x.deadline.Load()
		if !x.advance(most) && (end == 0 || time.Now().UnixNano() < end) {
			x.vain = true
		}
		return true
	}
	x.release(g)
	return true
}

// pick decides which of the goroutines runs. It returns nil if the decision is that time passes.
func (x *X) pick(can, events []*goroutine, timed bool) *goroutine {
	options := make([]int, 0, len(can)+len(events)+1)
	at, stays := 0, false
	if x.current != nil {
		for i, g := range can {
			if g == x.current {
				at, stays = i, x.alone < maxAlone
				if !stays {
					at = (i + 1) % len(can)
				}
				break
			}
			if g.index > x.current.index && can[at].index < x.current.index {
				at = i
			}
		}
	}
	for i := range can {
		options = append(options, can[(at+i)%len(can)].index)
	}
	for _, g := range events {
		options = append(options, g.index)
	}
	if timed {
		options = append(options, passes)
	}
	chosen := 0
	if len(options) > 1 {
		d := decision{options: options, stays: stays, own: len(can), tired: -1}
		if !stays && x.current != nil && x.alone >= maxAlone {
			d.tired = x.current.index
		}
		x.trail = mix(x.trail, optionsOf(d))
		if at := x.starting(d); at >= 0 {
			x.force(d, at)
			return x.list[options[at]]
		}
		d = x.worth(d)
		if options = d.options; d.forced {
			x.force(d, 0)
		} else {
			d.state = x.stateNow(d)
			chosen = x.decides(d)
		}
	}
	x.steps++
	if options[chosen] == passes {
		x.everything(1)
		return nil
	}
	g := x.list[options[chosen]]
	switch {
	case g.event:
	case g == x.current:
		x.alone++
	default:
		x.current, x.alone = g, 0
	}
	return g
}

// chooses decides what Choose returns.
func (x *X) chooses(g *goroutine, n int) {
	chosen := 0
	if n > 1 {
		d := decision{options: make([]int, n), own: n, tired: -1, value: true}
		for i := range n {
			d.options[i] = i
		}
		x.trail = mix(x.trail, optionsOf(d))
		chosen = x.decides(d)
	}
	g.history = mix(g.history, uint64(chosen))
	g.number.Store(int64(chosen))
	x.events[g.last].op = fmt.Sprintf("Choose %d", chosen)
}

// decides lets the strategy make a decision.
func (x *X) decides(d decision) int {
	d.path, d.trail = x.path, x.trail
	d.chosen = x.choose.choose(len(x.decisions), x.steps, d)
	x.decided(d)
	return d.chosen
}

// optionsOf returns a number that stands for the options in any order.
func optionsOf(d decision) (sum uint64) {
	for _, o := range d.options {
		sum += mix(1, uint64(o))
	}
	return sum
}

// decided notes a decision.
func (x *X) decided(d decision) {
	x.decisions = append(x.decisions, d)
	x.path = mix(x.path, uint64(d.options[d.chosen])+1)
}

// force notes a decision of the reduction, which the strategy does not make.
func (x *X) force(d decision, chosen int) {
	d.chosen, d.fewer, d.forced, d.path, d.trail = chosen, true, true, x.path, x.trail
	x.decided(d)
}

// release lets g go.
func (x *X) release(g *goroutine) {
	x.begins(g)
	if n := g.seen().op.from; n > 0 {
		x.chooses(g, n)
	}
	order.Ignore()
	g.state.Store(running)
	g.gate <- struct{}{}
	order.Heed()
}

// advance lets time pass until a goroutine has reached its gate, or nothing is left that could
// happen. The clock of a bubble goes on when all goroutines of the bubble are blocked, the root
// too.
func (x *X) advance(most time.Duration) bool {
	select {
	case <-x.tick:
	default:
	}
	x.advancing.Store(true)
	defer x.advancing.Store(false)
	x.doubts(elapsed)
	x.everything(2)
	began := x.realTime()
	for passed, d := time.Duration(0), 24*time.Hour; passed < most; passed, d = passed+d, passed+d {
		t := time.NewTimer(min(d, most-passed))
		select {
		case <-x.tick:
			t.Stop()
			return true
		case <-t.C:
		}
		if x.realTime().Sub(began) > patience {
			break
		}
	}
	return false
}

// horizon is how much time a program may take until its timers.
type horizon struct {
	most   time.Duration // or 0
	always bool          // some of them are timers for which no goroutine waits
}

// farthest is the farthest timer that is a decision. The clock of a bubble ends.
const farthest = 365 * 24 * time.Hour

// learn takes in a timer.
func (h *horizon) learn(d time.Duration, alone bool) {
	if d > 0 && d <= farthest {
		h.most, h.always = max(h.most, d), h.always || alone
	}
}

// patience returns how much time may pass as a decision, or 0. That is the longest time that
// earlier runs have waited for a timer. If a context of an operation has a deadline, time may pass
// until then.
func (x *X) patience(away bool) (most time.Duration) {
	if x.horizon.most > 0 && (away || x.horizon.always) {
		most = x.horizon.most + 1 // so that the timer fires before the root looks
	}
	if end := x.deadline.Load(); end != 0 {
		if left := time.Until(time.Unix(0, end)); left >= 0 && (most == 0 || left < most) {
			most = left + 1
		}
	}
	return most
}

// realTime returns the time outside of the bubble.
func (x *X) realTime() time.Time {
	x.asks <- struct{}{}
	return <-x.clock
}

// abort ends the goroutines that are at their gates or wait for locks. After a run without a
// finding, only those are left that stand for events. All goroutines are blocked when abort begins.
// It looks at all of them before it ends the context, which wakes goroutines: they write their
// places. A goroutine that runs again exits before its next operation on a lock, so it wakes none.
func (x *X) abort() {
	order.Ignore()
	x.aborted.Store(true)
	var gates []*goroutine
	var places []interface{ Unpark() }
	for _, g := range x.all() {
		if s := g.state.Load(); s == ready || s == joining {
			gates = append(gates, g)
		} else if p := g.seen().place; p != nil && s != done {
			places = append(places, p)
		}
	}
	order.Heed()
	x.cancel() // the program uses the context too
	order.Ignore()
	defer order.Heed()
	for _, g := range gates {
		g.state.Store(running)
		g.gate <- struct{}{}
	}
	for _, p := range places {
		p.Unpark()
	}
}
