package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/jucgo/locks/cmd/lockvet/internal/load"
)

// alone checks the packages that args name. It prints the reports, and returns the exit code. It
// does nothing if a flag is not known here, as -fix or -json: package multichecker knows these.
func alone(args []string, analyzers []*analysis.Analyzer, stderr io.Writer) (code int, ok bool) {
	flags := flag.NewFlagSet("lockvet", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flag.VisitAll(func(f *flag.Flag) { flags.Var(f.Value, f.Name, f.Usage) })
	tests := flags.Bool("test", true, "check tests too")
	asked := map[string]bool{}
	for _, a := range analyzers {
		flags.BoolFunc(a.Name, a.Doc, func(value string) error {
			on, err := strconv.ParseBool(value)
			asked[a.Name] = on
			return err
		})
	}
	if flags.Parse(args) != nil || flags.NArg() == 0 {
		return 0, false
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // most of what is loaded stays
	}
	loaded, err := load.Packages(packages.Config{Tests: *tests}, flags.Args()...)
	if err != nil {
		fmt.Fprintln(stderr, "lockvet:", err)
		return 1, true
	}
	if packages.PrintErrors(loaded) > 0 {
		code = 1
	}
	graph, err := checker.Analyze(chosen(analyzers, asked), loaded, nil)
	if err == nil {
		err = graph.PrintText(stderr, -1)
	}
	if err != nil {
		fmt.Fprintln(stderr, "lockvet:", err)
		return 1, true
	}
	for a := range graph.All() {
		switch {
		case a.Err != nil:
			return 1, true
		case a.IsRoot && len(a.Diagnostics) > 0:
			code = max(code, 3)
		}
	}
	return code, true
}

// chosen returns the checks that flags ask for: the checks that a flag turns on, or all but the
// checks that a flag turns off.
func chosen(analyzers []*analysis.Analyzer, asked map[string]bool) (run []*analysis.Analyzer) {
	some := false
	for _, on := range asked {
		some = some || on
	}
	return slices.DeleteFunc(slices.Clone(analyzers), func(a *analysis.Analyzer) bool {
		on, said := asked[a.Name]
		return said && !on || some && !on
	})
}
