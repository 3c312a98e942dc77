package checks

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// An acquisition is a place where a function acquires a lock, and the functions called on the way.
type acquisition struct {
	call  *lockCall
	via   []string
	path  *path  // as the outermost function names the lock; nil if it has no name there
	where string // the file and the line, if the call is in another package
	maybe bool   // a call on the way may not call its function
	// freed has the keys of the locks that a function on the way may have released for its caller.
	freed map[string]bool
	class
}

// through returns a as the function with the site sees it.
func (fs *flows) through(a acquisition, s *site) acquisition {
	a.via, a.freed = append([]string{s.name}, a.via...), fs.boundKeys(s, a.freed)
	if a.call.call == nil { // in another package: this one shows the call only
		here := *a.call
		here.call, a.call = s.call, &here
	}
	if a.path == nil {
		return a
	}
	a.path = fs.bind(s, a.path)
	if a.path != nil {
		a.class = fs.class(a.path)
		if fn := methodAt(a.call.fn, a.path); fn != a.call.fn {
			here := *a.call
			here.fn, a.call = fn, &here
		}
	}
	return a
}

// maxFields bounds the paths of locks that come through calls, which recursion lengthens.
const maxFields = 6

// calls visits the calls of functions of the package that f makes before it returns.
func (fs *flows) calls(f *function, visit func(*site)) {
	if f.far {
		return
	}
	if f.sites == nil {
		f.sites = []*site{} // none, unlike nil
		skip := map[*ast.CallExpr]bool{}
		inspectOwn(f.body, func(n ast.Node) {
			switch n := n.(type) {
			case *ast.GoStmt:
				skip[n.Call] = true
			case *ast.DeferStmt:
				skip[n.Call] = true
			case *ast.CallExpr:
				if !skip[n] {
					f.sites = append(f.sites, fs.values.at(n)...)
				}
			}
		})
	}
	for _, s := range f.sites {
		visit(s)
	}
}

// frees returns the keys of the locks that f may release for its callers, by itself or by the
// functions that it calls.
func (fs *flows) frees(f *function) map[string]bool {
	return fs.freeing.of(f, func(f *function) map[string]bool { return fs.freedBefore(f, f.body.End()) })
}

// freedBefore returns the locks that f may release for its callers before a place in its source.
func (fs *flows) freedBefore(f *function, pos token.Pos) map[string]bool {
	var freed map[string]bool
	add := func(key string) {
		if freed == nil {
			freed = map[string]bool{}
		}
		freed[key] = true
	}
	for _, t := range f.locks {
		for _, c := range t.calls {
			key := t.path.freeKey()
			if c.effect == acquire || c.via != nil || c.call.Pos() >= pos {
				continue
			}
			for st := range t.before[c.call] {
				if st.held[c.mode] == 0 || c.effect == convert {
					add(key)
				}
			}
		}
	}
	fs.calls(f, func(s *site) {
		if s.call.Pos() < pos {
			for key := range fs.boundKeys(s, fs.frees(s.callee)) {
				add(key)
			}
		}
	})
	return freed
}

// boundKeys returns the keys of locks that a callee frees, with the keys that its parameters lead
// to.
func (fs *flows) boundKeys(s *site, freed map[string]bool) map[string]bool {
	for _, t := range s.callee.locks {
		if t.path.id() == nil && freed[t.path.freeKey()] {
			if p := fs.bind(s, t.path); p != nil {
				freed = union(freed, map[string]bool{p.freeKey(): true})
			}
		}
	}
	return freed
}

// freeKey is idKey, or a key that only one function understands.
func (p *path) freeKey() string { return cmp.Or(p.idKey(), string(inside)+p.key()) }

// callee returns the function of the package that is called, or nil.
func (fs *flows) callee(call *ast.CallExpr) *function {
	return fs.values.declared(call)
}

