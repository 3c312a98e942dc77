package checks

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
)

// A site is a place where a function of the package is called.
type site struct {
	call   *ast.CallExpr
	callee *function
	name   string // of the callee, as messages say it
	recv   *path  // of the receiver, or nil
	maybe  bool   // the call may return without calling it
	// owner and at are one object, if the callee is the value of a field: owner leads to it where
	// the field got its value, and at where the field is called.
	owner, at *path
}

// A value is a function that a variable or a field can have.
type value struct {
	callee *function // nil if the package does not show which one it is
	recv   *path     // of a method value
	owner  *path
}

// A source is an expression that a variable or field gets.
type source struct {
	e     ast.Expr // nil if something else gives the value, such as a loop over functions
	index int      // of the result, if e is a call with several results
	owner *path    // the object whose field it is; nil for other variables
}

// maxDepth bounds how far a value is followed.
const maxDepth = 8

// values knows which functions the variables, fields, parameters and results of the package have.
type values struct {
	fs      *flows
	sources map[types.Object][]source
	literal map[*ast.FuncLit]*function
	static  map[*function][]*ast.CallExpr // calls by name, also through an interface
	params  map[types.Object]param
	given   map[*function][]types.Object // the parameters with a name, as in params
	impls   map[*types.Func]*types.Func  // the results of implementation
	named   []types.Type                 // of the package
	sites   map[*ast.CallExpr][]*site
}

// A param is a parameter of a function.
type param struct {
	of    *function
	index int
}

func newValues(fs *flows) *values {
	v := &values{
		fs: fs, sources: map[types.Object][]source{}, literal: map[*ast.FuncLit]*function{},
		static: map[*function][]*ast.CallExpr{}, params: map[types.Object]param{}, given: map[*function][]types.Object{},
		impls: map[*types.Func]*types.Func{}, sites: map[*ast.CallExpr][]*site{},
	}
	scope := fs.pass.Pkg.Scope()
	for _, name := range scope.Names() {
		if t, ok := scope.Lookup(name).(*types.TypeName); ok && !t.IsAlias() && !types.IsInterface(t.Type()) {
			v.named = append(v.named, t.Type())
		}
	}
	return v
}

// collect notes what the package assigns and calls.
func (v *values) collect(root inspector.Cursor) {
	info := v.fs.info
	for _, f := range v.fs.functions {
		fields := []*ast.FieldList{}
		switch n := f.node.(type) {
		case *ast.FuncDecl:
			fields = append(fields, n.Type.Params)
		case *ast.FuncLit:
			v.literal[n] = f
			fields = append(fields, n.Type.Params)
		}
		index := 0
		for _, list := range fields {
			for _, field := range list.List {
				for _, name := range field.Names {
					if o := info.Defs[name]; o != nil {
						v.params[o] = param{f, index}
						v.given[f] = append(v.given[f], o)
					}
					index++
				}
				if len(field.Names) == 0 {
					index++
				}
			}
		}
	}
	nodes := []ast.Node{
		(*ast.AssignStmt)(nil), (*ast.ValueSpec)(nil), (*ast.CompositeLit)(nil), (*ast.CallExpr)(nil),
		(*ast.RangeStmt)(nil), (*ast.UnaryExpr)(nil),
	}
	for c := range root.Preorder(nodes...) {
		switch n := c.Node().(type) {
		case *ast.AssignStmt, *ast.ValueSpec:
			lhs, rhs := assignment(n)
			for i, l := range lhs {
				switch {
				case len(lhs) == len(rhs):
					v.assign(l, rhs[i], 0)
				case len(rhs) == 1:
					v.assign(l, rhs[0], i)
				}
			}
		case *ast.CompositeLit:
			v.composite(n)
		case *ast.RangeStmt:
			v.unseen(n.Key)
			v.unseen(n.Value)
		case *ast.UnaryExpr:
			if n.Op == token.AND { // others assign through the pointer
				v.unseen(n.X)
			}
		case *ast.CallExpr:
			if f := v.declared(n); f != nil {
				v.static[f] = append(v.static[f], n)
			}
			v.fs.imported(n) // here, while facts can be read
		}
	}
}

