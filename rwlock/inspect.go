package rwlock

import (
	"fmt"

	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
)

// IsFair reports whether the lock admits by locks.FIFO.
func (rw *RWMutex) IsFair() bool { return rw.s.Policy() == syncq.FIFO }

// IsWriteLocked reports whether an owner writes. Java's isWriteLocked().
func (rw *RWMutex) IsWriteLocked() bool { return rw.s.Owner() != 0 }

// IsReadLocked reports whether an owner reads, which may be the writer.
func (rw *RWMutex) IsReadLocked() bool { return rw.ReadLockCount() > 0 }

// IsWriteHeld reports whether the calling goroutine writes. Java's
// isWriteLockedByCurrentThread().
func (rw *RWMutex) IsWriteHeld() bool { return rw.s.HeldBy(goid.Get()) }

// IsReadHeld reports whether the calling goroutine reads.
func (rw *RWMutex) IsReadHeld() bool { return rw.ReadHoldCount() > 0 }

// ReadLockCount returns the number of read holds of all owners, nested holds included. While
// readers come and go, it is an estimate. It may count a reader that is about to wait. Java's
// getReadLockCount().
func (rw *RWMutex) ReadLockCount() int { return shares.ReadCount(&rw.s) }

// ReadHoldCount returns how many read holds the calling goroutine has. Java's getReadHoldCount().
func (rw *RWMutex) ReadHoldCount() int { return rw.s.ReadHolds(goid.Get()) }

// WriteHoldCount returns how many write holds the calling goroutine has. Java's
// getWriteHoldCount().
func (rw *RWMutex) WriteHoldCount() int { return rw.s.HoldCount(goid.Get()) }

// Owner returns the owner that writes, or 0.
func (rw *RWMutex) Owner() locks.Owner { return locks.Owner(rw.s.Owner()) }

// Readers returns the owners that read, in no order. It is an estimate like
// [RWMutex.ReadLockCount].
func (rw *RWMutex) Readers() []locks.Owner { return outcome.Owners(shares.Readers(&rw.s)) }

// HasQueued reports whether a goroutine waits for the lock, to read or to write. A reader that a
// release has woken does not count until it waits again. Java's hasQueuedThreads().
func (rw *RWMutex) HasQueued() bool { return rw.s.HasQueued() }

// QueueLength returns the number of goroutines that wait for the lock, without woken readers: see
// [RWMutex.HasQueued]. Java's getQueueLength().
func (rw *RWMutex) QueueLength() int { return rw.s.Len() }

// IsQueued reports whether o waits for the lock. It is false for a woken reader: see
// [RWMutex.HasQueued]. Java's hasQueuedThread(thread).
func (rw *RWMutex) IsQueued(o locks.Owner) bool { return rw.s.Waits(int64(o)) }

// Queued returns the owners that wait for the lock, longest wait first, without woken readers: see
// [RWMutex.HasQueued]. Java's getQueuedThreads().
func (rw *RWMutex) Queued() []locks.Owner { return outcome.Owners(rw.s.Waiters()) }

// QueuedReaders returns the owners that wait to read, longest wait first, without woken readers:
// see [RWMutex.HasQueued]. Java's getQueuedReaderThreads().
func (rw *RWMutex) QueuedReaders() []locks.Owner { return outcome.Owners(rw.s.WaitersFor(true)) }

// QueuedWriters returns the owners that wait to write, longest wait first. Java's
// getQueuedWriterThreads().
func (rw *RWMutex) QueuedWriters() []locks.Owner { return outcome.Owners(rw.s.WaitersFor(false)) }

// HasWaiters reports whether a goroutine waits for a signal of c. Like [RWMutex.WaitQueueLength]
// it panics with [locks.ErrForeign] if c is nil or of another lock, and with [locks.ErrNotHeld]
// if the calling goroutine does not write.
func (rw *RWMutex) HasWaiters(c *condition.Cond) bool { return rw.WaitQueueLength(c) > 0 }

// WaitQueueLength returns the number of goroutines that wait for a signal of c.
func (rw *RWMutex) WaitQueueLength(c *condition.Cond) int {
	if c == nil || c.Locker() != rw && c.Locker() != (*writeView)(rw) {
		panic(locks.ErrForeign)
	}
	return c.WaitQueueLength()
}

// AssertWriteHeld panics with [locks.ErrNotHeld] if the calling goroutine does not write.
func (rw *RWMutex) AssertWriteHeld() {
	if !rw.IsWriteHeld() {
		panic(rw.notWritten("AssertWriteHeld", locks.Owner(goid.Get())))
	}
}

// AssertReadHeld panics with [locks.ErrNotHeld] if the calling goroutine does not read.
func (rw *RWMutex) AssertReadHeld() {
	if !rw.IsReadHeld() {
		panic(rw.notRead("AssertReadHeld", locks.Owner(goid.Get())))
	}
}

// WriteHoldCountContext returns how many write holds ctx's owner has. The holds of all goroutines
// that share an explicit owner count. It ignores the end of ctx.
func (rw *RWMutex) WriteHoldCountContext(ctx context.Context) int {
	return shares.WriteHolds(&rw.s.Reentrant, int64(locks.CurrentOwner(ctx)))
}

// ReadHoldCountContext is the same for read holds.
func (rw *RWMutex) ReadHoldCountContext(ctx context.Context) int {
	return shares.ReadHolds(&rw.s, int64(locks.CurrentOwner(ctx)))
}

// Inspect describes the lock, its owners, and its waiters without woken readers: see
// [RWMutex.HasQueued] and [locks.Inspector].
func (rw *RWMutex) Inspect(ctx context.Context) (locks.Info, error) {
	s := info.State{Waiters: rw.Queued()}
	if o := rw.Owner(); o != 0 {
		s.Held, s.Holders = true, []locks.Owner{o}
	} else if owners := rw.Readers(); len(owners) > 0 {
		s.Held, s.Shared, s.Holders = true, true, owners
	}
	return s.Answer("rwlock: Inspect", ctx)
}

// String describes the lock and its state.
func (rw *RWMutex) String() string {
	state := "unlocked"
	if o := rw.Owner(); o != 0 {
		state = "write-locked by " + o.String()
	} else if n := rw.ReadLockCount(); n > 0 {
		state = fmt.Sprintf("%d read holds", n)
	}
	return fmt.Sprintf("rwlock.RWMutex(%p)[%s, %d queued]", rw, state, rw.QueueLength())
}
