// Package attach connects packages of this module where the exported API cannot, because the
// functions between them have types of package syncq.
package attach

import (
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/syncq"
)

// Lock is a lock of this module as it describes itself to condition.New, which takes a *Lock in
// the place of the lock.
type Lock struct {
	sync.Locker                     // the lock
	Q           *syncq.Cond         // or nil, if the lock has a queue that conditions cannot use
	Kind        *syncq.Kind         // the kind of a lock that knows its owner, else nil
	Refuse      func(o int64) error // if not nil, says why o, which holds the lock, may not wait
	Order       *raceorder.Order    // the order of a lock that hides its word from the race detector, else nil
}

// Reentrant returns the engine of m, a *reentrant.Mutex. Package reentrant sets it, for package
// keyed. None of the functions of package reentrant has a parameter that could carry an engine.
var Reentrant func(m locks.TryLocker) *syncq.Reentrant
