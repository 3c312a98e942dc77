package checks

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// LockOrder reports two functions that acquire two locks in opposite orders.
var LockOrder = check("lockorder", flow, runLockOrder, `report two functions of a package that acquire two locks in opposite orders

	func (s *Server) Add(c *Conn) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.mu.Lock() // reported: Conn.mu after Server.mu, and in Close the other way round
		...
	}
	func (c *Conn) Close() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.server.remove(c) // acquires Server.mu
	}

A lock is known by its type and field, or as a variable of the package. The check follows calls of
functions of the package. It does not report two orders under a common third lock, locks of objects
that the function has just made, acquisitions that do not wait, or two that only read.

If two packages acquire the locks in opposite orders, and neither imports the other one, the import of
one of them is reported where both come together.`)

// A step is an acquisition of one lock while another is held.
type step struct {
	first, second class
	f             *function
	held          *tracked
	at            ast.Node // the acquisition, or the call that leads to it
	acquired      acquisition
	outer         map[string]bool // the keys of all locks that are held
	heldRead      bool            // the first lock is held for reading
	reads         bool            // the second lock is acquired for reading
	again         bool            // f holds the second lock too, and a function that it calls has released it
	name          string          // of f
	pkg           *types.Package  // of the step, if it is another package
	routeFrom     func(far bool) string
	places        []analysis.RelatedInformation
}

func runLockOrder(pass *analysis.Pass, fs *flows) { fs.orders.report(pass) }

func newOrders(fs *flows) *orders {
	return &orders{
		fs: fs, acquires: memo[[]acquisition]{}, new: memo[map[types.Object]bool]{}, makers: memo[bool]{},
	}
}

type orders struct {
	fs       *flows
	acquires memo[[]acquisition]         // the results of acquired
	new      memo[map[types.Object]bool] // the results of made
	makers   memo[bool]                  // the results of makes
	steps    []step
}

// acquired returns the locks that f acquires, itself or by functions that it calls. It leaves out
// the locks of objects that f has just made.
func (o *orders) acquired(f *function) []acquisition { return o.acquires.of(f, o.findAcquired) }

func (o *orders) findAcquired(f *function) (found []acquisition) {
	known := map[string]bool{}
	made := o.made(f)
	o.fs.acquisitions(f, o.acquired, func(call *ast.CallExpr, a acquisition) {
		a.freed = union(a.freed, o.fs.freedBefore(f, call.Pos()))
		key := a.class.key
		if a.path != nil {
			key += "/" + a.path.key()
		}
		own := len(a.via) == 0
		unknown := a.path == nil && a.class.key == "" || own && a.path.id() == nil && !o.fs.isGiven(f, a.path.root)
		if !unknown && !known[key] && (a.path == nil || !made[a.path.root]) {
			known[key] = true
			found = append(found, a)
		}
	})
	return found
}

func union(a, b map[string]bool) map[string]bool {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// made returns the variables of f that hold a new object. No other goroutine can have its locks.
func (o *orders) made(f *function) map[types.Object]bool { return o.new.of(f, o.findMade) }

func (o *orders) findMade(f *function) map[types.Object]bool {
	made := map[types.Object]bool{}
	inspectOwn(f.body, func(n ast.Node) {
		a, ok := n.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Rhs) != 1 && len(a.Lhs) != len(a.Rhs) {
			return
		}
		for i, e := range a.Rhs {
			if id, ok := a.Lhs[i].(*ast.Ident); ok && o.isNew(e, made) {
				made[o.fs.info.ObjectOf(id)] = true
			}
		}
	})
	return made
}

// isNew reports whether e is a new object, perhaps in one of the variables made.
func (o *orders) isNew(e ast.Expr, made map[types.Object]bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op == token.AND && o.isNew(e.X, made)
	case *ast.CompositeLit:
		return true
	case *ast.Ident:
		return made[o.fs.info.ObjectOf(e)]
	case *ast.CallExpr:
		name := ""
		switch fun := ast.Unparen(e.Fun).(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if strings.HasPrefix(strings.ToLower(name), "new") {
			return true
		}
		return o.makes(o.fs.callee(e))
	}
	return false
}

// makes reports whether the first result of f is always a new object, or nil.
func (o *orders) makes(f *function) bool { return f != nil && o.makers.of(f, o.findMakes) }

func (o *orders) findMakes(f *function) bool {
	made, found, all := o.made(f), false, true
	inspectOwn(f.body, func(n ast.Node) {
		if r, ok := n.(*ast.ReturnStmt); ok {
			switch {
			case len(r.Results) == 0:
				all = false
			case o.fs.info.Types[r.Results[0]].IsNil():
			case o.isNew(r.Results[0], made):
				found = true
			default:
				all = false
			}
		}
	})
	return found && all
}

