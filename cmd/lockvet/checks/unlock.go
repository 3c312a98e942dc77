package checks

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

func undo(m mode) string {
	if m == read {
		return "RUnlock"
	}
	return "Unlock"
}

func related(n ast.Node, message string) analysis.RelatedInformation {
	return analysis.RelatedInformation{Pos: n.Pos(), End: n.End(), Message: message}
}

// DoubleUnlock reports the release of a lock that the function has already released.
var DoubleUnlock = check("doubleunlock", flow, runDoubleUnlock, `report an unlock of a lock that is not held

The function has released the lock on every path to this unlock, and not acquired it since:

	mu.Lock()
	defer mu.Unlock()
	if full {
		mu.Unlock()
		return errFull // reported: the deferred Unlock unlocks again
	}

The check also reports Unlock for a lock that the function has read-locked, and RUnlock for one
that it has write-locked.`)

func runDoubleUnlock(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		for _, t := range f.locks {
			if !fs.known(t) {
				continue
			}
			elsewhere := fs.acquiredElsewhere(f, t)
			for _, c := range t.calls {
				if c.effect == release && !(c.outcome != always && isTest(pass, c.call)) {
					reportUnlock(pass, t, c, elsewhere)
				}
			}
			if !elsewhere {
				reportDeferredUnlocks(pass, t)
			}
		}
	}
}

// reportUnlock reports c if the lock is not held before it. A function that it calls may have
// acquired it again, if one is elsewhere in the package.
func reportUnlock(pass *analysis.Pass, t *tracked, c *lockCall, elsewhere bool) {
	m, other := c.mode, 1-c.mode
	before := t.before[c.call]
	switch {
	case !elsewhere && before.all(func(st state) bool { return st.freed[m] == own && st.held == [2]uint8{} }):
		pass.ReportRangef(c.call, "%s of %s, which is already unlocked", c.fn.Name(), t.path.text)
	case before.all(func(st state) bool { return st.held[m] == 0 && st.freed[m] == no && st.held[other] > 0 }):
		how := "write-locked"
		if other == read {
			how = "read-locked"
		}
		pass.ReportRangef(c.call, "%s of %s, which is %s", c.fn.Name(), t.path.text, how)
	}
}

// reportDeferredUnlocks reports the returns at which a deferred release finds no hold.
func reportDeferredUnlocks(pass *analysis.Pass, t *tracked) {
	for _, ret := range t.returns() {
		for _, m := range []mode{write, read} {
			if t.exits[ret].all(func(st state) bool {
				return st.deferred[m] > 0 && st.held == [2]uint8{} && st.freed[m] == own
			}) {
				pass.Reportf(ret.Pos(), "return after %s of %s, which the deferred %[1]s unlocks again",
					undo(m), t.path.text)
			}
		}
	}
}

// DeferLock reports the deferred acquisition of a lock that is held.
var DeferLock = check("deferlock", flow, runDeferLock, `report a deferred Lock that should be a deferred Unlock

The lock is held already, so its acquisition at the return waits for ever:

	mu.Lock()
	defer mu.Lock() // reported, with a fix: defer mu.Unlock()

So is a deferred call of a function that acquires a lock and returns its Unlock, which nothing calls:

	defer s.lock() // reported, with a fix: defer s.lock()()

A deferred Lock after an Unlock, which acquires the lock again for the caller, is not reported.
Neither is a deferred call in a function that releases the lock.`)

func runDeferLock(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		inspectOwn(f.body, func(n ast.Node) {
			d, ok := n.(*ast.DeferStmt)
			if !ok {
				return
			}
			c := f.byCall[d.Call]
			if c == nil {
				fs.reportUncalled(pass, f, d)
			}
			if c == nil || !c.waits() {
				return
			}
			t := f.byKey[c.path.key()]
			if t.escaped || !t.before[c.call].holds(c.mode) {
				return
			}
			name := ast.Unparen(d.Call.Fun).(*ast.SelectorExpr).Sel
			want := strings.Replace(name.Name, "Lock", "Unlock", 1)
			pass.Report(analysis.Diagnostic{
				Pos: d.Pos(), End: d.End(),
				Message: fmt.Sprintf("deferred %s of %s, which is held already: %s is meant",
					name.Name, t.path.text, want),
				SuggestedFixes: []analysis.SuggestedFix{{
					Message:   "Replace " + name.Name + " by " + want,
					TextEdits: []analysis.TextEdit{{Pos: name.Pos(), End: name.End(), NewText: []byte(want)}},
				}},
			})
		})
	}
}

