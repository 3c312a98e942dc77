package checks

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// A hold is a lock that a function holds where it calls one of its parameters.
type hold struct {
	path  *path // as the function names the lock; nil if it has no name there
	class class
	fn    *types.Func // the method that acquires it
	mode  mode
	where string // the file and the line of the acquisition
}

// A callback is a place where a function calls one of its parameters.
type callback struct {
	param int
	held  []hold
}

// maxCallbacks bounds the callbacks of a function.
const maxCallbacks = 8

// callbacks returns the calls of parameters that f makes, by itself or by functions that it calls.
func (fs *flows) callbacks(f *function) []callback { return fs.calling.of(f, fs.findCallbacks) }

func (fs *flows) findCallbacks(f *function) (found []callback) {
	add := func(e ast.Expr, held []hold) {
		id, ok := ast.Unparen(e).(*ast.Ident)
		if !ok || len(found) == maxCallbacks {
			return
		}
		o := fs.info.Uses[id]
		if p, isParam := fs.values.params[o]; isParam && p.of == f && len(fs.values.sources[o]) == 0 {
			found = append(found, callback{p.index, held})
		}
	}
	apart := map[*ast.CallExpr]bool{} // at the return, or in a new goroutine
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			apart[n.Call] = true
		case *ast.DeferStmt:
			apart[n.Call] = true
		case *ast.CallExpr:
			if !apart[n] {
				add(n.Fun, fs.heldAt(f, n))
			}
		}
	})
	fs.calls(f, func(s *site) {
		for _, c := range fs.callbacks(s.callee) {
			if c.param < len(s.call.Args) && !s.maybe {
				add(s.call.Args[c.param], slices.Concat(fs.heldAt(f, s.call), fs.bound(s, c.held)))
			}
		}
	})
	return found
}

// heldAt returns the locks that f certainly holds before a call.
func (fs *flows) heldAt(f *function, call *ast.CallExpr) (held []hold) {
	for _, t := range f.locks {
		before := t.before[call]
		m := write
		if !before.holds(write) {
			if m = read; !before.holds(read) {
				continue
			}
		}
		at, fn := t.acquisitions(m), t.methodOf(acquire, m)
		if (t.path.id() != nil || fs.isGiven(f, t.path.root)) && fs.known(t) && fn != nil && len(at) > 0 {
			held = append(held, hold{t.path, fs.class(t.path), fn, m, fs.placeOf(at[0].Pos)})
		}
	}
	return held
}

// bound returns the holds of a callee as its caller names them.
func (fs *flows) bound(s *site, held []hold) (bound []hold) {
	for _, h := range held {
		if h.path != nil {
			if h.path = fs.bind(s, h.path); h.path != nil {
				h.class = fs.class(h.path)
			}
		}
		if h.where == "" { // of a function that the source does not show
			h.where = fs.placeOf(s.call.Pos())
		}
		bound = append(bound, h)
	}
	return bound
}

// A calledBack is a function that f passes to a function, which calls it.
type calledBack struct {
	site *site
	of   value
	name string
	held [][]hold // for each place where the function is called, as f names them
}

// passed visits the functions that f passes to functions, if these call them.
func (fs *flows) passed(f *function, visit func(calledBack)) {
	fs.calls(f, func(s *site) {
		if s.maybe {
			return
		}
		byParam := map[int][][]hold{}
		var order []int
		for _, c := range fs.callbacks(s.callee) {
			if byParam[c.param] == nil {
				order = append(order, c.param)
			}
			byParam[c.param] = append(byParam[c.param], fs.bound(s, c.held))
		}
		for _, i := range order {
			if i >= len(s.call.Args) {
				continue
			}
			if of := fs.values.of(s.call.Args[i], 0); len(of) == 1 && of[0].callee != nil {
				visit(calledBack{s, of[0], of[0].callee.name(), byParam[i]})
			}
		}
	})
}

// inCaller returns the lock that a function acquires as the function that passes it names it, or
// nil.
func (fs *flows) inCaller(c calledBack, p *path) *path {
	g := c.of.callee
	switch {
	case p == nil:
		return nil
	case g.obj == nil || p.root.Pkg() != nil && p.root.Parent() == p.root.Pkg().Scope():
		if within(p.root, g.node) {
			return nil
		}
		return p
	case p.root == g.obj.Signature().Recv():
		return fs.bind(&site{call: c.site.call, callee: g, recv: c.of.recv}, p)
	}
	return nil
}

