package spin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
)

// This file holds what the locks of this package have in common.

func tryLockContext(ctx context.Context, l interface{ TryLock() bool }) (bool, error) {
	if err := ctxerr.Check("spin: TryLockContext", ctx); err != nil {
		return false, err
	}
	return l.TryLock(), nil
}

// unlocked returns the result of UnlockContext.
func unlocked(ok bool) error {
	if !ok {
		return ctxerr.Wrap("spin: UnlockContext of a free lock", locks.ErrNotHeld)
	}
	return nil
}

type inspectable interface {
	IsLocked() bool
	QueueLength() int
}

func describe(name string, p any, l inspectable) string {
	state := "unlocked"
	if l.IsLocked() {
		state = "locked"
	}
	return fmt.Sprintf("%s(%p)[%s, %d queued]", name, p, state, l.QueueLength())
}

// limit is what cuts a wait short: a context or a timer.
type limit struct {
	ctx   <-chan struct{}
	timer *time.Timer
}

// after returns a limit that ends after d.
func after(d time.Duration) limit { return limit{timer: time.NewTimer(d)} }

// until returns a limit that ends with ctx.
func until(ctx context.Context) limit { return limit{ctx: ctx.Done()} }

// await waits for a permit, and reports whether it came. If the limit ends before, giveUp leaves
// the queue, and says whether it still could: if not, the permit is on its way.
func (l limit) await(permit <-chan struct{}, giveUp func() bool) bool {
	var timer <-chan time.Time
	if l.timer != nil {
		defer l.timer.Stop()
		timer = l.timer.C
	}
	select {
	case <-permit:
		return true
	case <-l.ctx:
	case <-timer:
	}
	if giveUp() {
		return false
	}
	<-permit
	return true
}

// locker is a lock without the rest of its methods: what a condition needs that has no part in
// the lock's queue.
type locker struct {
	l interface {
		sync.Locker
		IsLocked() bool
	}
}

func (l locker) Lock()          { l.l.Lock() }
func (l locker) Unlock()        { l.l.Unlock() }
func (l locker) IsLocked() bool { return l.l.IsLocked() }
