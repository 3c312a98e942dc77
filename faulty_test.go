package locks_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

// faulty is a context whose methods fail at one call of them, or from one call on.
type faulty struct {
	context.Context
	fail   func()
	at     int // the number of that call
	onward bool
	calls  int
	failed bool
}

func (f *faulty) called() {
	if f.calls++; f.calls == f.at || f.onward && f.calls > f.at {
		f.failed = true
		f.fail()
	}
}

func (f *faulty) Done() <-chan struct{}       { f.called(); return f.Context.Done() }
func (f *faulty) Err() error                  { f.called(); return f.Context.Err() }
func (f *faulty) Value(key any) any           { f.called(); return f.Context.Value(key) }
func (f *faulty) Deadline() (time.Time, bool) { f.called(); return f.Context.Deadline() }

var errFaulty = errors.New("faulty context")

// eachFault calls f with a context that fails at its first call, at its second, and so on, until
// one has not failed. check follows each call.
func eachFault(t *testing.T, f func(ctx *faulty), check func(at int)) {
	t.Helper()
	for _, fail := range []func(){func() { panic(errFaulty) }, runtime.Goexit} {
		for _, onward := range []bool{false, true} {
			for at := 1; ; at++ {
				require.Less(t, at, 100)
				ctx := &faulty{fail: fail, at: at, onward: onward}
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() {
						if err := recover(); err != nil {
							assert.Equal(t, errFaulty, err)
						}
					}()
					f(ctx)
				})
				wg.Wait()
				if check(at); !ctx.failed {
					break
				}
			}
		}
	}
}

// faultyKind is a lock, and one that keeps others out of it.
type faultyKind struct{ lock, other locks.TryLocker }

func faultyKinds() map[string]faultyKind {
	var rw rwlock.RWMutex
	var plain fair.RWMutex
	var stamped rwlock.StampedLock
	kinds := map[string]faultyKind{
		"fair.RWMutex read":       {plain.ReadLocker(), plain.WriteLocker()},
		"rwlock.RWMutex read":     {rw.ReadLocker(), rw.WriteLocker()},
		"rwlock.StampedLock read": {stamped.ReadLocker(), stamped.WriteLocker()},
	}
	for name, l := range map[string]locks.TryLocker{
		"fair.Mutex":             new(fair.Mutex),
		"fair.BargingMutex":      new(fair.BargingMutex),
		"fair.RWMutex write":     plain.WriteLocker(),
		"reentrant.Mutex":        new(reentrant.Mutex),
		"reentrant.Mutex FIFO":   reentrant.New(locks.FIFO),
		"rwlock.RWMutex write":   rw.WriteLocker(),
		"rwlock.StampedLock":     stamped.WriteLocker(),
		"spin.Mutex":             new(spin.Mutex),
		"spin.MCS":               new(spin.MCS),
		"spin.Ticket":            new(spin.Ticket),
		"keyed.Mutex":            new(keyed.Mutexes[string]).Of("k"),
		"named":                  new(named.Provider).Locker("n"),
		"Multi":                  locks.Multi(new(reentrant.Mutex), new(fair.Mutex)),
		"Multi without an order": locks.Multi(keyedless{new(reentrant.Mutex), ""}, keyedless{new(fair.Mutex), "b"}),
		"record":                 record.New(record.Options{Waits: true}).Wrap("l", new(reentrant.Mutex)),
	} {
		kinds[name] = faultyKind{l, l}
	}
	return kinds
}

// eachFaultyKind runs f for each kind of lock, with a context of the goroutine, and of an owner.
func eachFaultyKind(t *testing.T, f func(t *testing.T, k faultyKind, as func(ctx context.Context) context.Context)) {
	for name := range faultyKinds() {
		t.Run(name+" by a goroutine", func(t *testing.T) {
			t.Parallel()
			f(t, faultyKinds()[name], func(ctx context.Context) context.Context { return ctx })
		})
		t.Run(name+" by an owner", func(t *testing.T) {
			t.Parallel()
			o := locks.NewOwner()
			f(t, faultyKinds()[name], func(ctx context.Context) context.Context { return locks.WithOwner(ctx, o) })
		})
	}
}

// keyedless is a lock without a place in the order of a Multi.
type keyedless struct {
	locks.TryLocker
	_ string
}

// isFree checks that an owner can acquire and release k's lock.
func (k faultyKind) isFree(t *testing.T, at int) {
	t.Helper()
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	ok, err := k.other.TryLockContext(ctx)
	require.NoError(t, err)
	require.True(t, ok, "a context that failed at call %d left a hold", at)
	require.NoError(t, k.other.UnlockContext(ctx))
}

