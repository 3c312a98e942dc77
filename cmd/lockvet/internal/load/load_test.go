package load

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/packages"
)

// The functions of the standard library and of x/tools are the functions below this package.
func TestTheSameFunctionsNeverReturnAsWithAllBodies(t *testing.T) {
	const pattern = "github.com/jucgo/locks/cmd/lockvet/golangci"
	whole, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax | packages.NeedModule}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Packages(packages.Config{}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	want, got := endless(t, whole), endless(t, loaded)
	if len(want) < 20 {
		t.Fatalf("only %d functions never return", len(want))
	}
	for name := range want {
		if !got[name] && name != "runtime: func runtime.gopanic(e any)" { // dead code follows; only compilers call it
			t.Errorf("%s never returns, and is said to return", name)
		}
	}
	for name := range got {
		if !want[name] {
			t.Errorf("%s returns, and is said never to return", name)
		}
	}
}

// endless returns the functions that never return, in packages and all that they import.
func endless(t *testing.T, of []*packages.Package) map[string]bool {
	t.Helper()
	graph, err := checker.Analyze([]*analysis.Analyzer{ctrlflow.Analyzer}, of, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for a := range graph.All() {
		if a.Err != nil {
			t.Fatalf("%v: %v", a, a.Err)
		}
		if a.Analyzer == ctrlflow.Analyzer {
			for _, fact := range a.AllObjectFacts() {
				names[fact.Object.Pkg().Path()+": "+fact.Object.String()] = true
			}
		}
	}
	return names
}

func TestBodiesThatCertainlyEndAreDropped(t *testing.T) {
	const source = `package p
func keepsCall() { exit() }
func keepsDeadReturn() int { exit(); return 0 }
func keepsLoop() { for { work() } }
func keepsSelect() { select {} }
func keepsBranches() { if x { exit() } else { panic(1) } }
func keepsCases() { switch { default: exit() } }
func keepsGoto() { again: goto again }
func keepsLiteral() { f = func() int { return 1 }; exit() }
func dropsEmpty() {}
func dropsReturn() int { return 0 }
func dropsEarlyReturn() { if x { return }; exit() }
func dropsAssignment() { exit(); x = 1 }
func dropsCondition() { for x { exit() } }
func dropsIf() { if x { exit() } }
func dropsRange() { for range x { exit() } }
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	strip(file)
	for _, d := range file.Decls {
		f := d.(*ast.FuncDecl)
		if kept := len(f.Body.List) > 0; kept != strings.HasPrefix(f.Name.Name, "keeps") {
			t.Errorf("%s: kept %t", f.Name.Name, kept)
		}
	}
}

func TestErrorsOfTypesAreThoseOfTheMatchedPackage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/wrong\n\ngo 1.26.0\n",
		"a.go":   "package wrong\n\nimport \"strings\"\n\nvar x int = strings.ToUpper(\"a\")\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := Packages(packages.Config{Dir: dir, Env: append(os.Environ(), "GOWORK=off")}, ".")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			all = append(all, e.Msg)
		}
	})
	if len(all) != 1 || !strings.Contains(all[0], "cannot use") {
		t.Errorf("errors: %q", all)
	}
}
