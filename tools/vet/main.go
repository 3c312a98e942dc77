// Command vet is go vet, staticcheck, lockvet and a check of this repository in one program. The go
// command loads each package once for all of them, and keeps the result in its cache:
//
//	go build -o "$TMPDIR/vet" ./tools/vet && go vet -vettool="$TMPDIR/vet" work
//
// Each finding ends with the name of its check. Comments silence findings as they do in the
// original programs, and staticcheck.conf configures the checks of staticcheck.
//
// The original of staticcheck knows more about the modules that the repository requires. See
// exporting.
package main

import (
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/config"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("vet: ")
	useStaticcheckDefaults()
	flag.Var(version{}, "V", "print the version that go vet has in the keys of its cache")
	var selected []*analysis.Analyzer
	if last := os.Args[len(os.Args)-1]; strings.HasSuffix(last, ".cfg") {
		var err error
		if selected, err = forUnit(last); err != nil {
			log.Fatal(err)
		}
	}
	unitchecker.Main(selected...)
}

// forUnit returns the analyzers for the package that a file of the go command describes.
func forUnit(file string) ([]*analysis.Analyzer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var unit unitchecker.Config
	if err := json.Unmarshal(text, &unit); err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	all := append(slices.Clone(goVet), checks.Analyzers()...)
	for _, a := range staticcheckAnalyzers() {
		all = append(all, a.Analyzer)
	}
	walk(all, func(a *analysis.Analyzer) {
		for _, f := range a.FactTypes {
			gob.Register(f) // the facts about an imported package may have each type
		}
	})
	if unit.VetxOnly {
		return exporting(all, &unit), nil
	}
	conf, err := config.Load(unit.Dir)
	if err != nil {
		return nil, fmt.Errorf("load the configuration of staticcheck: %w", err)
	}
	reporting := []*analysis.Analyzer{staticcheckOf(conf), named(copies)}
	for _, a := range goVet {
		reporting = append(reporting, named(a))
	}
	if !showsMistakes(unit.ImportPath) {
		for _, a := range checks.Analyzers() {
			reporting = append(reporting, named(a))
		}
	}
	return reporting, nil
}

// exporting returns the analyzers that export facts about a package that others import.
//
// For the modules that the repository requires these are only the analyzers that need no SSA form
// of the package, which takes minutes for the clients of stores. So staticcheck knows of no
// function there that it is pure, or never returns nil, or takes pairs of arguments.
func exporting(all []*analysis.Analyzer, unit *unitchecker.Config) []*analysis.Analyzer {
	// Neither the standard library nor a module of the workspace has a version.
	withSSA := unit.ModuleVersion == ""
	var list []*analysis.Analyzer
	walk(all, func(a *analysis.Analyzer) {
		if len(a.FactTypes) > 0 && (withSSA || !needsSSA(a)) {
			list = append(list, a)
		}
	})
	return list
}

// showsMistakes reports whether the package shows mistakes with locks on purpose, as the scenarios
// of the lab do.
func showsMistakes(path string) bool {
	const lab = "github.com/jucgo/locks/cmd/locklab"
	path = strings.TrimSuffix(path, "_test")
	return path == lab || strings.HasPrefix(path, lab+"/internal/")
}

// named returns a copy of a whose findings end with its name.
func named(a *analysis.Analyzer) *analysis.Analyzer {
	with := *a
	with.Run = func(pass *analysis.Pass) (any, error) {
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			d.Message += " (" + a.Name + ")"
			pass.Report(d)
		}
		return a.Run(&own)
	}
	return &with
}

// walk calls visit once for each analyzer of list, and for each analyzer that they require.
func walk(list []*analysis.Analyzer, visit func(*analysis.Analyzer)) {
	seen := map[*analysis.Analyzer]bool{}
	var from func(list []*analysis.Analyzer)
	from = func(list []*analysis.Analyzer) {
		for _, a := range list {
			if !seen[a] {
				seen[a] = true
				visit(a)
				from(a.Requires)
			}
		}
	}
	from(list)
}

func needsSSA(a *analysis.Analyzer) bool {
	needs := false
	walk(a.Requires, func(a *analysis.Analyzer) { needs = needs || a.Name == "buildssa" || a.Name == "buildir" })
	return needs
}

// version is the flag -V=full, by which the go command asks on which things the results depend: on
// this program, and on the configuration of staticcheck.
type version struct{}

func (version) IsBoolFlag() bool { return true }
func (version) String() string   { return "" }
func (version) Set(string) error {
	conf, err := config.Load(".")
	if err != nil {
		return err
	}
	name, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.Open(name)
	if err != nil {
		return err
	}
	defer program.Close()
	hash := sha256.New()
	fmt.Fprintln(hash, conf)
	if _, err := io.Copy(hash, program); err != nil {
		return err
	}
	fmt.Printf("vet version devel buildID=%x\n", hash.Sum(nil))
	os.Exit(0)
	return nil
}
