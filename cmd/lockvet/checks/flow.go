package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"reflect"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// flow follows each lock of each function along the control flow. The checks of paths use it.
//
// For each lock it computes the states that the lock can have before each call and at each
// return. A check reports only what is true in all of these states. Therefore a lock that is held
// under a condition, and released under the same condition, leads to no report.
var flow = &analysis.Analyzer{
	Name:       "lockflow",
	Doc:        "follow locks along the control flow of each function",
	URL:        url,
	Run:        runFlow,
	Requires:   []*analysis.Analyzer{ctrlflow.Analyzer},
	ResultType: reflect.TypeFor[*flows](),
}

// freed says whether a function has released a lock that it does not hold now.
type freed uint8

const (
	no       freed = iota
	own            // it released what it had acquired
	callers        // it released what it had not acquired
	maxHolds = 3
)

// A state is what a function has done with one lock so far, on one path of control. The arrays
// have an element for each mode.
type state struct {
	held     [2]uint8 // holds that the function has
	freed    [2]freed // how the lock came to have no hold
	deferred [2]uint8 // releases at the return
	// unclear: a deferred function does something else with the lock, or nothing is known.
	unclear bool
	// pending is one more than the index of an acquisition whose success is not known yet.
	pending int
}

// set holds the states on all paths of control to a point.
type set map[state]bool

func (s set) add(o set) (grown bool) {
	for st := range o {
		if !s[st] {
			s[st], grown = true, true
		}
	}
	return grown
}

// all reports whether f is true in all states, and there is one. A lock of which nothing is known
// has no such f.
func (s set) all(f func(state) bool) bool {
	for st := range s {
		if st.unclear || st.pending != 0 || !f(st) {
			return false
		}
	}
	return len(s) > 0
}

func (s set) holds(m mode) bool { return s.all(func(st state) bool { return st.held[m] > 0 }) }

// holdsAny reports whether the function holds the lock in some mode.
func (s set) holdsAny() bool {
	return s.all(func(st state) bool { return st.held[write]+st.held[read] > 0 })
}

// A pending acquisition has succeeded if ok is true and err is nil. Either variable can be nil.
type pending struct {
	ok, err types.Object
	mode    mode
}

// A tracked lock is a lock that one function uses.
type tracked struct {
	path     *path
	calls    []*lockCall
	before   map[*ast.CallExpr]set
	exits    map[*ast.ReturnStmt]set
	in       []set   // the states at the start of each block
	out      [][]set // the states at the end of each block, for each successor
	pendings []pending
	escaped  bool // other code can acquire and release the lock too, as far as is known
	foreign  bool // the function releases a hold that it has not acquired
}

// releases reports whether the function itself releases the lock.
func (t *tracked) releases(m mode) bool {
	return slices.ContainsFunc(t.calls, func(c *lockCall) bool { return c.effect == release && c.mode == m })
}

// left reports whether the function may return with a hold. If it also releases the lock, then one
// of its returns always has a hold.
func (t *tracked) left() bool {
	held := func(st state) bool {
		return st.pending != 0 || st.held[write] > st.deferred[write] || st.held[read] > st.deferred[read]
	}
	certain := t.releases(write) || t.releases(read)
	for _, s := range t.exits {
		n := 0
		for st := range s {
			if held(st) {
				n++
			}
		}
		if n == len(s) && n > 0 || n > 0 && !certain {
			return true
		}
	}
	return false
}

// A function is a declared function or a literal.
type function struct {
	info     *types.Info
	node     ast.Node // *ast.FuncDecl or *ast.FuncLit
	body     *ast.BlockStmt
	decl     *ast.FuncDecl // the declared function, or that around the literal; can be nil
	obj      *types.Func   // nil for a literal
	outer    *function
	graph    *cfg.CFG
	locks    []*tracked // in the order of the source
	byKey    map[string]*tracked
	deferred bool // a literal of a statement: defer func() {...}()
	inner    []*function
	byCall   map[*ast.CallExpr]*lockCall
	defers   map[*ast.CallExpr]bool // the deferred calls
	tagged   map[ast.Expr]bool      // cases that are compared with a tag: no conditions
}

