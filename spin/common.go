package spin

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/unheld"
)

// This file has the parts that the locks of this package share.

func tryLockContext(ctx context.Context, l interface{ TryLock() bool }) (bool, error) {
	if err := ctxerr.Check("spin: TryLockContext", ctx); err != nil {
		return false, err
	}
	return l.TryLock(), nil
}

// unlockError returns the result of UnlockContext of a lock of this type.
func unlockError(ok bool, name string) error {
	if !ok {
		return free("UnlockContext", name)
	}
	return nil
}

// free returns the error of op on a free lock of this type.
func free(op, name string) error { return ctxerr.Wrap("spin: "+op, unheld.Free("the "+name)) }

type inspectable interface {
	IsLocked() bool
	QueueLength() int
	Queued() []locks.Owner
}

func inspect(ctx context.Context, l inspectable) (locks.Info, error) {
	return info.State{
		Held: l.IsLocked(), Waiting: l.QueueLength(), Waiters: l.Queued(),
	}.Answer("spin: Inspect", ctx)
}

func describe(name string, p any, l inspectable) string {
	state := "unlocked"
	if l.IsLocked() {
		state = "locked"
	}
	return fmt.Sprintf("%s(%p)[%s, %d queued]", name, p, state, l.QueueLength())
}

// await parks the waiter at p until a permit comes, and reports true. If the limit ends first,
// await calls cancel. If cancel reports true, the waiter has left the queue, and await reports
// false. If cancel reports false, the lock is granted already, and await waits for the permit that
// is about to come.
func await(l *park.Limit, p *park.Place, cancel func() bool) bool {
	if l.Park(p, nil) {
		return true
	}
	if cancel() {
		return false
	}
	p.Park()
	return true
}
