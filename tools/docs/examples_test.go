package docs

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// There is no list of exceptions. A type has an Example of its own, or the Examples of its package
// use it. An option, a field and a parameter are shown in the code that gives or reads them.
func TestEveryExportedTypeIsShownInAnExample(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	n := 0
	for _, folder := range publicPackages(t, w) {
		name, err := filepath.Rel(w.Folder, folder)
		must(t, err)
		p := documentation(t, folder, path.Join(workspace.Root, filepath.ToSlash(name)))
		n += len(p.Types)
		for _, name := range unshown(p) {
			t.Errorf("%s: no Example shows type %s", p.ImportPath, name)
		}
	}
	if n < 90 {
		t.Fatalf("only %d types", n)
	}
}

func TestATypeThatNoExampleUsesIsFound(t *testing.T) {
	files := map[string]string{
		"p.go": `package p
			type Named int
			type Made int
			func New() Made { return 0 }
			type Passed func()
			func With() Passed { return nil }
			type Returned int
			func (Named) Get() Returned { return 0 }
			type Chosen int
			const One Chosen = 1
			type Missing int
			func (Missing) Method() {}
			type Lookalike int
			type hidden int`,
		"p_test.go": `package p_test
			func ExampleNamed_Get() { p.New(); p.With(); other.Lookalike(); _ = p.One }
			func TestMissing() { p.Missing() }`,
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for name, text := range files {
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		must(t, err)
		parsed = append(parsed, file)
	}
	p, err := doc.NewFromFiles(set, parsed, "example.com/p", doc.PreserveAST)
	must(t, err)
	if got := unshown(p); !slices.Equal(got, []string{"Lookalike", "Missing"}) {
		t.Errorf("the types without an example are %q", got)
	}
}

// publicPackages returns the folders of the packages that users can import.
func publicPackages(t *testing.T, w *workspace.Workspace) []string {
	t.Helper()
	modules := map[string]*workspace.Module{}
	for _, m := range w.Modules {
		modules[m.Folder] = m
	}
	var folders []string
	for _, m := range w.Public() {
		must(t, filepath.WalkDir(m.Folder, func(folder string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			other := folder != m.Folder && modules[folder] != nil
			hidden := []string{".git", "internal", "testdata", "artifacts"}
			if other || slices.Contains(hidden, e.Name()) {
				return fs.SkipDir
			}
			folders = append(folders, folder)
			return nil
		}))
	}
	return folders
}

// documentation returns godoc's page of the package in folder, for all systems together. A command
// or a folder without a package has no types.
func documentation(t *testing.T, folder, importPath string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must(t, err)
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		text, err := os.ReadFile(name)
		must(t, err)
		file, err := parser.ParseFile(set, name, text, parser.ParseComments)
		must(t, err)
		files = append(files, file)
	}
	if len(files) == 0 || files[0].Name.Name == "main" {
		return &doc.Package{}
	}
	p, err := doc.NewFromFiles(set, files, importPath, doc.PreserveAST)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", folder, err))
	}
	return p
}

// unshown returns the types of p for which godoc has no Example. An Example shows a type if it is
// of the type, of its functions or methods, or of a method that returns it. An Example also shows
// a type if its code names the type, one of its constants, or a function that returns it.
func unshown(p *doc.Package) []string {
	all := slices.Clone(p.Examples)
	for _, f := range p.Funcs {
		all = append(all, f.Examples...)
	}
	shown := map[string]bool{}
	for _, typ := range p.Types {
		all = append(all, typ.Examples...)
		shown[typ.Name] = shown[typ.Name] || len(typ.Examples) > 0
		for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
			all = append(all, f.Examples...)
			if len(f.Examples) == 0 {
				continue
			}
			shown[typ.Name] = true
			if f.Decl.Type.Results != nil {
				ast.Inspect(f.Decl.Type.Results, func(n ast.Node) bool {
					if name, ok := n.(*ast.Ident); ok {
						shown[name.Name] = true
					}
					return true
				})
			}
		}
	}
	used := map[string]bool{}
	for _, example := range all {
		var code ast.Node = example.Code
		if example.Play != nil {
			code = example.Play // with the declarations that godoc prints beside the function
		}
		ast.Inspect(code, func(n ast.Node) bool {
			if of, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := of.X.(*ast.Ident); ok && from.Name == p.Name {
					used[of.Sel.Name] = true
				}
			}
			return true
		})
	}
	var missing []string
	for _, typ := range p.Types {
		names := []string{typ.Name}
		for _, f := range typ.Funcs {
			names = append(names, f.Name)
		}
		for _, c := range typ.Consts {
			names = append(names, c.Names...)
		}
		if !shown[typ.Name] && !slices.ContainsFunc(names, func(name string) bool { return used[name] }) {
			missing = append(missing, typ.Name)
		}
	}
	return missing
}
