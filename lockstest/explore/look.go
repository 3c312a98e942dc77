package explore

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/stacks"
)

// event is a line of a report: the operation that a goroutine was allowed to do.
type event struct {
	who    int // index of the goroutine
	op     string
	lock   *lockState
	pcs    []uintptr
	waits  bool // it had to wait
	failed bool // the operation has not done what its name says
	woken  bool // the event is the end of a wait
	time   bool // no goroutine ran: time passed
}

// lockState is the state of a lock as the root knows it.
type lockState struct {
	lock    any
	name    string
	holds   []hold
	id      uint64 // the same in all runs that have done the same before its first operation
	history uint64 // stands for what was done with it: see state.go
}

// hold is a hold of a lock, or several that were acquired at once.
type hold struct {
	who    int
	shared bool
	count  int
	pcs    []uintptr
}

// lockOf returns the state of a lock as the root knows it. A lock that is embedded as the first
// field of another lock has the same address, and is the same.
func (x *X) lockOf(lock any) *lockState {
	if lock == nil {
		return nil
	}
	v := reflect.ValueOf(lock)
	for _, l := range x.locks {
		if v.Kind() == reflect.Pointer {
			if w := reflect.ValueOf(l.lock); w.Kind() == reflect.Pointer && w.Pointer() == v.Pointer() {
				return l
			}
		} else if v.Comparable() && l.lock == lock {
			return l
		}
	}
	l := &lockState{lock: lock, name: fmt.Sprintf("%s#%d", typeName(v), len(x.locks)+1)}
	switch lock := lock.(type) {
	case *Lease:
		l.name = lock.name
	default:
		if v.Kind() == reflect.Struct && v.FieldByName("key").IsValid() {
			l.name = fmt.Sprintf("%s(%s)", typeName(v), keytext.OfValue(v.FieldByName("key")))
		}
	}
	x.locks = append(x.locks, l)
	return l
}

// typeName returns the name of a lock's type. Some methods know only a part of their lock.
func typeName(v reflect.Value) string {
	name := strings.TrimPrefix(v.Type().String(), "*")
	name, _, _ = strings.Cut(name, "[")
	switch name {
	case "fair.queued":
		return "fair.Mutex"
	case "fair.readView":
		return "fair.RWMutex"
	case "rwlock.readView", "rwlock.writeView":
		return "rwlock.RWMutex"
	case "rwlock.stampedReader", "rwlock.stampedWriter":
		return "rwlock.StampedLock"
	}
	return name
}

// The kinds of operations, as far as holds are concerned.
type effect int

const (
	none effect = iota
	acquires
	shares
	releases
	unshares
	suspends // a wait for a condition: it releases, and acquires again
	upgrades // a shared hold becomes exclusive
	downgrades
	drops // a hold of either kind becomes none
	joins // it waits for another goroutine, and holds nothing after that
)

// effectOf returns what an operation does to the holds of its lock.
func effectOf(op string) effect {
	switch {
	case op == "TryConvertToWriteLock", strings.Contains(op, "Upgrade"):
		return upgrades
	case op == "TryConvertToReadLock", strings.Contains(op, "Downgrade"):
		return downgrades
	case op == "TryConvertToOptimisticRead":
		return drops
	case strings.Contains(op, "RUnlock"), strings.Contains(op, "UnlockRead"):
		return unshares
	case strings.Contains(op, "nlock"), strings.HasPrefix(op, "Release"):
		return releases
	case strings.Contains(op, "RLock"), strings.Contains(op, "ReadLock"):
		return shares
	case strings.Contains(op, "Lock"), strings.Contains(op, "Acquire"), op == "Drain":
		return acquires
	case strings.HasPrefix(op, "Wait") && op != joinOp, strings.HasPrefix(op, "Await"):
		return suspends
	case op == "Get", op == "GetContext", op == "MustGet":
		return joins
	}
	return none
}

