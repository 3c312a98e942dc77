package locks

import "context"

// Locker is a lock with one holder at a time, in this process or anywhere.
//
// Implementations are safe for concurrent use. A successful LockContext happens after the
// UnlockContext that gave the lock up before it, in the sense of the Go memory model.
type Locker interface {
	// LockContext waits until the lock is held, ctx ends, or the backend fails, and returns nil
	// only in the first case. A ctx that has already ended is reported even if the lock is free,
	// and also on re-entry.
	//
	// When ctx ends, the error matches ctx.Err() and, if it differs, context.Cause(ctx), under
	// errors.Is. A nil ctx is [ErrNilContext].
	//
	// ctx bounds the wait, not the hold: a ctx that ends later does not release the lock.
	LockContext(ctx context.Context) error

	// UnlockContext gives one hold back. It takes values from ctx, such as the [Owner], but not
	// its cancellation, so that a request that was cancelled still releases what it holds. A nil
	// ctx carries no values: it releases a hold of the calling goroutine.
	//
	// It returns an error matching [ErrNotHeld], and changes nothing, if the caller has no hold,
	// and one matching [ErrLost] if a lease was lost.
	UnlockContext(ctx context.Context) error
}

// TryLocker is a [Locker] that can also be asked without waiting. It is the interface to write
// call sites against: every lock of this module, local or distributed, implements it.
type TryLocker interface {
	Locker

	// TryLockContext takes the lock if that needs no waiting for a holder. It barges: it takes a
	// free lock past everybody who waits, even if the lock is a fair one. ctx bounds input and
	// output only, but a ctx that has already ended is an error, as in LockContext.
	//
	// The result is true if and only if the lock was taken, and then the error is nil. That
	// somebody else holds the lock is false without an error.
	TryLockContext(ctx context.Context) (bool, error)
}

// ReadWriteLocker is a pair of locks over one resource: any number of read holders, or one write
// holder.
type ReadWriteLocker interface {
	ReadLocker() TryLocker
	WriteLocker() TryLocker
}

// Provider gives locks by name. Two lockers that one Provider returns for the same name exclude
// each other; so do those of two distributed providers over the same store.
type Provider interface {
	Locker(name string) TryLocker
}
