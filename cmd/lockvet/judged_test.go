package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// testdata/judged requires modules of others at fixed versions. Its list.txt names the packages to
// check, and has each report with a verdict.
func TestReportsOnOthersCodeAreJudged(t *testing.T) {
	dir := filepath.Join("testdata", "judged")
	text, err := os.ReadFile(filepath.Join(dir, "list.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var patterns, judged []string
	verdicts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case len(fields) == 2 && fields[0] == "check":
			patterns = append(patterns, fields[1])
		case len(fields) > 3 && slices.Contains([]string{"real", "harmless", "false"}, fields[0]):
			judged = append(judged, fields[1]+" "+strings.TrimSuffix(fields[2], ":"))
			verdicts[fields[0]]++
		default:
			t.Fatalf("list.txt: want a verdict, a place, the check, and a reason: %s", line)
		}
	}
	var reports []string
	for _, a := range analyzeOthers(t, dir, patterns) {
		for _, d := range a.Diagnostics {
			at := a.Package.Fset.Position(d.Pos)
			place := fmt.Sprintf("%s:%d", path.Join(a.Package.PkgPath, filepath.Base(at.Filename)), at.Line)
			reports = append(reports, place+" "+a.Analyzer.Name)
			if !slices.Contains(judged, place+" "+a.Analyzer.Name) {
				t.Errorf("a report without a verdict in list.txt: %s %s: %s", place, a.Analyzer.Name, d.Message)
			}
		}
	}
	for _, j := range judged {
		if !slices.Contains(reports, j) {
			t.Errorf("list.txt has a report that lockvet does not make: %s", j)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%d reports: %d real mistakes, %d harmless, %d false",
		len(judged), verdicts["real"], verdicts["harmless"], verdicts["false"])
	if !strings.Contains(string(readme), said) {
		t.Errorf("README.md does not say %q", said)
	}
}

// analyzeOthers runs all checks over packages of other modules, as on linux/amd64 without cgo.
func analyzeOthers(t *testing.T, dir string, patterns []string) []*checker.Action {
	t.Helper()
	config := &packages.Config{
		Mode: packages.LoadAllSyntax, Dir: dir,
		Env: append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"),
	}
	var loaded []*packages.Package
	var err error
	for range 3 { // a download may fail
		if loaded, err = packages.Load(config, patterns...); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if packages.PrintErrors(loaded) > 0 {
		t.Fatal("the packages have errors")
	}
	graph, err := checker.Analyze(checks.Analyzers(), loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range graph.Roots {
		if a.Err != nil {
			t.Fatalf("%v: %v", a, a.Err)
		}
	}
	return graph.Roots
}
