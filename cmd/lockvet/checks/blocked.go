package checks

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// Blocked reports a wait, under a lock, for code that needs this lock.
var Blocked = check("blocked", flow, runBlocked, `report a wait under a lock for code that needs the lock

The function waits for a channel, a WaitGroup or a condition. All code of the package that could end
the wait acquires the lock first:

	func (b *broadcasts) stop() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(b.updates)
		<-b.done // reported: run acquires b.mu before it closes b.done
	}
	func (b *broadcasts) run() {
		defer close(b.done)
		for u := range b.updates {
			b.mu.Lock()
			...
		}
	}

A select is reported if each of its cases waits so. A buffer of one has room for a send, unless a
loop sends or receives again on the same channel. The check leaves out a channel that other packages
can get, a larger buffer or one of a size that is not constant, and tests.`)

// A kind says how an operation uses a channel, a WaitGroup or a condition.
type kind uint8

const (
	send kind = iota
	receive
	closing
	wait   // of a WaitGroup
	finish // Done
	await  // Wait of a condition
	signal
)

// ending are the kinds that end a wait.
var ending = map[kind][]kind{send: {receive}, receive: {send, closing}, wait: {finish}, await: {signal}}

// An operation is one on a channel, a WaitGroup or a condition.
type operation struct {
	kind kind
	f    *function
	at   ast.Node
	pos  token.Pos // where it happens: the end of f, if it is deferred
	on   types.Object
	path *path // nil if no variable leads to the channel
	text string
}

// A waiting is a place where a function waits for one of several operations.
type waiting struct {
	f   *function
	at  ast.Node
	any []operation
	via []string
	// freed has the locks of callers that are released before.
	freed map[string]bool
	own   types.Object // the lock that a condition gives up: its field or variable
}

// A caller is a place where a function is called.
type caller struct {
	f     *function
	call  *ast.CallExpr
	apart bool // in a goroutine of its own
}

// A stop is a wait under a lock that is not over without the lock.
type stop struct {
	f     *function
	at    ast.Node
	w     waiting
	t     *tracked
	m     mode
	needs []operation
}

type blocking struct {
	found   []stop
	pass    *analysis.Pass
	fs      *flows
	orders  *orders
	parent  map[types.Object]types.Object // of the union of objects that are one channel
	open    map[types.Object]bool         // what code that is not known can use
	buffers map[types.Object][]int64      // capacities; -1 if a capacity is not constant
	ops     map[types.Object][]operation
	waits   map[*function][]waiting
	callers map[*function][]caller
	reached memo[[]waiting]
}

func runBlocked(pass *analysis.Pass, fs *flows) {
	b := &blocking{
		pass: pass, fs: fs, orders: fs.orders, parent: map[types.Object]types.Object{},
		open: map[types.Object]bool{}, buffers: map[types.Object][]int64{}, ops: map[types.Object][]operation{},
		waits: map[*function][]waiting{}, callers: map[*function][]caller{}, reached: memo[[]waiting]{},
	}
	if len(fs.functions) == 0 || !slices.ContainsFunc(fs.functions, func(f *function) bool { return len(f.locks) > 0 }) {
		return
	}
	for _, f := range fs.functions {
		b.collect(f)
	}
	if len(b.waits) == 0 {
		return
	}
	b.link(fs.root)
	byClass := map[types.Object][]operation{}
	for _, ops := range b.ops {
		for _, op := range ops {
			byClass[b.find(op.on)] = append(byClass[b.find(op.on)], op)
		}
	}
	for _, ops := range byClass {
		slices.SortStableFunc(ops, func(x, y operation) int { return inOrder(pass, x.at, y.at) })
	}
	b.ops = byClass
	for _, f := range fs.functions {
		b.check(f)
	}
	slices.SortStableFunc(b.found, func(x, y stop) int {
		return cmp.Or(len(x.w.via)-len(y.w.via), inOrder(pass, x.at, y.at))
	})
	type pair struct {
		class types.Object
		lock  string
	}
	first := map[pair]bool{}
	for _, s := range b.found {
		p := pair{b.find(s.w.any[0].on), fs.lockKey(s.t.path)}
		if !first[p] {
			first[p] = true
			var more []analysis.RelatedInformation
			for _, o := range b.found {
				if o.at != s.at && p == (pair{b.find(o.w.any[0].on), fs.lockKey(o.t.path)}) && len(more) < maxPlaces {
					more = append(more, related(o.at, "also here, in "+o.f.name()))
				}
			}
			b.report(s, more)
		}
	}
}

