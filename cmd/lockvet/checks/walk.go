package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"
)

// maxStates bounds the states of a lock at a point. Beyond it, nothing is known.
const maxStates = 64

func calleeOf(info *types.Info, call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(info, call).(*types.Func)
	return fn
}

// calleeAmong returns the called function if it has one of the full names, or nil.
func calleeAmong(info *types.Info, call *ast.CallExpr, names ...string) *types.Func {
	if fn := calleeOf(info, call); fn != nil && slices.Contains(names, fn.FullName()) {
		return fn
	}
	return nil
}

// A walker computes the states of one lock in one function.
type walker struct {
	fs     *flows
	info   *types.Info
	f      *function
	t      *tracked
	record bool // note the states before the calls
}

func (w *walker) run() {
	if len(w.f.graph.Blocks) == 0 {
		return
	}
	in := make([]set, len(w.f.graph.Blocks))
	in[0] = set{state{}: true}
	work := []*cfg.Block{w.f.graph.Blocks[0]}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for i, out := range w.block(b, in[b.Index]) {
			next := b.Succs[i]
			if in[next.Index] == nil {
				in[next.Index] = set{}
			}
			into := in[next.Index]
			if into[state{unclear: true}] || len(out) == 0 {
				continue
			}
			grown := into.add(out)
			if len(into) > maxStates {
				in[next.Index] = set{state{unclear: true}: true}
			}
			if grown {
				work = append(work, next)
			}
		}
	}
	w.record = true
	w.t.in, w.t.out = in, make([][]set, len(in))
	for _, b := range w.f.graph.Blocks {
		if in[b.Index] != nil {
			w.t.out[b.Index] = w.block(b, in[b.Index])
		}
	}
	w.t.foreign = w.foreign()
}

// foreign reports whether the function releases the lock somewhere, where it certainly has not
// acquired it.
func (w *walker) foreign() bool {
	none := func(s set, m mode) bool {
		return s.all(func(st state) bool { return st.held == [2]uint8{} && st.freed[m] != own })
	}
	for _, c := range w.t.calls {
		own := c.via != nil || w.f.byCall[c.call] == c
		if c.effect == release && own && !w.f.defers[c.call] && none(w.t.before[c.call], c.mode) {
			return true
		}
	}
	for _, m := range []mode{write, read} {
		deferred, held := false, false
		for _, s := range w.t.exits {
			held = held || !none(s, m)
			for st := range s {
				deferred = deferred || st.deferred[m] > 0
			}
		}
		if deferred && !held {
			return true
		}
	}
	return false
}

// block returns the states after b, for each successor.
func (w *walker) block(b *cfg.Block, s set) []set {
	if r, ok := b.Stmt.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeBody {
		s = w.assigned(s, r.Key)
		s = w.assigned(s, r.Value)
	}
	nodes := b.Nodes
	var cond ast.Expr
	if len(b.Succs) == 2 && len(nodes) > 0 {
		if e, ok := nodes[len(nodes)-1].(ast.Expr); ok && !w.f.tagged[e] && isBool(w.info, e) {
			cond, nodes = e, nodes[:len(nodes)-1]
		}
	}
	for _, n := range nodes {
		if w.record && w.f.partsAt(n).stops {
			w.t.stops[n] = maps.Clone(s)
		}
		s = w.node(n, s)
	}
	if cond != nil {
		return []set{w.cond(cond, s, true), w.cond(cond, s, false)}
	}
	outs := make([]set, len(b.Succs))
	for i := range outs {
		outs[i] = s
	}
	return outs
}

// parts are the calls and the ends of a path in one statement or expression. The walks of all locks
// of a function share them.
type parts struct {
	calls []*ast.CallExpr
	stops bool
}

// partsAt returns the parts of n, which is in f.
func (f *function) partsAt(n ast.Node) parts {
	p, known := f.parts[n]
	if !known {
		p = parts{callsIn(n), stops(n)}
		if f.parts == nil {
			f.parts = map[ast.Node]parts{}
		}
		f.parts[n] = p
	}
	return p
}

// stops reports whether a statement or expression has an operation on a channel.
func stops(n ast.Node) (found bool) {
	inspectOwn(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.SendStmt:
			found = true
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		}
	})
	return found
}

func isBool(info *types.Info, e ast.Expr) bool {
	t := info.TypeOf(e)
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// assignment returns the sides of an assignment, or of a declaration of variables.
func assignment(n ast.Node) (lhs, rhs []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs, n.Rhs
	case *ast.ValueSpec:
		for _, name := range n.Names {
			lhs = append(lhs, name)
		}
		return lhs, n.Values
	}
	return nil, nil
}