// reportUncalled reports a deferred call, in f, of a function that returns the Unlock of a lock. If
// f releases the lock too, the call may acquire the lock again for the callers of f.
func (fs *flows) reportUncalled(pass *analysis.Pass, f *function, d *ast.DeferStmt) {
	g := fs.values.declared(d.Call)
	if g == nil {
		return
	}
	p := fs.unlocks(g)
	if p == nil {
		return
	}
	p = fs.bind(fs.values.staticSite(d.Call, g), p)
	if p == nil { // f has no name for the lock
		return
	}
	if t := f.byKey[p.key()]; t == nil || t.escaped || slices.ContainsFunc(t.calls, func(c *lockCall) bool {
		return c.call != d.Call && c.effect != acquire
	}) {
		return
	}
	call := types.ExprString(d.Call)
	pass.Report(analysis.Diagnostic{
		Pos: d.Pos(), End: d.End(),
		Message: fmt.Sprintf("deferred %s returns the Unlock of %s, which nothing calls: %s is meant", call, p.text, call+"()"),
		SuggestedFixes: []analysis.SuggestedFix{{
			Message:   "Call the result of " + call,
			TextEdits: []analysis.TextEdit{{Pos: d.End(), End: d.End(), NewText: []byte("()")}},
		}},
	})
}

// unlocks returns the lock that f acquires, if the only result of f always is its Unlock, or a
// literal that releases it.
func (fs *flows) unlocks(f *function) (lock *path) {
	results := f.results()
	if results.Len() != 1 {
		return nil
	}
	if s, ok := results.At(0).Type().Underlying().(*types.Signature); !ok || s.Params().Len() > 0 {
		return nil
	}
	all := true
	inspectOwn(f.body, func(n ast.Node) {
		r, ok := n.(*ast.ReturnStmt)
		if !ok {
			return
		}
		var p *path
		if len(r.Results) == 1 {
			p = fs.releasedBy(f, ast.Unparen(r.Results[0]))
		}
		if p == nil || lock != nil && p.key() != lock.key() {
			all = false
			return
		}
		lock = p
	})
	if !all || lock == nil {
		return nil
	}
	t := f.byKey[lock.key()]
	if t == nil || !slices.ContainsFunc(t.calls, func(c *lockCall) bool { return c.waits() && c.via == nil && c.of == t }) {
		return nil
	}
	return lock
}

// releasedBy returns the lock that a function releases, which is the value of e in f.
func (fs *flows) releasedBy(f *function, e ast.Expr) *path {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		selected := fs.info.Selections[e]
		if selected == nil || selected.Kind() != types.MethodVal {
			return nil
		}
		if m, ok := lockMethod(selected.Obj().(*types.Func)); ok && m.effect == release {
			return toReceiver(fs.info, e.X, selected)
		}
	case *ast.FuncLit:
		for _, g := range f.inner {
			for _, t := range g.locks {
				if g.node == e && t.foreign {
					return t.path
				}
			}
		}
	}
	return nil
}

// LockUpgrade reports a function that acquires the write lock while it has the read lock.
var LockUpgrade = check("lockupgrade", flow, runLockUpgrade, `report a write lock acquired under the read lock of the same RWMutex

The writer waits for all readers to release their lock, and so for itself:

	mu.RLock()
	defer mu.RUnlock()
	if stale {
		mu.Lock() // reported

Release the read lock first and check again, or use TryUpgrade of rwlock.RWMutex.`)

func runLockUpgrade(pass *analysis.Pass, fs *flows) {
	var found againReports
	fs.again(pass, func(t *tracked, at *ast.CallExpr, a acquisition) {
		before := t.before[at]
		reads := before.all(func(st state) bool { return st.held[read] > 0 && st.held[write] == 0 })
		if a.call.mode == write && reads {
			found.add(t, at, a, read, " under its read lock, which never gets the lock")
		}
	})
	found.report(pass)
	fs.deferredAgain(func(s *site, t *tracked, m mode, a acquisition) {
		if a.call.mode == write && m == read {
			reportDeferred(pass, s, t, m, a, "it never gets the lock")
		}
	})
	fs.acquiredBack(func(c calledBack, h hold, a acquisition) {
		if a.call.mode == write && h.mode == read {
			reportBack(pass, c, h, a, "it never gets the lock")
		}
	})
}

// acquisitions names the places where the function acquires the lock.
func (t *tracked) acquisitions(m mode) (places []analysis.RelatedInformation) {
	for _, c := range t.calls {
		if c.effect == acquire && c.mode == m {
			places = append(places, related(c.call, "acquired here"))
		}
	}
	return places
}
