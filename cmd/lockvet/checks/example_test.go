package checks_test

import (
	"fmt"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// A driver prints what the checks did not follow.
func ExampleLeftOut() {
	report := func(l checks.LeftOut) {
		if l.Any() {
			fmt.Printf("%s: %d of %d acquisitions have no name\n", l.Package, l.Nameless, l.Acquisitions)
		}
	}
	checks.CountLeftOut(report)
	defer checks.CountLeftOut(nil)
	// Run the analyzers here. For a package with shards[i].mu.Lock() they call:
	report(checks.LeftOut{Package: "example.com/cache", Acquisitions: 9, Nameless: 2})
	// Output: example.com/cache: 2 of 9 acquisitions have no name
}