// flows is the result of flow for one package.
type flows struct {
	info      *types.Info
	functions []*function
	declared  map[*types.Func]*function
	// released has the fields and variables of locks that a function releases for another one.
	released map[types.Object]bool
	// shared has those that some code gives to other code.
	shared map[types.Object]bool
	// leavers has the functions that may return with a hold of a field or variable.
	leavers map[types.Object][]*function
	// written has those that some function acquires for writing.
	written map[types.Object]bool
	// assigned has the fields and the variables of the package that an assignment changes.
	assigned map[types.Object]bool
	// parts counts the fields that have a struct of a type as a part of their own struct.
	parts     map[*types.TypeName]int
	certainly map[*function][]acquisition // the results of certain
}

// known reports whether the package shows all functions that use the lock.
func (fs *flows) known(pass *analysis.Pass, t *tracked) bool {
	id := t.path.id()
	return !t.escaped && (id == nil || !fs.shared[id] && id.Pkg() == pass.Pkg)
}

// local reports whether no other function releases the lock for this one.
func (fs *flows) local(pass *analysis.Pass, t *tracked) bool {
	return fs.known(pass, t) && !fs.released[t.path.id()]
}

// acquiredElsewhere reports whether a function other than f may leave the lock held.
func (fs *flows) acquiredElsewhere(f *function, t *tracked) bool {
	id := t.path.id()
	return id != nil && slices.ContainsFunc(fs.leavers[id], func(o *function) bool { return o != f })
}

func runFlow(pass *analysis.Pass) (any, error) {
	fs := &flows{
		info:     pass.TypesInfo,
		declared: map[*types.Func]*function{}, certainly: map[*function][]acquisition{},
		released: map[types.Object]bool{}, shared: map[types.Object]bool{}, leavers: map[types.Object][]*function{},
		written: map[types.Object]bool{}, assigned: map[types.Object]bool{}, parts: map[*types.TypeName]int{},
	}
	fs.findParts()
	graphs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	for _, file := range pass.Files {
		for cursor := range inspector.New([]*ast.File{file}).Root().Preorder((*ast.FuncDecl)(nil)) {
			decl := cursor.Node().(*ast.FuncDecl)
			if decl.Body == nil {
				continue
			}
			f := &function{node: decl, body: decl.Body, decl: decl, graph: graphs.FuncDecl(decl)}
			f.obj, _ = pass.TypesInfo.Defs[decl.Name].(*types.Func)
			fs.analyze(pass, graphs, f)
		}
		fs.literalsOfVariables(pass, graphs, file)
		fs.findShared(pass, file)
		fs.findAssigned(file)
	}
	for _, f := range fs.functions {
		if f.obj != nil {
			fs.declared[f.obj] = f
		}
		for _, t := range f.locks {
			id := t.path.id()
			if id == nil {
				continue
			}
			if t.foreign && !f.deferred {
				fs.released[id] = true
			}
			for _, c := range t.calls {
				if c.effect == acquire && c.mode == write {
					fs.written[id] = true
				}
			}
		}
	}
	// A function that forgets an Unlock does not acquire the lock for its callers.
	for _, f := range fs.functions {
		for _, t := range f.locks {
			if id := t.path.id(); id != nil && t.left() && !f.deferred && len(fs.leaks(pass, f, t)) == 0 {
				fs.leavers[id] = append(fs.leavers[id], f)
			}
		}
	}
	for _, f := range fs.functions { // here, since the checks run at the same time
		if f.obj != nil {
			fs.certain(f)
		}
	}
	return fs, nil
}

// findAssigned finds the fields and the variables of the package to which a file assigns.
func (fs *flows) findAssigned(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				if p := pathOf(fs.info, l); p != nil {
					fs.assigned[p.id()] = true
				}
			}
		}
		return true
	})
}

// findParts counts for each named struct the fields of which it is a part.
func (fs *flows) findParts() {
	for _, object := range fs.info.Defs {
		if f, ok := object.(*types.Var); ok && f.IsField() {
			if name := partOf(f); name != nil {
				fs.parts[name]++
			}
		}
	}
}

// partOf returns the type of a field that is a struct, or an embedded pointer to one.
func partOf(f *types.Var) *types.TypeName {
	t := types.Unalias(f.Type())
	if pointer, ok := t.(*types.Pointer); ok && f.Embedded() {
		t = types.Unalias(pointer.Elem())
	}
	if n, ok := t.(*types.Named); ok && isStruct(n) {
		return n.Origin().Obj()
	}
	return nil
}