// amountOf returns how many holds an operation acquires or releases at once.
func amountOf(op string) int {
	_, n, _ := strings.Cut(strings.TrimSuffix(op, ")"), "(")
	if amount, err := strconv.Atoi(n); err == nil {
		return amount
	}
	return 1
}

// The operations that are none of the program.
const (
	startOp   = "start"
	happensOp = "happens"
	joinOp    = "Wait for all"
	returnOp  = "goes on" // the end of an operation whose context may end
)

// begins notes that g is let go.
func (x *X) begins(g *goroutine) {
	s := g.seen()
	e := event{who: g.index, op: s.op.name, lock: x.lockOf(s.op.lock), pcs: s.op.pcs, woken: s.woken}
	if name, ok := strings.CutPrefix(e.op, "name "); ok {
		e.lock.name = name
	}
	g.last = len(x.events)
	x.events = append(x.events, e)
	x.noteBegin(g, s, e.lock)
	if !s.woken && effectOf(e.op) == suspends {
		g.suspended = x.takes(g, e.lock)
	}
}

// idle reports whether the goroutines have done nothing but to start, and to wait for each other.
func (x *X) idle() bool {
	return !slices.ContainsFunc(x.events, func(e event) bool {
		return e.op != startOp && e.op != happensOp && e.op != returnOp && e.op != joinOp && !strings.HasPrefix(e.op, "name ")
	})
}

// look notes the operations of the goroutines since the last look.
func (x *X) look(all []*goroutine) {
	for _, g := range all {
		s := g.seen()
		g.within = s.inside
		x.sawOnce = x.sawOnce || s.inside
		for _, op := range s.ended[g.handled:] {
			g.handled++
			x.ended(all, g, op)
		}
		if g.state.Load() == running && s.inLock() && g.last < len(x.events) {
			if e := &x.events[g.last]; !e.waits {
				e.waits = true
				if e.woken && e.lock != nil {
					x.shares(g, e.lock, 4) // it has lost against another one
				}
			}
		}
		if s.failure != nil && x.finding == nil {
			f := *s.failure
			f.who, f.Text = x.title(g), withNames(all, f.Text)
			x.finding = &f
		}
	}
}

// ended notes the end of an operation.
func (x *X) ended(all []*goroutine, g *goroutine, op operation) {
	if !op.ok && g.last < len(x.events) && x.events[g.last].who == g.index {
		x.events[g.last].failed = true
	}
	x.noteEnd(g, op)
	e := effectOf(op.name)
	if op.lock == nil || e == none || e == joins || !op.ok && e != suspends {
		return
	}
	l, n := x.lockOf(op.lock), amountOf(op.name)
	switch e {
	case releases:
		x.released(g, l, n, false)
		return
	case unshares:
		x.released(g, l, n, true)
		return
	case drops:
		x.released(g, l, 1, false)
		return
	case upgrades, downgrades:
		x.released(g, l, 1, e == upgrades)
		l.holds = append(l.holds, hold{g.index, e == downgrades, 1, op.pcs})
		return
	case acquires, shares:
		l.holds = append(l.holds, hold{g.index, e == shares, n, op.pcs})
	case suspends:
		l.holds = append(l.holds, g.suspended...)
		g.suspended = nil
	}
	g.overtaken = 0
	for _, o := range all {
		s := o.seen()
		waits := o != g && s.op.lock != nil && (s.woken || o.state.Load() == running)
		if e == suspends || !waits || x.lockOf(s.op.lock) != l {
			continue
		}
		if w := effectOf(s.op.name); w != acquires && w != shares {
			continue
		}
		if o.overtaken++; x.bound.starvation > 0 && o.overtaken > x.bound.starvation && x.finding == nil {
			x.finding = &finding{Kind: Starvation, who: x.title(o), pcs: s.op.pcs,
				Text: fmt.Sprintf("%d acquisitions of %s went ahead of it", o.overtaken, l.name)}
		}
	}
}

