package checks_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// The files of known rebuild deadlocks of released programs, and say which ones no check finds.
func TestKnownDeadlocksAreFound(t *testing.T) { compare(t, "known") }

func TestCallsAcquireAndReleaseAsTheirCallees(t *testing.T) { compare(t, "calls") }

func TestGeneratedFilesAreNotReported(t *testing.T) { compare(t, "generated") }

// compare runs all checks over a package of testdata. It compares what they find with the comments
// "// found: NAME".
func compare(t *testing.T, dir string) {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("testdata", dir))
	if err != nil {
		t.Fatal(err)
	}
	config := &packages.Config{Mode: packages.LoadAllSyntax, Dir: abs, Env: append(os.Environ(), "GOWORK=off")}
	loaded, err := packages.Load(config, ".")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze(checks.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found, want []string
	for _, a := range graph.Roots {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
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
