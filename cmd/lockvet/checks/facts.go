package checks

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// A summary is a fact: the knowledge of other packages about a function. A lock has the name that
// the function uses. The name begins with the receiver, with a parameter or with a variable of a
// package.
type summary struct {
	Changes   []savedChange
	Certain   []savedAcquisition
	Acquired  []savedAcquisition
	Frees     []string // keys of the locks that the function may release for its callers
	Callbacks []savedCallback
}

func (*summary) AFact()         {}
func (*summary) String() string { return "summary" }

func (s *summary) empty() bool {
	return len(s.Changes)+len(s.Certain)+len(s.Acquired)+len(s.Frees)+len(s.Callbacks) == 0
}

// A packageSummary is a fact: the knowledge of other packages about the locks of a package. The
// lists have the keys of fields and variables.
type packageSummary struct {
	Shared   []string
	Released []string // for another function, in a way that no summary shows
	Written  []string
	Left     []string // held by functions that return
	Parts    map[string]int
	Steps    []savedStep
}

func (*packageSummary) AFact()         {}
func (*packageSummary) String() string { return "summary" }

// These are the parts of a summary. Their fields are exported for package gob.
type (
	savedPath struct {
		Kind   pathKind
		Index  int    // of a parameter
		Pkg    string // the path and the name of a variable of a package
		Name   string
		Fields []string
		Text   string
	}
	savedMethod struct {
		Pkg, Type, Name string
		Interface       bool
	}
	savedChange struct {
		Path    savedPath
		Fn      savedMethod
		Effect  uint8
		Mode    uint8
		Outcome uint8
		Frees   bool
	}
	savedAcquisition struct {
		Path      *savedPath
		Key, Name string // of the class
		Fn        savedMethod
		Mode      uint8
		Outcome   uint8
		Via       []string
		Where     string
		Maybe     bool
		Freed     []string
	}
	savedHold struct {
		Path      *savedPath
		Key, Name string
		Fn        savedMethod
		Mode      uint8
		Where     string
	}
	savedCallback struct {
		Param int
		Held  []savedHold
	}
	savedStep struct {
		First, FirstName, Second, SecondName string
		Func, Route                          string
		Outer                                []string
		HeldRead, Reads                      bool
	}
)

type pathKind uint8

const (
	ofReceiver pathKind = iota
	ofParameter
	ofPackage
)

// maxSaved bounds the acquisitions of a summary, and of a package's steps.
const maxSaved = 64

// summarized reports whether other packages get the facts of the package of pass: the package
// belongs to a module under work. Other modules have a fixed version. Each run would have to follow
// them anew, and their functions seldom return with a lock.
func summarized(pass *analysis.Pass) bool {
	return pass.Module != nil && pass.Module.Path != "" && pass.Module.Version == ""
}

// key names a field in all packages. A field of a type without a name, or of one inside a function,
// has a key that only this package understands.
func (f field) key() string {
	if o := f.owner; o != nil && o.Pkg() != nil && o.Parent() == o.Pkg().Scope() {
		return o.Pkg().Path() + "." + o.Name() + "." + f.Name()
	}
	return fmt.Sprintf("%c%p", inside, f.Var)
}

// inside begins the keys that only one package understands.
const inside = '#'

// understood reports whether other packages understand a key.
func understood(key string) bool { return key != "" && key[0] != inside }

// idKey is a key for id.
func (p *path) idKey() string {
	if n := len(p.fields); n > 0 {
		return p.fields[n-1].key()
	}
	if p.id() == nil {
		return ""
	}
	return p.root.Pkg().Path() + "." + p.root.Name()
}

// A foreignVar is a variable of another package that is not exported, so that only facts name it.
type foreignVar struct{ *types.Var }

func (v *foreignVar) Parent() *types.Scope { return v.Pkg().Scope() }

// A foreignStep is a step of another package.
type foreignStep struct {
	savedStep
	pkg *types.Package
}

// foreign is a package's knowledge about the packages that it imports.
type foreign struct {
	packages                        map[string]bool
	shared, released, written, left map[string]bool
	parts                           map[string]int
	steps                           []foreignStep
	functions                       map[*types.Func]*function
	variables                       map[string]*foreignVar
	methods                         map[savedMethod]*types.Func
}

