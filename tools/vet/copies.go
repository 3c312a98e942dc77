package main

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// copies finds exported types whose doc comment and fields disagree about copies. A copied lock is
// two locks. So go vet must see the copy, and the reader must know.
var copies = &analysis.Analyzer{
	Name: "copies",
	Doc:  "compare what doc comments of exported types say about copies with what go vet sees",
	Run:  findCopies,
}

var notCopied = regexp.MustCompile(`(?i)\bmust not be copied\b`)

func findCopies(pass *analysis.Pass) (any, error) {
	if strings.Contains(pass.Pkg.Path()+"/", "/internal/") || pass.Pkg.Name() == "main" {
		return nil, nil
	}
	for _, file := range pass.Files {
		if strings.HasSuffix(pass.Fset.Position(file.Pos()).Filename, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				s, ok := spec.(*ast.TypeSpec)
				if !ok || !s.Name.IsExported() {
					continue
				}
				text := strings.Join(strings.Fields(decl.Doc.Text()+" "+s.Doc.Text()), " ")
				says := notCopied.MatchString(text)
				switch shows := uncopyable(pass.TypesInfo.Defs[s.Name].Type(), nil); {
				case says && !shows:
					pass.Reportf(s.Pos(), "%s must not be copied, and go vet does not see a copy: "+
						"give it a field with a lock", s.Name.Name)
				case shows && !says:
					pass.Reportf(s.Pos(), "%s has a lock, and its doc comment does not say that it "+
						"must not be copied", s.Name.Name)
				}
			}
		}
	}
	return nil, nil
}

// uncopyable reports whether go vet sees a copy of a value of a type: the type has methods Lock and
// Unlock of its pointer, or a field or an element that has.
func uncopyable(of types.Type, seen []types.Type) bool {
	for _, before := range seen {
		if types.Identical(before, of) {
			return false
		}
	}
	seen = append(seen, of)
	switch under := of.Underlying().(type) {
	case *types.Array:
		return uncopyable(under.Elem(), seen)
	case *types.Struct:
		values, pointers := types.NewMethodSet(of), types.NewMethodSet(types.NewPointer(of))
		has := func(set *types.MethodSet, name string) bool { return set.Lookup(nil, name) != nil }
		if has(pointers, "Lock") && has(pointers, "Unlock") && !has(values, "Lock") {
			return true
		}
		for field := range under.Fields() {
			if uncopyable(field.Type(), seen) {
				return true
			}
		}
	}
	return false
}
