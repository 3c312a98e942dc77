package checks

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// LockOrder reports two functions that acquire two locks in opposite orders.
var LockOrder = &analysis.Analyzer{
	Name: "lockorder",
	Doc: `report two functions of a package that acquire two locks in opposite orders

	func (s *Server) Add(c *Conn) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.mu.Lock() // reported: Conn.mu after Server.mu, and in Close the other way round
		...
	}
	func (c *Conn) Close() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.server.remove(c) // acquires Server.mu
	}

A lock is known by its type and field, or as a variable of the package. The check follows calls of
functions of the package. It does not report two orders under a common third lock, locks of objects
that the function has just made, acquisitions that do not wait, or two that only read.`,
	URL:      url,
	Requires: []*analysis.Analyzer{flow},
	Run:      runLockOrder,
}

// A step is an acquisition of one lock while another is held.
type step struct {
	first, second types.Object
	f             *function
	held          *tracked
	at            ast.Node // the acquisition, or the call that leads to it
	acquired      acquisition
	gates         map[types.Object]bool // all locks that are held
	heldRead      bool                  // the first lock is held for reading
}

// An acquisition is a place where a function acquires a lock, and the functions called on the way.
type acquisition struct {
	call *lockCall
	via  []*types.Func
}

func runLockOrder(pass *analysis.Pass) (any, error) {
	fs := pass.ResultOf[flow].(*flows)
	callees := map[*types.Func]*function{}
	for _, f := range fs.functions {
		if f.obj != nil {
			callees[f.obj] = f
		}
	}
	o := &orders{pass: pass, fs: fs, callees: callees, acquires: map[*types.Func]map[types.Object]acquisition{}}
	for _, f := range fs.functions {
		if f.obj != nil {
			o.follow(f)
		}
	}
	o.report()
	return nil, nil
}

type orders struct {
	pass     *analysis.Pass
	fs       *flows
	callees  map[*types.Func]*function
	acquires map[*types.Func]map[types.Object]acquisition
	steps    []step
}

// acquired returns the locks that f acquires, itself or by functions that it calls.
func (o *orders) acquired(f *function) map[types.Object]acquisition {
	if known, ok := o.acquires[f.obj]; ok {
		return known
	}
	found := map[types.Object]acquisition{}
	o.acquires[f.obj] = found // ends a recursion
	made := o.made(f)
	for _, key := range f.order {
		t := f.locks[key]
		id := t.path.id()
		if id == nil || made[t.path.root] {
			continue
		}
		for _, c := range t.calls {
			if _, known := found[id]; !known && c.waits() && c.call.Pos() >= f.body.Pos() {
				found[id] = acquisition{call: c}
			}
		}
	}
	o.calls(f, func(_ *ast.CallExpr, callee *function) {
		for id, a := range o.acquired(callee) {
			if _, known := found[id]; !known {
				found[id] = acquisition{a.call, append([]*types.Func{callee.obj}, a.via...)}
			}
		}
	})
	return found
}

// calls visits the calls of functions of the package that f makes before it returns.
func (o *orders) calls(f *function, visit func(*ast.CallExpr, *function)) {
	skip := map[*ast.CallExpr]bool{}
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			skip[n.Call] = true
		case *ast.DeferStmt:
			skip[n.Call] = true
		case *ast.CallExpr:
			if fn := calleeOf(o.pass.TypesInfo, n); fn != nil && !skip[n] {
				if callee := o.callees[fn.Origin()]; callee != nil {
					visit(n, callee)
				}
			}
		}
	})
}

// made returns the variables of f that hold a new object. Nobody else can have its locks.
func (o *orders) made(f *function) map[types.Object]bool {
	made := map[types.Object]bool{}
	inspectOwn(f.body, func(n ast.Node) {
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Lhs) != len(a.Rhs) {
			return
		}
		for i, e := range a.Rhs {
			if u, ok := e.(*ast.UnaryExpr); ok {
				e = u.X
			}
			isNew := false
			switch e := e.(type) {
			case *ast.CompositeLit:
				isNew = true
			case *ast.CallExpr:
				id, ok := e.Fun.(*ast.Ident)
				isNew = ok && (id.Name == "new" || strings.HasPrefix(strings.ToLower(id.Name), "new"))
			}
			if id, ok := a.Lhs[i].(*ast.Ident); ok && isNew {
				made[o.pass.TypesInfo.ObjectOf(id)] = true
			}
		}
	})
	return made
}

