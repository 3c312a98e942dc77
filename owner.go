package locks

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/jucgo/locks/internal/goid"
)

// Owner identifies what can hold a lock: a goroutine, or an explicit owner made by [NewOwner].
// The zero Owner does not identify an owner.
//
// Goroutines as owners have two limits. An [iter.Pull] sequence runs in a goroutine of its own,
// so its locks are not the caller's. C threads that call into Go one after the other may get the
// same goroutine. Use explicit owners in both cases.
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

// NewOwner returns an Owner that differs from all goroutines and from all other explicit owners
// of this process. Work that moves between goroutines carries its owner in its context: see
// [WithOwner].
func NewOwner() Owner { return Owner(owners.Add(-1)) }

type ownerKey struct{}

// WithOwner returns a copy of ctx under which the Context family of every lock acts for o
// instead of the calling goroutine. Goroutines that use it share the holds of o: each can
// re-enter the locks of the others, and can release them. The lock does not keep these
// goroutines from each other.
//
// Use [NewOwner] for an owner that several goroutines share. Use the owner of a goroutine only
// for one other goroutine that acts for it alone. This is right while the owning goroutine waits,
// as for an [iter.Pull] sequence, or after it has exited with the lock. The holds of a goroutine
// are counted without synchronization, which makes its re-entry cheap. Two goroutines that use
// its owner at the same time corrupt the count, and with it the lock.
//
// The zero Owner undoes an outer WithOwner. WithOwner panics if ctx is nil. It also panics if
// neither [NewOwner] nor [CurrentOwner] can have returned o: a lock stores 58 bits of it, with
// the sign.
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
	if me := goid.Fast(); me != 0 {
		return Owner(me)
	}
	return Owner(goid.Get())
}