// acquisitions visits the acquisitions for which f waits, by itself or in a function that it calls.
// For those functions it takes the result of of. The call is made by f.
func (fs *flows) acquisitions(
	f *function, of func(*function) []acquisition, visit func(call *ast.CallExpr, a acquisition),
) {
	for _, t := range f.locks {
		for _, c := range t.calls {
			if c.waits() && c.via == nil {
				visit(c.call, acquisition{call: c, path: t.path, class: fs.class(t.path)})
			}
		}
	}
	fs.calls(f, func(s *site) {
		for _, a := range of(s.callee) {
			a = fs.through(a, s)
			a.maybe = a.maybe || s.maybe
			visit(s.call, a)
		}
	})
}

// memo has the results of a recursive function. One that needs its own result gets none.
type memo[T any] map[*function]T

func (m memo[T]) of(f *function, compute func(*function) T) T {
	if _, known := m[f]; !known {
		var none T
		m[f] = none
		m[f] = compute(f)
	}
	return m[f]
}

// certain returns the acquisitions of locks of its caller that f makes on every path. One of each
// lock is enough, a reading one if there is any.
func (fs *flows) certain(f *function) []acquisition {
	return fs.certainly.of(f, fs.findCertain)
}

func (fs *flows) findCertain(f *function) (found []acquisition) {
	places := map[string]map[*ast.CallExpr]bool{}
	example := map[string]acquisition{}
	var order []string
	fs.acquisitions(f, fs.certain, func(call *ast.CallExpr, a acquisition) {
		if a.path == nil || a.maybe || assigns(fs.info, f.body, a.path) {
			return
		}
		key := a.path.key()
		own := len(a.via) == 0
		if t := f.byKey[key]; t != nil && t.before[call].owes() {
			return // the function has released the lock of its caller
		}
		if own && (f.byCall[call] != a.call || f.byKey[key].escaped) {
			return
		}
		if places[key] == nil {
			places[key], example[key] = map[*ast.CallExpr]bool{}, a
			order = append(order, key)
		}
		places[key][call] = true
		if a.call.mode == read {
			example[key] = a
		}
	})
	for _, key := range order {
		if f.always(places[key], example[key].path.root) {
			found = append(found, example[key])
		}
	}
	return found
}

// always reports whether each way through f to a return leads over one of the calls. The caller has
// locked a lock of root, which therefore is not nil.
func (f *function) always(calls map[*ast.CallExpr]bool, root types.Object) bool {
	seen := map[*cfg.Block]bool{}
	var calledFrom func(b *cfg.Block) bool
	calledFrom = func(b *cfg.Block) bool {
		if seen[b] {
			return true
		}
		seen[b] = true
		for _, n := range b.Nodes {
			if evaluates(n, calls) {
				return true
			}
			if _, ok := n.(*ast.ReturnStmt); ok {
				return false
			}
		}
		succs := b.Succs
		if len(succs) == 2 && len(b.Nodes) > 0 {
			switch comparesToNil(f.info, b.Nodes[len(b.Nodes)-1], root) {
			case token.EQL:
				succs = succs[1:]
			case token.NEQ:
				succs = succs[:1]
			}
		}
		return !slices.ContainsFunc(succs, func(next *cfg.Block) bool { return !calledFrom(next) })
	}
	return calledFrom(f.graph.Blocks[0])
}

// comparesToNil returns the operator if n compares a variable to nil.
func comparesToNil(info *types.Info, n ast.Node, variable types.Object) token.Token {
	if e, ok := n.(*ast.BinaryExpr); ok && info.Types[e.Y].IsNil() {
		if id, ok := ast.Unparen(e.X).(*ast.Ident); ok && info.Uses[id] == variable {
			return e.Op
		}
	}
	return token.ILLEGAL
}

// evaluates reports whether n certainly makes one of the calls.
func evaluates(n ast.Node, calls map[*ast.CallExpr]bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.GoStmt:
			return false
		case *ast.DeferStmt:
			return false
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				found = found || evaluates(n.X, calls)
				return false
			}
		case *ast.CallExpr:
			found = found || calls[n]
		}
		return !found
	})
	return found
}

// assigns reports whether body assigns to a variable or field that leads to the lock of p.
func assigns(info *types.Info, body ast.Node, p *path) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				q := pathTo(info, l)
				found = found || q != nil && p.begins(q)
			}
		}
		return !found
	})
	return found
}
