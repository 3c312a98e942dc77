package checks

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// progress tells whether a function was analyzed.
type progress uint8

const (
	untouched progress = iota
	started
	done
)

// A change is the effect of a function on a lock of its caller when the function returns.
type change struct {
	method
	path *path
	fn   *types.Func // the method that does it
	// frees: the function may release a hold of its caller. One that only may keep a hold does not.
	frees bool
}

// findChanges sums up what f does to the locks of its callers.
func (f *function) findChanges() {
	for _, t := range f.locks {
		if within(t.path.root, f.body) || assigns(f.info, f.body, t.path) {
			continue
		}
		for _, m := range []mode{write, read} {
			if c, ok := t.change(f, m); ok {
				c.path, c.fn = t.path, t.methodOf(c.effect, m)
				if c.fn != nil {
					f.changes = append(f.changes, c)
				}
			}
		}
	}
}

func (t *tracked) methodOf(e effect, m mode) *types.Func {
	var fn *types.Func
	for _, c := range t.calls {
		if c.mode == m && (fn == nil || c.effect == e) {
			fn = c.fn
		}
	}
	return fn
}

// change returns what f does to the lock in mode m.
func (t *tracked) change(f *function, m mode) (c change, ok bool) {
	c.mode = m
	nets := map[int]bool{}
	byResult := [2]map[int]bool{{}, {}} // for each end: a failure, or success
	unclear := false
	c.frees = t.foreign
	for ret, s := range t.exits {
		success, known := succeeds(f, ret)
		for st := range s {
			if st.unclear || st.pending.exists() {
				unclear = true
				continue
			}
			n := st.net(m)
			nets[n] = true
			c.frees = c.frees || n < 0
			if known {
				byResult[success][n] = true
			} else {
				byResult[0][n], byResult[1][n] = true, true
			}
		}
	}
	only := func(set map[int]bool, n int) bool { return len(set) == 1 && set[n] }
	switch {
	case unclear:
		c.effect = convert
		return c, t.foreign || t.left()
	case len(nets) == 0 || only(nets, 0):
		return c, false
	case t.escaped:
		c.effect = convert
	case only(nets, 1):
		c.effect = acquire
	case only(nets, -1):
		c.effect = release
	case only(byResult[1], 1) && only(byResult[0], 0):
		c.effect, c.outcome = acquire, byErr
		if results := f.results(); types.Identical(results.At(results.Len()-1).Type(), types.Typ[types.Bool]) {
			c.outcome = byBool
		}
	default:
		c.effect = convert
	}
	return c, true
}

func (f *function) results() *types.Tuple {
	if f.obj != nil {
		return f.obj.Signature().Results()
	}
	return f.info.TypeOf(f.node.(*ast.FuncLit)).(*types.Signature).Results()
}

