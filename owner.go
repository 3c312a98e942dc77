package locks

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/jucgo/locks/internal/goid"
)

// Owner identifies a party that can hold a lock: a goroutine, or an explicit owner made by
// [NewOwner]. The zero Owner is nobody.
//
// Two limits of goroutines as owners: an [iter.Pull] sequence runs in a goroutine of its own, so
// a lock taken inside it is not the caller's; and successive C threads that call into Go may be
// given the same goroutine. Explicit owners are the way out of both.
type Owner int64

// String returns "goroutine 7" as in a stack trace, "owner 3" for an explicit owner, and "nobody"
// for the zero Owner.
func (o Owner) String() string {
	switch {
	case o > 0:
		return "goroutine " + strconv.FormatInt(int64(o), 10)
	case o < 0:
		return "owner " + strconv.FormatUint(-uint64(o), 10)
	}
	return "nobody"
}

var owners atomic.Int64

// NewOwner returns an Owner that equals no goroutine's and no other explicit owner of this
// process. Work that moves between goroutines carries it in its context, with [WithOwner].
func NewOwner() Owner { return Owner(owners.Add(-1)) }

type ownerKey struct{}

// WithOwner returns a copy of ctx under which the Context family of every lock acts for o instead
// of the calling goroutine. Goroutines that use it share o's holds: they re-enter each other's
// locks and may release them, and so need another way to keep their own accesses apart.
//
// An owner by which several goroutines act at once is made by [NewOwner]. That of a goroutine
// will do for whoever acts for it alone: for one that has exited with the lock, or that waits
// meanwhile, as it does for an [iter.Pull] sequence. Its holds are counted without any
// synchronisation, which is what makes a goroutine's re-entry cheap, so two that use it at the
// same time, or one beside the goroutine itself, spoil the count, and with it the lock.
//
// The zero Owner undoes an outer WithOwner. WithOwner panics if ctx is nil, or if o is a number
// that neither [NewOwner] nor [CurrentOwner] returned and that does not fit, with its sign, in 58
// bits: that is what a lock has room for.
func WithOwner(ctx context.Context, o Owner) context.Context {
	if o<<6>>6 != o {
		panic("locks: WithOwner: " + strconv.FormatInt(int64(o), 10) + " is no owner")
	}
	return context.WithValue(ctx, ownerKey{}, o)
}

// CurrentOwner returns the owner that ctx carries or, if it carries none or is nil, the calling
// goroutine.
func CurrentOwner(ctx context.Context) Owner {
	if ctx != nil {
		if o, ok := ctx.Value(ownerKey{}).(Owner); ok && o != 0 {
			return o
		}
	}
	return Owner(goid.Get())
}
