package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// LockError reports a dropped result that tells whether a lock was acquired or released.
var LockError = check("lockerror", inspect.Analyzer, runLockError, `report a dropped result of an acquisition or a release

The code after it runs without the lock, if the acquisition failed:

	mu.LockContext(ctx) // reported: ctx may have ended
	mu.TryLock()        // reported, for package sync too

A dropped error of a release hides that the lock was lost, or is still held. An explicit
"_ = mu.UnlockContext(ctx)" is accepted, and so is a dropped release of a lock without owners.
"_, err := mu.TryLockContext(ctx)" is reported: no error does not mean that the lock was acquired.
So is "p, _, err := s.TryAcquireContext(ctx, n)". Tests are not reported.`)

func runLockError(pass *analysis.Pass, in *inspector.Inspector) {
	dropped := func(e ast.Expr) {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok {
			return
		}
		c := lockCallOf(pass.TypesInfo, call)
		if c == nil || c.outcome == always || isTest(pass, call) {
			return
		}
		switch {
		case c.effect == release:
			if !ownerless(c.fn) {
				pass.ReportRangef(call, "the error of %s is dropped: the lock may be lost or still held", c.fn.Name())
			}
		case c.outcome == byErr:
			pass.ReportRangef(call, "the error of %s is dropped: the code goes on without the lock", c.fn.Name())
		default:
			pass.ReportRangef(call, "the result of %s is dropped: the code goes on without the lock", c.fn.Name())
		}
	}
	statements := []ast.Node{(*ast.ExprStmt)(nil), (*ast.DeferStmt)(nil), (*ast.GoStmt)(nil), (*ast.AssignStmt)(nil)}
	for cursor := range in.Root().Preorder(statements...) {
		switch n := cursor.Node().(type) {
		case *ast.ExprStmt:
			dropped(n.X)
		case *ast.DeferStmt:
			dropped(n.Call)
		case *ast.GoStmt:
			dropped(n.Call)
		case *ast.AssignStmt:
			if len(n.Rhs) != 1 {
				continue
			}
			if len(n.Lhs) == 3 && !isBlank(n.Lhs[0]) && isBlank(n.Lhs[1]) {
				call, ok := ast.Unparen(n.Rhs[0]).(*ast.CallExpr)
				if ok && triesPermits(calleeOf(pass.TypesInfo, call)) && !isTest(pass, call) {
					pass.ReportRangef(call, "the result of TryAcquireContext is dropped: the permits may be nil")
				}
			}
			if len(n.Lhs) != 2 || !isBlank(n.Lhs[0]) || isBlank(n.Lhs[1]) {
				continue
			}
			if call, ok := ast.Unparen(n.Rhs[0]).(*ast.CallExpr); ok {
				c := lockCallOf(pass.TypesInfo, call)
				if c != nil && c.effect == acquire && c.outcome == byBoolErr && !reentrant(c.fn) {
					dropped(call)
				}
			}
		}
	}
}

// triesPermits reports whether fn is the try of a semaphore, which returns nil permits if it fails.
func triesPermits(fn *types.Func) bool {
	return fn != nil && fn.Name() == "TryAcquireContext" && ours(fn)
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// LostOwner reports a release with a context that has not the owner of the acquisition.
var LostOwner = check("lostowner", inspect.Analyzer, runLostOwner, `report an UnlockContext whose context has lost the owner

The owner of a hold is in the context of its acquisition. Another context releases a hold of the
calling goroutine, which has none:

	work := locks.WithOwner(ctx, locks.NewOwner())
	if err := mu.LockContext(work); err != nil {
		return err
	}
	defer mu.UnlockContext(context.Background()) // reported: use work

A context that has ended releases the lock too, so there is no need for another one.`)

func runLostOwner(pass *analysis.Pass, in *inspector.Inspector) {
	for cursor := range in.Root().Preorder((*ast.FuncDecl)(nil)) {
		if decl := cursor.Node().(*ast.FuncDecl); decl.Body != nil {
			checkOwners(pass, decl)
		}
	}
}

// checkOwners compares the contexts of the acquisitions and the releases in decl.
func checkOwners(pass *analysis.Pass, decl *ast.FuncDecl) {
	o := newOrigins(pass.TypesInfo, decl)
	acquired, released := map[string][]*lockCall{}, map[string][]*lockCall{}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		c := lockCallOf(pass.TypesInfo, call)
		if c == nil || c.path == nil {
			return true
		}
		switch {
		case c.effect == acquire: // without a context, for the calling goroutine
			acquired[c.path.key()] = append(acquired[c.path.key()], c)
		case c.effect == release && c.ctx() != nil:
			released[c.path.key()] = append(released[c.path.key()], c)
		}
		return true
	})
	for key, releases := range released {
		parents := map[types.Object]bool{}
		owned := len(acquired[key]) > 0
		for _, c := range acquired[key] {
			owned = owned && c.ctx() != nil && o.owned(c.ctx(), parents)
		}
		for _, c := range releases {
			before := func(a *lockCall) bool { return a.call.Pos() < c.call.Pos() }
			if owned && slices.ContainsFunc(acquired[key], before) && !ownerless(c.fn) && !isTest(pass, c.call) && o.lost(c.ctx(), parents) {
				pass.ReportRangef(c.call, "%s of %s with a context that has not the owner of the acquisition",
					c.fn.Name(), c.path.text)
			}
		}
	}
}