func (v *values) assign(l, e ast.Expr, index int) {
	p := pathTo(v.fs.info, l)
	if p == nil {
		return
	}
	s := source{e: e, index: index}
	o := p.root
	if n := len(p.fields); n > 0 {
		o = p.fields[n-1].Origin()
		s.owner = &path{p.root, p.fields[:n-1], p.root.Name()}
	}
	v.sources[o] = append(v.sources[o], s)
}

// unseen notes that a variable of a function type gets values that no source shows.
func (v *values) unseen(l ast.Expr) {
	if l == nil {
		return
	}
	if t := v.fs.info.TypeOf(l); t != nil {
		if _, ok := t.Underlying().(*types.Signature); ok {
			v.assign(l, nil, 0)
		}
	}
}

func (v *values) composite(n *ast.CompositeLit) {
	t := v.fs.info.TypeOf(n)
	if t == nil {
		return
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			key, _ := kv.Key.(*ast.Ident)
			if f, ok := v.fs.info.Uses[key].(*types.Var); ok {
				v.sources[f.Origin()] = append(v.sources[f.Origin()], source{e: kv.Value})
			}
		} else if i < s.NumFields() {
			f := s.Field(i).Origin()
			v.sources[f] = append(v.sources[f], source{e: e})
		}
	}
}

// declared returns the declared function of the package that call names, or nil. For a method of an
// interface of the package it is the method of the only type of the package that has it.
func (v *values) declared(call *ast.CallExpr) *function {
	fn := calleeOf(v.fs.info, call)
	if fn == nil {
		return nil
	}
	return v.fs.declared[v.concrete(fn).Origin()]
}

// concrete returns the method that a call of fn runs, as far as the package shows.
func (v *values) concrete(fn *types.Func) *types.Func {
	recv := fn.Signature().Recv()
	if recv == nil || fn.Pkg() != v.fs.pass.Pkg || !types.IsInterface(recv.Type()) {
		return fn
	}
	if known, ok := v.impls[fn]; ok {
		return known
	}
	v.impls[fn] = fn
	found := 0
	for _, t := range v.named {
		of := t
		if n, ok := t.(*types.Named); ok && n.TypeParams().Len() > 0 {
			continue
		}
		in, ok := recv.Type().Underlying().(*types.Interface)
		if !ok {
			return fn
		}
		if !types.Implements(of, in) {
			of = types.NewPointer(t)
			if !types.Implements(of, in) {
				continue
			}
		}
		o, index, _ := types.LookupFieldOrMethod(of, true, fn.Pkg(), fn.Name())
		m, ok := o.(*types.Func)
		if !ok || len(index) > 1 { // a promoted method belongs to the embedded type
			continue
		}
		found++
		v.impls[fn] = m
	}
	if found != 1 {
		v.impls[fn] = fn
	}
	return v.impls[fn]
}

// unknown is a function that the package does not show.
var unknown = []value{{}}

// of returns the functions that e can be.
func (v *values) of(e ast.Expr, depth int) (found []value) {
	info := v.fs.info
	if depth > maxDepth || e == nil {
		return unknown
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		if f := v.literal[e]; f != nil {
			return []value{{callee: f}}
		}
	case *ast.Ident:
		switch o := info.Uses[e].(type) {
		case *types.Func:
			if f := v.fs.declared[o.Origin()]; f != nil {
				return []value{{callee: f}}
			}
		case *types.Var:
			return v.ofVar(o, depth+1)
		case *types.Nil:
			return nil
		}
	case *ast.SelectorExpr:
		selected := info.Selections[e]
		if selected == nil {
			if o, ok := info.Uses[e.Sel].(*types.Var); ok {
				return v.ofVar(o, depth+1)
			}
			return unknown
		}
		switch o := selected.Obj().(type) {
		case *types.Func:
			if f := v.fs.declared[v.concrete(o).Origin()]; f != nil && selected.Kind() == types.MethodVal {
				return []value{{callee: f, recv: toReceiver(info, e.X, selected)}}
			}
		case *types.Var:
			return v.ofVar(o.Origin(), depth+1)
		}
	case *ast.CallExpr:
		if info.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return v.of(e.Args[0], depth)
		}
		return v.results(e, 0, depth+1)
	}
	return unknown
}

