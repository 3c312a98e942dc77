package checks_test

import (
	"fmt"

	"golang.org/x/tools/go/analysis"

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

// A driver of your own may run some of the checks. The report of a check ends with its name.
func ExampleAnalyzers() {
	all := []*analysis.Analyzer{
		checks.MissingUnlock, checks.DoubleLock, checks.DoubleUnlock, checks.OtherUnlock, checks.DeferLock,
		checks.DeferLoop, checks.LockUpgrade, checks.LockOrder, checks.Blocked, checks.LockError,
		checks.LostOwner, checks.DoContext, checks.WaitLoop, checks.UnlockedSignal,
	}
	fmt.Println(len(all), len(checks.Analyzers()))
	for _, a := range all {
		fmt.Println(a.Name)
	}
	// Output:
	// 14 14
	// missingunlock
	// doublelock
	// doubleunlock
	// otherunlock
	// deferlock
	// deferloop
	// lockupgrade
	// lockorder
	// blocked
	// lockerror
	// lostowner
	// docontext
	// waitloop
	// unlockedsignal
}