// follow finds the steps of f.
func (o *orders) follow(f *function) {
	made := o.made(f)
	o.fs.acquisitions(f, o.acquired, func(call *ast.CallExpr, a acquisition) {
		if a.class.key == "" || a.path != nil && made[a.path.root] {
			return
		}
		outer := map[string]bool{}
		again := false
		var holders []*tracked
		for _, t := range f.locks {
			if t.path.id() != nil && t.before[call].holdsAny() {
				outer[t.path.idKey()] = true
				holders = append(holders, t)
				again = again || a.path != nil && t.path.key() == a.path.key() && a.freed[t.path.idKey()]
			}
		}
		for _, t := range holders {
			first := o.fs.class(t.path)
			if first.key == "" || first.key == a.class.key || made[t.path.root] || !o.fs.known(t) ||
				a.freed[t.path.idKey()] {
				continue
			}
			s := step{
				first: first, second: a.class, f: f, held: t, at: call, acquired: a, outer: outer,
				heldRead: !t.before[call].holds(write), reads: a.call.mode == read, again: again, name: f.name(),
			}
			s.routeFrom = func(far bool) string { return o.route(s, far) }
			s.places = o.placesOf(s)
			o.steps = append(o.steps, s)
		}
	})
	o.followCallbacks(f)
}

// foreignSteps are the steps of other packages.
func (o *orders) foreignSteps() (steps []step) {
	for _, saved := range o.fs.foreign.steps {
		s := step{
			first: class{saved.First, saved.FirstName}, second: class{saved.Second, saved.SecondName},
			heldRead: saved.HeldRead, reads: saved.Reads, name: saved.Func, outer: map[string]bool{}, pkg: saved.pkg,
			routeFrom: func(bool) string { return saved.Route },
		}
		for _, key := range saved.Outer {
			s.outer[key] = true
		}
		steps = append(steps, s)
	}
	return steps
}

// report reports each pair of locks that has both orders, once.
func (o *orders) report(pass *analysis.Pass) {
	steps := slices.SortedStableFunc(slices.Values(o.steps), func(a, b step) int {
		return cmp.Or(len(a.acquired.via)-len(b.acquired.via), inOrder(pass, a.at, b.at))
	})
	foreign := o.foreignSteps()
	all := append(slices.Clip(steps), foreign...)
	reported := map[[2]string]bool{}
	for _, s := range steps {
		for _, other := range all {
			if other.first.key != s.second.key || other.second.key != s.first.key ||
				other.f == s.f && !s.again && !other.again {
				continue
			}
			if reported[[2]string{s.first.key, s.second.key}] ||
				s.ignores(other) || other.ignores(s) || serialized(s, other) {
				continue
			}
			reported[[2]string{s.first.key, s.second.key}] = true
			reported[[2]string{s.second.key, s.first.key}] = true
			related := slices.Concat(s.places, other.places)
			for _, more := range steps {
				same := more.first.key == s.first.key && more.second.key == s.second.key ||
					more.first.key == other.first.key && more.second.key == other.second.key
				if same && more.at != s.at && more.at != other.at && len(related) < maxPlaces {
					related = append(related, o.place(more))
				}
			}
			pass.Report(analysis.Diagnostic{
				Pos: s.at.Pos(), End: s.at.End(),
				Message: fmt.Sprintf("%s is acquired while %s is held, and in %s the other way round: %s",
					s.second.name, s.first.name, other.name,
					s.routeFrom(false)+"; "+other.routeFrom(false)),
				Related: related,
			})
		}
	}
	o.reportForeign(pass, foreign, reported)
}

// reportForeign reports the pairs of locks that two packages acquire in opposite orders, if neither
// imports the other. Of the packages that import both, the lowest packages report the pair.
func (o *orders) reportForeign(pass *analysis.Pass, foreign []step, reported map[[2]string]bool) {
	byPair := map[[2]string][]step{}
	for _, s := range foreign {
		pair := [2]string{s.first.key, s.second.key}
		byPair[pair] = append(byPair[pair], s)
	}
	var below importers
	for _, s := range foreign {
		pair := [2]string{s.first.key, s.second.key}
		for _, other := range byPair[[2]string{pair[1], pair[0]}] {
			if reported[pair] || other.pkg == s.pkg || s.ignores(other) || other.ignores(s) || serialized(s, other) {
				continue
			}
			if below == nil {
				below = o.importers(pass)
			}
			if below.both(s.pkg, other.pkg) {
				continue
			}
			at := below.importOf(pass, other.pkg)
			if at == nil {
				continue
			}
			reported[pair], reported[[2]string{pair[1], pair[0]}] = true, true
			pass.Report(analysis.Diagnostic{
				Pos: at.Pos(), End: at.End(),
				Message: fmt.Sprintf("%s is acquired while %s is held, and in %s the other way round: %s",
					s.second.name, s.first.name, other.name, s.routeFrom(true)+"; "+other.routeFrom(true)),
			})
		}
	}
}

