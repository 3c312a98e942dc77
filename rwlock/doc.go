// Package rwlock has the locks that tell reading from writing.
//
//   - [RWMutex] belongs to goroutines: reentrant on both sides, downgradeable, with conditions.
//     Java's ReentrantReadWriteLock.
//   - [StampedLock] belongs to the holder of a stamp, and has optimistic reads that write nothing
//     at all. Java's StampedLock.
//   - [Snapshot] is a single value with such reads, without stamps.
//
// A read-write lock pays where sections are long enough, reads many and writes few. Where
// sections are a few nanoseconds, or one in ten of them writes, a plain mutex is often the faster
// one: go test -bench Mixed ./bench tells.
//
// # Profiles
//
// The block profile and the goroutine-leak profile show waits where the goroutine waits. The
// mutex profile has no events of these locks: the runtime records them for its own semaphores
// only, and there is no public way to add any. Package record measures how long locks are
// waited for and held.
package rwlock
