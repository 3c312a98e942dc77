//go:build lockexplore

package explore_test

import (
	"context"
	"testing"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest/explore"
	"github.com/jucgo/locks/reentrant"
)

// slot has room for one item, and a condition for each side.
type slot struct {
	mu              reentrant.Mutex
	notFull, filled *condition.Cond
	full            bool
}

func newSlot() *slot {
	b := new(slot)
	b.notFull, b.filled = b.mu.NewCond(), b.mu.NewCond()
	return b
}

func (b *slot) put() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.full {
		b.notFull.Wait()
	}
	b.full = true
	b.filled.Signal()
}

func (b *slot) take() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.full {
		b.filled.Wait()
	}
	b.full = false
	b.notFull.Signal()
}

func TestASlotLosesNoSignalUnderAnySchedule(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		b := newSlot()
		x.Go("puts", func() { b.put(); b.put() })
		x.Go("takes", b.take)
		x.Go("takes", b.take)
		x.Wait()
		x.Check(!b.full, "an item is left")
	}, explore.Preemptions(1))
}

func TestOneConditionForBothSidesLosesASignal(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		b := newSlot()
		b.notFull = b.filled
		for range 2 {
			x.Go("puts", b.put)
			x.Go("takes", b.take)
		}
	}, explore.Expect(explore.LostWakeup))
}

func TestACancelledWaiterPassesItsSignalOn(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var m fair.Mutex
		c := m.NewCond()
		items := 0
		ctx, cancel := context.WithCancel(x.Context())
		take := func(ctx context.Context) {
			m.Lock()
			defer m.Unlock()
			if c.WaitWhile(ctx, func() bool { return items == 0 }) == nil {
				items--
			}
		}
		x.Go("takes or gives up", func() { take(ctx) })
		x.Go("takes", func() { take(x.Context()) })
		x.Go("cancels", cancel)
		x.Go("puts", func() {
			m.Lock()
			items += 2
			c.Signal()
			c.Signal()
			m.Unlock()
		})
		x.Wait()
		x.Check(items <= 1, "%d items are left", items)
	}, explore.Preemptions(1))
}