// origins knows the values that the variables of a function get.
type origins struct {
	info   *types.Info
	values map[types.Object][]ast.Expr
	opaque map[types.Object]bool // what gets values in other ways too, as parameters do
}

func newOrigins(info *types.Info, decl *ast.FuncDecl) *origins {
	o := &origins{info, map[types.Object][]ast.Expr{}, map[types.Object]bool{}}
	assign := func(lhs, rhs []ast.Expr) {
		for i, l := range lhs {
			id, ok := l.(*ast.Ident)
			if !ok {
				continue
			}
			object := info.ObjectOf(id)
			switch {
			case len(lhs) == len(rhs):
				o.values[object] = append(o.values[object], rhs[i])
			case i == 0 && len(rhs) == 1:
				o.values[object] = append(o.values[object], rhs[0]) // ctx, cancel := context.WithCancel(ctx)
			default:
				o.opaque[object] = true
			}
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				o.opaque[info.ObjectOf(name)] = true
			}
		case *ast.AssignStmt, *ast.ValueSpec:
			if lhs, rhs := assignment(n); len(rhs) > 0 {
				assign(lhs, rhs)
			}
		case *ast.UnaryExpr:
			if id, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
				o.opaque[info.ObjectOf(id)] = true
			}
		}
		return true
	})
	return o
}

// call returns the package and the name of the function that e calls.
func (o *origins) call(e ast.Expr) (pkg, name string, args []ast.Expr) {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return "", "", nil
	}
	fn := calleeOf(o.info, call)
	if fn == nil || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return "", "", nil
	}
	return fn.Pkg().Path(), fn.Name(), call.Args
}

// variable returns the variable that e is and, if it always has one value, the value.
func (o *origins) variable(e ast.Expr) (object types.Object, value ast.Expr) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil, nil
	}
	object = o.info.ObjectOf(id)
	// A value that comes later in the source is one of a loop, which may use the variable itself.
	if values := o.values[object]; len(values) == 1 && !o.opaque[object] && values[0].End() <= id.Pos() {
		value = values[0]
	}
	return object, value
}

// constant reports whether a variable keeps its first value.
func (o *origins) constant(object types.Object) bool {
	if o.opaque[object] {
		return len(o.values[object]) == 0
	}
	return len(o.values[object]) <= 1
}

// owned reports whether ctx certainly carries an explicit owner. It adds the variables from which
// the context was made, before it had the owner.
func (o *origins) owned(ctx ast.Expr, parents map[types.Object]bool) bool {
	if _, value := o.variable(ctx); value != nil {
		return o.owned(value, parents)
	}
	pkg, name, args := o.call(ctx)
	switch {
	case pkg == root && name == "WithOwner" && len(args) == 2 && !o.isCurrent(args[1]):
		if object, _ := o.variable(args[0]); object != nil {
			parents[object] = true
		}
		return true
	case pkg == "context" && len(args) > 0:
		return o.owned(args[0], parents)
	}
	return false
}

// isCurrent reports whether an owner can be the calling goroutine.
func (o *origins) isCurrent(owner ast.Expr) bool {
	if _, value := o.variable(owner); value != nil {
		return o.isCurrent(value)
	}
	_, isCall := ast.Unparen(owner).(*ast.CallExpr)
	pkg, name, _ := o.call(owner)
	return isCall && !(pkg == root && name == "NewOwner")
}