// object returns the object that stands for the channel of e, or nil.
func (b *blocking) object(e ast.Expr) types.Object {
	e = ast.Unparen(e)
	if p := pathOf(b.fs.info, e); p != nil {
		if n := len(p.fields); n > 0 {
			return p.fields[n-1].Origin()
		}
		return p.root
	}
	if s, ok := e.(*ast.SelectorExpr); ok { // a field of all[i], or of a result
		if v, ok := b.fs.info.Uses[s.Sel].(*types.Var); ok {
			return v.Origin()
		}
	}
	if call, ok := e.(*ast.CallExpr); ok {
		if f := b.fs.values.declared(call); f != nil && f.obj != nil && f.results().Len() == 1 {
			return f.obj
		}
	}
	return nil
}

func (b *blocking) find(o types.Object) types.Object {
	for b.parent[o] != nil {
		o = b.parent[o]
	}
	return o
}

func (b *blocking) union(x, y types.Object) {
	if x, y = b.find(x), b.find(y); x != y {
		b.parent[x] = y
		b.open[y] = b.open[y] || b.open[x]
		b.buffers[y] = append(b.buffers[y], b.buffers[x]...)
	}
}

// gets notes that the variable x gets the value of e.
func (b *blocking) gets(x types.Object, e ast.Expr) {
	if x == nil {
		return
	}
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	if y := b.object(e); y != nil {
		b.union(x, y)
		return
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		id, _ := ast.Unparen(e.Fun).(*ast.Ident)
		if _, ok := b.fs.info.Uses[id].(*types.Builtin); ok && id.Name == "make" {
			size := int64(0)
			if len(e.Args) > 1 {
				size = -1
				if v := b.fs.info.Types[e.Args[1]].Value; v != nil && v.Kind() == constant.Int {
					size, _ = constant.Int64Val(v)
				}
			}
			b.buffers[b.find(x)] = append(b.buffers[b.find(x)], size)
			return
		} else if ok && id.Name == "new" {
			return
		}
		if calleeAmong(b.fs.info, e, "sync.NewCond", "golang.org/x/sync/errgroup.WithContext") != nil {
			return
		}
	case *ast.CompositeLit:
		return
	default:
		if b.fs.info.Types[e].IsNil() {
			return
		}
	}
	b.open[b.find(x)] = true
}

func waitable(t types.Type) bool {
	if t == nil {
		return false
	}
	if _, ok := t.Underlying().(*types.Chan); ok {
		return true
	}
	name := typeName(t)
	return name == "sync.WaitGroup" || name == "sync.Cond" || name == errgroup
}

// errgroup is a group of goroutines. Its Wait waits for them, as WaitGroup.Wait does.
const errgroup = "golang.org/x/sync/errgroup.Group"

// link finds which objects are the same channel, and which objects other code can use.
func (b *blocking) link(root inspector.Cursor) {
	info := b.fs.info
	for o, sources := range b.fs.values.sources {
		if !waitable(o.Type()) {
			continue
		}
		for _, s := range sources {
			if s.index > 0 {
				b.open[b.find(o)] = true
			} else {
				b.gets(o, s.e)
			}
		}
	}
	for _, f := range b.fs.functions {
		for call, s := range b.callsOf(f) {
			b.arguments(call, s)
		}
		inspectOwn(f.body, func(n ast.Node) {
			r, ok := n.(*ast.ReturnStmt)
			if !ok {
				return
			}
			for _, e := range r.Results {
				if !waitable(info.TypeOf(e)) {
					continue
				}
				if f.obj != nil && len(r.Results) == 1 && !b.fs.hiddenResult(f) {
					b.gets(f.obj, e)
				} else if o := b.object(e); o != nil {
					b.open[b.find(o)] = true
				}
			}
		})
	}
	for c := range root.Preorder((*ast.Ident)(nil)) {
		b.use(c)
	}
}

