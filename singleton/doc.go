// Package singleton makes one value of a kind, the first time that somebody asks for it:
// double-checked locking, done right.
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
// The second check and the write are under the lock; the first check is not. Nothing orders it
// after the write in the sense of the Go memory model, so the two are a data race, and go test
// -race says so. It is not a formality: making the value and setting the pointer are separate
// writes, which the compiler and the processor may let others see in either order. On arm64 a
// goroutine can find a pointer that is not nil, and behind it fields that are not set yet. Java
// had the very same bug, which volatile cures since Java 5.
//
// The cure in Go is to make the first check an atomic load, of a flag that is stored after the
// value was written. An atomic store synchronizes before each load that observes it, so a
// goroutine that sees the flag sees the value and all that was done to make it. That is how
// [Lazy] works, and [sync.Once].
//
// # What sync.OnceValue does not do
//
// [sync.Once] and [sync.OnceValue] have one chance: an error is for ever, and so is a panic. A
// waiter cannot give up, and a function that asks for its own result hangs. Lazy tries again
// after a failure, takes a context for those who wait, and returns [ErrRecursive].
package singleton
