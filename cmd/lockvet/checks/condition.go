package checks

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
)

// WaitLoop reports a wait for a condition that no loop repeats.
var WaitLoop = check("waitloop", flow, runWaitLoop, `report a wait for a condition outside of a loop

When the wait returns, another goroutine may have changed what the signal announced:

	if len(queue) == 0 {
		cond.Wait() // reported: write for instead of if, or use WaitWhile
	}

A function that neither tests something before the wait nor acquires the lock is not reported,
since its caller may have the loop. The same is true of functions with "wait" in their name, and of
functions that do nothing after the wait and have a caller with a loop. Tests are not reported: they
know what they signal.`)

// The methods of a condition of this module, and the waits of all conditions.
const ofCond = "(*" + root + "/condition.Cond)."

var (
	waits = []string{
		"(*sync.Cond).Wait", ofCond + "Wait", ofCond + "WaitContext", ofCond + "WaitFor", ofCond + "WaitUntil",
	}
	signals = []string{ofCond + "Signal", ofCond + "Broadcast", ofCond + "SignalContext", ofCond + "BroadcastContext"}
)

func runWaitLoop(pass *analysis.Pass, fs *flows) {
	looped := fs.looped()
	for _, f := range fs.functions {
		if isTest(pass, f.node) || f.decl != nil && strings.Contains(strings.ToLower(f.decl.Name.Name), "wait") {
			continue
		}
		for _, b := range f.graph.Blocks {
			for _, call := range callsIn(b.Nodes...) {
				wait := calleeAmong(pass.TypesInfo, call, waits...)
				if wait == nil || !b.Live || repeats(b) || looped[f] && f.endsAfter(b, call) {
					continue
				}
				if tested(f, call) || f.acquires() {
					pass.ReportRangef(call,
						"%s of a condition outside of a loop that checks what it waits for", wait.Name())
				}
			}
		}
	}
}

// looped returns the functions that some function of the package calls in a loop.
func (fs *flows) looped() map[*function]bool {
	looped := map[*function]bool{}
	for _, f := range fs.functions {
		for _, b := range f.graph.Blocks {
			if !b.Live || !repeats(b) {
				continue
			}
			for _, call := range callsIn(b.Nodes...) {
				if callee := fs.callee(call); callee != nil {
					looped[callee] = true
				}
			}
		}
	}
	return looped
}

// endsAfter reports whether f only releases locks and returns after the call in b.
func (f *function) endsAfter(b *cfg.Block, call *ast.CallExpr) bool {
	for _, n := range b.Nodes {
		if n.Pos() <= call.Pos() {
			continue
		}
		switch n := n.(type) {
		case *ast.ReturnStmt, *ast.Ident, *ast.BinaryExpr: // the end, or a condition before it
		case *ast.ExprStmt:
			c, ok := ast.Unparen(n.X).(*ast.CallExpr)
			if !ok || f.byCall[c] == nil || f.byCall[c].effect != release {
				return false
			}
		default:
			return false
		}
	}
	return !slices.ContainsFunc(b.Succs, func(next *cfg.Block) bool {
		return repeats(next) || !f.endsAfter(next, call)
	})
}

// tested reports whether call is in an if statement of f.
func tested(f *function, call *ast.CallExpr) (found bool) {
	inspectOwn(f.body, func(n ast.Node) {
		if i, ok := n.(*ast.IfStmt); ok {
			found = found || i.Body.Pos() <= call.Pos() && call.End() <= i.End()
		}
	})
	return found
}

// acquires reports whether f acquires some lock.
func (f *function) acquires() bool {
	for _, c := range f.byCall {
		if c.effect == acquire {
			return true
		}
	}
	return false
}

// repeats reports whether control can come from the end of b to b again.
func repeats(b *cfg.Block) bool {
	seen := map[*cfg.Block]bool{}
	work := slices.Clone(b.Succs)
	for len(work) > 0 {
		next := work[len(work)-1]
		work = work[:len(work)-1]
		if next == b {
			return true
		}
		if !seen[next] {
			seen[next] = true
			work = append(work, next.Succs...)
		}
	}
	return false
}

// UnlockedSignal reports a signal of a condition of this module after the release of its lock.
var UnlockedSignal = check("unlockedsignal", flow, runUnlockedSignal, `report a signal of a condition.Cond without its lock

A condition.Cond refuses a signal of a goroutine that does not hold the lock, as in Java:

	mu.Lock()
	queue = append(queue, x)
	mu.Unlock()
	notEmpty.Signal() // reported: signal before the Unlock

A sync.Cond permits this, and is not reported.`)

