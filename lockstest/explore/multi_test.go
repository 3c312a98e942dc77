//go:build lockexplore

package explore_test

import (
	"context"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest/explore"
	"github.com/jucgo/locks/reentrant"
)

func TestOverlappingMultisDeadlockUnderNoSchedule(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var a, b fair.Mutex
		var c reentrant.Mutex
		for _, m := range []locks.TryLocker{locks.Multi(&a, &b), locks.Multi(&b, &c), locks.Multi(&c, &a)} {
			x.Go("acquires", func() {
				if err := locks.Do(x.Context(), m, func(context.Context) error { return nil }); err != nil {
					x.Errorf("%v", err)
				}
			})
		}
		x.Wait()
		x.Check(!a.IsLocked() && !b.IsLocked() && !c.IsLocked(), "a lock is left held")
	}, explore.Preemptions(1))
}

func TestACancelledMultiLeavesNoMemberHeld(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var a, b fair.Mutex
		ctx, cancel := context.WithCancel(x.Context())
		m := locks.Multi(&a, &b)
		x.Go("holds b", func() {
			b.Lock()
			b.Unlock()
		})
		x.Go("acquires both", func() {
			if m.LockContext(ctx) == nil {
				_ = m.UnlockContext(ctx)
			}
		})
		x.Go("cancels", cancel)
		x.Wait()
		x.Check(!a.IsLocked() && !b.IsLocked(), "a lock is left held")
	})
}