// succeeds tells whether a return is one of success: without an error, or with true.
func succeeds(f *function, ret *ast.ReturnStmt) (success int, known bool) {
	results := f.results()
	if n := results.Len(); n == 0 || len(ret.Results) != n {
		return 0, false
	}
	last := ret.Results[len(ret.Results)-1]
	switch t := results.At(results.Len() - 1).Type(); {
	case types.Identical(t, types.Universe.Lookup("error").Type()):
		if f.info.Types[last].IsNil() {
			return 1, true
		}
		return 0, true
	case types.Identical(t, types.Typ[types.Bool]):
		v := f.info.Types[last].Value
		if v == nil {
			return 0, false
		}
		if constant.BoolVal(v) {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// changesOf visits the locks that the functions called by call acquire or release for f.
func (fs *flows) changesOf(call *ast.CallExpr, visit func(*path, *lockCall)) {
	for _, s := range fs.values.at(call) {
		if s.callee.progress == started {
			fs.cyclic = append(fs.cyclic, s.callee)
		}
		fs.analyze(s.callee)
		for _, c := range s.callee.changes {
			p := fs.bind(s, c.path)
			if p == nil {
				if id := c.path.id(); id != nil && c.frees {
					fs.release(c.path)
					fs.loose[id] = true
				}
				continue
			}
			m := c.method
			if s.maybe {
				m.effect = convert
			}
			visit(p, &lockCall{method: m, call: call, fn: methodAt(c.fn, p), path: p, via: s})
		}
	}
}

// onlyCalled reports whether a literal is called at once, or through a variable that is only
// called. Then its calls show what it does.
func (fs *flows) onlyCalled(g *function) bool {
	lit, ok := g.node.(*ast.FuncLit)
	if !ok || g.deferred {
		return false
	}
	c := withoutParens(g.at)
	if c.ParentEdgeKind() == edge.CallExpr_Fun {
		k := c.Parent().ParentEdgeKind()
		return k != edge.GoStmt_Call
	}
	assigned, ok := c.Parent().Node().(*ast.AssignStmt)
	if !ok || len(assigned.Lhs) != 1 {
		return false
	}
	id, ok := assigned.Lhs[0].(*ast.Ident)
	if !ok {
		return false
	}
	o := fs.info.ObjectOf(id)
	return !fs.valued[o] && len(fs.values.sources[o]) == 1 && fs.values.literal[lit] == g
}

// findValued notes the functions, and the variables with functions, that are used otherwise than to
// call them.
func (fs *flows) findValued(root inspector.Cursor) {
	for c := range root.Preorder((*ast.Ident)(nil)) {
		o := fs.info.Uses[c.Node().(*ast.Ident)]
		if o == nil || o.Pkg() != fs.pass.Pkg {
			continue
		}
		if _, ok := o.Type().Underlying().(*types.Signature); !ok {
			continue
		}
		if c.ParentEdgeKind() == edge.SelectorExpr_Sel {
			c = c.Parent()
		}
		c = withoutParens(c)
		if c.ParentEdgeKind() != edge.CallExpr_Fun || c.Parent().ParentEdgeKind() == edge.GoStmt_Call {
			fs.valued[o] = true
		}
	}
}

// hidden reports whether code that the package does not show can call f.
func (fs *flows) hidden(f *function) bool {
	if f.obj == nil {
		return !fs.onlyCalled(f)
	}
	return f.obj.Exported() || fs.valued[f.obj] || len(fs.values.static[f]) == 0 || slices.Contains(fs.cyclic, f)
}

// lockCallOf returns what call does with a lock, or nil. The L of a condition is the lock of which
// the condition was made.
func (fs *flows) lockCallOf(call *ast.CallExpr) *lockCall {
	c := lockCallOf(fs.info, call)
	if c == nil || c.path == nil || len(c.path.fields) < 2 {
		return c
	}
	cond := c.path.cond()
	if cond == nil {
		return c
	}
	lock := fs.conditions(cond)
	if lock == nil {
		return c
	}
	name := c.fn.Name()
	if lock.side == read {
		name, c.mode = "R"+name, read
	}
	if fn := methodNamed(lock.path, name); fn != nil {
		c.fn, c.path = fn, lock.path
	}
	return c
}

// methodNamed returns the method of the lock at p that has a name, or nil.
func methodNamed(p *path, name string) *types.Func {
	o, _, _ := types.LookupFieldOrMethod(types.NewPointer(p.typ()), true, nil, name)
	fn, _ := o.(*types.Func)
	return fn
}

// methodAt returns the method that fn is for the lock at p: fn may be of an interface, which a
// function takes for its parameter.
func methodAt(fn *types.Func, p *path) *types.Func {
	if !types.IsInterface(fn.Signature().Recv().Type()) || types.IsInterface(p.typ()) {
		return fn
	}
	if m := methodNamed(p, fn.Name()); m != nil {
		if _, ok := lockMethod(m); ok {
			return m
		}
	}
	return fn
}

// typ returns the type of the lock.
func (p *path) typ() types.Type {
	t := p.root.Type()
	if n := len(p.fields); n > 0 {
		t = p.fields[n-1].Type()
	}
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		return pointer.Elem()
	}
	return t
}
