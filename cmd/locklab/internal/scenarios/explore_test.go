package scenarios

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/lockstest/explore"
	"github.com/jucgo/locks/reentrant"
)

// The functions that the pages of the lab show, right and wrong, under all schedules.

// theftOf lets two goroutines take from a place for one item. A third goroutine puts two items.
func theftOf(take func(*int, *condition.Cond)) func(x *explore.X) {
	return func(x *explore.X) {
		mu := reentrant.New(locks.NonFair)
		notEmpty := mu.NewCond()
		items := 0
		for range 2 {
			x.Go("takes", func() {
				mu.Lock()
				defer mu.Unlock()
				take(&items, notEmpty)
				x.Check(items >= 0, "%d items", items)
			})
		}
		x.Go("puts", func() {
			for range 2 {
				mu.Lock()
				items++
				notEmpty.Signal()
				mu.Unlock()
			}
		})
	}
}

func TestTakeIfTakesWhatIsNotThere(t *testing.T) {
	explore.Run(t, theftOf(takeIf), explore.Expect(explore.Failure))
}

func TestTakeLoopIsRightUnderAllSchedules(t *testing.T) {
	explore.Run(t, theftOf(takeLoop), explore.Preemptions(1))
}

// crossed lets two goroutines acquire two locks in opposite orders.
func crossed(acquire func(ctx context.Context, first, second locks.TryLocker) error) func(x *explore.X) {
	return func(x *explore.X) {
		var a, b reentrant.Mutex
		x.Go("a, b", func() { _ = acquire(x.Context(), &a, &b) })
		x.Go("b, a", func() { _ = acquire(x.Context(), &b, &a) })
		x.Wait()
		x.Check(!a.IsLocked() && !b.IsLocked(), "a lock is left held")
	}
}

func TestTwoOrdersOfTheLabDeadlock(t *testing.T) {
	explore.Run(t, crossed(func(ctx context.Context, first, second locks.TryLocker) error {
		return inOrder(ctx, first, second, func() {})
	}), explore.Expect(explore.Deadlock))
}

func TestPatienceEndsEveryDeadlockOfTheLab(t *testing.T) {
	explore.Run(t, crossed(func(ctx context.Context, first, second locks.TryLocker) error {
		return timed(ctx, first, second, time.Second, func() {})
	}))
}

func TestOneOrderOfTheLabDeadlocksNever(t *testing.T) {
	explore.Run(t, crossed(func(ctx context.Context, first, second locks.TryLocker) error {
		return both(ctx, first, second, func() {})
	}))
}

// panicking lets two goroutines enter a section. One of them panics in its work, and survives.
func panicking(enter func(ctx context.Context, l locks.Locker, work func() error) error) func(x *explore.X) {
	return func(x *explore.X) {
		var m fair.Mutex
		x.Go("panics", func() {
			defer func() { _ = recover() }()
			_ = enter(x.Context(), &m, func() error { panic(errors.New("no luck")) })
		})
		x.Go("follows", func() { _ = enter(x.Context(), &m, func() error { return nil }) })
	}
}

func TestAForgetfulReleaseLeavesTheLockHeld(t *testing.T) {
	explore.Run(t, panicking(forgetful), explore.Expect(explore.Deadlock))
}

func TestASectionIsReleasedHoweverItEnds(t *testing.T) {
	explore.Run(t, panicking(section))
}

func TestTheBufferOfTheLabPassesAllItemsOn(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		b := newBuffer(1)
		x.Go("puts", func() {
			for i := range 2 {
				_ = locks.Do(x.Context(), b.mu, func(ctx context.Context) error { return b.put(ctx, i) })
			}
		})
		for range 2 {
			x.Go("takes", func() {
				_ = locks.Do(x.Context(), b.mu, func(ctx context.Context) error { _, err := b.take(ctx); return err })
			})
		}
		x.Wait()
		x.Check(len(b.items) == 0, "%d items are left", len(b.items))
	}, explore.Preemptions(1))
}

func TestCheckThenActLoadsTwice(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var instance atomic.Pointer[config]
		var loads atomic.Int64
		for range 2 {
			x.Go("gets", func() {
				checkThenAct(&instance, func() *config {
					x.Step()
					return &config{loads.Add(1)}
				})
			})
		}
		x.Wait()
		x.Check(loads.Load() == 1, "%d loads", loads.Load())
	}, explore.Expect(explore.Failure))
}

// lending has three goroutines use a pool of two items.
func lending(put func(p *pool, item string)) func(x *explore.X) {
	return func(x *explore.X) {
		p := newPool("one", "two")
		users := map[string]*atomic.Int32{"one": {}, "two": {}}
		for range 3 {
			x.Go("uses", func() {
				item, err := p.get(x.Context())
				if err != nil {
					x.Errorf("%v", err)
					return
				}
				x.Check(users[item].Add(1) == 1, "item %s is lent twice", item)
				x.Step()
				users[item].Add(-1)
				put(p, item)
			})
		}
		x.Wait()
		x.Check(p.available.Available() == 2 && len(p.items) == 2, "%d permits and %d items are left",
			p.available.Available(), len(p.items))
	}
}

func TestThePoolLendsEachItemToOne(t *testing.T) {
	explore.Run(t, lending((*pool).put), explore.Preemptions(1))
}

func TestAPermitBeforeItsItemFindsNone(t *testing.T) {
	explore.Run(t, lending((*pool).putLate), explore.Expect(explore.Panic))
}

func TestNoScheduleMixesTheGroupsInTheRoom(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var r room
		var inside [3]atomic.Int32
		for _, group := range []uint64{red, red, blue} {
			x.Go("visits", func() {
				err := visit(x.Context(), &r, group, func() {
					inside[group].Add(1)
					x.Step()
					x.Check(inside[red].Load() == 0 || inside[blue].Load() == 0, "the groups mix")
					inside[group].Add(-1)
				})
				x.Check(err == nil, "%v", err)
			})
		}
		x.Wait()
		x.Check(r.Word() == 0, "the room is not empty")
	}, explore.Preemptions(1))
}
