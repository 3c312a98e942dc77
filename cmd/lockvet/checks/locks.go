package checks

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// root is the import path of the module whose locks the checks know, besides package sync.
const root = "github.com/jucgo/locks"

// A mode is a side of a lock. A lock without a read side has write mode only.
type mode uint8

const (
	write mode = iota
	read
)

// An effect is the effect of a method on a hold.
type effect uint8

const (
	acquire effect = iota + 1
	release
	convert // downgrades or upgrades
)

// An outcome is how a method tells whether it succeeded.
type outcome uint8

const (
	always    outcome = iota // it returns only after success
	byBool                   // TryLock
	byErr                    // LockContext
	byBoolErr                // TryLockContext
)

// results has the number of results of a method.
var results = [...]int{always: 0, byBool: 1, byErr: 1, byBoolErr: 2}

// A method describes a method of a lock.
type method struct {
	effect  effect
	mode    mode
	outcome outcome
}

var methods = map[string]method{
	"Lock":              {acquire, write, always},
	"RLock":             {acquire, read, always},
	"LockContext":       {acquire, write, byErr},
	"RLockContext":      {acquire, read, byErr},
	"TryLock":           {acquire, write, byBool},
	"TryRLock":          {acquire, read, byBool},
	"TryLockFor":        {acquire, write, byBool},
	"TryRLockFor":       {acquire, read, byBool},
	"TryLockContext":    {acquire, write, byBoolErr},
	"TryRLockContext":   {acquire, read, byBoolErr},
	"Unlock":            {release, write, always},
	"RUnlock":           {release, read, always},
	"UnlockContext":     {release, write, byErr},
	"RUnlockContext":    {release, read, byErr},
	"Downgrade":         {convert, write, always},
	"DowngradeContext":  {convert, write, byErr},
	"TryUpgrade":        {convert, read, byBool},
	"TryUpgradeContext": {convert, read, byBoolErr},
}

// waits reports whether an acquisition by the method waits until the lock is free.
func (m method) waits() bool {
	return m.effect == acquire && (m.outcome == always || m.outcome == byErr)
}

// ours reports whether an object belongs to the module of the locks, or to an adapter.
func ours(o types.Object) bool {
	if o == nil || o.Pkg() == nil {
		return false
	}
	path := o.Pkg().Path()
	return path == root || strings.HasPrefix(path, root+"/")
}

// named are the types of locks that SetLockTypes added.
var named map[string]bool

// SetLockTypes lets the checks know more types of locks, "import/path.Type". Their methods have the
// names and the meaning of the methods of sync.Mutex and sync.RWMutex. Call it before the analysis.
func SetLockTypes(types ...string) error {
	named = map[string]bool{}
	for _, t := range types {
		if dot := strings.LastIndexByte(t, '.'); dot <= strings.LastIndexByte(t, '/')+1 || dot == len(t)-1 {
			return fmt.Errorf("lock type %q: want import/path.Type", t)
		}
		named[t] = true
	}
	return nil
}

// isNamed reports whether fn is a method of a type that SetLockTypes added.
func isNamed(fn *types.Func) bool {
	return named[typeName(fn.Signature().Recv().Type())]
}

// typeName returns the package and the name of a type, or of the target of a pointer type, as
// SetLockTypes takes them. It is empty for a type without a name.
func typeName(t types.Type) string {
	t = types.Unalias(t)
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}

// lockMethod returns what is known of fn, if fn is a method of a lock.
func lockMethod(fn *types.Func) (method, bool) {
	m, known := methods[fn.Name()]
	if !known || fn.Pkg() == nil || fn.Signature().Recv() == nil {
		return method{}, false
	}
	if fn.Pkg().Path() != "sync" && !ours(fn) && !isNamed(fn) {
		return method{}, false
	}
	// Methods of the same name with other signatures, as of a StampedLock, are not meant.
	params := 0
	if strings.HasSuffix(fn.Name(), "Context") || strings.HasSuffix(fn.Name(), "For") {
		params = 1
	}
	return m, fn.Signature().Params().Len() == params && fn.Signature().Results().Len() == results[m.outcome]
}

