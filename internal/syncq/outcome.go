package syncq

import "math"

// MaxHolds is how many exclusive holds, and how many shared holds, an owner may have at a time.
const MaxHolds = math.MaxInt32

// explicit reports whether owner is an explicit owner, which may act in several goroutines at once.
func explicit(owner int64) bool { return owner < 0 }

// Outcome is how an acquisition ended, or another operation of an explicit owner. The zero Outcome
// is none, so that a forgotten Outcome gives nobody a lock.
type Outcome uint8

const (
	Acquired   Outcome = iota + 1
	Busy               // TryLock: another owner holds the lock
	Ended              // the limit ended first
	Refused            // the wait would have closed a cycle
	TooMany            // the owner has MaxHolds already
	Upgrade            // the owner reads and asks to write
	NotHeld            // the owner has no such hold
	OthersHold         // a wait would give up holds that other goroutines of the owner acquired
)