func TestAFaultyContextsAcquisitionLeavesNoHold(t *testing.T) {
	eachFaultyKind(t, func(t *testing.T, k faultyKind, as func(ctx context.Context) context.Context) {
		ctx, cancel := context.WithCancel(as(context.Background()))
		defer cancel()
		for _, acquire := range []func(ctx context.Context) bool{
			func(ctx context.Context) bool { return k.lock.LockContext(ctx) == nil },
			func(ctx context.Context) bool { ok, _ := k.lock.TryLockContext(ctx); return ok },
		} {
			eachFault(t, func(f *faulty) {
				f.Context = ctx
				if acquire(f) {
					assert.NoError(t, k.lock.UnlockContext(ctx))
				}
			}, func(at int) { k.isFree(t, at) })
		}
	})
}

func TestAWaitUnderAFaultyContextLeavesNothing(t *testing.T) {
	holder := locks.WithOwner(context.Background(), locks.NewOwner())
	eachFaultyKind(t, func(t *testing.T, k faultyKind, as func(ctx context.Context) context.Context) {
		for _, ends := range []bool{false, true} {
			eachFault(t, func(f *faulty) {
				ctx, cancel := context.WithCancel(as(context.Background()))
				defer cancel()
				require.NoError(t, k.other.LockContext(holder))
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() {
					time.Sleep(200 * time.Microsecond) // mostly the other waits by then
					if ends {
						cancel()
						time.Sleep(200 * time.Microsecond)
					}
					assert.NoError(t, k.other.UnlockContext(holder))
				})
				f.Context = ctx
				if k.lock.LockContext(f) == nil {
					assert.NoError(t, k.lock.UnlockContext(ctx))
				}
			}, func(at int) { k.isFree(t, at) })
		}
	})
}

// A Multi asks for the owner before it changes anything, and each member asks again. So only a
// context that fails at once changes nothing there.
func TestAFaultyContextsUnlockCanBeRepeated(t *testing.T) {
	eachFaultyKind(t, func(t *testing.T, k faultyKind, as func(ctx context.Context) context.Context) {
		ctx := as(context.Background())
		eachFault(t, func(f *faulty) {
			require.NoError(t, k.lock.LockContext(ctx))
			released := false
			defer func() {
				if !released {
					assert.NoError(t, k.lock.UnlockContext(ctx))
				}
			}()
			f.Context = ctx
			if strings.Contains(t.Name(), "Multi") && f.at > 1 {
				f.at = math.MaxInt
			}
			released = k.lock.UnlockContext(f) == nil
		}, func(at int) { k.isFree(t, at) })
	})
}

func TestARecorderForgetsACallThatPanics(t *testing.T) {
	r := record.New(record.Options{Waits: true})
	l := r.Wrap("l", new(reentrant.Mutex))
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	idle := func(at int) {
		s := r.Stats()[0]
		require.Zero(t, s.Waiting, "after call %d", at)
		require.Zero(t, s.Held, "after call %d", at)
		require.Empty(t, r.Waits())
		require.Empty(t, r.Holds())
	}
	eachFault(t, func(f *faulty) {
		f.Context = ctx
		if l.LockContext(f) == nil {
			assert.NoError(t, l.UnlockContext(ctx))
		}
	}, idle)
	eachFault(t, func(f *faulty) {
		require.NoError(t, l.LockContext(ctx))
		released := false
		defer func() {
			if !released {
				assert.Len(t, r.Holds(), 1)
				assert.NoError(t, l.UnlockContext(ctx))
			}
		}()
		f.Context = ctx
		released = l.UnlockContext(f) == nil
	}, idle)
}

func TestAFaultyContextsConditionWaitKeepsAllHolds(t *testing.T) {
	var m reentrant.Mutex
	var rw rwlock.RWMutex
	k := new(keyed.Mutexes[string]).Of("k")
	for name, l := range map[string]interface {
		locks.TryLocker
		NewCond() *condition.Cond
	}{"reentrant": &m, "rwlock": &rw, "keyed": k} {
		for _, o := range []locks.Owner{0, locks.NewOwner()} {
			t.Run(name+" by "+o.String(), func(t *testing.T) {
				c := l.NewCond()
				for _, wait := range []func(ctx context.Context) error{
					c.WaitContext,
					func(ctx context.Context) error { return c.WaitWhile(ctx, func() bool { return true }) },
				} {
					eachFault(t, func(f *faulty) {
						background := locks.WithOwner(context.Background(), o)
						ctx, cancel := context.WithTimeout(background, 200*time.Microsecond)
						defer cancel()
						for range 2 {
							require.NoError(t, l.LockContext(background))
						}
						defer func() {
							who, err := c.WaitersContext(background)
							assert.NoError(t, err)
							assert.Empty(t, who)
							for range 2 {
								assert.NoError(t, l.UnlockContext(background))
							}
							assert.ErrorIs(t, l.UnlockContext(background), locks.ErrNotHeld)
						}()
						f.Context = ctx
						assert.Error(t, wait(f))
					}, func(at int) { faultyKind{l, l}.isFree(t, at) })
				}
			})
		}
	}
}
