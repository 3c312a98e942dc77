// Command lockvet finds mistakes with locks: those of package sync and of github.com/jucgo/locks.
// See package checks for what it finds, and README.md for how to run it.
//
//	lockvet ./...                            # prints what it finds
//	lockvet -fix ./...                       # applies the fixes that are safe
//	go vet -vettool=$(which lockvet) ./...   # the same within go vet, with its cache
package main

import (
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

func main() {
	if byGoVet(os.Args[1:]) {
		unitchecker.Main(checks.Analyzers()...)
	}
	multichecker.Main(checks.Analyzers()...)
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
