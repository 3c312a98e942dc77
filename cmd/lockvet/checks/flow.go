package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/edge"
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
	Requires:   []*analysis.Analyzer{ctrlflow.Analyzer, inspect.Analyzer},
	ResultType: reflect.TypeFor[*flows](),
	FactTypes:  []analysis.Fact{(*summary)(nil), (*packageSummary)(nil)},
}

// freed says whether a function has released a lock that it does not hold now.
type freed uint8

const (
	no       freed = iota
	own            // it released what it had acquired
	callers        // it released what it had not acquired
	maxHolds = 3
)

// A state sums up the steps of a function with one lock so far, on one path of control. The arrays
// have an element for each mode.
type state struct {
	held     [2]uint8 // holds that the function has
	owed     [2]uint8 // holds of the caller that it has released, perhaps to acquire the lock again
	freed    [2]freed // how the lock came to have no hold
	deferred [2]uint8 // releases at the return
	// unclear: a deferred function does something else with the lock, or nothing is known.
	unclear bool
	pending pending // an acquisition whose success is not known yet
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

// all reports whether f is true in all states. Without states, it is not: nothing is known of the
// lock.
func (s set) all(f func(state) bool) bool {
	for st := range s {
		if st.unclear || st.pending.exists() || !f(st) {
			return false
		}
	}
	return len(s) > 0
}

// net returns by how many holds the function changes what its caller has, if it returns now.
func (st state) net(m mode) int { return int(st.held[m]) - int(st.owed[m]) - int(st.deferred[m]) }

// owes reports whether the function has released a hold of its caller in some state.
func (s set) owes() bool {
	for st := range s {
		if st.owed != [2]uint8{} {
			return true
		}
	}
	return false
}

func (s set) holds(m mode) bool { return s.all(func(st state) bool { return st.held[m] > 0 }) }

// holdsAny reports whether the function holds the lock in some mode.
func (s set) holdsAny() bool {
	return s.all(func(st state) bool { return st.held[write]+st.held[read] > 0 })
}

// A pending acquisition has succeeded if ok is true and err is nil. An acquisition without either
// variable is not pending.
type pending struct {
	ok, err types.Object
	mode    mode
}

func (p pending) exists() bool { return p.ok != nil || p.err != nil }

// A tracked lock is a lock that one function uses.
type tracked struct {
	path    *path
	calls   []*lockCall
	calling map[*ast.CallExpr]*lockCall // calls of functions that acquire or release the lock
	before  map[*ast.CallExpr]set
	stops   map[ast.Node]set // the states before statements with operations on channels
	// deferring has the states before deferred calls of other functions than those of the lock.
	deferring map[*ast.CallExpr]set
	exits     map[*ast.ReturnStmt]set
	in        []set   // the states at the start of each block
	out       [][]set // the states at the end of each block, for each successor
	escaped   bool    // other code can acquire and release the lock too, as far as is known
	foreign   bool    // the function releases a hold that it has not acquired
}

// releases reports whether the function itself releases the lock.
func (t *tracked) releases(m mode) bool {
	return slices.ContainsFunc(t.calls, func(c *lockCall) bool { return c.effect == release && c.mode == m })
}

// left reports whether the function may return with a hold. If it also releases the lock, then one
// of its returns always has a hold.
func (t *tracked) left() bool {
	held := func(st state) bool { return st.pending.exists() || st.net(write) > 0 || st.net(read) > 0 }
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
	at       inspector.Cursor
	progress progress
	changes  []change               // what it does with the locks of its callers
	defers   map[*ast.CallExpr]bool // the deferred calls
	tagged   map[ast.Expr]bool      // cases that are compared with a tag: no conditions
	parts    map[ast.Node]parts     // the results of partsAt
	sites    []*site                // the calls that flows.calls visits, or nil
	far      bool                   // one of another package: it has obj, changes and a summary only
}

// callOf returns what a call does with a lock, or nil.
func (f *function) callOf(t *tracked, call *ast.CallExpr) *lockCall {
	if c := f.byCall[call]; c != nil && c.of == t {
		return c
	}
	return t.calling[call]
}

// name is how messages name the function.
func (f *function) name() string {
	switch {
	case f.far:
		return farName(f.obj)
	case f.obj != nil:
		return f.obj.Name()
	case f.decl != nil:
		return "a function in " + f.decl.Name.Name
	}
	return "a function"
}

// flows is the result of flow for one package.
type flows struct {
	root       inspector.Cursor
	conditions func(*path) *side     // the lock of a condition
	cyclic     []*function           // functions that were called before they were analyzed
	valued     map[types.Object]bool // functions that are used otherwise than to call them
	pass       *analysis.Pass
	info       *types.Info
	graphs     *ctrlflow.CFGs
	functions  []*function
	declared   map[*types.Func]*function
	// released has the fields and variables of locks that a function releases for another function.
	released map[types.Object]bool
	// shared has the fields and variables that some code gives to other code.
	shared map[types.Object]bool
	// leavers has the functions that may return with a hold of a field or variable.
	leavers map[types.Object][]*function
	// balanced has the functions that acquire a field or variable themselves, and release it.
	balanced map[types.Object][]*function
	// apart has the fields and variables that a function releases without an acquisition of its
	// own.
	apart map[types.Object][]*function
	// nameless has the fields and variables that a function releases without a name for the object,
	// as shards[i].mu, and does not acquire in this way.
	nameless map[types.Object]bool
	swaps    map[*function][]swap
	// written has the fields and variables that some function acquires for writing.
	written map[types.Object]bool
	// assigned has the fields and the variables of the package that an assignment changes.
	assigned map[types.Object]bool
	// parts counts the fields that have a struct of a type as a part of their own struct.
	parts     map[*types.TypeName]int
	certainly memo[[]acquisition] // the results of certain
	values    *values
	freeing   memo[map[string]bool] // the results of frees
	calling   memo[[]callback]      // the results of callbacks
	orders    *orders

	foreign  foreign
	keys     map[types.Object]string // of fields and variables, for other packages
	loose    map[types.Object]bool   // a part of released: by calls that other packages do not see
	followed bool
	counted  bool

	kept map[*function]map[types.Object]bool // the results of keeps

	turn sync.Mutex // of one check at a time, which adds to the results above
}

// known reports whether the package shows all functions that use the lock.
func (fs *flows) known(t *tracked) bool {
	id := t.path.id()
	return !t.escaped && (id == nil || fs.knownLock(t.path))
}

// knownLock reports whether this package and its imports show all functions that use a lock.
func (fs *flows) knownLock(p *path) bool {
	id := p.id()
	if id == nil || id.Pkg() == nil || fs.shared[id] {
		return false
	}
	return id.Pkg() == fs.pass.Pkg || fs.foreign.packages[id.Pkg().Path()] && !fs.foreign.shared[p.idKey()]
}

// release notes that some function releases a lock for another function.
func (fs *flows) release(p *path) {
	fs.released[p.id()] = true
	fs.keys[p.id()] = p.idKey()
}

// writes reports whether some function acquires the lock for writing.
func (fs *flows) writes(p *path) bool { return fs.written[p.id()] || fs.foreign.written[p.idKey()] }

// partsOf counts the fields that have a struct of a type as a part of their own struct.
func (fs *flows) partsOf(t *types.TypeName) int {
	n := fs.parts[t]
	if t.Pkg() != nil && t.Pkg() != fs.pass.Pkg {
		n += fs.foreign.parts[t.Pkg().Path()+"."+t.Name()]
	}
	return n
}

// local reports whether no other function releases the lock for the function of t.
func (fs *flows) local(t *tracked) bool {
	return fs.known(t) && !fs.released[t.path.id()] && !fs.foreign.released[t.path.idKey()]
}

// acquiredElsewhere reports whether a function other than f may leave the lock held.
func (fs *flows) acquiredElsewhere(f *function, t *tracked) bool {
	id := t.path.id()
	return id != nil && (fs.foreign.left[t.path.idKey()] ||
		slices.ContainsFunc(fs.leavers[id], func(o *function) bool { return o != f }))
}

func runFlow(pass *analysis.Pass) (any, error) {
	fs := &flows{
		pass: pass, info: pass.TypesInfo, graphs: pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs),
		declared: map[*types.Func]*function{}, certainly: memo[[]acquisition]{},
		released: map[types.Object]bool{}, shared: map[types.Object]bool{}, leavers: map[types.Object][]*function{},
		balanced: map[types.Object][]*function{}, apart: map[types.Object][]*function{},
		swaps:  map[*function][]swap{},
		valued: map[types.Object]bool{}, freeing: memo[map[string]bool]{}, written: map[types.Object]bool{},
		assigned: map[types.Object]bool{}, parts: map[*types.TypeName]int{}, calling: memo[[]callback]{},
		keys: map[types.Object]string{}, loose: map[types.Object]bool{}, nameless: map[types.Object]bool{},
		kept: map[*function]map[types.Object]bool{},
	}
	fs.orders = newOrders(fs)
	if summarized(pass) {
		fs.follow()
		fs.exportFacts()
	}
	return fs, nil
}

