// Package rwlock has read-write locks.
//
//   - [RWMutex] belongs to goroutines or explicit owners. It is reentrant on both sides, and has
//     downgrades and conditions. Java's ReentrantReadWriteLock.
//   - [StampedLock] belongs to the holder of a stamp. It has optimistic reads, which write
//     nothing. Java's StampedLock.
//   - [Snapshot] is a single value whose readers take no lock.
//
// A read-write lock pays if sections are long, reads frequent and writes rare. If sections take
// a few nanoseconds, or one in ten of them writes, a plain mutex is often faster. Measure with
// go test -bench Mixed ./bench.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show each wait at the line where the goroutine
// waits. The mutex profile lacks events of these locks: the runtime records events for its own
// semaphores only, and offers no public way to add events. Package record measures how long
// goroutines wait for locks and hold them.
package rwlock