// importFacts reads what the imported packages say of their locks.
func (fs *flows) importFacts() {
	fs.foreign = foreign{
		packages: map[string]bool{}, shared: map[string]bool{}, released: map[string]bool{},
		written: map[string]bool{}, left: map[string]bool{}, parts: map[string]int{},
		functions: map[*types.Func]*function{}, variables: map[string]*foreignVar{},
		methods: map[savedMethod]*types.Func{},
	}
	if !summarized(fs.pass) {
		return
	}
	facts := fs.pass.AllPackageFacts()
	slices.SortFunc(facts, func(a, b analysis.PackageFact) int {
		return strings.Compare(a.Package.Path(), b.Package.Path())
	})
	for _, fact := range facts {
		s, ok := fact.Fact.(*packageSummary)
		if !ok || fact.Package == fs.pass.Pkg {
			continue
		}
		fs.foreign.packages[fact.Package.Path()] = true
		for _, list := range []struct {
			from []string
			to   map[string]bool
		}{
			{s.Shared, fs.foreign.shared}, {s.Released, fs.foreign.released},
			{s.Written, fs.foreign.written}, {s.Left, fs.foreign.left},
		} {
			for _, key := range list.from {
				list.to[key] = true
			}
		}
		for key, n := range s.Parts {
			fs.foreign.parts[key] += n
		}
		for _, step := range s.Steps {
			fs.foreign.steps = append(fs.foreign.steps, foreignStep{step, fact.Package})
		}
	}
}