// acquiredBack visits the locks that a function acquires again for its caller, which holds them.
func (fs *flows) acquiredBack(visit func(calledBack, hold, acquisition)) {
	again := func(c calledBack, p *path, a acquisition) {
		if p == nil || a.maybe || isMisuse(fs.pass, a, c.site.call) || !fs.knownLock(p) || !fs.stable(p) ||
			fs.released[p.id()] || fs.foreign.released[p.idKey()] {
			return
		}
		var all []hold
		for _, held := range c.held {
			i := slices.IndexFunc(held, func(h hold) bool { return h.path != nil && h.path.key() == p.key() })
			if i >= 0 {
				all = append(all, held[i])
			}
		}
		if len(all) == len(c.held) {
			visit(c, all[0], a)
		}
	}
	for _, f := range fs.functions {
		fs.passed(f, func(c calledBack) {
			here, frees := fs.heldAt(f, c.site.call), fs.frees(c.site.callee)
			for _, a := range fs.certain(c.of.callee) {
				p := fs.inCaller(c, a.path)
				again(c, p, a)
				if p == nil || frees[p.idKey()] {
					continue
				}
				own := c // f itself holds the lock
				own.name, own.held = c.site.name, [][]hold{here}
				own.site = &site{call: c.site.call, name: f.name()}
				again(own, p, a)
			}
		})
		fs.ranges(f, func(c calledBack, body *site) {
			for _, a := range fs.certain(body.callee) {
				a = fs.through(a, body)
				again(c, a.path, a)
			}
		})
	}
}

// ranges visits the calls in the loops of f over iterators: the iterator makes them in its yield.
// The iterator is a literal that a function of the package returns.
func (fs *flows) ranges(f *function, visit func(c calledBack, body *site)) {
	inspectOwn(f.body, func(n ast.Node) {
		r, ok := n.(*ast.RangeStmt)
		if !ok {
			return
		}
		maker, _ := ast.Unparen(r.X).(*ast.CallExpr)
		if maker == nil || fs.values.declared(maker) == nil {
			return
		}
		made := fs.values.of(maker, 0)
		if len(made) != 1 || made[0].callee == nil || made[0].callee.obj != nil {
			return
		}
		of := fs.values.staticSite(maker, fs.values.declared(maker))
		c := calledBack{site: of}
		for _, yield := range fs.callbacks(made[0].callee) {
			c.held = append(c.held, fs.bound(of, yield.held))
		}
		if len(c.held) == 0 {
			return
		}
		fs.calls(f, func(s *site) {
			if within2(s.call, r.Body) {
				c.name = s.name
				visit(c, s)
			}
		})
	})
}

// reportBack reports a function that acquires a lock of the function that calls it.
func reportBack(pass *analysis.Pass, c calledBack, h hold, a acquisition, why string) {
	d := analysis.Diagnostic{
		Pos: c.site.call.Pos(), End: c.site.call.End(),
		Message: fmt.Sprintf("%s holds %s while it calls %s, which acquires it again: %s", c.site.name, h.path.text, c.name, why),
	}
	if a.where == "" {
		d.Related = append(d.Related, related(a.call.call, "acquired again here"))
	}
	pass.Report(d)
}

// followCallbacks finds the steps of functions that f passes to functions which call them.
func (o *orders) followCallbacks(f *function) {
	made := o.made(f)
	o.fs.passed(f, func(c calledBack) {
		here := o.fs.heldAt(f, c.site.call)
		for _, a := range o.acquired(c.of.callee) {
			p := o.fs.inCaller(c, a.path)
			if p != nil {
				a.class = o.fs.class(p)
			}
			if a.class.key == "" || p != nil && made[p.root] {
				continue
			}
			for _, held := range c.held {
				outer := map[string]bool{}
				for _, h := range slices.Concat(here, held) {
					if h.path != nil {
						outer[h.path.idKey()] = true
					}
					outer[h.class.key] = true
				}
				delete(outer, "") // of variables
				for _, h := range held {
					if h.class.key == "" || h.class.key == a.class.key || h.path != nil && made[h.path.root] ||
						h.path != nil && a.freed[h.path.idKey()] {
						continue
					}
					o.steps = append(o.steps, o.calledStep(f, c, h, a, outer))
				}
			}
		}
	})
}

// calledStep is the acquisition of a lock by a function that is called under another lock.
func (o *orders) calledStep(f *function, c calledBack, h hold, a acquisition, outer map[string]bool) step {
	s := step{
		first: h.class, second: a.class, f: f, at: c.site.call, acquired: a, outer: outer,
		heldRead: h.mode == read, reads: a.call.mode == read, name: f.name(),
	}
	s.acquired.via = append([]string{c.site.name, c.name}, a.via...)
	s.routeFrom = func(far bool) string {
		route := fmt.Sprintf("%s calls %s, which", f.name(), c.site.name)
		route += fmt.Sprintf(" locks %s (%s), then", h.class.name, h.where)
		for _, name := range s.acquired.via[1:] {
			route += fmt.Sprintf(" calls %s, which", name)
		}
		return route + fmt.Sprintf(" locks %s (%s)", a.class.name, o.fs.where(a))
	}
	s.places = []analysis.RelatedInformation{
		related(s.at, fmt.Sprintf("%s calls %s", f.name(), c.site.name)),
	}
	if a.where == "" {
		s.places = append(s.places, related(a.call.call, a.class.name+" is acquired under "+h.class.name))
	}
	return s
}
