package checks

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// DoubleLock reports the acquisition of a lock that the function holds already.
var DoubleLock = check("doublelock", flow, runDoubleLock, `report the acquisition of a lock that the function holds already

The lock is held on every path to the acquisition, or to the call of a function of the package that
acquires the lock on every path. The acquisition waits for its own caller:

	func (c *Cache) Len() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.m)
	}
	func (c *Cache) Empty() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.Len() == 0 // reported: Len locks c.mu
	}

A deferred call runs before the calls that were deferred earlier. So "defer c.Len()" after "defer
c.mu.Unlock()" is reported too, and a function for locks.Do that acquires the same lock.

Two RLock of one RWMutex have a message of their own, if the package also locks it for writing: a
writer that waits between them stops both. Locks that their owner can enter again are not reported,
nor are locks that another function releases for its caller.`)

func runDoubleLock(pass *analysis.Pass, fs *flows) {
	var found againReports
	fs.again(pass, func(t *tracked, at *ast.CallExpr, a acquisition) {
		before := t.before[at]
		switch {
		case !plain(a.call.fn):
		case before.holds(write):
			found.add(t, at, a, write, ", which this function already holds: it waits for itself")
		case before.holds(read) && a.call.mode == read && fs.writes(t.path):
			found.add(t, at, a, read, ", which this function already reads: a writer that waits between them stops both")
		}
	})
	found.report(pass)
	fs.deferredAgain(func(s *site, t *tracked, m mode, a acquisition) {
		switch {
		case !plain(a.call.fn):
		case m == write:
			reportDeferred(pass, s, t, m, a, "it waits for itself")
		case a.call.mode == read && fs.writes(t.path):
			reportDeferred(pass, s, t, m, a, "a writer that waits between them stops both")
		}
	})
	fs.acquiredBack(func(c calledBack, h hold, a acquisition) {
		switch {
		case !plain(a.call.fn):
		case h.mode == write:
			reportBack(pass, c, h, a, "it waits for itself")
		case a.call.mode == read && fs.writes(h.path):
			reportBack(pass, c, h, a, "a writer that waits between them stops both")
		}
	})
}

// again visits the acquisitions of locks that a function may hold already, by itself and by
// functions that it calls.
func (fs *flows) again(pass *analysis.Pass, visit func(*tracked, *ast.CallExpr, acquisition)) {
	for _, f := range fs.functions {
		fs.acquisitions(f, fs.certain, func(call *ast.CallExpr, a acquisition) {
			own := len(a.via) == 0
			if a.path == nil || a.maybe || isMisuse(pass, a, call) || own && (f.byCall[call] != a.call || f.defers[call]) {
				return
			}
			if t := f.byKey[a.path.key()]; t != nil && fs.local(t) && fs.stable(t.path) {
				visit(t, call, a)
			}
		})
	}
}

// deferredAgain visits the deferred calls of functions that acquire a lock, if a defer before them has
// the release of this lock, which runs later. The lock is held in mode m.
func (fs *flows) deferredAgain(visit func(s *site, t *tracked, m mode, a acquisition)) {
	for _, f := range fs.functions {
		for _, call := range callsIn(f.body) {
			if !f.defers[call] {
				continue
			}
			for _, s := range fs.values.at(call) {
				for _, a := range fs.certain(s.callee) {
					a = fs.through(a, s)
					if a.path == nil || a.maybe || s.maybe || isMisuse(fs.pass, a, call) {
						continue
					}
					t := f.byKey[a.path.key()]
					if t == nil || !fs.local(t) || !fs.stable(t.path) {
						continue
					}
					for _, m := range []mode{write, read} {
						// There is one release at the return, and it finds the lock held.
						due := func(st state) bool { return st.deferred[m] == 1 && st.held[m] == 1 }
						if t.deferring[call].all(due) && t.end().all(due) {
							visit(s, t, m, a)
						}
					}
				}
			}
		}
	}
}

// reportDeferred reports a deferred call that acquires a lock which a later call releases.
func reportDeferred(pass *analysis.Pass, s *site, t *tracked, m mode, a acquisition, why string) {
	calls := ""
	for _, name := range a.via[1:] {
		calls += "calls " + name + ", which "
	}
	d := analysis.Diagnostic{
		Pos: s.call.Pos(), End: s.call.End(), Related: t.acquisitions(m),
		Message: fmt.Sprintf("deferred %s %s", s.name, calls) +
			fmt.Sprintf("calls %s of %s before the deferred %s: %s", a.call.fn.Name(), t.path.text, undo(m), why),
	}
	if a.where == "" {
		d.Related = append(d.Related, related(a.call.call, "acquired again here"))
	}
	pass.Report(d)
}

// stable reports whether the path of a lock leads to the same lock while a function runs: the
// package does not assign to a pointer on the way, or to the lock if that is a pointer.
func (fs *flows) stable(p *path) bool {
	return !fs.assigned[p.root] && !slices.ContainsFunc(p.fields, func(f field) bool {
		return fs.assigned[f.Var] && !isStruct(f.Type())
	})
}

func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// againReports are reports of the acquisition of a lock that is held. Calls of one function under
// one lock are one mistake: the first call is reported, with the other calls below it.
type againReports []*againReport

type againReport struct {
	of *tracked
	analysis.Diagnostic
}

func (rs againReports) report(pass *analysis.Pass) {
	for _, r := range rs {
		pass.Report(r.Diagnostic)
	}
}

// add adds the acquisition of a lock that is held in mode m.
func (rs *againReports) add(t *tracked, at *ast.CallExpr, a acquisition, m mode, why string) {
	places := slices.DeleteFunc(t.acquisitions(m), func(r analysis.RelatedInformation) bool {
		return r.Pos == at.Pos()
	})
	message := fmt.Sprintf("%s of %s%s", a.call.fn.Name(), t.path.text, why)
	if len(a.via) > 0 {
		calls := ""
		for _, name := range a.via[1:] {
			calls += "calls " + name + ", which "
		}
		message = fmt.Sprintf("%s %scalls %s of %s%s", a.via[0], calls, a.call.fn.Name(), t.path.text, why)
		if a.where == "" && a.call.call != at {
			places = append(places, related(a.call.call, "acquired again here"))
		}
	}
	for _, r := range *rs {
		if len(a.via) > 0 && r.of == t && r.Message == message {
			r.Related = append(r.Related, related(at, "called here too"))
			return
		}
	}
	*rs = append(*rs, &againReport{t, analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Message: message, Related: places}})
}
