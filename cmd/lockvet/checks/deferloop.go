package checks

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
)

// DeferLoop reports a deferred release in a loop that acquires the same lock in each round.
var DeferLoop = check("deferloop", flow, runDeferLoop, `report a deferred Unlock in a loop that acquires the lock again

The release happens at the return of the function, and the next round waits for it:

	for _, job := range jobs {
		mu.Lock()
		defer mu.Unlock() // reported: move the body of the loop to a function
		...
	}

A lock that is another one in each round is not reported, nor is a loop that ends with this round. An
if statement may let one round alone come there: it tests for equality, or what it assigns. Then
nothing is reported either.`)

func runDeferLoop(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		for _, b := range f.graph.Blocks {
			if !b.Live || !repeats(b) {
				continue
			}
			for _, n := range b.Nodes {
				d, ok := n.(*ast.DeferStmt)
				if !ok {
					continue
				}
				for _, c := range f.deferredReleases(d) {
					lock := f.lockedInLoop(d, c)
					if lock == nil {
						continue
					}
					pass.Report(analysis.Diagnostic{
						Pos: d.Pos(), End: d.End(),
						Message: fmt.Sprintf(
							"deferred %s of %s in a loop: the next round waits for the return of this function",
							c.fn.Name(), c.path.text),
						Related: []analysis.RelatedInformation{related(lock.call, "acquired in each round")},
					})
				}
			}
		}
	}
}

// deferredReleases returns the releases of d: by itself, by its literal, or by a function of the
// package.
func (f *function) deferredReleases(d *ast.DeferStmt) (all []*lockCall) {
	add := func(c *lockCall) {
		if c != nil && c.effect == release && plain(c.fn) {
			all = append(all, c)
		}
	}
	add(f.byCall[d.Call])
	for _, t := range f.locks {
		add(t.calling[d.Call])
	}
	return all
}

// lockedInLoop returns the acquisition of the lock of c that the loop around d repeats, or nil.
func (f *function) lockedInLoop(d *ast.DeferStmt, c *lockCall) *lockCall {
	t := f.byKey[c.path.key()]
	if t.escaped {
		return nil
	}
	var loop ast.Node
	inspectOwn(f.body, func(n ast.Node) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			if within2(d, n) {
				loop = n
			}
		}
	})
	if loop == nil || variesIn(f.info, loop, c.path) || onceIn(f.info, loop, d) {
		return nil
	}
	for _, other := range t.calls {
		switch {
		case other.call == c.call || !within2(other.call, loop):
		case other.effect != acquire:
			return nil // the loop releases it too
		case other.waits() && other.via == nil && (other.mode == write || c.mode == write) &&
			f.certainlyBefore(other, d):
			return other
		}
	}
	return nil
}

// onceIn reports whether an if statement may let a loop come to d once only: it tests for equality, as
// with the index of the first round, or tests what it assigns.
func onceIn(info *types.Info, loop ast.Node, d *ast.DeferStmt) (once bool) {
	inspectOwn(loop, func(n ast.Node) {
		i, ok := n.(*ast.IfStmt)
		if !ok || !within2(d, i.Body) {
			return
		}
		ast.Inspect(i.Cond, func(n ast.Node) bool {
			switch e := n.(type) {
			case *ast.BinaryExpr:
				once = once || e.Op == token.EQL
			case *ast.Ident, *ast.SelectorExpr:
				p := pathTo(info, e.(ast.Expr))
				once = once || p != nil && assigns(info, i.Body, p)
			}
			return true
		})
	})
	return once
}

// certainlyBefore reports whether an acquisition is in the block of d, before it.
func (f *function) certainlyBefore(c *lockCall, d *ast.DeferStmt) bool {
	return slices.ContainsFunc(f.graph.Blocks, func(b *cfg.Block) bool {
		has := func(n ast.Node) bool {
			return slices.ContainsFunc(b.Nodes, func(m ast.Node) bool { return within2(n, m) })
		}
		return has(c.call) && has(d) && c.call.Pos() < d.Pos()
	})
}

// variesIn reports whether each round of a loop can have another lock.
func variesIn(info *types.Info, loop ast.Node, p *path) bool {
	return within(p.root, loop) || assigns(info, loop, p)
}
