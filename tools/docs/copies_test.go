package docs

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/tools/internal/workspace"
)

var notCopied = regexp.MustCompile(`(?i)\bmust not be copied\b`)

// A copied lock is two locks. So vet has to see the copy, and the reader has to know.
func TestTypesWithALockShowVetAndReadersNotToCopyThem(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	all, err := packages.Load(&packages.Config{
		Dir: w.Folder,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedImports |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedExportFile,
	}, "./...")
	must(t, err)
	if packages.PrintErrors(all) > 0 {
		t.Fatal("packages do not compile")
	}
	marked := 0
	for _, p := range all {
		if strings.Contains(p.PkgPath, "/internal/") || p.Name == "main" {
			continue
		}
		for _, file := range p.Syntax {
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
					shows := uncopyable(p.TypesInfo.Defs[s.Name].Type(), nil)
					switch {
					case says && !shows:
						t.Errorf("%s.%s must not be copied, and vet does not see a copy: it has no field with a lock",
							p.PkgPath, s.Name.Name)
					case shows && !says:
						t.Errorf("%s.%s has a lock, and its doc comment does not say that it must not be copied",
							p.PkgPath, s.Name.Name)
					case says:
						marked++
					}
				}
			}
		}
	}
	if marked < 20 {
		t.Errorf("only %d types are found", marked)
	}
}

// uncopyable reports whether vet sees a copy of a value of type of: it has methods Lock and Unlock
// of its pointer, or a field or an element that has.
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
