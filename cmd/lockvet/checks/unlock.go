package checks

import (
	"fmt"
	"go/ast"
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
				if c.effect == release && !isMisuse(pass, c) {
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

A deferred Lock after an Unlock, which acquires the lock again for the caller, is not reported.`)

func runDeferLock(pass *analysis.Pass, fs *flows) {
	for _, f := range fs.functions {
		inspectOwn(f.body, func(n ast.Node) {
			d, ok := n.(*ast.DeferStmt)
			if !ok {
				return
			}
			c := f.byCall[d.Call]
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