// follow follows all locks of the package, once. A package of which other packages get no facts is
// followed if a check asks for it.
func (fs *flows) follow() {
	if fs.followed {
		return
	}
	fs.followed = true
	pass := fs.pass
	fs.importFacts()
	fs.findParts()
	root := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
	for c := range functionsIn(root) {
		fs.build(c, nil)
	}
	for _, f := range fs.functions {
		if f.obj != nil {
			fs.declared[f.obj] = f
		}
	}
	for _, p := range fs.escapes(root) {
		fs.shared[p.id()] = true
		fs.keys[p.id()] = p.idKey()
	}
	for c := range root.Preorder((*ast.AssignStmt)(nil)) {
		for _, l := range c.Node().(*ast.AssignStmt).Lhs {
			if p := pathTo(fs.info, l); p != nil {
				fs.assigned[p.id()] = true
			}
		}
	}
	fs.values = newValues(fs)
	fs.root = root
	fs.values.collect(root)
	fs.findValued(root)
	fs.conditions = condLocks(pass)
	for _, f := range fs.functions {
		fs.analyze(f)
	}
	for _, f := range fs.cyclic {
		for _, c := range f.changes {
			if id := c.path.id(); id != nil && c.frees {
				fs.release(c.path)
				fs.loose[id] = true
			}
		}
	}
	for _, f := range fs.functions {
		for _, t := range f.locks {
			id := t.path.id()
			if id == nil {
				continue
			}
			fs.keys[id] = t.path.idKey()
			if t.foreign && !f.deferred && fs.hidden(f) {
				fs.release(t.path)
				fs.loose[id] = fs.loose[id] || !fs.saysRelease(f, t)
			}
			for _, c := range t.calls {
				if c.effect == acquire && c.mode == write {
					fs.written[id] = true
				}
			}
		}
	}
	fs.findDiscipline()
	// A function that forgets an Unlock does not acquire the lock for its callers.
	for _, f := range fs.functions {
		for _, t := range f.locks {
			if id := t.path.id(); id != nil && t.left() && !f.deferred && len(fs.leaks(f, t)) == 0 {
				fs.leavers[id] = append(fs.leavers[id], f)
			}
		}
	}
	for _, f := range fs.functions {
		fs.swaps[f] = fs.findSwaps(f)
	}
	for _, f := range fs.functions {
		fs.certain(f)
		fs.frees(f)
		fs.callbacks(f)
	}
	for _, f := range fs.functions {
		fs.orders.follow(f)
	}
}

