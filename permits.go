package locks

import "context"

// Semaphore has a number of permits, its size. An acquisition takes several of them at once. A
// semaphore.Weighted bounds the goroutines of one process. A lease.Semaphore bounds the
// goroutines of all processes that use one store. Java's Semaphore; Redisson's
// RPermitExpirableSemaphore.
//
// A semaphore knows no owner. An acquisition returns its [Permits], and any goroutine that has
// the Permits may release them.
type Semaphore interface {
	// AcquireContext acquires n permits, and waits for them until ctx ends. A request for more
	// than the size is an error matching [ErrTooLarge]. A request for less than one permit is an
	// error as well.
	AcquireContext(ctx context.Context, n int64) (Permits, error)

	// TryAcquireContext acquires n permits if they are free, and reports whether it did. If they
	// are not free, it returns nil, false and no error. It does not wait for permits. If the
	// semaphore has a store, it waits for the store's answer. It may return false although the
	// permits are free, while others ask for permits. With an error it returns false.
	TryAcquireContext(ctx context.Context, n int64) (p Permits, ok bool, err error)
}

// Permits are the permits of one acquisition of a [Semaphore], until their release. Like a [Hold]
// of a lock, they can be lost if they are leased. Lost permits go to other acquisitions. The
// permits of a semaphore in this process are never lost: Lost returns nil, and Extend changes
// nothing. After a release, Err returns [ErrNotHeld].
//
// Tokens increase from acquisition to acquisition, or are 0 if the store has no tokens. Several
// holders are inside at a time, so a resource that refuses smaller tokens than it has seen
// refuses some of them. A token only tells two acquisitions apart.
type Permits interface {
	Hold

	// Count returns the number of permits.
	Count() int64

	// ReleaseContext gives the permits back. A second release is [ErrNotHeld]. An error matching
	// [ErrLost] says that they were lost before, or that the store did not confirm the release. The
	// release then goes on in the background. ReleaseContext works also if ctx has ended.
	ReleaseContext(ctx context.Context) error
}