// hiddenResult reports whether other packages can get the result of f.
func (fs *flows) hiddenResult(f *function) bool {
	return fs.valued[f.obj] || f.obj.Exported() && len(fs.values.static[f]) == 0
}

// callsOf returns the calls in f, also the calls of goroutines, and the declared function or
// literal that is called.
func (b *blocking) callsOf(f *function) map[*ast.CallExpr]*function {
	calls := map[*ast.CallExpr]*function{}
	for _, call := range callsIn(f.body) {
		for _, s := range b.fs.values.at(call) {
			if s.recv == nil || s.callee.obj == nil || s.callee.obj.Signature().Recv() == nil ||
				b.fs.values.declared(call) == s.callee {
				calls[call] = s.callee
			}
		}
	}
	return calls
}

func (b *blocking) arguments(call *ast.CallExpr, callee *function) {
	for _, o := range b.fs.values.given[callee] {
		if p := b.fs.values.params[o]; p.index < len(call.Args) && waitable(o.Type()) {
			b.gets(o, call.Args[p.index])
		}
	}
}

// use notes whether an identifier gives a channel to code that is not known.
func (b *blocking) use(c inspector.Cursor) {
	info := b.fs.info
	o, ok := info.Uses[c.Node().(*ast.Ident)].(*types.Var)
	if !ok || !waitable(o.Type()) {
		return
	}
	o = o.Origin()
	if o.IsField() && o.Exported() || o.Pkg() != b.pass.Pkg {
		b.open[b.find(o)] = true
	}
	if c.ParentEdgeKind() == edge.SelectorExpr_Sel {
		c = c.Parent()
	}
	for c.ParentEdgeKind() == edge.ParenExpr_X || c.ParentEdgeKind() == edge.UnaryExpr_X || c.ParentEdgeKind() == edge.StarExpr_X {
		if u, ok := c.Parent().Node().(*ast.UnaryExpr); ok && u.Op == token.ARROW {
			return
		}
		c = c.Parent()
	}
	switch parent := c.Parent().Node().(type) {
	case *ast.SendStmt:
		if c.ParentEdgeKind() == edge.SendStmt_Chan {
			return
		}
	case *ast.RangeStmt:
		if c.ParentEdgeKind() == edge.RangeStmt_X {
			return
		}
	case *ast.AssignStmt:
		if i := slices.Index(parent.Rhs, c.Node().(ast.Expr)); i < 0 || len(parent.Lhs) != len(parent.Rhs) ||
			pathOf(info, parent.Lhs[i]) != nil || isBlank(parent.Lhs[i]) {
			return
		} // an element of a slice or a map
	case *ast.ValueSpec, *ast.BinaryExpr, *ast.SelectorExpr, *ast.ReturnStmt:
		return
	case *ast.KeyValueExpr, *ast.CompositeLit:
		if t := info.TypeOf(compositeOf(c)); t != nil {
			if _, ok := t.Underlying().(*types.Struct); ok {
				return
			}
		}
	case *ast.CallExpr:
		if id, ok := ast.Unparen(parent.Fun).(*ast.Ident); ok {
			if _, ok := info.Uses[id].(*types.Builtin); ok && id.Name != "append" {
				return
			}
		}
		if f := b.fs.values.at(parent); len(f) == 1 && c.ParentEdgeKind() == edge.CallExpr_Args {
			for _, o := range b.fs.values.given[f[0].callee] {
				if p := b.fs.values.params[o]; p.index < len(parent.Args) && parent.Args[p.index] == c.Node() {
					return
				}
			}
		}
	}
	b.open[b.find(o)] = true
}

func compositeOf(c inspector.Cursor) ast.Expr {
	for p := c.Parent(); ; p = p.Parent() {
		switch n := p.Node().(type) {
		case *ast.CompositeLit:
			return n
		case *ast.KeyValueExpr:
		default:
			return nil
		}
	}
}