// saysRelease reports whether other packages see that f releases a lock, since its summary says so.
func (fs *flows) saysRelease(f *function, t *tracked) bool {
	return f.obj != nil && f.obj.Exported() && !fs.valued[f.obj] && !slices.Contains(fs.cyclic, f) && slices.ContainsFunc(f.changes, func(c change) bool {
		return c.effect == release && c.path.key() == t.path.key() && fs.save(f, c.path) != nil
	})
}

// findParts counts, for each named struct, the fields that contain it.
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

// functionsIn visits the outermost functions and literals below a node.
func functionsIn(root inspector.Cursor) iter.Seq[inspector.Cursor] {
	return func(yield func(inspector.Cursor) bool) {
		stopped := false
		root.Inspect([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(c inspector.Cursor) bool {
			if c != root {
				stopped = stopped || !yield(c)
			}
			return c == root
		})
	}
}

// build notes the function at a node after the literals in it.
func (fs *flows) build(at inspector.Cursor, outer *function) {
	f := &function{info: fs.info, node: at.Node(), outer: outer, at: at}
	switch n := at.Node().(type) {
	case *ast.FuncDecl:
		if n.Body == nil {
			return
		}
		f.decl, f.body, f.graph = n, n.Body, fs.graphs.FuncDecl(n)
		f.obj, _ = fs.info.Defs[n.Name].(*types.Func)
	case *ast.FuncLit:
		f.body, f.graph = n.Body, fs.graphs.FuncLit(n)
		f.deferred = called(at) && withoutParens(at).Parent().ParentEdgeKind() == edge.DeferStmt_Call
		if outer != nil {
			f.decl = outer.decl
			outer.inner = append(outer.inner, f)
		}
	}
	if f.graph == nil {
		return // a function that the compiler replaces
	}
	for c := range functionsIn(at) {
		fs.build(c, f)
	}
	fs.functions = append(fs.functions, f)
}

// analyze follows the locks of f, after the locks of the functions that f calls.
func (fs *flows) analyze(f *function) {
	if f.progress != untouched {
		return
	}
	f.progress = started
	for _, g := range f.inner {
		fs.analyze(g)
	}
	fs.collect(f)
	for _, t := range f.locks {
		w := walker{fs: fs, info: fs.info, f: f, t: t}
		w.run()
	}
	f.findChanges()
	f.progress = done
}

// collect finds the locks that f uses.
func (fs *flows) collect(f *function) {
	info, at := f.info, f.at
	f.byKey, f.byCall = map[string]*tracked{}, map[*ast.CallExpr]*lockCall{}
	f.defers, f.tagged = map[*ast.CallExpr]bool{}, map[ast.Expr]bool{}
	ofLock := func(p *path) *tracked {
		key := p.key()
		t := f.byKey[key]
		if t == nil {
			t = &tracked{
				path: p, before: map[*ast.CallExpr]set{}, exits: map[*ast.ReturnStmt]set{},
				calling: map[*ast.CallExpr]*lockCall{}, stops: map[ast.Node]set{}, deferring: map[*ast.CallExpr]set{},
			}
			f.byKey[key] = t
			f.locks = append(f.locks, t)
		}
		return t
	}
	acquires := map[types.Object]bool{} // whether f acquires a lock that has no name
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			switch c := fs.lockCallOf(n); {
			case c == nil:
			case c.path != nil:
				f.byCall[n] = c
				t := ofLock(c.path)
				c.of, t.calls = t, append(t.calls, c)
			default:
				if id := fieldOf(info, n); id != nil {
					acquires[id] = acquires[id] || c.effect == acquire
				}
			}
			fs.changesOf(n, func(p *path, c *lockCall) {
				t := ofLock(p)
				t.calls = append(t.calls, c)
				t.calling[n] = c
			})
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
			if c := fs.lockCallOf(n.Call); c != nil && c.path != nil {
				ofLock(c.path).escaped = true
			}
			fs.changesOf(n.Call, func(p *path, _ *lockCall) { ofLock(p).escaped = true })
		}
	})
	for id, also := range acquires {
		fs.nameless[id] = fs.nameless[id] || !also
	}
	// A use of a lock by a deferred literal is a use by f too.
	for _, g := range f.inner {
		if fs.onlyCalled(g) {
			continue
		}
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
	if len(f.locks) == 0 {
		return
	}
	for _, p := range fs.escapes(at) {
		if t := f.byKey[p.key()]; t != nil {
			t.escaped = true
		}
	}
	for _, t := range f.locks {
		t.escaped = t.escaped || slices.ContainsFunc(f.inner, func(g *function) bool {
			return assigns(info, g.body, t.path)
		})
	}
}

