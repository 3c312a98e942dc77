// Package describe lets the packages of this module say what deadlock detection shows of a lock
// that they make of another package's type. The exported API cannot: it would have internal
// types.
package describe

import "github.com/jucgo/locks/internal/syncq"

// Mutex says of which kind m is, a *reentrant.Mutex that no goroutine has waited for. Package
// reentrant sets it.
var Mutex func(m any, k *syncq.Kind)