// follow finds the steps of f.
func (o *orders) follow(f *function) {
	made := o.made(f)
	at := func(call *ast.CallExpr, n ast.Node, id types.Object, a acquisition) {
		gates := map[types.Object]bool{}
		var holders []*tracked
		for _, key := range f.order {
			t := f.locks[key]
			if t.path.id() != nil && t.before[call].holdsAny() {
				gates[t.path.id()] = true
				holders = append(holders, t)
			}
		}
		for _, t := range holders {
			first := t.path.id()
			if first == id || made[t.path.root] || !o.fs.local(o.pass, t) {
				continue
			}
			o.steps = append(o.steps, step{
				first: first, second: id, f: f, held: t, at: n, acquired: a, gates: gates,
				heldRead: !t.before[call].holds(write),
			})
		}
	}
	for _, key := range f.order {
		t := f.locks[key]
		id := t.path.id()
		if id == nil || made[t.path.root] {
			continue
		}
		for _, c := range t.calls {
			if c.waits() {
				at(c.call, c.call, id, acquisition{call: c})
			}
		}
	}
	o.calls(f, func(call *ast.CallExpr, callee *function) {
		for id, a := range o.acquired(callee) {
			at(call, call, id, acquisition{a.call, append([]*types.Func{callee.obj}, a.via...)})
		}
	})
}

// report reports each pair of locks that has both orders, once.
func (o *orders) report() {
	slices.SortStableFunc(o.steps, func(a, b step) int {
		if len(a.acquired.via) != len(b.acquired.via) {
			return len(a.acquired.via) - len(b.acquired.via)
		}
		return int(a.at.Pos() - b.at.Pos())
	})
	type pair struct{ first, second types.Object }
	reported := map[pair]bool{}
	for _, s := range o.steps {
		for _, other := range o.steps {
			if other.first != s.second || other.second != s.first || other.f == s.f {
				continue
			}
			if reported[pair{s.first, s.second}] || s.passes(other) || other.passes(s) || gated(s, other) {
				continue
			}
			reported[pair{s.first, s.second}] = true
			reported[pair{s.second, s.first}] = true
			o.pass.Report(analysis.Diagnostic{
				Pos: s.at.Pos(), End: s.at.End(),
				Message: fmt.Sprintf("%s is acquired while %s is held, and in %s the other way round: %s",
					s.acquired.call.path.name(), s.held.path.name(), other.f.obj.Name(),
					o.route(s)+"; "+o.route(other)),
				Related: append(o.places(s), o.places(other)...),
			})
		}
	}
}

// passes reports whether s can acquire its second lock although other holds it: both read. Only a
// writer that waits between them could stop s.
func (s step) passes(other step) bool { return s.acquired.call.mode == read && other.heldRead }

// gated reports whether a third lock keeps the two steps from happening at the same time.
func gated(a, b step) bool {
	for id := range a.gates {
		if id != a.first && id != a.second && b.gates[id] {
			return true
		}
	}
	return false
}

// route describes a step: "Add locks Server.mu, then calls remove, which locks Conn.mu".
func (o *orders) route(s step) string {
	var route strings.Builder
	fmt.Fprintf(&route, "%s locks %s (line %d), then", s.f.obj.Name(), s.held.path.name(), o.line(o.holdOf(s)))
	for _, fn := range s.acquired.via {
		fmt.Fprintf(&route, " calls %s, which", fn.Name())
	}
	fmt.Fprintf(&route, " locks %s (line %d)", s.acquired.call.path.name(), o.line(s.acquired.call.call))
	return route.String()
}

func (o *orders) line(n ast.Node) int { return o.pass.Fset.Position(n.Pos()).Line }

// holdOf returns the last acquisition before the step.
func (o *orders) holdOf(s step) ast.Node {
	var last ast.Node = s.at
	for _, c := range s.held.calls {
		if c.effect == acquire && c.call.Pos() < s.at.Pos() {
			last = c.call
		}
	}
	return last
}

func (o *orders) places(s step) []analysis.RelatedInformation {
	places := []analysis.RelatedInformation{
		related(o.holdOf(s), fmt.Sprintf("%s acquires %s", s.f.obj.Name(), s.held.path.name())),
	}
	if len(s.acquired.via) > 0 {
		places = append(places, related(s.at, fmt.Sprintf("%s calls %s", s.f.obj.Name(), s.acquired.via[0].Name())))
	}
	name := s.acquired.call.path.name()
	return append(places, related(s.acquired.call.call, name+" is acquired under "+s.held.path.name()))
}