func (v *values) results(call *ast.CallExpr, index, depth int) (found []value) {
	f := v.declared(call)
	if f == nil {
		return unknown
	}
	inspectOwn(f.body, func(n ast.Node) {
		if r, ok := n.(*ast.ReturnStmt); ok {
			if index < len(r.Results) {
				found = append(found, v.of(r.Results[index], depth)...)
			} else { // results with names, or of another call
				found = append(found, unknown...)
			}
		}
	})
	return found
}

func (v *values) ofVar(o types.Object, depth int) (found []value) {
	if depth > maxDepth {
		return unknown
	}
	for _, s := range v.sources[o] {
		found = append(found, v.ofSource(s, depth)...)
	}
	if p, ok := v.params[o]; ok {
		if v.calledOut(p.of) {
			found = append(found, unknown...)
		}
		for _, call := range v.static[p.of] {
			if p.index < len(call.Args) {
				found = append(found, v.of(call.Args[p.index], depth+1)...)
			}
		}
	}
	return found
}

// calledOut reports whether other code calls f, rather than the package by the name of f.
func (v *values) calledOut(f *function) bool {
	return len(v.static[f]) == 0 || f.obj != nil && v.fs.valued[f.obj]
}

// ofSource returns the functions of an assignment. A field that gets a parameter has the owner that
// the calls have.
func (v *values) ofSource(s source, depth int) (found []value) {
	if s.owner != nil {
		id, _ := ast.Unparen(s.e).(*ast.Ident)
		if p, ok := v.params[v.fs.info.Uses[id]]; ok && id != nil {
			if v.calledOut(p.of) {
				found = append(found, unknown...)
			}
			for _, call := range v.static[p.of] {
				if p.index >= len(call.Args) {
					continue
				}
				owner := v.fs.bind(v.staticSite(call, p.of), s.owner)
				for _, x := range v.of(call.Args[p.index], depth+1) {
					x.owner = owner
					found = append(found, x)
				}
			}
			return found
		}
	}
	var all []value
	if call, ok := ast.Unparen(s.e).(*ast.CallExpr); ok && s.index > 0 {
		all = v.results(call, s.index, depth)
	} else {
		all = v.of(s.e, depth)
	}
	for _, x := range all {
		if x.owner == nil {
			x.owner = s.owner
		}
		found = append(found, x)
	}
	return found
}

// staticSite returns the call of a declared function by its name.
func (v *values) staticSite(call *ast.CallExpr, callee *function) *site {
	s := &site{call: call, callee: callee, name: callee.name()}
	selector, _ := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if selected := v.fs.info.Selections[selector]; selected != nil && selected.Kind() == types.MethodVal {
		s.recv = toReceiver(v.fs.info, selector.X, selected)
	}
	return s
}

// at returns the functions that call certainly calls, as far as the package shows, and those that
// fmt and sync.Once call for it.
func (v *values) at(call *ast.CallExpr) []*site {
	if known, ok := v.sites[call]; ok {
		return known
	}
	sites := v.find(call)
	v.sites[call] = sites
	return sites
}

func (v *values) find(call *ast.CallExpr) []*site {
	if f := v.declared(call); f != nil {
		return []*site{v.staticSite(call, f)}
	}
	if f := v.fs.imported(call); f != nil {
		return []*site{v.staticSite(call, f)}
	}
	fun := ast.Unparen(call.Fun)
	if lit, ok := fun.(*ast.FuncLit); ok {
		if f := v.literal[lit]; f != nil {
			return []*site{{call: call, callee: f, name: f.name()}}
		}
		return nil
	}
	if fn := calleeOf(v.fs.info, call); fn != nil {
		switch fn.FullName() {
		case "(*sync.Once).Do":
			return v.dynamic(call, call.Args[0], true)
		}
		return v.formatted(call, fn)
	}
	if v.fs.info.Types[call.Fun].IsType() {
		return nil
	}
	return v.dynamic(call, call.Fun, false)
}