// ownerless reports whether fn is a method of a lock without owners. Such a lock does not look at
// the context of UnlockContext.
func ownerless(fn *types.Func) bool {
	path := fn.Pkg().Path()
	return path == root+"/fair" || path == root+"/spin"
}

// plain reports whether fn is a method of a lock that its holder cannot enter again. An interface
// may have any lock behind it.
func plain(fn *types.Func) bool {
	if types.IsInterface(fn.Signature().Recv().Type()) {
		return false
	}
	return fn.Pkg().Path() == "sync" || ownerless(fn) || isNamed(fn)
}

// reentrant reports whether fn is a method of a local lock that its owner can enter again. To try
// that always succeeds.
func reentrant(fn *types.Func) bool { return local(fn) && !ownerless(fn) }

// local reports whether fn is a method of a lock of one process.
func local(fn *types.Func) bool {
	switch strings.TrimPrefix(fn.Pkg().Path(), root+"/") {
	case "sync", "fair", "spin", "reentrant", "rwlock", "keyed":
		return true
	}
	return false
}

// A path names a lock within a function: a variable, and the fields that lead from it to the lock.
type path struct {
	root   types.Object
	fields []field
	text   string // as in the source
}

// A field is a field on a path.
type field struct {
	*types.Var
	owner *types.TypeName // the type that has the field; nil if it has no name
}

// key is equal for equal paths only.
func (p *path) key() string {
	key := make([]byte, 0, 64)
	key = appendAddress(key, p.root)
	for _, f := range p.fields {
		key = appendAddress(key, f.Var)
	}
	return string(key)
}

// appendAddress appends the address of an object, which package fmt takes long to print.
func appendAddress(key []byte, o types.Object) []byte {
	return append(strconv.AppendUint(key, uint64(reflect.ValueOf(o).Pointer()), 36), '.')
}

// id identifies the locks of this path in all functions: by the field or the variable of a package.
// It is nil for other variables.
func (p *path) id() types.Object {
	if n := len(p.fields); n > 0 {
		return p.fields[n-1].Origin()
	}
	if p.root.Pkg() != nil && p.root.Parent() == p.root.Pkg().Scope() {
		return p.root
	}
	return nil
}

// A class is the locks of several functions that have one field or variable, with a name for
// people: "Server.mu". The key is the same in all packages, unless it begins with inside.
type class struct{ key, name string }

// class returns what the locks of this path have in common in all functions. Unlike id, it tells
// apart the types that have one struct as a part. It is empty if the path does not show which of
// these types has the lock.
func (fs *flows) class(p *path) (c class) {
	id := p.id()
	if id == nil {
		return class{}
	}
	if len(p.fields) == 0 {
		return class{p.idKey(), p.text}
	}
	first := len(p.fields) - 1
	for owner := p.fields[first].owner; owner != nil && fs.partsOf(owner) > 1; owner = p.fields[first].owner {
		if first == 0 || partOf(p.fields[first-1].Var) != owner {
			return class{}
		}
		first--
	}
	c.key = p.fields[first].key()
	for i, f := range p.fields[first:] {
		if i > 0 {
			c.key += "." + f.Name()
		}
		c.name += "." + f.Name()
	}
	for first > 0 && p.fields[first].owner == nil { // a struct without a name
		first--
		c.name = "." + p.fields[first].Name() + c.name
	}
	if owner := p.fields[first].owner; owner != nil {
		c.name = owner.Name() + c.name
	} else {
		c.name = p.text
	}
	return c
}

// with returns the path to another field of the struct that has the last field of p.
func (p *path) with(f field) *path {
	n := len(p.fields) - 1
	text := strings.TrimSuffix(p.text, p.fields[n].Name()) + f.Name()
	return &path{p.root, append(p.fields[:n:n], f), text}
}

// begins reports whether p is q, or leads through q.
func (p *path) begins(q *path) bool {
	return p.root == q.root && len(q.fields) <= len(p.fields) && slices.Equal(q.fields, p.fields[:len(q.fields)])
}

// pathOf returns the path that e denotes, or nil if e is neither a variable nor a field of one.
func pathOf(info *types.Info, e ast.Expr) *path {
	p := pathTo(info, e)
	if p != nil {
		p.text = types.ExprString(operand(e))
	}
	return p
}