// literalsOfVariables analyzes the functions that initialize variables of the package.
func (fs *flows) literalsOfVariables(pass *analysis.Pass, graphs *ctrlflow.CFGs, file *ast.File) {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, lit := range literals(g) {
				fs.analyze(pass, graphs, &function{node: lit, body: lit.Body, graph: graphs.FuncLit(lit)})
			}
		}
	}
}

// literals returns the outermost function literals in n.
func literals(n ast.Node) (found []*ast.FuncLit) {
	ast.Inspect(n, func(m ast.Node) bool {
		lit, ok := m.(*ast.FuncLit)
		if ok && m != n {
			found = append(found, lit)
			return false
		}
		return true
	})
	return found
}

// analyze analyzes f after the literals in it.
func (fs *flows) analyze(pass *analysis.Pass, graphs *ctrlflow.CFGs, f *function) {
	if f.graph == nil {
		return // a function that the compiler replaces
	}
	deferred := map[*ast.FuncLit]bool{}
	ast.Inspect(f.body, func(n ast.Node) bool {
		if d, ok := n.(*ast.DeferStmt); ok {
			if lit, ok := ast.Unparen(d.Call.Fun).(*ast.FuncLit); ok {
				deferred[lit] = true
			}
		}
		return true
	})
	for _, lit := range literals(f.body) {
		g := &function{
			node: lit, body: lit.Body, decl: f.decl, outer: f, graph: graphs.FuncLit(lit), deferred: deferred[lit],
		}
		fs.analyze(pass, graphs, g)
		f.inner = append(f.inner, g)
	}
	f.collect(pass.TypesInfo)
	for _, t := range f.locks {
		w := walker{info: pass.TypesInfo, f: f, t: t}
		w.run()
	}
	fs.functions = append(fs.functions, f)
}

// collect finds the locks that f uses.
func (f *function) collect(info *types.Info) {
	f.info = info
	f.byKey, f.byCall = map[string]*tracked{}, map[*ast.CallExpr]*lockCall{}
	f.defers, f.tagged = map[*ast.CallExpr]bool{}, map[ast.Expr]bool{}
	ofLock := func(p *path) *tracked {
		key := p.key()
		t := f.byKey[key]
		if t == nil {
			t = &tracked{path: p, before: map[*ast.CallExpr]set{}, exits: map[*ast.ReturnStmt]set{}}
			f.byKey[key] = t
			f.locks = append(f.locks, t)
		}
		return t
	}
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if c := lockCallOf(info, n); c != nil && c.path != nil {
				f.byCall[n] = c
				t := ofLock(c.path)
				t.calls = append(t.calls, c)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				for _, clause := range n.Body.List {
					for _, e := range clause.(*ast.CaseClause).List {
						f.tagged[e] = true
					}
				}
			}
		case *ast.DeferStmt:
			f.defers[n.Call] = true
		case *ast.GoStmt:
			if c := lockCallOf(info, n.Call); c != nil && c.path != nil {
				ofLock(c.path).escaped = true
			}
		}
	})
	// What a deferred literal does with a lock is a use of f too.
	for _, g := range f.inner {
		for _, t := range g.locks {
			if g.deferred {
				own := ofLock(t.path)
				own.calls = append(own.calls, t.calls...)
				own.escaped = own.escaped || t.escaped
			} else if own := f.byKey[t.path.key()]; own != nil && (t.foreign || t.left() || t.escaped) {
				own.escaped = true
			} else if t.foreign || t.left() {
				ofLock(t.path).escaped = true
			}
		}
	}
	for _, t := range f.locks {
		t.escaped = t.escaped || escapes(info, f.body, t.path) || slices.ContainsFunc(f.inner, func(g *function) bool {
			return assigns(info, g.body, t.path)
		})
	}
}

// inspectOwn visits the nodes of a body in the order of the source, except those of literals.
func inspectOwn(body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		if n != nil {
			visit(n)
		}
		return true
	})
}

// callsIn returns the calls in nodes in the order of the source, except those of literals.
func callsIn(nodes ...ast.Node) iter.Seq[*ast.CallExpr] {
	return func(yield func(*ast.CallExpr) bool) {
		for _, n := range nodes {
			stopped := false
			ast.Inspect(n, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && !stopped {
					stopped = !yield(call)
				}
				_, literal := n.(*ast.FuncLit)
				return !literal && !stopped
			})
			if stopped {
				return
			}
		}
	}
}