// collect finds the operations and the waits of f, and its calls.
func (b *blocking) collect(f *function) {
	info := b.fs.info
	inSelect := map[ast.Node][]operation{}
	var selects []*ast.SelectStmt
	comm := map[ast.Node]*ast.SelectStmt{}
	deferred := map[*ast.CallExpr]bool{}
	apart := map[*ast.CallExpr]bool{}
	loose := map[*ast.SelectStmt]bool{} // selects with a default, or with a case that is not known
	note := func(k kind, at ast.Node, e ast.Expr, s *ast.SelectStmt) {
		o := b.object(e)
		if o == nil {
			if s != nil {
				loose[s] = true
			}
			return
		}
		op := operation{k, f, at, at.Pos(), o, pathOf(info, e), types.ExprString(e)}
		b.ops[o] = append(b.ops[o], op)
		if s != nil {
			inSelect[s] = append(inSelect[s], op)
		} else if k == send || k == receive {
			b.waits[f] = append(b.waits[f], waiting{f: f, at: at, any: []operation{op}})
		}
	}
	done := map[ast.Node]bool{}
	inspectOwn(f.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.SelectStmt:
			selects = append(selects, n)
			for _, clause := range n.Body.List {
				c := clause.(*ast.CommClause)
				if c.Comm == nil {
					loose[n] = true
					continue
				}
				inspectOwn(c.Comm, func(m ast.Node) {
					switch m := m.(type) {
					case *ast.SendStmt:
						comm[m] = n
					case *ast.UnaryExpr:
						if m.Op == token.ARROW {
							comm[m] = n
						}
					}
				})
			}
		case *ast.SendStmt:
			note(send, n, n.Chan, comm[n])
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !done[n] {
				note(receive, n, n.X, comm[n])
			}
		case *ast.RangeStmt:
			if t := info.TypeOf(n.X); t != nil {
				if _, ok := t.Underlying().(*types.Chan); ok {
					note(receive, n, n.X, nil)
				}
			}
		case *ast.DeferStmt:
			deferred[n.Call] = true
		case *ast.GoStmt:
			apart[n.Call] = true
		case *ast.CallExpr:
			b.collectCall(f, n, deferred[n])
			for _, s := range b.fs.values.at(n) {
				b.callers[s.callee] = append(b.callers[s.callee], caller{f, n, apart[n]})
			}
		}
	})
	for _, s := range selects {
		if !loose[s] && len(inSelect[s]) > 0 {
			b.waits[f] = append(b.waits[f], waiting{f: f, at: s, any: inSelect[s]})
		}
	}
}

func (b *blocking) collectCall(f *function, call *ast.CallExpr, deferred bool) {
	info := b.fs.info
	pos := call.Pos()
	if deferred || f.deferred {
		pos = f.body.End()
	}
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "close" && len(call.Args) == 1 {
		if _, ok := info.Uses[id].(*types.Builtin); ok {
			if o := b.object(call.Args[0]); o != nil {
				b.ops[o] = append(b.ops[o], operation{closing, f, call, pos, o, nil, types.ExprString(call.Args[0])})
			}
		}
		return
	}
	fn := calleeOf(info, call)
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if fn == nil || !ok {
		return
	}
	k, ok := map[string]kind{
		"(*sync.WaitGroup).Wait": wait, "(*sync.WaitGroup).Done": finish, "(*sync.Cond).Wait": await,
		"(*sync.Cond).Signal": signal, "(*sync.Cond).Broadcast": signal,
		"(*" + errgroup + ").Wait": wait,
	}[fn.FullName()]
	if !ok {
		if o := b.object(selector.X); o != nil && (b.startsIn(fn, call, o) || negative(info, fn, call)) {
			b.open[b.find(o)] = true // another way to end the wait
		}
		return
	}
	p := pathOf(info, selector.X)
	if p == nil {
		return
	}
	if selected := info.Selections[selector]; selected != nil {
		if p = toReceiver(info, selector.X, selected); p == nil {
			return
		}
	}
	o := p.root
	if n := len(p.fields); n > 0 {
		o = p.fields[n-1].Origin()
	}
	op := operation{k, f, call, pos, o, p, p.text}
	b.ops[o] = append(b.ops[o], op)
	w := waiting{f: f, at: call, any: []operation{op}}
	if k == await {
		lock := b.fs.conditions(p)
		if lock == nil {
			return
		}
		if w.own = lock.root; len(lock.fields) > 0 {
			w.own = lock.fields[len(lock.fields)-1].Origin()
		}
	}
	if k == wait || k == await {
		b.waits[f] = append(b.waits[f], w)
	}
}