// node returns the states after a statement or an expression.
func (w *walker) node(n ast.Node, s set) set {
	switch n := n.(type) {
	case *ast.AssignStmt, *ast.ValueSpec:
		lhs, rhs := assignment(n)
		var call *lockCall
		if len(rhs) == 1 {
			call = w.callOfLock(rhs[0])
		}
		if call == nil {
			for _, e := range rhs {
				s = w.expr(e, s)
			}
		}
		for _, e := range lhs {
			s = w.assigned(w.expr(e, s), e)
		}
		if call != nil {
			s = w.assignedCall(call, lhs, s)
		}
		return s
	case *ast.ExprStmt:
		if c := w.callOfLock(n.X); c != nil {
			s = w.arguments(c.call, s)
			w.note(c.call, s)
			return w.each(s, func(st state) set { return w.dropped(c, st) })
		}
		return w.expr(n.X, s)
	case *ast.DeferStmt:
		s = w.arguments(n.Call, s)
		if c := w.callOfLock(n.Call); c != nil {
			w.note(n.Call, s)
			return w.each(s, func(st state) set { return one(w.deferredCall(c, st)) })
		}
		if w.record {
			w.t.deferring[n.Call] = maps.Clone(s)
		}
		if lit, ok := ast.Unparen(n.Call.Fun).(*ast.FuncLit); ok {
			return w.each(s, func(st state) set { return one(w.deferredLiteral(lit, st)) })
		}
		return s
	case *ast.GoStmt:
		return w.arguments(n.Call, s)
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			s = w.expr(e, s)
		}
		if w.record {
			w.t.exits[n] = maps.Clone(s)
		}
		return s
	default:
		return w.expr(n, s)
	}
}

func one(st state) set { return set{st: true} }

func (w *walker) each(s set, f func(state) set) set {
	out := set{}
	for st := range s {
		if st.unclear && !st.pending.exists() && st.held == [2]uint8{} && st.deferred == [2]uint8{} {
			out[st] = true
			continue
		}
		out.add(f(st))
	}
	return out
}

// note records the states before a call.
func (w *walker) note(call *ast.CallExpr, s set) {
	if !w.record {
		return
	}
	if w.t.before[call] == nil {
		w.t.before[call] = set{}
	}
	w.t.before[call].add(s)
}

// callOfLock returns the call of the lock that e is, or nil.
func (w *walker) callOfLock(e ast.Expr) *lockCall {
	call, _ := ast.Unparen(e).(*ast.CallExpr)
	return w.f.callOf(w.t, call)
}

func (w *walker) arguments(call *ast.CallExpr, s set) set {
	for _, e := range call.Args {
		s = w.expr(e, s)
	}
	return s
}

// expr returns the states after n. No branch in n depends on the success of an acquisition.
func (w *walker) expr(n ast.Node, s set) set {
	for _, c := range slices.Backward(w.f.partsAt(n).calls) { // the arguments before the call
		w.note(c, s)
		if l := w.callOfLock(c); l != nil {
			s = w.each(s, func(st state) set {
				if l.effect == acquire && l.outcome != always {
					return set{w.acquire(l.mode, st): true, w.settle(st, false): true}
				}
				return w.dropped(l, st)
			})
		}
	}
	return s
}

// dropped returns the states after a call whose result is not used, or that has none.
func (w *walker) dropped(c *lockCall, st state) set {
	switch c.effect {
	case acquire:
		if c.outcome == byBool || c.outcome == byBoolErr {
			return set{w.acquire(c.mode, st): true, w.settle(st, false): true}
		}
		return one(w.acquire(c.mode, st))
	case release:
		return one(w.release(c.mode, st))
	}
	return one(state{unclear: true})
}

// assignedCall returns the states after lhs = c.
func (w *walker) assignedCall(c *lockCall, lhs []ast.Expr, s set) set {
	s = w.arguments(c.call, s)
	w.note(c.call, s)
	if c.effect != acquire {
		return w.each(s, func(st state) set { return w.dropped(c, st) })
	}
	object := func(i int) types.Object {
		if i < len(lhs) {
			if id, ok := ast.Unparen(lhs[i]).(*ast.Ident); ok && id.Name != "_" {
				return w.info.ObjectOf(id)
			}
		}
		return nil
	}
	p := pending{mode: c.mode}
	switch c.outcome {
	case byBool:
		p.ok = object(len(lhs) - 1)
	case byErr:
		p.err = object(len(lhs) - 1)
	case byBoolErr:
		p.ok, p.err = object(0), object(1)
	}
	if p.ok == nil && c.outcome != byErr || !p.exists() {
		return w.each(s, func(st state) set { return w.dropped(c, st) })
	}
	return w.each(s, func(st state) set {
		st = w.settle(st, true)
		st.pending = p
		return one(st)
	})
}

// settle notes whether a pending acquisition has succeeded.
func (w *walker) settle(st state, succeeded bool) state {
	p := st.pending
	st.pending = pending{}
	if p.exists() && succeeded {
		return w.acquire(p.mode, st)
	}
	return st
}

func (w *walker) acquire(m mode, st state) state {
	st = w.settle(st, true)
	st.held[m] = min(st.held[m]+1, maxHolds)
	st.freed = [2]freed{}
	return st
}