// released removes n holds of g, first holds of the kind. If g has none, it removes any holds: some
// locks lack owners.
func (x *X) released(g *goroutine, l *lockState, n int, shared bool) {
	fits := []func(h hold) bool{
		func(h hold) bool { return h.who == g.index && h.shared == shared },
		func(h hold) bool { return h.who == g.index },
		func(h hold) bool { return h.shared == shared },
		func(hold) bool { return true },
	}
	for _, fit := range fits {
		for i := len(l.holds) - 1; i >= 0 && n > 0; i-- {
			if !fit(l.holds[i]) {
				continue
			}
			gone := min(n, l.holds[i].count)
			n -= gone
			if l.holds[i].count -= gone; l.holds[i].count == 0 {
				l.holds = slices.Delete(l.holds, i, i+1)
			}
		}
	}
}

// takes removes all holds of g, and returns them: a wait for a condition gives them up.
func (x *X) takes(g *goroutine, l *lockState) (taken []hold) {
	if l == nil {
		return nil
	}
	l.holds = slices.DeleteFunc(l.holds, func(h hold) bool {
		if h.who == g.index {
			taken = append(taken, h)
		}
		return h.who == g.index
	})
	return taken
}

// held returns what g holds, for a report.
func (x *X) held(g *goroutine) string { return x.heldBut(g, nil) }

// heldBut returns what g holds but for locks that the report names already.
func (x *X) heldBut(g *goroutine, but []*lockState) string {
	text := ""
	for _, l := range x.locks {
		if slices.Contains(but, l) {
			continue
		}
		for _, h := range l.holds {
			if h.who != g.index {
				continue
			}
			verb := "holds "
			if h.shared {
				verb = "reads "
			}
			text += ",\n    " + verb + l.name + at(h.pcs)
		}
	}
	return text
}

// stuck returns the finding of a run in which no goroutine can go on.
func (x *X) stuck(all []*goroutine) *finding {
	f := &finding{Kind: Leak}
	signal, cycle := false, false
	var stacksNow map[int64]stacks.Goroutine
	var lines []string
	var named []*lockState // locks that goroutines wait for
	for _, g := range all {
		s := g.seen()
		switch {
		case g.state.Load() != running || s.op.name == "":
		case s.inLock():
			named = append(named, x.lockOf(s.op.lock))
		default:
			s.op.ok = true
			x.ended(all, g, s.op)
		}
	}
	for _, g := range all {
		s := g.seen()
		switch g.state.Load() {
		case done:
			if held := x.held(g); held != "" {
				lines = append(lines, x.title(g)+" has ended"+held)
			}
			continue
		case joining:
			lines = append(lines, x.title(g)+" waits until all goroutines have ended"+x.held(g))
			continue
		}
		line := x.title(g) + " is blocked outside of locks"
		l := x.lockOf(s.op.lock)
		switch e := effectOf(s.op.name); {
		case l == nil || !s.inLock():
			if x.record {
				if stacksNow == nil {
					stacksNow, _ = stacks.All()
				}
				at, lives := blockedAt(stacksNow, g.id.Load())
				if !lives {
					line = x.title(g) + " has ended"
				}
				line += at
			}
			held := x.held(g)
			if g.alien && !s.blocked() && held == "" {
				continue // it has ended, or does not matter
			}
			line += held
		case e == suspends && s.place != nil && !x.holdsOther(l, g):
			signal = true
			line = fmt.Sprintf("%s waits for a signal, in %s of %s%s", x.title(g), s.op.name, l.name, at(s.op.pcs))
		default:
			cycle = true
			line = fmt.Sprintf("%s waits in %s of %s%s", x.title(g), s.op.name, l.name, at(s.op.pcs))
			for _, h := range l.holds {
				mode := "held by "
				if h.shared {
					mode = "read by "
				}
				line += ",\n    " + mode + x.title(all[h.who]) + at(h.pcs)
			}
			line += x.heldBut(g, named)
		}
		lines = append(lines, line)
	}
	switch {
	case cycle:
		f.Kind = Deadlock
	case signal:
		f.Kind = LostWakeup
	}
	f.Text = strings.Join(lines, "\n  ")
	return f
}