// startsIn notes the end of the function that a group starts in a goroutine. It reports whether the
// function is not known.
func (b *blocking) startsIn(fn *types.Func, call *ast.CallExpr, group types.Object) (unknown bool) {
	switch fn.FullName() {
	case "(*sync.WaitGroup).Go", "(*" + errgroup + ").Go", "(*" + errgroup + ").TryGo":
	default:
		return false
	}
	all := b.fs.values.of(call.Args[0], 0)
	if len(all) != 1 || all[0].callee == nil {
		return true
	}
	g := all[0].callee
	b.ops[group] = append(b.ops[group], operation{finish, g, call, g.body.End(), group, nil, ""})
	return false
}

// negative reports whether a call is Add of a WaitGroup with a number that is not certainly
// positive.
func negative(info *types.Info, fn *types.Func, call *ast.CallExpr) bool {
	if fn.FullName() != "(*sync.WaitGroup).Add" || len(call.Args) != 1 {
		return false
	}
	v := info.Types[call.Args[0]].Value
	return v != nil && constant.Sign(v) < 0
}

// lockKey is equal for locks that are one in all functions, as far as the source shows.
func (fs *flows) lockKey(p *path) string {
	if len(p.fields) == 0 {
		return cmp.Or(p.idKey(), fmt.Sprintf("%c%p", inside, p.root))
	}
	return fs.class(p).key
}

// check reports the waits of f, and of the functions that f calls, under a lock that f holds.
func (b *blocking) check(f *function) {
	if len(f.locks) == 0 || isTest(b.pass, f.node) {
		return
	}
	reported := map[ast.Node]bool{}
	try := func(at ast.Node, w waiting) {
		for _, t := range f.locks {
			if reported[w.at] || !b.fs.known(t) || w.freed[t.path.idKey()] || w.own != nil && t.path.over(w.own) {
				continue
			}
			states := t.at(f, at)
			m := write
			if !states.holds(write) {
				if m = read; !states.holds(read) {
					continue
				}
			}
			if b.fs.lockKey(t.path) == "" || b.made(f, t.path) {
				continue
			}
			if needs, ok := b.stuck(w, t, m); ok {
				reported[w.at] = true
				b.found = append(b.found, stop{f, at, w, t, m, needs})
			}
		}
	}
	for _, w := range b.waits[f] {
		try(w.at, w)
	}
	b.fs.calls(f, func(s *site) {
		for _, w := range b.reach(s.callee) {
			w.via = append([]string{s.name}, w.via...)
			try(s.call, w)
		}
	})
}

// over reports whether a variable or a field is on the path.
func (p *path) over(o types.Object) bool {
	return p.root == o || slices.ContainsFunc(p.fields, func(f field) bool { return f.Origin() == o })
}

// made reports whether f has made the object that has the lock.
func (b *blocking) made(f *function, p *path) bool {
	return len(p.fields) > 0 && b.orders.made(f)[p.root]
}

// reach returns the waits of f and of the functions that f calls.
func (b *blocking) reach(f *function) []waiting {
	return b.reached.of(f, func(f *function) (all []waiting) {
		add := func(pos token.Pos, w waiting) {
			if b.optional(f, pos) {
				return
			}
			w.freed = union(w.freed, b.fs.freedBefore(f, pos))
			if len(w.via) < maxDepth && len(all) < 99 {
				all = append(all, w)
			}
		}
		for _, w := range b.waits[f] {
			add(w.at.Pos(), w)
		}
		b.fs.calls(f, func(s *site) {
			for _, w := range b.reach(s.callee) {
				w.via = append([]string{s.name}, w.via...)
				add(s.call.Pos(), w)
			}
		})
		return all
	})
}

// optional reports whether a parameter of f decides whether f comes to a place.
func (b *blocking) optional(f *function, pos token.Pos) (found bool) {
	inspectOwn(f.body, func(n ast.Node) {
		i, ok := n.(*ast.IfStmt)
		if !ok || pos < i.Body.Pos() || i.End() <= pos {
			return
		}
		ast.Inspect(i.Cond, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				p, isParam := b.fs.values.params[b.fs.info.Uses[id]]
				found = found || isParam && p.of == f
			}
			return true
		})
	})
	return found
}

