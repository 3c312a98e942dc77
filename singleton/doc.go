// Package singleton constructs a value when it is first used, and only once: double-checked
// locking done right.
//
// # What is wrong with the usual way
//
// The usual way checks, locks, and checks again:
//
//	var instance *Config
//
//	func Get() *Config {
//		if instance == nil { // data race
//			mu.Lock()
//			defer mu.Unlock()
//			if instance == nil {
//				instance = load() // data race
//			}
//		}
//		return instance
//	}
//
// The second check and the write hold the lock; the first check does not. In the terms of the Go
// memory model nothing orders the first check after the write. The two are a data race, and go
// test -race reports it. The race does harm: constructing the value and setting the pointer are
// separate writes, and other goroutines may see them in either order. On arm64 a goroutine can
// find a pointer that is not nil, and behind it fields that are not set yet. Java had the same
// bug; since Java 5 a volatile field avoids it.
//
// In Go the first check must be an atomic load of a flag that is stored after the value was
// written. An atomic store synchronizes before each load that observes it. Therefore a goroutine
// that sees the flag also sees the value and all writes that made it. [Lazy] and [sync.Once] work
// this way.
//
// # What sync.OnceValue does not do
//
// [sync.Once] and [sync.OnceValue] call their function once: an error stays for ever, and so
// does a panic. A waiter cannot cancel its wait, and a function that asks for its own result
// hangs. Lazy tries again after a failure, lets a context end a wait, and returns
// [ErrRecursive].
package singleton
