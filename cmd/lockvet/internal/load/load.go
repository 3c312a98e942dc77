// Package load loads packages with the source of all that they import, for analyzers with facts.
//
// It does less than packages.Load. Of a package of the standard library, or of a module at a fixed
// version, the analyzers ask for one thing only: which functions never return. So the body of each
// other function is dropped before the types are checked. That saves more than half of the memory.
package load

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// Packages returns the packages that match patterns, as packages.Load does with LoadAllSyntax.
func Packages(config packages.Config, patterns ...string) ([]*packages.Package, error) {
	config.Mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedDeps | packages.NeedModule | packages.NeedTypesSizes
	roots, err := packages.Load(&config, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	if len(roots) == 0 {
		return nil, fmt.Errorf("%s matched no packages", strings.Join(patterns, " "))
	}
	l := loader{
		fset: token.NewFileSet(), roots: map[*packages.Package]bool{},
		done: map[*packages.Package]chan struct{}{}, turns: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	for _, p := range roots {
		l.roots[p] = true
	}
	packages.Visit(roots, nil, func(p *packages.Package) { l.done[p] = make(chan struct{}) })
	var all sync.WaitGroup
	for p, done := range l.done {
		all.Go(func() {
			defer close(done)
			for _, imported := range p.Imports {
				<-l.done[imported]
			}
			l.turns <- struct{}{}
			defer func() { <-l.turns }()
			l.load(p)
		})
	}
	all.Wait()
	return roots, nil
}

type loader struct {
	fset  *token.FileSet
	roots map[*packages.Package]bool
	done  map[*packages.Package]chan struct{} // closed when the package is loaded
	turns chan struct{}                       // as many as processors
}

// load parses the files of a package and checks its types. It loads the imports of the package
// first.
func (l *loader) load(p *packages.Package) {
	p.Fset, p.Syntax = l.fset, []*ast.File{}
	if p.PkgPath == "unsafe" {
		p.Types, p.TypesInfo = types.Unsafe, newInfo(true)
		return
	}
	whole := l.roots[p] || p.Module != nil && p.Module.Version == ""
	known := len(p.Errors) > 0 // the go command has reported syntax errors
	note := func(err error) {
		p.IllTyped = true
		var list scanner.ErrorList
		var wrongType types.Error
		switch {
		case errors.As(err, &list):
			for _, e := range list {
				if !known {
					p.Errors = append(p.Errors, packages.Error{Pos: e.Pos.String(), Msg: e.Msg, Kind: packages.ParseError})
				}
			}
		case errors.As(err, &wrongType):
			at := l.fset.Position(wrongType.Pos).String()
			p.TypeErrors = append(p.TypeErrors, wrongType)
			p.Errors = append(p.Errors, packages.Error{Pos: at, Msg: wrongType.Msg, Kind: packages.TypeError})
		default:
			p.Errors = append(p.Errors, packages.Error{Msg: err.Error()})
		}
	}
	mode := parser.SkipObjectResolution
	if whole {
		mode |= parser.ParseComments
	}
	for _, name := range p.CompiledGoFiles {
		file, err := parser.ParseFile(l.fset, name, nil, mode)
		if err != nil {
			note(err)
		}
		if file == nil {
			continue
		}
		if !whole {
			strip(file)
		}
		p.Syntax = append(p.Syntax, file)
	}
	config := types.Config{Importer: importer{p}, Sizes: p.TypesSizes, Error: func(error) {}}
	if whole {
		config.Error = note
	} // functions without a body lack a return
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.TypesInfo = newInfo(whole)
	p.Types, _ = config.Check(p.PkgPath, l.fset, p.Syntax, p.TypesInfo)
	if !whole {
		p.TypesInfo.Types = map[ast.Expr]types.TypeAndValue{} // typeutil.Callee wants one
	}
	for _, imported := range p.Imports {
		p.IllTyped = p.IllTyped || imported.IllTyped
	}
}

// newInfo returns the maps that the type checker fills. Of a package whose functions lack bodies,
// only those are asked for that tell which function a call calls.
func newInfo(whole bool) *types.Info {
	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{},
	}
	if whole {
		info.Types, info.Implicits = map[ast.Expr]types.TypeAndValue{}, map[ast.Node]types.Object{}
		info.Scopes, info.FileVersions = map[ast.Node]*types.Scope{}, map[*ast.File]string{}
	}
	return info
}

// importer finds the imports of one package.
type importer struct{ of *packages.Package }

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := i.of.Imports[path]; p != nil && p.Types != nil {
		return p.Types, nil
	}
	return nil, fmt.Errorf("no package %s is known", path)
}

// strip drops the bodies of functions that certainly return.
func strip(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !mayNotReturn(f.Body) {
			f.Body.List = nil
		}
	}
}

// mayNotReturn reports whether a function with this body may never return. Such a function ends
// with a call, or in a loop. A return behind a call is never reached, perhaps.
func mayNotReturn(body *ast.BlockStmt) bool {
	if !mayNotEnd(body.List) {
		return false
	}
	returns := false
	ast.Inspect(body, func(n ast.Node) bool {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for i, s := range list {
			if _, ok := s.(*ast.ReturnStmt); ok {
				returns = returns || i == 0 || !isCall(list[i-1])
			}
		}
		return !returns
	})
	return !returns
}

// mayNotEnd reports whether control may never come to the end of a list of statements.
func mayNotEnd(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch last := list[len(list)-1].(type) {
	case *ast.ExprStmt:
		return isCall(last)
	case *ast.ReturnStmt:
		return len(list) > 1 && isCall(list[len(list)-2])
	case *ast.ForStmt:
		return last.Cond == nil
	case *ast.IfStmt:
		return last.Else != nil
	case *ast.BlockStmt, *ast.LabeledStmt, *ast.BranchStmt, *ast.SelectStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt:
		return true
	}
	return false
}

func isCall(s ast.Stmt) bool {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return false
	}
	_, ok = ast.Unparen(e.X).(*ast.CallExpr)
	return ok
}