// at returns the states of the lock before a statement or expression of f.
func (t *tracked) at(f *function, n ast.Node) set {
	if s, ok := t.before[asCall(n)]; ok {
		return s
	}
	for _, b := range f.graph.Blocks {
		if r, ok := n.(*ast.RangeStmt); ok && b.Kind == cfg.KindRangeLoop && b.Stmt == r {
			return t.in[b.Index]
		}
	}
	if s, ok := n.(*ast.SelectStmt); ok && len(s.Body.List) > 0 {
		if c := s.Body.List[0].(*ast.CommClause); c.Comm != nil {
			n = c.Comm
		}
	}
	for node, s := range t.stops {
		if node.Pos() <= n.Pos() && n.End() <= node.End() {
			return s
		}
	}
	return nil
}

func asCall(n ast.Node) *ast.CallExpr {
	call, _ := n.(*ast.CallExpr)
	return call
}

// stuck reports whether each operation that could end w needs the lock of t, which is held in mode
// m. It returns these operations.
func (b *blocking) stuck(w waiting, t *tracked, m mode) (needs []operation, ok bool) {
	for _, op := range w.any {
		class := b.find(op.on)
		if b.open[class] || b.fs.valueOpen(op.on) {
			return nil, false
		}
		if op.kind == send && !b.fills(op, class) {
			return nil, false
		}
		for _, other := range b.ops[class] {
			if !slices.Contains(ending[op.kind], other.kind) {
				continue
			}
			if b.awaited(w.f, other.f, w.at.Pos()) {
				return nil, false
			}
			if !b.needs(other, w, t, m, 0) {
				return nil, false
			}
			needs = append(needs, other)
		}
		if len(needs) == 0 && (op.kind == receive || op.kind == await || typeName(op.on.Type()) == errgroup) {
			return nil, false
		}
	}
	return needs, true
}

// awaited reports whether f has waited for the end of g before a place in f: only the end of g ends
// that wait.
func (b *blocking) awaited(f, g *function, pos token.Pos) bool {
	return slices.ContainsFunc(b.waits[f], func(earlier waiting) bool {
		if len(earlier.any) != 1 || earlier.at.Pos() >= pos {
			return false
		}
		op, found := earlier.any[0], false
		for _, other := range b.ops[b.find(op.on)] {
			if slices.Contains(ending[op.kind], other.kind) {
				if other.f != g || other.pos != g.body.End() {
					return false
				}
				found = true
			}
		}
		return found
	})
}

// valueOpen reports whether a variable of the package is exported.
func (fs *flows) valueOpen(o types.Object) bool {
	return o.Exported() && o.Parent() == fs.pass.Pkg.Scope()
}

// fills reports whether the send op waits at some time. A buffer of one has room for the first send
// on each channel. So the send must repeat on one channel, or a receive, which would have nothing
// to receive again.
func (b *blocking) fills(op operation, class types.Object) bool {
	sizes := b.buffers[class]
	if len(sizes) == 0 || slices.ContainsFunc(sizes, func(n int64) bool { return n < 0 || n > 1 }) {
		return false
	}
	if slices.Max(sizes) == 0 {
		return true
	}
	return !b.hasRoom(op, class) && (b.repeats(op) || slices.ContainsFunc(b.ops[class], func(o operation) bool {
		return o.kind == receive && b.repeats(o)
	}))
}

// hasRoom reports whether the function of a send first receives from the channel, or looks at its
// length.
func (b *blocking) hasRoom(op operation, class types.Object) (found bool) {
	for _, other := range b.ops[class] {
		found = found || other.kind == receive && other.f == op.f && other.at.Pos() < op.at.Pos()
	}
	inspectOwn(op.f.body, func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || call.Pos() > op.at.Pos() {
			return
		}
		id, _ := ast.Unparen(call.Fun).(*ast.Ident)
		if _, ok := b.fs.info.Uses[id].(*types.Builtin); ok && id.Name == "len" {
			o := b.object(call.Args[0])
			found = found || o != nil && b.find(o) == class
		}
	})
	return found
}