// escapes reports whether body gives the lock of p to other code, or a method of it.
func escapes(info *types.Info, body ast.Node, p *path) (found bool) {
	forEscapes(info, body, func(q *path) {
		found = found || q.key() == p.key()
	})
	return found
}

// findShared finds the fields and the variables of locks that a file gives to other code.
func (fs *flows) findShared(pass *analysis.Pass, file *ast.File) {
	forEscapes(pass.TypesInfo, file, func(p *path) {
		if id := p.id(); id != nil {
			fs.shared[id] = true
		}
	})
}

// forEscapes calls visit for each path that n uses otherwise than to call a method, to select a
// field, to assign, to compare, or to make a condition.
func forEscapes(info *types.Info, n ast.Node, visit func(*path)) {
	var stack []ast.Node
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		switch e := e.(type) {
		case *ast.CallExpr:
			// A view that is kept is another name of the lock.
			if of, _, ok := viewOf(info, e); ok && !isSelected(stack) {
				if p := pathOf(info, of.X); p != nil {
					visit(p)
				}
			}
			return true
		case *ast.Ident:
			if info.Uses[e] == nil {
				return true
			}
			if s, ok := stack[len(stack)-2].(*ast.SelectorExpr); ok && s.Sel == e {
				return true
			}
		case *ast.SelectorExpr:
			// A method value of a lock lets others release it.
			if s := info.Selections[e]; s != nil && s.Kind() == types.MethodVal && !isCalled(stack) {
				if fn, ok := s.Obj().(*types.Func); ok {
					if _, ok := lockMethod(fn); ok {
						if p := toReceiver(info, e.X, s); p != nil {
							visit(p)
						}
					}
				}
				return true
			}
		default:
			return true
		}
		if passedOn(info, stack) {
			if p := pathOf(info, e); p != nil {
				visit(p)
			}
		}
		return true
	})
}

// isSelected reports whether a selector selects from the last node of the stack.
func isSelected(stack []ast.Node) bool {
	_, ok := stack[len(stack)-2].(*ast.SelectorExpr)
	return ok
}

// isCalled reports whether the last node of the stack is the function of a call.
func isCalled(stack []ast.Node) bool {
	for i := len(stack) - 2; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.ParenExpr:
		case *ast.CallExpr:
			return ast.Unparen(n.Fun) == ast.Unparen(stack[len(stack)-1].(ast.Expr))
		default:
			return false
		}
	}
	return false
}

// passedOn reports whether the last expression of the stack goes to other code.
func passedOn(info *types.Info, stack []ast.Node) bool {
	e := stack[len(stack)-1].(ast.Expr)
	for i := len(stack) - 2; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.ParenExpr, *ast.StarExpr:
			e = n.(ast.Expr)
		case *ast.UnaryExpr:
			if n.Op != token.AND {
				return false
			}
			e = n
		case *ast.SelectorExpr, *ast.BinaryExpr, *ast.IndexExpr, *ast.ExprStmt, *ast.IncDecStmt:
			return false
		case *ast.AssignStmt:
			return slices.Contains(n.Rhs, e)
		case *ast.RangeStmt:
			return false
		case *ast.KeyValueExpr:
			// sync.Cond{L: &mu}
			key, ok := n.Key.(*ast.Ident)
			return n.Value == e && (!ok || key.Name != "L")
		case *ast.CallExpr:
			if ast.Unparen(n.Fun) == e {
				return false
			}
			return !knownCallee(info, n)
		default:
			return true
		}
	}
	return false
}

// knownCallee reports whether a call takes a lock and leaves it as it was.
func knownCallee(info *types.Info, call *ast.CallExpr) bool {
	fn := calleeOf(info, call)
	switch {
	case fn == nil || fn.Pkg() == nil:
		return false
	case fn.Pkg().Path() == "sync":
		return fn.Name() == "NewCond"
	case fn.Pkg().Path() == root:
		return fn.Name() == "Do" || fn.Name() == "TryDo"
	case fn.Pkg().Path() == root+"/condition":
		return fn.Name() == "New"
	}
	return false
}