// dynamic returns the site at which call calls the value of e, if it can have one value only.
func (v *values) dynamic(call *ast.CallExpr, e ast.Expr, maybe bool) []*site {
	all := v.of(e, 0)
	if len(all) == 0 || all[0].callee == nil || slices.ContainsFunc(all, func(x value) bool { return x.callee != all[0].callee }) {
		return nil
	}
	s := &site{call: call, callee: all[0].callee, name: types.ExprString(e), recv: all[0].recv, maybe: maybe}
	if _, ok := ast.Unparen(e).(*ast.FuncLit); ok {
		s.name = s.callee.name()
	}
	if p := pathOf(v.fs.info, e); p != nil && len(p.fields) > 0 && len(all) == 1 {
		n := len(p.fields) - 1
		text := strings.TrimSuffix(p.text, "."+p.fields[n].Name())
		s.owner, s.at = all[0].owner, &path{p.root, p.fields[:n], text}
	}
	return []*site{s}
}

// formatters are functions that call String and Error of their arguments, with the index of the
// format, or -1.
var formatters = map[string]int{
	"fmt.Print": -1, "fmt.Println": -1, "fmt.Printf": 0, "fmt.Sprint": -1, "fmt.Sprintln": -1, "fmt.Sprintf": 0,
	"fmt.Fprint": -1, "fmt.Fprintln": -1, "fmt.Fprintf": 1, "fmt.Errorf": 0, "log.Print": -1, "log.Println": -1,
	"log.Printf": 0, "(*log.Logger).Printf": 0, "(*log.Logger).Print": -1, "(*log.Logger).Println": -1,
}

// formatted returns the methods String and Error that a call of package fmt or log leads to.
func (v *values) formatted(call *ast.CallExpr, fn *types.Func) (sites []*site) {
	index, ok := formatters[fn.FullName()]
	if !ok || call.Ellipsis.IsValid() || index >= len(call.Args) {
		return nil
	}
	var verbs string
	if index >= 0 {
		format := v.fs.info.Types[call.Args[index]].Value
		if format == nil || format.Kind() != constant.String {
			return nil
		}
		if verbs, ok = verbsOf(constant.StringVal(format)); !ok {
			return nil
		}
	}
	for i, e := range call.Args[index+1:] {
		if index >= 0 && (i >= len(verbs) || !strings.ContainsRune("vsq", rune(verbs[i]))) {
			continue
		}
		for _, name := range []string{"Error", "String"} {
			t := v.fs.info.TypeOf(e)
			if t == nil || types.IsInterface(t) {
				break
			}
			selected := types.NewMethodSet(t).Lookup(v.fs.pass.Pkg, name)
			if selected == nil {
				continue
			}
			m, _ := selected.Obj().(*types.Func)
			if f := v.fs.declared[m.Origin()]; f != nil && m.Signature().Params().Len() == 0 {
				sites = append(sites, &site{
					call: call, callee: f, name: f.name(), recv: toReceiver(v.fs.info, e, selected),
				})
			}
			break
		}
	}
	return sites
}

// verbsOf returns the verbs of a format, one for each operand, unless it numbers its operands.
func verbsOf(format string) (verbs string, ok bool) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		sharp := false
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.", format[i]) >= 0; i++ {
			sharp = sharp || format[i] == '#'
		}
		switch {
		case i == len(format) || format[i] == '[' || format[i] == '*':
			return "", false
		case format[i] == '%':
		case sharp:
			verbs += "#"
		default:
			verbs += string(format[i])
		}
	}
	return verbs, true
}