// title returns the name of g in reports: with a number if it is not the first of its name.
func (x *X) title(g *goroutine) string {
	n := 1
	for _, o := range x.all()[:g.index] {
		if o.name == g.name {
			n++
		}
	}
	if n == 1 {
		return g.name
	}
	return fmt.Sprintf("%s (%d)", g.name, n)
}

// holdsOther reports whether another goroutine than g holds l.
func (x *X) holdsOther(l *lockState, g *goroutine) bool {
	for _, h := range l.holds {
		if h.who != g.index {
			return true
		}
	}
	return false
}

// blockedAt returns where a goroutine of the program is, with the functions that have called it,
// and whether it lives.
func blockedAt(all map[int64]stacks.Goroutine, id int64) (at string, lives bool) {
	g, lives := all[id]
	var places []string
	function := ""
	for line := range strings.Lines(g.Frames) {
		if strings.HasPrefix(line, "created by ") {
			break
		}
		if !strings.HasPrefix(line, "\t") {
			function = line
			continue
		}
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "_test.go:") && ofTheModule(function) {
			continue
		}
		file, _, _ := strings.Cut(line, " +")
		if strings.HasSuffix(strings.Split(file, ":")[0], ".go") && !ofTheLibrary(file) {
			places = append(places, file[strings.LastIndex(file, "/")+1:])
		}
	}
	if len(places) == 0 {
		return "", lives
	}
	at = " at " + places[0]
	if rest := places[1:min(len(places), 4)]; len(rest) > 0 {
		at += ", called at " + strings.Join(rest, ", ")
	}
	return at, lives
}

// ofTheLibrary reports whether a file of a stack is of the runtime, of packages beside it, or of
// this module.
func ofTheLibrary(file string) bool {
	for _, part := range []string{"/src/runtime/", "/src/sync/", "/src/internal/", "/src/testing/", "/src/context/",
		"/src/reflect/", "/src/time/"} {
		if strings.Contains(file, part) {
			return true
		}
	}
	for _, prefix := range []string{"runtime/", "sync/", "internal/", "testing/", "context/", "reflect/", "time/"} {
		if strings.HasPrefix(file, prefix) { // with -trimpath
			return true
		}
	}
	return strings.Contains(file, "/lockstest/explore/") && !strings.Contains(file, "_test.go:")
}

// callers returns the stack of the caller.
func callers() []uintptr {
	pcs := make([]uintptr, 32)
	return pcs[:runtime.Callers(3, pcs)]
}

// at returns the line of the program in a stack, as " at file:line", or "".
func at(pcs []uintptr) string {
	if line := lineOf(pcs); line != "" {
		return " at " + line
	}
	return ""
}

const module = "github.com/jucgo/locks"

// lineOf returns the first line of a stack that is neither of the locks nor of the runtime. Files
// of tests never count as files of the locks.
func lineOf(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "" && !inside(f) {
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndex(f.File, "/")+1:], f.Line)
		}
		if !more {
			return ""
		}
	}
}

// inside reports whether a frame is of the runtime, of an assertion library, or of this module
// outside of tests, examples and commands.
func inside(f runtime.Frame) bool {
	if strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	fn := f.Function
	for _, p := range []string{"runtime.", "testing.", "sync.", "context.", "github.com/stretchr/testify/"} {
		if strings.HasPrefix(fn, p) {
			return true
		}
	}
	return ofTheModule(fn)
}

// ofTheModule reports whether a function is of this module outside of examples and commands.
func ofTheModule(function string) bool {
	rest, ok := strings.CutPrefix(function, module)
	return ok && !strings.HasPrefix(rest, "/examples/") && !strings.HasPrefix(rest, "/cmd/")
}