// lost reports whether ctx certainly carries no owner, or is one of parents.
func (o *origins) lost(ctx ast.Expr, parents map[types.Object]bool) bool {
	if tv := o.info.Types[ctx]; tv.IsNil() {
		return true
	}
	object, value := o.variable(ctx)
	if object != nil && parents[object] && o.constant(object) {
		return true
	}
	if value != nil {
		return o.lost(value, parents)
	}
	pkg, name, args := o.call(ctx)
	switch {
	case pkg != "context":
		return false
	case name == "Background" || name == "TODO":
		return true
	}
	return len(args) > 0 && o.lost(args[0], parents)
}

// DoContext reports a function for Do that uses the outer context instead of its own.
var DoContext = check("docontext", inspect.Analyzer, runDoContext, `report a function for locks.Do that uses the outer context instead of its own

The context of the function ends when the lock is lost. The outer one does not:

	locks.Do(ctx, lock, func(context.Context) error {
		return save(ctx) // reported, with a fix: func(ctx context.Context)
	})

Functions under a lock of one process, which cannot be lost, are not reported.`)

func runDoContext(pass *analysis.Pass, in *inspector.Inspector) {
	for cursor := range in.Root().Preorder((*ast.CallExpr)(nil)) {
		call := cursor.Node().(*ast.CallExpr)
		do := calleeAmong(pass.TypesInfo, call, root+".Do", root+".TryDo")
		if do == nil || len(call.Args) != 3 || isLocal(pass.TypesInfo, call.Args[1]) {
			continue
		}
		outer, ok := ast.Unparen(call.Args[0]).(*ast.Ident)
		lit, isLit := ast.Unparen(call.Args[2]).(*ast.FuncLit)
		if ok && isLit {
			checkDo(pass, call, pass.TypesInfo.ObjectOf(outer), lit)
		}
	}
}

// isLocal reports whether a lock is one of this process, by its type.
func isLocal(info *types.Info, lock ast.Expr) bool {
	t := info.TypeOf(lock)
	if t == nil || types.IsInterface(t) {
		return false
	}
	object, _, _ := types.LookupFieldOrMethod(t, true, nil, "LockContext")
	fn, ok := object.(*types.Func)
	return ok && fn.Pkg() != nil && local(fn)
}

func checkDo(pass *analysis.Pass, call *ast.CallExpr, outer types.Object, lit *ast.FuncLit) {
	params := lit.Type.Params.List
	if len(params) != 1 || len(params[0].Names) > 1 || outer == nil {
		return
	}
	var inner types.Object
	if len(params[0].Names) == 1 {
		inner = pass.TypesInfo.Defs[params[0].Names[0]]
	}
	// A context of a type of its own, as of a web framework, has other uses too.
	plain := typeName(outer.Type()) == "context.Context" && types.IsInterface(outer.Type())
	elsewhere := map[*ast.Ident]bool{}
	var uses []*ast.Ident
	used, assigned := false, false
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			// This context is meant to survive the loss.
			return calleeAmong(pass.TypesInfo, n, "context.WithoutCancel") == nil
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && !plain && !slices.Contains(ofContext, n.Sel.Name) {
				elsewhere[id] = true
			}
		case *ast.Ident:
			object := pass.TypesInfo.Uses[n]
			used = used || object != nil && object == inner
			if object == outer && !elsewhere[n] {
				uses = append(uses, n)
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				id, ok := l.(*ast.Ident)
				assigned = assigned || ok && pass.TypesInfo.ObjectOf(id) == outer
			}
		}
		return true
	})
	if used || len(uses) == 0 {
		return
	}
	d := analysis.Diagnostic{
		Pos: uses[0].Pos(), End: uses[0].End(),
		Message: "the function uses " + outer.Name() + " of the caller, which does not end when the lock is lost",
		Related: []analysis.RelatedInformation{related(params[0], "this context does")},
	}
	edit := analysis.TextEdit{Pos: params[0].Pos(), End: params[0].Pos(), NewText: []byte(outer.Name() + " ")}
	if inner != nil || len(params[0].Names) == 1 {
		name := params[0].Names[0]
		edit.End, edit.NewText = name.End(), []byte(outer.Name())
	}
	// A body that declares the name itself would declare the parameter again.
	declared := pass.TypesInfo.Scopes[lit.Type].Lookup(outer.Name())
	if plain && !assigned && (declared == nil || declared == inner) {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message: "Name the context of the function " + outer.Name(), TextEdits: []analysis.TextEdit{edit},
		}}
	}
	pass.Report(d)
}

// ofContext are the methods of a context.Context.
var ofContext = []string{"Deadline", "Done", "Err", "Value"}
