package deadlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// waitable is a lock of the mix, with a condition.
type waitable struct {
	locks.Locker
	rw *rwlock.RWMutex // if it is one
	c  *condition.Cond
}

func (l *waitable) String() string { return fmt.Sprint(l.Locker) }

// hold is one hold of one party.
type hold struct {
	l    *waitable
	read bool
}

func (h hold) locker() locks.Locker {
	if h.read {
		return h.l.rw.ReadLocker()
	}
	return h.l
}

// Each party takes locks of all kinds in one order and in every way. It waits for signals,
// upgrades, downgrades, and gives up. Meanwhile cycles are refused and looked for, and places are
// recorded, now and then. A lost wake-up anywhere makes the test hang.
func TestMixOfEverythingEndsWhileTheSwitchesChange(t *testing.T) {
	defer deadlock.Refuse(false)
	defer deadlock.Record(false)
	var order []*waitable
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		m, rw, n := reentrant.New(p), rwlock.New(p), keyed.New[string](p).Of("it")
		order = append(order,
			&waitable{m, nil, m.NewCond()}, &waitable{rw, rw, rw.NewCond()}, &waitable{n, nil, n.NewCond()})
	}
	ctx := t.Context()
	var wg, others sync.WaitGroup
	var done atomic.Bool
	two := locks.WithOwner(ctx, locks.NewOwner())
	for g := range 12 {
		own, shared := ctx, false
		switch {
		case g >= 10:
			own, shared = two, true
		case g >= 8:
			own = locks.WithOwner(ctx, locks.NewOwner())
		}
		wg.Go(func() { mix(t, own, rand.New(rand.NewPCG(uint64(g), 3)), order, shared) })
	}
	for _, l := range order {
		others.Go(func() {
			for !done.Load() {
				time.Sleep(200 * time.Microsecond)
				if assert.NoError(t, l.LockContext(context.Background())) {
					l.c.Broadcast()
					assert.NoError(t, l.UnlockContext(context.Background()))
				}
			}
		})
	}
	others.Go(func() {
		for i := 0; !done.Load(); i++ {
			deadlock.Refuse(i%3 == 0)
			deadlock.Record(i%4 == 0)
			for _, c := range deadlock.Find() {
				// One of two parties that share an owner may wait for a party that the other keeps
				// out.
				assert.False(t, c.Certain(), "a false alarm: %v", c)
			}
			time.Sleep(300 * time.Microsecond)
		}
	})
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		done.Store(true)
		stacks := make([]byte, 1<<20)
		t.Fatalf("it hangs: %v\n%s", order, stacks[:runtime.Stack(stacks, true)])
	}
	done.Store(true)
	others.Wait()
	for _, l := range order {
		ok, err := l.Locker.(locks.TryLocker).TryLockContext(ctx)
		require.NoError(t, err)
		require.True(t, ok, "%v", l)
		require.Zero(t, l.Locker.(interface{ QueueLength() int }).QueueLength())
	}
}

// mix is one party of the mix, which has ctx's owner. One that shares it does not wait for
// signals, which would give up the holds of others.
func mix(t *testing.T, ctx context.Context, r *rand.Rand, order []*waitable, shared bool) {
	for range 400 {
		var held []hold
		for i := r.IntN(3); i < len(order); i += r.IntN(3) {
			h := hold{l: order[i]}
			h.read = h.l.rw != nil && r.IntN(3) > 0
			// Without a limit, the waiter may be woken early.
			wait, end := context.WithoutCancel(ctx), context.CancelFunc(func() {})
			if r.IntN(2) == 0 {
				wait, end = context.WithTimeout(ctx, time.Duration(r.IntN(150))*time.Microsecond)
			}
			err := h.locker().LockContext(wait)
			end()
			switch {
			case err == nil:
				held = append(held, h)
			case errors.Is(err, locks.ErrUpgrade):
				if shared {
					continue // the hold may be the other's
				}
				up, err := h.l.rw.TryUpgradeContext(ctx)
				assert.NoError(t, err)
				if up {
					held[slices.Index(held, hold{h.l, true})].read = false
				}
				continue
			default:
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				continue
			}
			switch {
			case h.read || shared:
			case r.IntN(6) == 0:
				until, end := context.WithTimeout(ctx, time.Duration(r.IntN(1000))*time.Microsecond)
				if r.IntN(2) == 0 {
					until = ctx
				}
				err := h.l.c.WaitContext(until)
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, locks.ErrUpgrade) {
					assert.NoError(t, err)
				}
				end()
			case h.l.rw != nil && r.IntN(4) == 0:
				assert.NoError(t, h.l.rw.DowngradeContext(ctx))
				held[len(held)-1].read = true
			}
		}
		for k := len(held) - 1; k >= 0; k-- {
			assert.NoError(t, held[k].locker().UnlockContext(ctx))
		}
	}
}
