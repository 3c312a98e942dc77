package checks

import (
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// MissingUnlock reports a return with a lock that other returns of the function release.
var MissingUnlock = &analysis.Analyzer{
	Name: "missingunlock",
	Doc: `report a return that leaves a lock held

The function releases the lock on other paths, but not before this return:

	mu.Lock()
	if full {
		return errFull // reported: mu is still held
	}
	mu.Unlock()

A function whose name or comment says that it hands the lock over is not reported. Nor is a lock
that another function of the package releases, or that is passed on. Tests are not reported: one
that fails may leave its locks.`,
	URL:      url,
	Requires: []*analysis.Analyzer{flow},
	Run:      runMissingUnlock,
}

// handsOver matches the names of functions that may return with a lock.
var handsOver = regexp.MustCompile(`(?i)lock|acquire|begin|enter|hold`)

// documented matches comments that say so.
var documented = regexp.MustCompile(`(?is)\b(un)?(lock|mutex|mu)\w*\b.*\b(held|hold|holds|holding|caller)\b|` +
	`\b(held|hold|holds|holding|caller)\b.*\b(un)?(lock|mutex|mu)\w*\b`)

func runMissingUnlock(pass *analysis.Pass) (any, error) {
	fs := pass.ResultOf[flow].(*flows)
	for _, f := range fs.functions {
		if f.deferred || isTest(pass, f.node) || f.decl != nil && f.outer == nil &&
			(handsOver.MatchString(f.decl.Name.Name) || documented.MatchString(f.decl.Doc.Text())) {
			continue
		}
		for _, key := range f.order {
			t := f.locks[key]
			if !fs.local(pass, t) {
				continue
			}
			for _, m := range []mode{write, read} {
				if t.releases(m) && !t.reenters() {
					reportLeaks(pass, t, m)
				}
			}
		}
	}
	return nil, nil
}

// reportLeaks reports the returns with a hold.
func reportLeaks(pass *analysis.Pass, t *tracked, m mode) {
	var leaks []*ast.ReturnStmt
	for ret, s := range t.exits {
		if s.all(func(st state) bool { return st.held[m] > st.deferred[m] }) {
			leaks = append(leaks, ret)
		}
	}
	slices.SortFunc(leaks, func(a, b *ast.ReturnStmt) int { return int(a.Pos() - b.Pos()) })
	for _, ret := range leaks {
		pass.Report(analysis.Diagnostic{
			Pos: ret.Pos(), Message: "return without " + undo(m) + " of " + t.path.text, Related: t.acquisitions(m),
		})
	}
}

// reenters reports whether the function acquires the lock more than once at a time. Then it knows
// what it does, or does not get far.
func (t *tracked) reenters() bool {
	return slices.ContainsFunc(t.calls, func(c *lockCall) bool {
		return c.effect == acquire && t.before[c.call].holds(c.mode)
	})
}

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
var DoubleUnlock = &analysis.Analyzer{
	Name: "doubleunlock",
	Doc: `report an unlock of a lock that is not held

The function has released the lock on every path to this unlock, and not acquired it since:

	mu.Lock()
	defer mu.Unlock()
	if full {
		mu.Unlock()
		return errFull // reported: the deferred Unlock unlocks again
	}

The check also reports Unlock for a lock that the function has read-locked, and RUnlock for one
that it has write-locked.`,
	URL:      url,
	Requires: []*analysis.Analyzer{flow},
	Run:      runDoubleUnlock,
}

func runDoubleUnlock(pass *analysis.Pass) (any, error) {
	fs := pass.ResultOf[flow].(*flows)
	for _, f := range fs.functions {
		for _, key := range f.order {
			t := f.locks[key]
			if !fs.known(pass, t) {
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
	return nil, nil
}

// reportUnlock reports c if the lock is not held before it. A function that this one calls may have
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
	returns := slices.SortedFunc(maps.Keys(t.exits), func(a, b *ast.ReturnStmt) int { return int(a.Pos() - b.Pos()) })
	for _, ret := range returns {
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
var DeferLock = &analysis.Analyzer{
	Name: "deferlock",
	Doc: `report a deferred Lock that should be a deferred Unlock

The lock is held already, so its acquisition at the return waits for ever:

	mu.Lock()
	defer mu.Lock() // reported, with a fix: defer mu.Unlock()

A deferred Lock after an Unlock, which acquires the lock again for the caller, is not reported.`,
	URL:      url,
	Requires: []*analysis.Analyzer{flow},
	Run:      runDeferLock,
}

func runDeferLock(pass *analysis.Pass) (any, error) {
	fs := pass.ResultOf[flow].(*flows)
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
			t := f.locks[c.path.key()]
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
	return nil, nil
}

// LockUpgrade reports the acquisition of the write lock by a function that has the read lock.
var LockUpgrade = &analysis.Analyzer{
	Name: "lockupgrade",
	Doc: `report a write lock acquired under the read lock of the same RWMutex

The writer waits for all readers to release their lock, and so for itself:

	mu.RLock()
	defer mu.RUnlock()
	if stale {
		mu.Lock() // reported

Release the read lock first and check again, or use TryUpgrade of rwlock.RWMutex.`,
	URL:      url,
	Requires: []*analysis.Analyzer{flow},
	Run:      runLockUpgrade,
}

func runLockUpgrade(pass *analysis.Pass) (any, error) {
	fs := pass.ResultOf[flow].(*flows)
	for _, f := range fs.functions {
		for _, key := range f.order {
			t := f.locks[key]
			if !fs.local(pass, t) {
				continue
			}
			for _, c := range t.calls {
				before := t.before[c.call]
				if !c.waits() || c.mode != write || !before.holds(read) || isMisuse(pass, c) {
					continue
				}
				if before.all(func(st state) bool { return st.held[write] == 0 }) {
					pass.Report(analysis.Diagnostic{
						Pos: c.call.Pos(), End: c.call.End(),
						Message: c.fn.Name() + " of " + t.path.text + " under its read lock, which never gets the lock",
						Related: t.acquisitions(read),
					})
				}
			}
		}
	}
	return nil, nil
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