// bind returns the path by which the caller names a lock of the callee, or nil.
func (fs *flows) bind(s *site, p *path) *path {
	var from *path
	to := p.fields
	switch o := p.root; {
	case o.Pkg() != nil && o.Parent() == o.Pkg().Scope():
		return p
	case s.callee.obj != nil && o == s.callee.obj.Signature().Recv():
		from = s.recv
	default:
		index, isParam := fs.values.params[o]
		if s.callee.far {
			i, ok := paramOf(s.callee.obj.Signature(), o)
			index, isParam = param{s.callee, i}, ok
		}
		switch {
		case isParam && index.of == s.callee:
			if index.index < len(s.call.Args) && !s.maybe {
				from = pathOf(fs.info, s.call.Args[index.index])
				if from != nil && len(to) == 0 && types.IsInterface(o.Type()) && !types.IsInterface(from.typ()) {
					from = cmp.Or(from.toEmbedded(), from)
				}
			}
		case s.owner != nil && s.at != nil && p.begins(s.owner):
			from, to = s.at, p.fields[len(s.owner.fields):]
		case o.Parent() != nil && o.Parent().Contains(s.call.Pos()) && !within(o, s.callee.node):
			return p // a variable around both
		}
	}
	if from == nil || len(from.fields)+len(to) > maxFields || !fs.visible(from, s.call.Pos()) {
		if s.owner != nil && s.at != nil && from != nil && from.begins(s.owner) {
			to = slices.Concat(from.fields[len(s.owner.fields):], to)
			from = s.at
		} else {
			return nil
		}
	}
	text := from.text
	for _, f := range to {
		if !f.Embedded() {
			text += "." + f.Name()
		}
	}
	return fs.alias(&path{from.root, slices.Concat(from.fields, to), text}, s.call.Pos())
}

// visible reports whether the root of p has its meaning at pos.
func (fs *flows) visible(p *path, pos token.Pos) bool {
	o := p.root
	return o.Parent() == nil || o.Parent().Contains(pos) || o.Pkg() != nil && o.Parent() == o.Pkg().Scope()
}

func within(o types.Object, n ast.Node) bool { return n.Pos() <= o.Pos() && o.Pos() < n.End() }

// alias returns p by the name of the object to which a local variable on the way leads: the fields
// of a new object have the values that its constructor got.
func (fs *flows) alias(p *path, pos token.Pos) *path {
	for range maxDepth {
		q := fs.aliasOnce(p)
		if q == nil || !fs.visible(q, pos) {
			return p
		}
		p = q
	}
	return p
}

func (fs *flows) aliasOnce(p *path) *path {
	v, ok := p.root.(*types.Var)
	if !ok || len(p.fields) == 0 || len(fs.values.sources[v]) != 1 || fs.assigned[p.fields[0].Var] {
		return nil
	}
	if _, isParam := fs.values.params[v]; isParam {
		return nil
	}
	e := ast.Unparen(fs.values.sources[v][0].e)
	var s *site
	if call, ok := e.(*ast.CallExpr); ok {
		f := fs.values.declared(call)
		if f == nil {
			return nil
		}
		s = fs.values.staticSite(call, f)
		var only ast.Expr
		count := 0
		inspectOwn(f.body, func(n ast.Node) {
			if r, ok := n.(*ast.ReturnStmt); ok {
				count++
				if len(r.Results) > 0 {
					only = ast.Unparen(r.Results[0])
				}
			}
		})
		if count != 1 || only == nil {
			return nil
		}
		e = only
	}
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, elt := range lit.Elts {
		kv, ok := elt.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := kv.Key.(*ast.Ident)
		field, _ := fs.info.Uses[key].(*types.Var)
		if field == nil || field.Origin() != p.fields[0].Var {
			continue
		}
		from := pathOf(fs.info, kv.Value)
		if from == nil {
			return nil
		}
		if s != nil {
			if from = fs.bind(s, from); from == nil {
				return nil
			}
		}
		text := from.text
		for _, f := range p.fields[1:] {
			if !f.Embedded() {
				text += "." + f.Name()
			}
		}
		return &path{from.root, slices.Concat(from.fields, p.fields[1:]), text}
	}
	return nil
}