// importers has, for each package with facts below one, all packages that it imports, directly or
// not, and itself.
type importers map[*types.Package]map[*types.Package]bool

func (o *orders) importers(pass *analysis.Pass) importers {
	all := importers{}
	var below func(p *types.Package) map[*types.Package]bool
	below = func(p *types.Package) map[*types.Package]bool {
		if known, ok := all[p]; ok {
			return known
		}
		set := map[*types.Package]bool{p: true}
		all[p] = set
		for _, q := range p.Imports() {
			if o.fs.foreign.packages[q.Path()] {
				maps.Copy(set, below(q))
			}
		}
		return set
	}
	for _, p := range pass.Pkg.Imports() {
		if o.fs.foreign.packages[p.Path()] {
			below(p)
		}
	}
	return all
}

// both reports whether some package imports p and q, or is one of them and imports the other.
func (i importers) both(p, q *types.Package) bool {
	for _, below := range i {
		if below[p] && below[q] {
			return true
		}
	}
	return false
}

// importOf returns the first import, outside of tests, by which the package of pass gets to p.
func (i importers) importOf(pass *analysis.Pass, p *types.Package) (at *ast.ImportSpec) {
	for _, f := range pass.Files {
		for _, spec := range f.Imports {
			name := pass.TypesInfo.PkgNameOf(spec)
			if name != nil && i[name.Imported()][p] && !isTest(pass, spec) &&
				(at == nil || inOrder(pass, spec, at) < 0) {
				at = spec
			}
		}
	}
	return at
}

// ignores reports whether s can acquire its second lock although other holds it: both read. Only a
// writer that waits between them could stop s.
func (s step) ignores(other step) bool { return s.reads && other.heldRead }

// serialized reports whether a third lock keeps the two steps from happening at the same time.
func serialized(a, b step) bool {
	keys := slices.Concat(a.keys(), b.keys())
	for key := range a.outer {
		if b.outer[key] && !slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// keys returns the keys of both locks: of their classes, and of their fields.
func (s step) keys() []string {
	keys := []string{s.first.key, s.second.key}
	if s.held != nil {
		keys = append(keys, s.held.path.idKey())
	}
	if s.acquired.call != nil && s.acquired.call.path != nil {
		keys = append(keys, s.acquired.call.path.idKey())
	}
	return keys
}

// route describes a step: "Add locks Server.mu, then calls remove, which locks Conn.mu".
//
// For other packages it says the files too.
func (o *orders) route(s step, far bool) string {
	at := func(n ast.Node) string {
		if far {
			return o.fs.placeOf(n.Pos())
		}
		return fmt.Sprintf("line %d", o.fs.pass.Fset.Position(n.Pos()).Line)
	}
	var route strings.Builder
	fmt.Fprintf(&route, "%s locks %s (%s), then", s.name, s.first.name, at(o.holdOf(s)))
	for _, fn := range s.acquired.via {
		fmt.Fprintf(&route, " calls %s, which", fn)
	}
	where := s.acquired.where
	if where == "" {
		where = at(s.acquired.call.call)
	}
	fmt.Fprintf(&route, " locks %s (%s)", s.second.name, where)
	return route.String()
}

// holdOf returns the last acquisition before the step.
func (o *orders) holdOf(s step) ast.Node {
	var last ast.Node = s.at
	for _, c := range s.held.calls {
		if c.effect == acquire && c.call.Pos() < s.at.Pos() {
			last = c.call
		}
	}
	return last
}

// maxPlaces bounds the places below a report.
const maxPlaces = 12

// place is a further place with an order that is reported.
func (o *orders) place(s step) analysis.RelatedInformation {
	return related(s.at, fmt.Sprintf("also in %s: %s under %s", s.name, s.second.name, s.first.name))
}

func (o *orders) placesOf(s step) []analysis.RelatedInformation {
	places := []analysis.RelatedInformation{
		related(o.holdOf(s), fmt.Sprintf("%s acquires %s", s.f.name(), s.first.name)),
	}
	if len(s.acquired.via) > 0 {
		places = append(places, related(s.at, fmt.Sprintf("%s calls %s", s.f.name(), s.acquired.via[0])))
	}
	name := s.second.name
	return append(places, related(s.acquired.call.call, name+" is acquired under "+s.first.name))
}
