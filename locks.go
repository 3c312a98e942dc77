package locks

import "context"

// Locker is a lock with one holder at a time, in this process or anywhere.
//
// Implementations are safe for concurrent use. In the terms of the Go memory model, an
// UnlockContext synchronizes before the LockContext that acquires the lock next.
type Locker interface {
	// LockContext acquires the lock, and waits for it if need be. It returns nil only if it
	// acquired the lock. Otherwise ctx has ended, or the store failed. A ctx that has already
	// ended is an error even if the lock is free, and even on re-entry.
	//
	// If ctx ends, the error matches ctx.Err() and, if it differs, context.Cause(ctx), under
	// [errors.Is]. A nil ctx is [ErrNilContext]. The error keeps ctx and its values until the
	// program asks for the error's text or cause. A program that stores errors calls Error first.
	//
	// If a grant and the end of ctx meet, the grant wins. A waiter that has the lock when it sees
	// the end of ctx keeps the lock, and LockContext returns nil.
	//
	// ctx limits the wait, not the hold: a ctx that ends later does not release the lock.
	LockContext(ctx context.Context) error

	// UnlockContext releases one hold. It takes values from ctx, such as the [Owner], but
	// ignores its cancellation. Therefore a cancelled request still releases what it holds. A
	// nil ctx carries no values: it releases a hold of the calling goroutine.
	//
	// It returns an error matching [ErrNotHeld], and changes nothing, if the caller has no hold.
	// It returns an error matching [ErrLost] if the lease was lost.
	UnlockContext(ctx context.Context) error
}

// TryLocker is a [Locker] that can also be acquired without waiting. Write call sites against
// this interface: every lock of this module, local or distributed, implements it.
type TryLocker interface {
	Locker

	// TryLockContext acquires the lock if it is free or the owner can re-enter it. It barges,
	// even on a fair lock: it acquires a free lock ahead of the waiters. ctx limits input and
	// output only. A ctx that has already ended is an error, as in LockContext.
	//
	// The result is true if and only if the caller acquired the lock, and then the error is nil.
	// If another owner holds the lock, the result is false without an error.
	TryLockContext(ctx context.Context) (bool, error)
}

// ReadWriteLocker is a pair of locks over one resource: any number of read holders, or one write
// holder.
type ReadWriteLocker interface {
	ReadLocker() TryLocker
	WriteLocker() TryLocker
}

// Provider makes locks by name. Two locks of one Provider with the same name exclude each other.
// So do the locks of two distributed providers over the same store.
type Provider interface {
	Locker(name string) TryLocker
}