func runUnlockedSignal(pass *analysis.Pass, fs *flows) {
	lockOf := condLocks(pass)
	for _, f := range fs.functions {
		for _, call := range callsIn(f.body) {
			signal := calleeAmong(pass.TypesInfo, call, signals...)
			selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
			if signal == nil || !ok {
				continue
			}
			cond := pathOf(pass.TypesInfo, selector.X)
			if cond == nil {
				continue
			}
			lock := lockOf(cond)
			if lock == nil {
				continue
			}
			t := f.byKey[lock.key()]
			if t == nil || t.escaped || fs.acquiredElsewhere(f, t) {
				continue
			}
			if t.before[call].all(func(st state) bool {
				return st.held == [2]uint8{} && (st.freed[write] != no || st.freed[read] != no)
			}) {
				pass.ReportRangef(call, "%s of %s after %s was unlocked, which panics or fails: signal first",
					signal.Name(), cond.text, t.path.text)
			}
		}
	}
}

// A side is a side of the lock at a path.
type side struct {
	*path
	side mode
}

// condLocks returns a function that knows the locks of conditions: the conditions of variables, and
// the conditions in fields that are made from another field of the same struct.
func condLocks(pass *analysis.Pass) func(*path) *side {
	info := pass.TypesInfo
	made := map[types.Object]*side{} // by id or variable; nil if there are several
	note := func(to *path, e ast.Expr) {
		var o types.Object = to.root
		if n := len(to.fields); n > 0 {
			o = to.fields[n-1].Origin()
		}
		lock := madeFrom(info, e)
		if lock != nil && len(to.fields) > 0 && (lock.root != to.root || len(lock.fields) != len(to.fields)) {
			lock = nil // a lock of another object
		}
		if old, known := made[o]; known && (!sameLock(old, lock)) {
			lock = nil // several locks
		}
		made[o] = lock
	}
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt, *ast.ValueSpec:
				lhs, rhs := assignment(n)
				for i, l := range lhs {
					p := pathOf(info, l)
					if p == nil || len(lhs) != len(rhs) {
						continue
					}
					if isCond(info.TypeOf(l)) {
						note(p, rhs[i])
					} else if of := p.cond(); of != nil {
						note(of, rhs[i]) // cond.L = &mu
					}
				}
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				if !ok {
					return true
				}
				// No variable has the struct of the literal, so a field of it cannot be the lock.
				if field, ok := info.Uses[key].(*types.Var); ok && field.IsField() && isCond(field.Type()) {
					made[field.Origin()] = nil
				}
			}
			return true
		})
	}
	return func(cond *path) *side {
		n := len(cond.fields)
		if n == 0 {
			return made[cond.root]
		}
		lock := made[cond.fields[n-1].Origin()]
		if lock == nil || len(lock.fields) == 0 {
			return nil
		}
		return &side{cond.with(lock.fields[len(lock.fields)-1]), lock.side}
	}
}

// cond returns the condition whose L is at p, or nil.
func (p *path) cond() *path {
	n := len(p.fields) - 1
	if n < 0 || p.fields[n].Pkg() == nil || p.fields[n].Pkg().Path() != "sync" || p.fields[n].Name() != "L" {
		return nil
	}
	return &path{p.root, p.fields[:n], strings.TrimSuffix(p.text, ".L")}
}

func sameLock(a, b *side) bool {
	return a != nil && b != nil && a.side == b.side && (a.key() == b.key() || a.id() != nil && a.id() == b.id())
}

// madeFrom returns the lock in mu.NewCond(), condition.New(&mu), sync.NewCond(&mu), sync.Cond{L:
// &mu} or &mu.
func madeFrom(info *types.Info, e ast.Expr) *side {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		if lit, ok := ast.Unparen(u.X).(*ast.CompositeLit); ok {
			e = lit
		}
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		for _, elt := range lit.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "L" {
					return madeFrom(info, kv.Value)
				}
			}
		}
		return nil
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		if p := pathOf(info, e); p != nil {
			return &side{path: p}
		}
		return nil
	}
	if of, m, ok := viewOf(info, call); ok {
		if p := pathOf(info, of.X); p != nil {
			return &side{p, m}
		}
		return nil
	}
	if calleeAmong(info, call, root+"/condition.New", "sync.NewCond") != nil && len(call.Args) == 1 {
		return madeFrom(info, call.Args[0])
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if fn := calleeOf(info, call); ok && fn != nil && ours(fn) && fn.Name() == "NewCond" {
		if p := pathOf(info, selector.X); p != nil {
			return &side{path: p}
		}
	}
	return nil
}

func isCond(t types.Type) bool {
	name := typeName(t)
	return name == root+"/condition.Cond" || name == "sync.Cond"
}