// repeats reports whether op can happen again on the same channel: in a loop of its function, or in
// a loop that calls its function.
func (b *blocking) repeats(op operation) bool {
	if loop, ok := op.at.(*ast.RangeStmt); ok { // it has one channel
		return op.f.comesAgain(loop, loop)
	}
	if op.path == nil {
		return false
	}
	if b.fs.loops(op.f, op.at, op.path) {
		return true
	}
	return slices.ContainsFunc(b.callers[op.f], func(c caller) bool {
		for _, s := range b.fs.values.at(c.call) {
			if p := b.fs.bind(s, op.path); s.callee == op.f && p != nil && b.fs.loops(c.f, c.call, p) {
				return true
			}
		}
		return false
	})
}

// loops reports whether a loop of f comes to n again, with the same object at p.
func (fs *flows) loops(f *function, n ast.Node, p *path) (found bool) {
	inspectOwn(f.body, func(loop ast.Node) {
		switch loop.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			found = found || within2(n, loop) && !variesIn(fs.info, loop, p) && f.comesAgain(n, loop)
		}
	})
	return found
}

// comesAgain reports whether a way in a loop leads from n to n.
func (f *function) comesAgain(n, loop ast.Node) bool {
	var clause *ast.CommClause
	inspectOwn(f.body, func(m ast.Node) {
		if c, ok := m.(*ast.CommClause); ok && c.Comm != nil && within2(n, c.Comm) {
			clause = c
		}
	})
	has := func(b *cfg.Block) bool {
		switch {
		case clause != nil:
			return b.Kind == cfg.KindSelectCaseBody && b.Stmt == clause
		case n == loop:
			return b.Kind == cfg.KindRangeLoop && b.Stmt == loop
		}
		return slices.ContainsFunc(b.Nodes, func(m ast.Node) bool { return within2(n, m) })
	}
	seen := map[*cfg.Block]bool{}
	var leads func(b *cfg.Block) bool
	leads = func(b *cfg.Block) bool {
		return slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool {
			if seen[next] || next.Stmt == nil || !within2(next.Stmt, loop) ||
				next.Stmt == loop && (next.Kind == cfg.KindForDone || next.Kind == cfg.KindRangeDone) {
				return false
			}
			seen[next] = true
			return has(next) || leads(next)
		})
	}
	return slices.ContainsFunc(f.graph.Blocks, func(b *cfg.Block) bool { return b.Live && has(b) && leads(b) })
}

// needs reports whether op happens under the lock of t, or only after its function has acquired it.
func (b *blocking) needs(op operation, w waiting, t *tracked, m mode, depth int) bool {
	return b.reaches(op.f, op.at, op.pos, w, t, m, depth)
}

func (b *blocking) reaches(
	g *function, at ast.Node, pos token.Pos, w waiting, t *tracked, m mode, depth int,
) bool {
	key := b.fs.lockKey(t.path)
	excludes := func(other mode) bool { return m == write || other == write }
	for _, held := range g.locks {
		if b.fs.lockKey(held.path) != key {
			continue
		}
		s := held.at(g, at)
		if pos == g.body.End() {
			s = held.end()
		}
		if s.holds(write) || m == write && s.holds(read) {
			return true
		}
	}
	found, after := false, false
	b.fs.acquisitions(g, b.orders.acquired, func(call *ast.CallExpr, a acquisition) {
		k := a.class.key
		if a.path != nil {
			k = b.fs.lockKey(a.path)
		} else if p := a.call.path; len(a.class.key) == 0 && p != nil {
			k = b.fs.lockKey(p)
		}
		if k != key || !excludes(a.call.mode) {
			return
		}
		if w.f != g && within2(w.f.node, g.node) && call.Pos() < w.f.node.End() {
			return // before the goroutine starts
		}
		// The work of g before the start of the waiting goroutine is over.
		if call.Pos() < pos && !b.alternative(g, call.Pos(), pos) && !b.leads(g, w.f) || sameLoop(g.body, call.Pos(), at) {
			found = true
		}
		after = true
	})
	if found {
		return true
	}
	callers := b.callers[g]
	if depth > 2 || len(callers) == 0 {
		return false
	}
	if g.obj != nil && b.fs.valued[g.obj] && !slices.ContainsFunc(callers, func(c caller) bool { return c.apart }) {
		return false
	}
	for _, c := range callers {
		switch {
		case after && !c.apart && sameLoop(c.f.body, c.call.Pos(), c.call):
		case c.apart || !b.reaches(c.f, c.call, c.call.Pos(), w, t, m, depth+1):
			return false
		}
	}
	return true
}

