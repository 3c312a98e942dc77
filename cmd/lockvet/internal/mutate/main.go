// Command mutate counts the mistakes that lockvet finds. It puts one mistake at a time into a
// package in memory, and runs all checks over it:
//
//	go run ./internal/mutate -n 40 ./... # in a module with correct code
//
// It takes -n places for each kind of mistake, evenly over all places. A mistake is found if a
// check reports something in its file that it does not report without the mistake. Nothing is
// written.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// A mutation is one mistake: the text of a file between two offsets becomes new.
type mutation struct {
	kind     string
	pkg      *packages.Package
	file     int
	from, to int
	new      string
	place    string
}

// kinds are the mistakes, in the order of the output.
var kinds = []string{
	"no unlock before a return", "no unlock at all", "no deferred unlock", "defer Lock for Unlock", "a second Lock", "a second Unlock", "Unlock of the other side",
	"Lock under RLock", "Unlock of another lock",
}

func main() {
	number := flag.Int("n", 20, "places for each kind of mistake")
	verbose := flag.Bool("v", false, "print the mistakes that are not found")
	tests := flag.Bool("tests", false, "put mistakes into tests too")
	only := flag.String("kind", "", "put in mistakes only whose kind begins so")
	flag.Parse()
	if err := run(*number, *only, *verbose, *tests, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(number int, only string, verbose, tests bool, patterns []string) error {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Tests: tests}, patterns...)
	if err != nil {
		return fmt.Errorf("load %s: %w", strings.Join(patterns, " "), err)
	}
	all := map[string][]mutation{}
	for _, pkg := range loaded {
		if len(pkg.Errors) > 0 || pkg.Types == nil {
			continue
		}
		for i := range pkg.Syntax {
			for _, m := range mutations(pkg, i) {
				all[m.kind] = append(all[m.kind], m)
			}
		}
	}
	before := map[*packages.Package]map[string]bool{}
	total, found := 0, 0
	for _, kind := range kinds {
		if !strings.HasPrefix(kind, only) {
			continue
		}
		list := all[kind]
		n, hits := min(number, len(list)), 0
		var missed []string
		for i := range n {
			m := list[i*len(list)/n]
			if before[m.pkg] == nil {
				reports, err := analyze(m.pkg)
				if err != nil {
					return err
				}
				before[m.pkg] = reports
			}
			ok, err := m.found(before[m.pkg])
			if err != nil {
				return err
			}
			if ok {
				hits++
			} else {
				missed = append(missed, m.place)
			}
		}
		fmt.Printf("%-28s %d of %d\n", kind, hits, n)
		if verbose {
			for _, place := range missed {
				fmt.Println("  not found:", place)
			}
		}
		total, found = total+n, found+hits
	}
	fmt.Printf("%-28s %d of %d\n", "all", found, total)
	return nil
}

// mutations returns the mistakes that a file of pkg can get.
func mutations(pkg *packages.Package, file int) (found []mutation) {
	syntax := pkg.Syntax[file]
	offset := func(pos token.Pos) int { return pkg.Fset.Position(pos).Offset }
	add := func(kind string, n ast.Node, from, to token.Pos, text string) {
		at := pkg.Fset.Position(n.Pos())
		found = append(found, mutation{
			kind, pkg, file, offset(from), offset(to), text, fmt.Sprintf("%s:%d", at.Filename, at.Line),
		})
	}
	if ast.IsGenerated(syntax) {
		return nil
	}
	for _, d := range syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		unlocks := map[string]int{}
		locks := map[string]int{}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if lock, method := lockCall(pkg, call); strings.HasSuffix(method, "Unlock") {
					unlocks[lock+method]++
				} else if method != "" {
					locks[lock]++
				}
			}
			return true
		})
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			var list []ast.Stmt
			switch n := n.(type) {
			case *ast.BlockStmt:
				list = n.List
			case *ast.CaseClause:
				list = n.Body
			case *ast.CommClause:
				list = n.Body
			}
			for i, s := range list {
				lock, method, deferred := statement(pkg, s)
				if strings.HasSuffix(method, "Unlock") && locks[lock] > 0 {
					if other := otherLock(pkg, s, method); other != "" && unlocks[other+method] == 0 {
						text := other + "." + method + "()"
						if deferred {
							text = "defer " + text
						}
						add("Unlock of another lock", s, s.Pos(), s.End(), text)
					}
				}
				var next ast.Stmt
				if i+1 < len(list) {
					next = list[i+1]
				}
				_, returns := next.(*ast.ReturnStmt)
				switch {
				case method == "":
				case deferred && strings.HasSuffix(method, "Unlock") && locks[lock] > 0:
					if unlocks[lock+method] == 1 {
						add("no deferred unlock", s, s.Pos(), s.End(), "_ = 0")
					}
					if method != "Unlock" {
						break
					}
					add("defer Lock for Unlock", s, s.Pos(), s.End(), "defer "+lock+".Lock()")
				case deferred:
				case (method == "Unlock" || method == "RUnlock") && locks[lock] > 0:
					if returns && unlocks[lock+method] > 1 {
						add("no unlock before a return", s, s.Pos(), s.End(), "_ = 0")
					}
					if unlocks[lock+method] == 1 {
						add("no unlock at all", s, s.Pos(), s.End(), "_ = 0")
					}
					add("a second Unlock", s, s.End(), s.End(), "; "+lock+"."+method+"()")
					if method == "RUnlock" {
						add("Unlock of the other side", s, s.Pos(), s.End(), lock+".Unlock()")
					}
				case method == "Lock":
					add("a second Lock", s, s.End(), s.End(), "; "+lock+".Lock()")
				case method == "RLock":
					add("Lock under RLock", s, s.End(), s.End(), "; "+lock+".Lock()")
				}
			}
			return true
		})
	}
	return found
}

