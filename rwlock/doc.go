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
package rwlock