// fieldOf returns the field that is the lock of a call, or nil.
func fieldOf(info *types.Info, call *ast.CallExpr) types.Object {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || info.Selections[selector] == nil {
		return nil
	}
	selected := info.Selections[selector]
	index := selected.Index()
	if p := new(path).through(selected.Recv(), index[:len(index)-1]); p != nil && len(p.fields) > 0 {
		return p.id() // an embedded one
	}
	if s, ok := ast.Unparen(selector.X).(*ast.SelectorExpr); ok {
		if v, ok := info.Uses[s.Sel].(*types.Var); ok {
			return v.Origin()
		}
	}
	return nil
}

// inspectOwn visits the nodes of a body in the order of the source, except nodes inside of function
// literals.
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

// callsIn returns the calls in nodes in the order of the source, except calls inside of function
// literals.
func callsIn(nodes ...ast.Node) (calls []*ast.CallExpr) {
	for _, n := range nodes {
		inspectOwn(n, func(n ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok {
				calls = append(calls, call)
			}
		})
	}
	return calls
}

// escapes returns each path that the code below root may keep. It leaves out uses that call a
// method, select a field, assign, compare, make a condition, or lend the path to a function.
func (fs *flows) escapes(root inspector.Cursor) (found []*path) {
	info := fs.info
	for c := range root.Preorder((*ast.CallExpr)(nil), (*ast.SelectorExpr)(nil), (*ast.Ident)(nil)) {
		var p *path
		switch e := c.Node().(type) {
		case *ast.CallExpr:
			// A view that is kept is another name of the lock.
			if of, _, ok := viewOf(info, e); ok && c.ParentEdgeKind() != edge.SelectorExpr_X && !ofCondition(info, c) {
				p = pathTo(info, of.X)
			}
		case *ast.SelectorExpr:
			selected := info.Selections[e]
			if selected != nil && selected.Kind() == types.MethodVal && !called(c) {
				// A method value of a lock lets others release it.
				if _, ok := lockMethod(selected.Obj().(*types.Func)); ok {
					p = toReceiver(info, e.X, selected)
				}
			} else if fs.passedOn(c) {
				p = pathTo(info, e)
			}
		case *ast.Ident:
			if info.Uses[e] != nil && c.ParentEdgeKind() != edge.SelectorExpr_Sel && fs.passedOn(c) {
				p = pathTo(info, e)
			}
		}
		if p != nil {
			found = append(found, p)
			if q := p.toEmbedded(); q != nil && isLock(fs.target(c)) {
				found = append(found, q)
			}
		}
	}
	return found
}