// otherLock returns the text of a lock that a slip could name in place of the lock that s unlocks:
// another field of the struct, or the same field of another variable.
func otherLock(pkg *packages.Package, s ast.Stmt, method string) string {
	var call *ast.CallExpr
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, _ = s.X.(*ast.CallExpr)
	case *ast.DeferStmt:
		call = s.Call
	}
	lock, ok := call.Fun.(*ast.SelectorExpr).X.(*ast.SelectorExpr)
	if !ok || pkg.TypesInfo.Selections[lock] == nil {
		return ""
	}
	of := pkg.TypesInfo.TypeOf(lock.X)
	under := of
	if pointer, ok := under.Underlying().(*types.Pointer); ok {
		under = pointer.Elem()
	}
	fields, ok := under.Underlying().(*types.Struct)
	if !ok {
		return ""
	}
	for f := range fields.Fields() {
		name := types.TypeString(f.Type(), nil)
		if f.Name() != lock.Sel.Name && !f.Embedded() &&
			(name == "sync.RWMutex" || name == "sync.Mutex" && method == "Unlock") {
			return types.ExprString(lock.X) + "." + f.Name()
		}
	}
	variable, ok := lock.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for scope := pkg.Types.Scope().Innermost(s.Pos()); scope != nil && scope != pkg.Types.Scope(); scope = scope.Parent() {
		for _, name := range scope.Names() {
			o := scope.Lookup(name)
			if _, ok := o.(*types.Var); ok && name != variable.Name && o.Pos() < s.Pos() && types.Identical(o.Type(), of) {
				return name + "." + lock.Sel.Name
			}
		}
	}
	return ""
}

// statement returns the lock and the method if s is a call of a method of a lock.
func statement(pkg *packages.Package, s ast.Stmt) (lock, method string, deferred bool) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			lock, method = lockCall(pkg, call)
		}
	case *ast.DeferStmt:
		lock, method = lockCall(pkg, s.Call)
		deferred = true
	}
	return lock, method, deferred
}

// lockCall returns the lock and the method that call calls, if it is one of package sync.
func lockCall(pkg *packages.Package, call *ast.CallExpr) (lock, method string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	fn, ok := pkg.TypesInfo.Uses[selector.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "sync" ||
		!slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, fn.Name()) {
		return "", ""
	}
	if recv := fn.Signature().Recv(); recv == nil || types.IsInterface(recv.Type()) {
		return "", ""
	}
	return types.ExprString(selector.X), fn.Name()
}

// found reports whether the checks report the mistake.
func (m mutation) found(before map[string]bool) (bool, error) {
	name := m.pkg.Fset.Position(m.pkg.Syntax[m.file].Pos()).Filename
	text, err := os.ReadFile(name)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	with := string(text[:m.from]) + m.new + string(text[m.to:])
	syntax, err := parser.ParseFile(m.pkg.Fset, name, with, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return false, fmt.Errorf("parse %s with a mistake: %w", m.place, err)
	}
	mutated := *m.pkg
	mutated.Syntax = slices.Clone(m.pkg.Syntax)
	mutated.Syntax[m.file] = syntax
	mutated.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{},
	}
	config := types.Config{Importer: importer(m.pkg.Imports), Sizes: m.pkg.TypesSizes, Error: func(error) {}}
	mutated.Types, err = config.Check(m.pkg.PkgPath, m.pkg.Fset, mutated.Syntax, mutated.TypesInfo)
	if err != nil {
		return false, fmt.Errorf("check %s with a mistake: %w", m.place, err)
	}
	after, err := analyze(&mutated)
	if err != nil {
		return false, err
	}
	for report := range after {
		if !before[report] {
			return true, nil
		}
	}
	return false, nil
}

// importer has the packages that a package imports.
type importer map[string]*packages.Package

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := i[path]; pkg != nil {
		return pkg.Types, nil
	}
	return nil, fmt.Errorf("import %s: it was not loaded", path)
}

// analyze returns the reports of all checks.
func analyze(pkg *packages.Package) (map[string]bool, error) {
	alone := *pkg
	alone.Imports = nil // the imports have no source here
	graph, err := checker.Analyze(checks.Analyzers(), []*packages.Package{&alone}, nil)
	if err != nil {
		return nil, fmt.Errorf("analyze %s: %w", pkg.PkgPath, err)
	}
	reports := map[string]bool{}
	for _, a := range graph.Roots {
		if a.Err != nil {
			return nil, fmt.Errorf("analyze %s: %w", pkg.PkgPath, a.Err)
		}
		for _, d := range a.Diagnostics {
			at := pkg.Fset.Position(d.Pos)
			reports[fmt.Sprintf("%s:%d: %s %s", filepath.Base(at.Filename), at.Line, a.Analyzer.Name, d.Message)] = true
		}
	}
	return reports, nil
}
