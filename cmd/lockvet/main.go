// Command lockvet finds mistakes with locks: those of package sync and of github.com/jucgo/locks.
// See package checks for what it finds, and README.md for how to run it. No report does not mean
// that there is no mistake: "lockvet help" says what is not looked at.
//
//	go vet -vettool=$(which lockvet) ./...   # within go vet, with its cache
//	lockvet ./...                            # by itself, which takes more memory
//	lockvet -fix ./...                       # applies the fixes that are safe
package main

import (
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
	analyzers := checks.Analyzers()
	zh := chinese(os.Getenv)
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
	if byGoVet(os.Args[1:]) {
		unitchecker.Main(analyzers...)
	}
	if code, ok := helped(os.Args[1:], analyzers, os.Stdout, os.Stderr); ok {
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

// byGoVet reports whether go vet started this process. It asks for the version and the flags, and
// then passes one file for each package.
func byGoVet(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return last == "-V=full" || last == "-flags" || strings.HasSuffix(last, ".cfg")
}
