// Command lockvet finds mistakes with locks of package sync and of github.com/jucgo/locks. See
// package checks for the mistakes that it finds, and README.md for how to run it. A program without
// a report may have mistakes: "lockvet help" lists the code that no check looks at.
//
//	go vet -vettool=$(which lockvet) ./...   # within go vet, with its cache
//	lockvet ./...                            # by itself, which takes more memory
//	lockvet -fix ./...                       # applies the fixes that are safe
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

func main() {
	flag.Func("locktypes", "further types of locks, with the methods of a sync.Mutex: `import/path.Type,...`",
		func(list string) error { return checks.SetLockTypes(strings.Split(list, ",")...) })
	flag.BoolFunc("generated", "report mistakes in generated files too", func(value string) error {
		too, err := strconv.ParseBool(value)
		checks.ReportGenerated(too)
		return err
	})
	zh := chinese(os.Getenv)
	goVet := byGoVet(os.Args[1:])
	if !goVet { // it has packages in its cache, and would print nothing about these
		flag.BoolFunc("leftout", "print how many acquisitions of locks are left out in each package, and why",
			func(value string) error {
				wanted, err := strconv.ParseBool(value)
				if err == nil && wanted {
					checks.CountLeftOut(func(l checks.LeftOut) { printLeftOut(os.Stderr, l, zh) })
				}
				return err
			})
	}
	analyzers := checks.Analyzers()
	for i, a := range analyzers {
		analyzers[i] = named(a, zh)
	}
	if zh && slices.Contains(os.Args[1:], "-V=full") {
		if err := printVersion(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "lockvet:", err)
			os.Exit(1)
		}
		return
	}
	if goVet && factsOnly(os.Args[len(os.Args)-1]) {
		for i, a := range analyzers {
			analyzers[i] = idle(a)
		}
	}
	if goVet {
		unitchecker.Main(analyzers...)
	}
	if code, ok := helped(os.Args[1:], analyzers, os.Stdout, os.Stderr); ok {
		os.Exit(code)
	}
	if code, ok := alone(os.Args[1:], analyzers, os.Stderr); ok {
		os.Exit(code)
	}
	flag.Usage = shortUsage
	multichecker.Main(analyzers...)
}

// named lets each report of a end with its name, and be in Chinese if zh is set.
func named(a *analysis.Analyzer, zh bool) *analysis.Analyzer {
	with := *a
	with.Run = func(pass *analysis.Pass) (any, error) {
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			if zh {
				d = translated(d)
			}
			d.Message += " (" + a.Name + ")"
			pass.Report(d)
		}
		return a.Run(&own)
	}
	return &with
}

// factsOnly reports whether go vet asks only for the facts of an imported package. config is the
// file that go vet passes for the package.
func factsOnly(config string) bool {
	text, err := os.ReadFile(config)
	if err != nil {
		return false
	}
	var about struct{ VetxOnly bool }
	return json.Unmarshal(text, &about) == nil && about.VetxOnly
}

// idle returns an analyzer with the name of a that reports nothing. It only has the package's facts
// computed: which functions never return, and how they use locks. Otherwise unitchecker would run a
// for each package that others import, and drop the reports.
func idle(a *analysis.Analyzer) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: a.Name, Doc: a.Doc, URL: a.URL, Requires: []*analysis.Analyzer{checks.Facts()},
		Run: func(*analysis.Pass) (any, error) { return nil, nil },
	}
}

// byGoVet reports whether go vet started this process. It asks for the version and the flags, and
// then passes one file for each package.
func byGoVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
}