// imported returns the function of another package that call calls, if there is a summary of this
// function. The result has no body.
func (fs *flows) imported(call *ast.CallExpr) *function {
	fn := calleeOf(fs.info, call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg() == fs.pass.Pkg || !ours(fn) && !fs.foreign.packages[fn.Pkg().Path()] {
		return nil
	}
	fn = fn.Origin()
	if f, known := fs.foreign.functions[fn]; known {
		return f
	}
	fs.foreign.functions[fn] = fs.doing(fn)
	if f := fs.foreign.functions[fn]; f != nil || !fs.foreign.packages[fn.Pkg().Path()] {
		return f
	}
	var s summary
	if _, ofLock := lockMethod(fn); ofLock || !fs.pass.ImportObjectFact(fn, &s) {
		return nil
	}
	f := &function{info: fs.info, obj: fn, progress: done, far: true}
	fs.foreign.functions[fn] = f
	for _, c := range s.Changes {
		if p := fs.load(fn, &c.Path); p != nil {
			m := method{effect(c.Effect), mode(c.Mode), outcome(c.Outcome)}
			f.changes = append(f.changes, change{m, p, fs.methodOf(c.Fn), c.Frees})
		}
	}
	load := func(all []savedAcquisition) (loaded []acquisition) {
		for _, a := range all {
			p := fs.load(fn, a.Path)
			m := method{acquire, mode(a.Mode), outcome(a.Outcome)}
			freed := map[string]bool{}
			for _, key := range a.Freed {
				freed[key] = true
			}
			loaded = append(loaded, acquisition{
				call: &lockCall{method: m, fn: fs.methodOf(a.Fn), path: p}, via: a.Via, path: p,
				where: a.Where, maybe: a.Maybe, freed: freed, class: class{a.Key, a.Name},
			})
		}
		return loaded
	}
	fs.certainly[f] = load(s.Certain)
	fs.orders.acquires[f] = load(s.Acquired)
	freeing := map[string]bool{}
	for _, key := range s.Frees {
		freeing[key] = true
	}
	fs.freeing[f] = freeing
	var callbacks []callback
	for _, c := range s.Callbacks {
		var held []hold
		for _, h := range c.Held {
			held = append(held, hold{fs.load(fn, h.Path), class{h.Key, h.Name}, fs.methodOf(h.Fn), mode(h.Mode), h.Where})
		}
		callbacks = append(callbacks, callback{c.Param, held})
	}
	fs.calling[f] = callbacks
	return f
}

// farName is how messages name a function of another package: "store.Map.Len".
func farName(fn *types.Func) string {
	if recv := fn.Signature().Recv(); recv != nil {
		if name := typeName(recv.Type()); name != "" {
			return fn.Pkg().Name() + name[strings.LastIndexByte(name, '.'):] + "." + fn.Name()
		}
	}
	return fn.Pkg().Name() + "." + fn.Name()
}

// load returns a path of fn, or nil if this package cannot follow it.
func (fs *flows) load(fn *types.Func, saved *savedPath) *path {
	if saved == nil {
		return nil
	}
	p := &path{text: saved.Text}
	switch saved.Kind {
	case ofReceiver:
		if recv := fn.Signature().Recv(); recv != nil {
			p.root = recv
		}
	case ofParameter:
		if params := fn.Signature().Params(); saved.Index < params.Len() {
			p.root = params.At(saved.Index)
		}
	case ofPackage:
		p.root = fs.variable(fn.Pkg(), saved)
	}
	if p.root == nil {
		return nil
	}
	t := p.root.Type()
	for _, name := range saved.Fields {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		var owner *types.TypeName
		if n, ok := types.Unalias(t).(*types.Named); ok {
			owner = n.Obj()
		}
		var next *types.Var
		for f := range s.Fields() {
			if f.Name() == name {
				next = f
			}
		}
		if next == nil {
			return nil
		}
		p.fields = append(p.fields, field{next.Origin(), owner})
		t = next.Type()
	}
	return p
}

// variable returns a variable of another package. One that is not exported is not in the export
// data of the compiler.
func (fs *flows) variable(pkg *types.Package, saved *savedPath) types.Object {
	if token.IsExported(saved.Name) {
		for _, p := range append([]*types.Package{pkg}, pkg.Imports()...) {
			if p.Path() == saved.Pkg {
				if v, ok := p.Scope().Lookup(saved.Name).(*types.Var); ok {
					return v
				}
			}
		}
	}
	key := saved.Pkg + "." + saved.Name
	if fs.foreign.variables[key] == nil {
		of := pkg
		if pkg.Path() != saved.Pkg {
			of = types.NewPackage(saved.Pkg, filepath.Base(saved.Pkg))
		}
		v := types.NewVar(token.NoPos, of, saved.Name, types.Typ[types.Invalid])
		fs.foreign.variables[key] = &foreignVar{v}
	}
	return fs.foreign.variables[key]
}

// methodOf returns a method of a lock with the names of saved. The checks ask for no more.
func (fs *flows) methodOf(saved savedMethod) *types.Func {
	if fs.foreign.methods[saved] == nil {
		pkg := types.NewPackage(saved.Pkg, filepath.Base(saved.Pkg))
		var under types.Type = types.NewStruct(nil, nil)
		if saved.Interface {
			under = types.NewInterfaceType(nil, nil)
		}
		of := types.NewNamed(types.NewTypeName(token.NoPos, pkg, saved.Type, nil), under, nil)
		recv := types.NewVar(token.NoPos, pkg, "", of)
		signature := types.NewSignatureType(recv, nil, nil, nil, nil, false)
		fs.foreign.methods[saved] = types.NewFunc(token.NoPos, pkg, saved.Name, signature)
	}
	return fs.foreign.methods[saved]
}

// exportFacts tells importing packages how the functions of this package use locks.
func (fs *flows) exportFacts() {
	for _, f := range fs.functions {
		if f.obj == nil || !f.obj.Exported() {
			continue
		}
		s := summary{
			Certain: fs.saveAll(f, fs.certain(f)), Acquired: fs.saveAll(f, fs.orders.acquired(f)),
			Frees: keysOf(fs.frees(f)),
		}
		for _, c := range f.changes {
			if p := fs.save(f, c.path); p != nil {
				s.Changes = append(s.Changes, savedChange{
					*p, savedOf(c.fn), uint8(c.effect), uint8(c.mode), uint8(c.outcome), c.frees,
				})
			}
		}
		for _, c := range fs.callbacks(f) {
			saved := savedCallback{Param: c.param}
			for _, h := range c.held {
				p := fs.save(f, h.path)
				if key := h.class.key; p != nil || understood(key) {
					saved.Held = append(saved.Held, savedHold{p, known(key), h.class.name, savedOf(h.fn), uint8(h.mode), h.where})
				}
			}
			s.Callbacks = append(s.Callbacks, saved)
		}
		if !s.empty() {
			fs.pass.ExportObjectFact(f.obj, &s)
		}
	}
	s := packageSummary{Parts: map[string]int{}}
	list := func(of map[types.Object]bool) []string {
		keys := map[string]bool{}
		for id, is := range of {
			if id != nil && is {
				keys[fs.keys[id]] = true
			}
		}
		return keysOf(keys)
	}
	s.Shared, s.Released, s.Written = list(fs.shared), list(fs.loose), list(fs.written)
	left := map[types.Object]bool{}
	for id := range fs.leavers {
		left[id] = true
	}
	s.Left = list(left)
	for t, n := range fs.parts {
		if t.Pkg() != nil {
			s.Parts[t.Pkg().Path()+"."+t.Name()] = n
		}
	}
	for _, st := range fs.orders.steps {
		if len(s.Steps) == maxSaved {
			break
		}
		if isTest(fs.pass, st.at) || silenced(fs.pass, "lockorder", st.at.Pos()) || generated(fs.pass, st.at.Pos()) ||
			!understood(st.first.key) || !understood(st.second.key) {
			continue
		}
		s.Steps = append(s.Steps, savedStep{
			First: st.first.key, FirstName: st.first.name, Second: st.second.key, SecondName: st.second.name,
			Func: fs.pass.Pkg.Name() + "." + st.name, Route: fs.pass.Pkg.Name() + "." + st.routeFrom(true),
			Outer: keysOf(st.outer), HeldRead: st.heldRead, Reads: st.reads,
		})
	}
	fs.pass.ExportPackageFact(&s)
}

// known returns a key that other packages understand, or none.
func known(key string) string {
	if understood(key) {
		return key
	}
	return ""
}

// keysOf returns the keys that other packages understand, in order.
func keysOf(set map[string]bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(set)), func(key string) bool { return !understood(key) })
}

