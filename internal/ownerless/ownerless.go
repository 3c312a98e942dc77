// Package ownerless names the locks of a program that have no owners. Package deadlock sees no
// waits for such locks, and says so in a test.
//
// A package of such locks names itself when the program starts, so its locks do nothing for it. A
// lock without owners in a package of locks with owners names itself at its first wait.
package ownerless

import (
	"slices"
	"sync"
	"sync/atomic"
)

var (
	mu    sync.Mutex
	names []string
)

// Has notes a package, and returns true. It is called while the program starts.
func Has(name string) bool {
	mu.Lock()
	defer mu.Unlock()
	names = append(names, name)
	return true
}

// Names returns the names of packages and kinds in their order.
func Names() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(slices.Values(names))
}

// Kind is a kind of lock in a package whose other locks have owners.
type Kind struct {
	Name  string
	noted atomic.Bool
}

// Waits notes that a goroutine waits for a lock of this kind.
func (k *Kind) Waits() {
	if !k.noted.Load() && k.noted.CompareAndSwap(false, true) {
		Has(k.Name)
	}
}
