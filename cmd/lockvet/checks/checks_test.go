package checks_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// testdata is a module of its own, with the locks of this repository.

func TestEachCheckReportsItsMistakesOnly(t *testing.T) {
	for _, a := range checks.Analyzers() {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), a, "./"+a.Name)
		})
	}
}

func TestACommentSilencesAFinding(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), checks.DoubleLock, "./silence")
}

func TestTypesOfLocksCanBeNamed(t *testing.T) {
	if err := checks.SetLockTypes("example.com/testdata/named.Mutex"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.SetLockTypes() })
	compare(t, "named")
}

func TestNamesOfLockTypesNeedAPackage(t *testing.T) {
	for _, name := range []string{"Mutex", "sync.", "example.com/sync", ".Mutex", ""} {
		if err := checks.SetLockTypes(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	_ = checks.SetLockTypes()
}

// The files of known rebuild deadlocks of released programs, and say which deadlocks no check
// finds.
func TestKnownDeadlocksAreFound(t *testing.T) { compare(t, "known") }

func TestCallsAcquireAndReleaseAsTheirCallees(t *testing.T) { compare(t, "calls") }

func TestIdiomsAreReportedIfTheyAreWrong(t *testing.T) { compare(t, "idioms") }

func TestCallsOfOtherPackagesAcquireAndReleaseAsTheirCallees(t *testing.T) { compare(t, "across") }

func TestOrdersOfPackagesThatMeetInAThirdAreReported(t *testing.T) { compare(t, "apart") }

func TestOrdersOfPackagesThatMeetAreReportedWhereTheyMeetOnly(t *testing.T) {
	compare(t, "apart/above")
}

func TestGeneratedFilesAreNotReported(t *testing.T) { compare(t, "generated") }

// The compiler sees what cgo makes of such a file.
func TestFilesWithCAreNotTakenForGenerated(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1")
	compare(t, "cgo")
}

// go list names the files in the order of their names, and the files are parsed at the same time.
// So the places of any of them can come first.
func TestReportsAreEqualInWhateverOrderFilesAreParsed(t *testing.T) {
	for _, dir := range []string{"files", "known"} {
		abs, err := filepath.Abs(filepath.Join("testdata", dir))
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(abs, "*.go"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		forward := reports(analyzed(t, abs, inOrderOf(files)))
		slices.Reverse(files)
		if backward := reports(analyzed(t, abs, inOrderOf(files))); backward != forward {
			t.Errorf("%s: parsed in order:\n%s\nparsed in reverse:\n%s", dir, forward, backward)
		}
	}
}

func TestAcquisitionsThatAreLeftOutAreCounted(t *testing.T) {
	abs, err := filepath.Abs(filepath.Join("testdata", "leftout"))
	if err != nil {
		t.Fatal(err)
	}
	var got []checks.LeftOut
	checks.CountLeftOut(func(l checks.LeftOut) { got = append(got, l) })
	t.Cleanup(func() { checks.CountLeftOut(nil) })
	analyzed(t, abs, nil)
	want := checks.LeftOut{
		Package: "example.com/testdata/leftout", Acquisitions: 8,
		Nameless: 1, Given: 1, Unclear: 1, Released: 1, Kept: 1, Generated: 1,
	}
	if !slices.Equal(got, []checks.LeftOut{want}) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// inOrderOf returns a function for packages.Config that parses the files in this order.
func inOrderOf(files []string) func(*token.FileSet, string, []byte) (*ast.File, error) {
	var once sync.Once
	parsed := map[string]*ast.File{}
	const mode = parser.ParseComments | parser.SkipObjectResolution
	return func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
		once.Do(func() {
			for _, file := range files {
				parsed[file], _ = parser.ParseFile(fset, file, nil, mode)
			}
		})
		if f := parsed[name]; f != nil {
			return f, nil
		}
		return parser.ParseFile(fset, name, text, mode)
	}
}

// reports returns the reports in the order of their places, with the places below them.
func reports(graph *checker.Graph) string {
	var all []string
	for _, a := range graph.Roots {
		at := func(pos token.Pos) string {
			p := a.Package.Fset.Position(pos)
			return fmt.Sprintf("%s:%d:%d", filepath.Base(p.Filename), p.Line, p.Column)
		}
		for _, d := range a.Diagnostics {
			lines := at(d.Pos) + ": " + d.Message
			for _, r := range d.Related {
				lines += "\n\t" + at(r.Pos) + ": " + r.Message
			}
			all = append(all, lines)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// analyzed runs all checks over the package in a folder. Its files are parsed by parse, or as usual
// if that is nil.
func analyzed(
	t *testing.T, dir string, parse func(*token.FileSet, string, []byte) (*ast.File, error),
) *checker.Graph {
	t.Helper()
	config := &packages.Config{
		Mode: packages.LoadAllSyntax | packages.NeedModule, Dir: dir,
		Env: append(os.Environ(), "GOWORK=off"), ParseFile: parse,
	}
	loaded, err := packages.Load(config, ".")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(checks.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range graph.Roots {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	return graph
}

// compare runs all checks over a package of testdata. It compares what they find with the comments
// "// found: NAME".
func compare(t *testing.T, dir string) {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("testdata", dir))
	if err != nil {
		t.Fatal(err)
	}
	graph := analyzed(t, abs, nil)
	var found, want []string
	for _, a := range graph.Roots {
		for _, d := range a.Diagnostics {
			at := a.Package.Fset.Position(d.Pos)
			found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(at.Filename), at.Line, a.Analyzer.Name))
		}
	}
	files, err := filepath.Glob(filepath.Join(abs, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if _, name, ok := strings.Cut(string(line), "// found: "); ok {
				want = append(want, fmt.Sprintf("%s:%d: %s", filepath.Base(file), i+1, name))
			}
		}
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnalyzersAreValidAndDocumented(t *testing.T) {
	all := checks.Analyzers()
	if err := analysis.Validate(all); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.URL == "" {
			t.Errorf("%s has no URL", a.Name)
		}
	}
}