// withoutParens returns the parentheses around an expression, or the expression if it has none.
func withoutParens(c inspector.Cursor) inspector.Cursor {
	for c.ParentEdgeKind() == edge.ParenExpr_X {
		c = c.Parent()
	}
	return c
}

// called reports whether an expression is the function of a call.
func called(c inspector.Cursor) bool { return withoutParens(c).ParentEdgeKind() == edge.CallExpr_Fun }

// passedOn reports whether an expression goes to other code.
func (fs *flows) passedOn(c inspector.Cursor) bool {
	for ; ; c = c.Parent() {
		switch parent := c.Parent().Node().(type) {
		case *ast.ParenExpr, *ast.StarExpr:
		case *ast.UnaryExpr:
			if parent.Op != token.AND {
				return false
			}
		case *ast.SelectorExpr, *ast.BinaryExpr, *ast.IndexExpr, *ast.ExprStmt, *ast.IncDecStmt, *ast.RangeStmt:
			return false
		case *ast.AssignStmt:
			return c.ParentEdgeKind() == edge.AssignStmt_Rhs
		case *ast.KeyValueExpr:
			// sync.Cond{L: &mu}
			key, ok := parent.Key.(*ast.Ident)
			return c.ParentEdgeKind() == edge.KeyValueExpr_Value && (!ok || key.Name != "L")
		case *ast.CallExpr:
			return c.ParentEdgeKind() == edge.CallExpr_Args && !knownCallee(fs.info, parent) &&
				!fs.lent(parent, c.Node().(ast.Expr))
		default:
			return true
		}
	}
}

// target returns the type to which an expression is passed or assigned, if that is an interface.
func (fs *flows) target(c inspector.Cursor) (t types.Type) {
	for {
		e, ok := c.Node().(ast.Expr)
		if !ok {
			return nil
		}
		switch parent := c.Parent().Node().(type) {
		case *ast.ParenExpr, *ast.UnaryExpr:
			c = c.Parent()
			continue
		case *ast.CallExpr:
			i := slices.Index(parent.Args, e)
			switch of := fs.info.TypeOf(parent.Fun); {
			case i < 0 || of == nil:
			case fs.info.Types[parent.Fun].IsType():
				t = of
			default:
				if s, ok := of.Underlying().(*types.Signature); ok {
					t = paramAt(s, i)
				}
			}
		case *ast.AssignStmt:
			if i := slices.Index(parent.Rhs, e); i >= 0 && len(parent.Lhs) == len(parent.Rhs) {
				t = fs.info.TypeOf(parent.Lhs[i])
			}
		case *ast.ValueSpec:
			if parent.Type != nil {
				t = fs.info.TypeOf(parent.Type)
			}
		}
		if t == nil || !types.IsInterface(t) {
			return nil
		}
		return t
	}
}

