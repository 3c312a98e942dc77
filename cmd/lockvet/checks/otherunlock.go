package checks

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// OtherUnlock reports a function that releases another lock than it has acquired.
var OtherUnlock = check("otherunlock", flow, runOtherUnlock, `report an unlock of another lock than the one that was acquired

The function returns with one lock held, and has released another one that it did not acquire:

	func (a *account) move(to *account, n int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		to.mu.Lock()
		defer a.mu.Unlock() // reported: to.mu stays locked
		...
	}

A function is not reported if a caller in the package holds the released lock, if other functions
release one of the locks without acquiring it, or if its comment speaks of a lock that is held.`)

func runOtherUnlock(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		for _, s := range fs.swaps[f] {
			places := s.left.acquisitions(s.mode)
			places = append(places, related(s.at, "returns with "+s.left.path.text))
			pass.Report(analysis.Diagnostic{
				Pos: s.call.call.Pos(), End: s.call.call.End(), Related: places,
				Message: fmt.Sprintf("%s of %s, which this function has not acquired: %s, which it has acquired, stays locked",
					s.call.fn.Name(), s.released.path.text, s.left.path.text),
			})
		}
	}
}

// A swap is a return with one lock, after the release of another lock that the function did not
// hold.
type swap struct {
	left, released *tracked
	mode           mode
	call           *lockCall // the release
	at             *ast.ReturnStmt
}

// ofHold matches a comment that speaks of a lock that is held.
var ofHold = regexp.MustCompile(`(?is)\b(un)?(lock|mutex|mu)\w*\b.*\b(held|hold|holds|holding|caller)\b|` +
	`\b(held|hold|holds|holding|caller)\b.*\b(un)?(lock|mutex|mu)\w*\b`)

// findSwaps returns the swaps of f, one for each pair of locks.
func (fs *flows) findSwaps(f *function) (found []swap) {
	if f.deferred || len(f.locks) < 2 || isTest(fs.pass, f.node) ||
		f.decl != nil && ofHold.MatchString(f.decl.Doc.Text()) {
		return nil
	}
	for _, a := range f.locks {
		for _, b := range f.locks {
			if a == b || !fs.distinct(f, a, b) || fs.mayHandOver(f, a) || fs.heldByCaller(f, b) {
				continue
			}
			for _, m := range []mode{write, read} {
				if s, ok := a.swapped(b, m); ok {
					found = append(found, s)
				}
			}
		}
	}
	return found
}

// swapped returns a swap of two locks in mode m.
func (a *tracked) swapped(b *tracked, m mode) (s swap, ok bool) {
	direct := func(t *tracked, e effect) *lockCall {
		for _, c := range t.calls {
			if c.effect == e && c.mode == m && c.via == nil && local(c.fn) && c.outcome == always &&
				!types.IsInterface(c.fn.Signature().Recv().Type()) {
				s.call = c
			}
		}
		return s.call
	}
	if direct(a, acquire) == nil {
		return s, false
	}
	s.call = nil
	if direct(b, release) == nil {
		return s, false
	}
	for _, ret := range a.returns() {
		if a.exits[ret].all(func(st state) bool { return st.net(m) > 0 }) &&
			b.exits[ret].all(func(st state) bool { return st.net(m) < 0 }) {
			return swap{a, b, m, s.call, ret}, true
		}
	}
	return s, false
}

// returns are the returns of the function, in the order of the source.
func (t *tracked) returns() []*ast.ReturnStmt {
	return slices.SortedFunc(maps.Keys(t.exits), func(a, b *ast.ReturnStmt) int { return int(a.Pos() - b.Pos()) })
}

// distinct reports whether two locks of f are certainly two, and no function hands one of them
// over.
func (fs *flows) distinct(f *function, a, b *tracked) bool {
	for _, t := range []*tracked{a, b} {
		id := t.path.id()
		if id == nil || id.Pkg() != fs.pass.Pkg || !fs.known(t) || len(fs.balanced[id]) == 0 || fs.assigned[id] {
			return false
		}
		if slices.ContainsFunc(fs.apart[id], func(g *function) bool { return g != f }) || fs.acquiredElsewhere(f, t) {
			return false
		}
		if _, ok := id.Type().Underlying().(*types.Struct); !ok { // a pointer may lead to the other lock
			return false
		}
	}
	if a.path.id() != b.path.id() {
		return true
	}
	// One field of two objects. Two parameters are two objects, but a local variable can have
	// either.
	same := func(x, y field) bool { return x.Var == y.Var }
	return slices.EqualFunc(a.path.fields, b.path.fields, same) && fs.isGiven(f, a.path.root) && fs.isGiven(f, b.path.root)
}

// isGiven reports whether a variable is a parameter or the receiver of f, and keeps its value.
func (fs *flows) isGiven(f *function, variable types.Object) bool {
	if fs.assigned[variable] || copied(fs.info, f.body, variable) {
		return false
	}
	p, isParam := fs.values.params[variable]
	return isParam && p.of == f || f.obj != nil && variable == f.obj.Signature().Recv()
}

// heldByCaller reports whether a function that calls f can hold the lock.
func (fs *flows) heldByCaller(f *function, t *tracked) bool {
	id := t.path.id()
	if id.Exported() && (f.obj == nil || f.obj.Exported()) {
		return true
	}
	for _, g := range fs.functions {
		for _, held := range g.locks {
			if held.path.id() != id {
				continue
			}
			for call, s := range held.before {
				calls := slices.ContainsFunc(fs.values.at(call), func(s *site) bool { return s.callee == f })
				for st := range s {
					if calls && st.held != [2]uint8{} {
						return true
					}
				}
			}
		}
	}
	return false
}