// saveAll returns the acquisitions of f that other packages understand.
func (fs *flows) saveAll(f *function, all []acquisition) (saved []savedAcquisition) {
	for _, a := range all {
		p := fs.save(f, a.path)
		if p == nil && !understood(a.class.key) || len(saved) == maxSaved {
			continue
		}
		saved = append(saved, savedAcquisition{
			Path: p, Key: known(a.class.key), Name: a.class.name, Fn: savedOf(a.call.fn), Mode: uint8(a.call.mode),
			Outcome: uint8(a.call.outcome), Via: a.via, Where: fs.where(a), Maybe: a.maybe, Freed: keysOf(a.freed),
		})
	}
	return saved
}

// where returns the file and the line of an acquisition.
func (fs *flows) where(a acquisition) string {
	if a.where != "" {
		return a.where
	}
	return fs.placeOf(a.call.call.Pos())
}

// placeOf returns the file and the line of a position.
func (fs *flows) placeOf(pos token.Pos) string {
	at := fs.pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// save returns a path of f as other packages understand it, or nil.
func (fs *flows) save(f *function, p *path) *savedPath {
	if p == nil {
		return nil
	}
	saved := &savedPath{Text: p.text}
	for _, f := range p.fields {
		saved.Fields = append(saved.Fields, f.Name())
	}
	signature := f.obj.Signature()
	switch index, isParam := paramOf(signature, p.root); {
	case signature.Recv() != nil && p.root == signature.Recv():
		saved.Kind = ofReceiver
	case isParam:
		saved.Kind, saved.Index = ofParameter, index
	case p.root.Pkg() != nil && p.root.Parent() == p.root.Pkg().Scope():
		saved.Kind, saved.Pkg, saved.Name = ofPackage, p.root.Pkg().Path(), p.root.Name()
		if p.root.Pkg() == fs.pass.Pkg {
			saved.Text = fs.pass.Pkg.Name() + "." + p.text
		}
	default:
		return nil
	}
	return saved
}

func paramOf(signature *types.Signature, o types.Object) (index int, ok bool) {
	for i := range signature.Params().Len() {
		if signature.Params().At(i) == o {
			return i, true
		}
	}
	return 0, false
}

func savedOf(fn *types.Func) savedMethod {
	recv := fn.Signature().Recv().Type()
	saved := savedMethod{Pkg: fn.Pkg().Path(), Name: fn.Name(), Interface: types.IsInterface(recv)}
	if name := typeName(recv); name != "" {
		saved.Type = name[strings.LastIndexByte(name, '.')+1:]
	}
	return saved
}
