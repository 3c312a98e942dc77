// Package ownerless names the packages of a program whose locks have no owners. Package deadlock
// sees no waits for such locks, and says so in a test.
//
// A package names itself when the program starts, so its locks do nothing for it.
package ownerless

import "slices"

var packages []string

// Has notes a package, and returns true. It is called while the program starts.
func Has(name string) bool {
	packages = append(packages, name)
	return true
}

// Packages returns the names in their order.
func Packages() []string { return slices.Sorted(slices.Values(packages)) }