// operand returns e without parentheses, *, and &.
func operand(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.UnaryExpr:
			if x.Op != token.AND {
				return e
			}
			e = x.X
		default:
			return e
		}
	}
}

// pathTo returns the path of pathOf without its text, which takes long.
func pathTo(info *types.Info, e ast.Expr) *path {
	switch e := operand(e).(type) {
	case *ast.Ident:
		if v, ok := info.ObjectOf(e).(*types.Var); ok && !v.IsField() {
			return &path{root: v}
		}
	case *ast.SelectorExpr:
		selected := info.Selections[e]
		if selected == nil {
			if v, ok := info.Uses[e.Sel].(*types.Var); ok {
				return &path{root: v}
			}
			return nil
		}
		if selected.Kind() == types.FieldVal {
			return pathTo(info, e.X).through(selected.Recv(), selected.Index())
		}
	}
	return nil
}

// through returns p extended by the fields of a selection, or nil.
func (p *path) through(t types.Type, index []int) *path {
	if p == nil {
		return nil
	}
	n := len(p.fields)
	extended := &path{p.root, p.fields[:n:n], p.text}
	for _, i := range index {
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
		extended.fields = append(extended.fields, field{s.Field(i).Origin(), owner})
		t = s.Field(i).Type()
	}
	return extended
}

// toEmbedded returns the path to the embedded lock by which the type of p has the methods of a lock,
// or nil.
func (p *path) toEmbedded() *path {
	t := p.typ()
	o, index, _ := types.LookupFieldOrMethod(types.NewPointer(t), true, nil, "Unlock")
	fn, ok := o.(*types.Func)
	if !ok || len(index) < 2 {
		return nil
	}
	if _, ok := lockMethod(fn); !ok {
		return nil
	}
	return p.through(t, index[:len(index)-1])
}

// toReceiver returns the path to the receiver of a selected method, or nil. The receiver is e or an
// embedded field of it.
func toReceiver(info *types.Info, e ast.Expr, selected *types.Selection) *path {
	index := selected.Index()
	return pathOf(info, e).through(selected.Recv(), index[:len(index)-1])
}

// A lockCall is a call of a method of a lock.
type lockCall struct {
	method
	call *ast.CallExpr
	fn   *types.Func
	path *path // nil if no variable leads to the lock
	via  *site // the call of a function that does it, or nil
	of   *tracked
}

// ctx returns the context that is passed, or nil.
func (c *lockCall) ctx() ast.Expr {
	if strings.HasSuffix(c.fn.Name(), "Context") && len(c.call.Args) == 1 {
		return c.call.Args[0]
	}
	return nil
}

// lockCallOf returns what call does with a lock, or nil.
func lockCallOf(info *types.Info, call *ast.CallExpr) *lockCall {
	fn := calleeOf(info, call)
	if fn == nil {
		return nil
	}
	m, ok := lockMethod(fn)
	if !ok {
		return nil
	}
	c := &lockCall{method: m, call: call, fn: fn}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return c
	}
	selected := info.Selections[selector]
	if selected == nil || selected.Kind() != types.MethodVal {
		return c
	}
	receiver := selector.X
	// The views of a read-write lock are the sides of that lock.
	if view, ok := ast.Unparen(receiver).(*ast.CallExpr); ok && len(selected.Index()) == 1 {
		of, side, ok := viewOf(info, view)
		if !ok {
			return c
		}
		c.mode, receiver, selected = side, of.X, info.Selections[of]
	}
	c.path = toReceiver(info, receiver, selected)
	return c
}

// viewOf returns the selector of the method by which call makes a view of a lock, and its side.
func viewOf(info *types.Info, call *ast.CallExpr) (of *ast.SelectorExpr, side mode, ok bool) {
	fn := calleeOf(info, call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "sync" && !ours(fn) {
		return nil, 0, false
	}
	switch fn.Name() {
	case "RLocker", "ReadLocker":
		side = read
	case "WriteLocker":
	default:
		return nil, 0, false
	}
	of, ok = ast.Unparen(call.Fun).(*ast.SelectorExpr)
	return of, side, ok && info.Selections[of] != nil
}