// paramAt returns the type of argument i of a function.
func paramAt(s *types.Signature, i int) types.Type {
	last := s.Params().Len() - 1
	if last < 0 {
		return nil
	}
	t := s.Params().At(min(i, last)).Type()
	if list, ok := t.Underlying().(*types.Slice); ok && s.Variadic() && i >= last {
		return list.Elem()
	}
	return t
}

// lent reports whether a call gives an argument to a function of the package that only acquires and
// releases it, and calls such functions with it. Then the function's changes tell what becomes of
// the argument.
func (fs *flows) lent(call *ast.CallExpr, arg ast.Expr) bool {
	fn := calleeOf(fs.info, call)
	if fn == nil || fs.ofExpression(call) {
		return false
	}
	f, i := fs.declared[fn.Origin()], slices.Index(call.Args, arg)
	params := fn.Origin().Signature().Params()
	if f == nil || i < 0 || i >= params.Len() || fn.Signature().Variadic() && i >= params.Len()-1 {
		return false
	}
	return isLock(params.At(i).Type()) && !fs.keeps(f)[params.At(i)]
}

// ofExpression reports whether a call is one of a method expression, as T.Method(t).
func (fs *flows) ofExpression(call *ast.CallExpr) bool {
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return ok && fs.info.Selections[selector] != nil && fs.info.Selections[selector].Kind() == types.MethodExpr
}

// isLock reports whether a type has the methods of a lock, as a pointer to a sync.Mutex and a
// sync.Locker have.
func isLock(t types.Type) bool {
	if t == nil {
		return false
	}
	o, _, _ := types.LookupFieldOrMethod(t, false, nil, "Unlock")
	fn, ok := o.(*types.Func)
	if !ok {
		return false
	}
	_, ok = lockMethod(fn)
	return ok
}

// keeps returns the parameters of f that other code can get from f, or a literal that runs later.
func (fs *flows) keeps(f *function) map[types.Object]bool {
	if kept, known := fs.kept[f]; known {
		return kept
	}
	kept := map[types.Object]bool{}
	params := f.obj.Signature().Params()
	for i := range params.Len() { // while f is looked at: functions may call each other
		kept[params.At(i)] = true
	}
	fs.kept[f] = maps.Clone(kept)
	clear(kept)
	for _, p := range fs.escapes(f.at) {
		kept[p.root] = true
	}
	for c := range f.at.Preorder((*ast.CallExpr)(nil)) { // a condition keeps its lock
		if call := c.Node().(*ast.CallExpr); calleeAmong(fs.info, call, "sync.NewCond", root+"/condition.New") != nil {
			if p := pathTo(fs.info, call.Args[0]); p != nil {
				kept[p.root] = true
			}
		}
	}
	for c := range f.at.Preorder((*ast.FuncLit)(nil)) {
		if called(c) && withoutParens(c).Parent().ParentEdgeKind() == edge.DeferStmt_Call {
			continue
		}
		for in := range c.Preorder((*ast.Ident)(nil)) {
			if o := fs.info.Uses[in.Node().(*ast.Ident)]; o != nil {
				kept[o] = true
			}
		}
	}
	for c := range f.at.Preorder((*ast.AssignStmt)(nil)) {
		for _, l := range c.Node().(*ast.AssignStmt).Lhs {
			if id, ok := ast.Unparen(l).(*ast.Ident); ok {
				kept[fs.info.ObjectOf(id)] = true
			}
		}
	}
	fs.kept[f] = kept
	return kept
}

// ofCondition reports whether an expression is the lock of a new condition.
func ofCondition(info *types.Info, c inspector.Cursor) bool {
	call, ok := c.Parent().Node().(*ast.CallExpr)
	return ok && c.ParentEdgeKind() == edge.CallExpr_Args && knownCallee(info, call)
}

// knownCallee reports whether a call takes a lock and leaves it as it was.
func knownCallee(info *types.Info, call *ast.CallExpr) bool {
	return calleeAmong(info, call, "sync.NewCond", root+".Do", root+".TryDo", root+"/condition.New") != nil
}
