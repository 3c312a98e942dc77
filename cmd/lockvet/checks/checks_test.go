package checks_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

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
