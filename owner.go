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
// of the calling goroutine. Goroutines that use it share the holds of o: each re-enters the locks
// of the others and may release them. They need another way to keep their own accesses apart.
//
// Use [NewOwner] for an owner that several goroutines share. The owner of a goroutine is for one
// other goroutine that acts for it alone: after it has exited with the lock, or while it waits,
// as it does for an [iter.Pull] sequence. Its holds are counted without any synchronisation,
// which makes the re-entry of a goroutine cheap. Two goroutines that use it at the same time
// spoil the count, and with it the lock.
//
// The zero Owner undoes an outer WithOwner. WithOwner panics if ctx is nil, and if neither
// [NewOwner] nor [CurrentOwner] can have returned o: a lock has room for 58 bits with the sign.
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
