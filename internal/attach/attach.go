// Package attach connects the packages of this module where the exported API cannot: the
// functions that they need of each other take types of package syncq.
package attach

import (
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/syncq"
)

// Cond is a condition of a lock of this module, as the lock describes it.
type Cond struct {
	Of     any // the lock, a pointer
	Q      *syncq.Cond
	Kind   *syncq.Kind         // of a lock that knows its owner, else nil
	Refuse func(o int64) error // if not nil, says why o, which holds the lock, may not wait
	Order  *raceorder.Order    // of a lock that hides its word from the race detector, else nil
}

// New makes a *condition.Cond. SyncOf returns the synchronizer of a condition's lock. QueueOf
// returns the condition's queue, which its copies share. SetOf sets which lock the condition
// reports as its own. Package condition sets them before any lock can use them, since each lock
// imports it.
var (
	New     func(Cond) any
	SyncOf  func(cond any) *syncq.Sync
	QueueOf func(cond any) *syncq.Cond
	SetOf   func(cond, of any)
)

// Describe sets the kind of m, a *reentrant.Mutex that no goroutine has waited for. Package
// reentrant sets it.
var Describe func(m any, k *syncq.Kind)

// Hold gives m, a *reentrant.Mutex that is free and that no goroutine waits for, to goroutine o.
// The goroutine has so many holds then. Package reentrant sets it.
var Hold func(m any, o int64, holds int)