// leads reports whether g calls f, or starts a goroutine that does, perhaps over other functions.
func (b *blocking) leads(g, f *function) bool {
	seen := map[*function]bool{}
	var from func(f *function) bool
	from = func(f *function) bool {
		if f == nil || seen[f] {
			return false
		}
		seen[f] = true
		if f == g || from(f.outer) {
			return true
		}
		return slices.ContainsFunc(b.callers[f], func(c caller) bool { return from(c.f) })
	}
	return f != g && from(f)
}

// alternative reports whether two places are in different branches of one statement.
func (b *blocking) alternative(g *function, x, y token.Pos) (found bool) {
	in := func(n ast.Node, pos token.Pos) bool { return n != nil && n.Pos() <= pos && pos < n.End() }
	inspectOwn(g.body, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.IfStmt:
			found = found || n.Else != nil && in(n.Body, x) && in(n.Else, y)
		case *ast.BlockStmt:
			for i, s := range n.List {
				switch s.(type) {
				case *ast.CaseClause, *ast.CommClause:
					found = found || in(s, x) && in(n, y) && !in(n.List[i], y)
				}
			}
		}
	})
	return found
}

func within2(inner, outer ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

// sameLoop reports whether one loop of body has both a place and a node, or is the node.
func sameLoop(body ast.Node, pos token.Pos, n ast.Node) (found bool) {
	inspectOwn(body, func(l ast.Node) {
		switch l.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			found = found || l.Pos() <= pos && pos < l.End() && within2(n, l)
		}
	})
	return found
}

// end returns the states at all returns.
func (t *tracked) end() set {
	all := set{}
	for _, s := range t.exits {
		all.add(s)
	}
	return all
}

func (b *blocking) report(s stop, more []analysis.RelatedInformation) {
	at, w, t, m, needs := s.at, s.w, s.t, s.m, s.needs
	message := ""
	for _, name := range w.via {
		if message == "" {
			message = name + " "
		} else {
			message += "calls " + name + ", which "
		}
	}
	op := w.any[0]
	verb, what := verbOf(op, len(w.any), len(w.via) > 0)
	message += verb + " while " + t.path.text + " is held"
	places := t.acquisitions(m)
	if len(w.via) > 0 {
		places = append(places, related(w.at, "waits here"))
	}
	if len(needs) == 0 {
		message += ", and " + what
	} else {
		message += fmt.Sprintf(", which %s needs too (line %d): both wait", needs[0].f.name(),
			b.pass.Fset.Position(needs[0].at.Pos()).Line)
		for _, n := range needs {
			places = append(places, related(n.at, "this would end the wait"))
		}
	}
	end := at.End()
	if s, ok := at.(*ast.SelectStmt); ok {
		end = s.Select + token.Pos(len("select"))
	} else if r, ok := at.(*ast.RangeStmt); ok {
		end = r.X.End()
	}
	b.pass.Report(analysis.Diagnostic{Pos: at.Pos(), End: end, Message: message, Related: append(places, more...)})
}

// verbOf describes a wait, and that nothing ends it.
func verbOf(op operation, cases int, third bool) (verb, nothing string) {
	s := ""
	if third {
		s = "s"
	}
	switch {
	case cases > 1:
		return "select" + s, "nothing ends the wait"
	case op.kind == send:
		return "send" + s + " on " + op.text, "nothing receives"
	case op.kind == receive:
		return "receive" + s + " from " + op.text, "nothing sends"
	case op.kind == wait:
		return "wait" + s + " for " + op.text, "nothing calls Done"
	}
	return "wait" + s + " for " + op.text, "nothing signals"
}