// release releases a hold. A function that releases a lock takes for granted that it holds it.
func (w *walker) release(m mode, st state) state {
	st = w.settle(st, true)
	switch {
	case st.held[m] == 0 && (st.freed[m] == own || st.held[1-m] > 0):
		// DoubleUnlock reports it.
	case st.held[m] == 0:
		st.freed[m], st.owed[m] = callers, min(st.owed[m]+1, maxHolds)
	case st.held[m] == 1:
		st.held[m], st.freed[m] = 0, own
	default:
		st.held[m]--
	}
	return st
}

// deferredCall returns the state after a deferred call of the lock. DeferLock reports a deferred
// Lock of a lock that is held, and Unlock is meant.
func (w *walker) deferredCall(c *lockCall, st state) state {
	if c.effect != release && !(c.waits() && st.held[c.mode] > 0) {
		st.unclear = true
		return st
	}
	st = w.settle(st, true)
	st.deferred[c.mode] = min(st.deferred[c.mode]+1, maxHolds)
	return st
}

// deferredLiteral returns the state after a deferred literal.
func (w *walker) deferredLiteral(lit *ast.FuncLit, st state) state {
	for _, g := range w.f.inner {
		if g.node != lit {
			continue
		}
		t := g.byKey[w.t.path.key()]
		if t == nil {
			return st
		}
		for _, m := range []mode{write, read} {
			releases, certain := false, len(t.exits) > 0
			for _, exit := range t.exits {
				for s := range exit {
					if s.unclear || s.pending.exists() || s.held != [2]uint8{} {
						st.unclear = true
						return st
					}
					if s.freed[m] == callers || s.deferred[m] > 0 {
						releases = true
					} else {
						certain = false
					}
				}
			}
			switch {
			case releases && certain:
				st = w.settle(st, true)
				st.deferred[m] = min(st.deferred[m]+1, maxHolds)
			case t.foreign && !certain:
				st.unclear = true
			}
		}
	}
	return st
}

// assigned returns the states after an assignment to e. A new value of the variable is another
// lock, which the function has not used yet.
func (w *walker) assigned(s set, e ast.Expr) set {
	if e == nil {
		return s
	}
	if p := pathTo(w.info, e); p != nil && w.t.path.begins(p) {
		return set{state{}: true}
	}
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return s
	}
	object := w.info.ObjectOf(id)
	return w.each(s, func(st state) set {
		if object != nil && (object == st.pending.ok || object == st.pending.err) {
			return set{w.settle(st, true): true, w.settle(st, false): true}
		}
		return one(st)
	})
}

// cond returns the states after a condition that has the given value.
func (w *walker) cond(e ast.Expr, s set, value bool) set {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return w.cond(e.X, s, value)
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return w.cond(e.X, s, !value)
		}
	case *ast.Ident:
		return w.decided(s, e, value)
	case *ast.CallExpr:
		if c := w.callOfLock(e); c != nil && c.effect == acquire && c.outcome == byBool {
			return w.attempted(c, s, value)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			// The second operand is evaluated if the first is true (&&) or false (||).
			and := e.Op == token.LAND
			second := w.cond(e.Y, w.cond(e.X, s, and), value)
			if value != and {
				out := set{}
				out.add(w.cond(e.X, s, !and))
				out.add(second)
				return out
			}
			return second
		case token.EQL, token.NEQ:
			if tv, ok := w.info.Types[e.Y]; ok && tv.IsNil() {
				if w.f.deferred && w.recovered(e.X, maxDepth) {
					if value != (e.Op == token.EQL) {
						return set{} // at a panic only: the function around does not return
					}
					return s
				}
				success := value == (e.Op == token.EQL)
				if c := w.callOfLock(e.X); c != nil && c.effect == acquire && c.outcome == byErr {
					return w.attempted(c, s, success)
				}
				if id, ok := ast.Unparen(e.X).(*ast.Ident); ok {
					return w.decided(s, id, success)
				}
			}
		}
	}
	return w.expr(e, s)
}

// recovered reports whether e is the result of recover.
func (w *walker) recovered(e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		id, _ := ast.Unparen(e.Fun).(*ast.Ident)
		b, ok := w.info.Uses[id].(*types.Builtin)
		return ok && b.Name() == "recover"
	case *ast.Ident:
		sources := w.fs.values.sources[w.info.ObjectOf(e)]
		return depth > 0 && len(sources) == 1 && w.recovered(sources[0].e, depth-1)
	}
	return false
}

// attempted returns the states after an acquisition that succeeded or failed.
func (w *walker) attempted(c *lockCall, s set, success bool) set {
	s = w.arguments(c.call, s)
	w.note(c.call, s)
	return w.each(s, func(st state) set {
		if success {
			return one(w.acquire(c.mode, st))
		}
		return one(w.settle(st, true))
	})
}

// decided returns the states after a test of the variable that tells whether an acquisition
// succeeded. An error of nil leaves open whether a try was successful.
func (w *walker) decided(s set, variable *ast.Ident, success bool) set {
	o := w.info.ObjectOf(variable)
	return w.each(s, func(st state) set {
		p := st.pending
		if o == nil || o != p.ok && o != p.err || success && o == p.err && p.ok != nil {
			return one(st)
		}
		return one(w.settle(st, success))
	})
}
