package idioms

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/spin"
)

const remedy = "; a hold belongs to the goroutine that acquired it, or to an owner (locks.WithOwner)"

// refusals returns the errors of the calls, which return them or panic with them.
func refusals(t *testing.T, calls ...any) (errs []error) {
	t.Helper()
	for _, call := range calls {
		var err error
		switch f := call.(type) {
		case func():
			func() {
				defer func() { err, _ = recover().(error) }()
				f()
			}()
		case func(context.Context) error:
			err = f(t.Context())
		}
		require.ErrorIs(t, err, locks.ErrNotHeld)
		require.NotContains(t, err.Error(), "\n")
		errs = append(errs, err)
	}
	return errs
}

// elsewhere runs f in another goroutine, which lives until the test ends, and returns its owner.
func elsewhere(t *testing.T, f func()) (o locks.Owner) {
	t.Helper()
	ready, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		o = locks.CurrentOwner(context.Background())
		f()
		close(ready)
		<-end
	}()
	<-ready
	t.Cleanup(func() {
		close(end)
		<-ended
	})
	return o
}

// owned has a lock with an owner, and the operations that need a hold of it.
type owned struct {
	name  string
	lock  func()
	calls []any
}

func ownedLocks() []owned {
	r, rw, k := new(reentrant.Mutex), new(rwlock.RWMutex), new(keyed.Mutexes[string]).Of("it")
	rc, wc, kc := r.NewCond(), rw.NewCond(), k.NewCond()
	n, multi := new(named.Provider).Locker("it"), locks.Multi(new(reentrant.Mutex), new(reentrant.Mutex))
	lock := func(l locks.Locker) func() { return func() { _ = l.LockContext(context.Background()) } }
	tryUpgrade := func(ctx context.Context) error {
		_, err := rw.TryUpgradeContext(ctx)
		return err
	}
	writes := []any{
		rw.Unlock, rw.UnlockContext, rw.Downgrade, rw.DowngradeContext, rw.AssertWriteHeld, rw.WriteLocker().UnlockContext,
		wc.Wait, wc.Signal, wc.SignalContext,
	}
	reads := []any{
		rw.RUnlock, rw.RUnlockContext, func() { rw.TryUpgrade() }, tryUpgrade, rw.AssertReadHeld,
		rw.RLocker().Unlock,
	}
	return []owned{
		{"reentrant.Mutex", r.Lock, []any{
			r.Unlock, r.UnlockContext, r.AssertHeld,
			rc.Wait, rc.WaitContext, rc.Signal, rc.SignalContext, rc.Broadcast, rc.BroadcastContext,
			func() { rc.WaitFor(1) }, func() { rc.Waiters() }, func() { r.HasWaiters(rc) },
		}},
		{"rwlock.RWMutex", rw.Lock, append(writes, reads...)},
		{"keyed.Mutex", k.Lock, []any{
			k.Unlock, k.UnlockContext,
			kc.Wait, kc.Signal, kc.BroadcastContext,
		}},
		{"keyed.Mutex", lock(n), []any{n.UnlockContext}},
		{"Multi", lock(multi), []any{multi.UnlockContext}},
	}
}

func TestARefusalNamesTheHolderAndTheRemedy(t *testing.T) {
	for _, l := range ownedLocks() {
		o := elsewhere(t, l.lock)
		for _, err := range refusals(t, l.calls...) {
			text := err.Error()
			require.Contains(t, text, l.name)
			require.Contains(t, text, fmt.Sprintf("by the caller, %v: ", locks.CurrentOwner(t.Context())))
			require.Contains(t, text, fmt.Sprintf(" by %v%s", o, remedy))
			require.True(t, strings.HasSuffix(text, remedy), text)
		}
	}
}

func TestARefusalSaysThatTheLockIsFree(t *testing.T) {
	for _, l := range ownedLocks() {
		for _, err := range refusals(t, l.calls...) {
			require.Regexp(t, `lock not held by the caller: (the|this) `+l.name+`\S* is free$`, err.Error())
		}
	}
}

func TestARefusalOfAnExplicitOwnerNamesIt(t *testing.T) {
	a, b := locks.NewOwner(), locks.NewOwner()
	first, second := locks.WithOwner(t.Context(), a), locks.WithOwner(t.Context(), b)
	rw := new(rwlock.RWMutex)
	for name, l := range map[string]locks.TryLocker{
		"reentrant: UnlockContext":     new(reentrant.Mutex),
		"rwlock: UnlockContext":        new(rwlock.RWMutex),
		`keyed: UnlockContext of "it"`: new(keyed.Mutexes[string]).Of("it"),
		"rwlock: RUnlockContext":       rw.ReadLocker(),
		"locks: Multi: UnlockContext":  locks.Multi(new(reentrant.Mutex), new(reentrant.Mutex)),
	} {
		require.NoError(t, l.LockContext(first))
		text := l.UnlockContext(second).Error()
		require.True(t, strings.HasPrefix(text, fmt.Sprintf("%s: lock not held by the caller, %v: ", name, b)), text)
		require.Contains(t, text, fmt.Sprintf("by %v; ", a))
		require.NoError(t, l.UnlockContext(first))
	}
}

func TestAHoldOfTheOtherModeNamesTheRightUnlock(t *testing.T) {
	var rw rwlock.RWMutex
	me := locks.CurrentOwner(t.Context()).String()
	rw.RLock()
	for _, err := range refusals(t, rw.Unlock, rw.UnlockContext, rw.Downgrade) {
		require.Contains(t, err.Error(), me+" holds the rwlock.RWMutex for reading, and RUnlock releases that hold")
	}
	rw.RUnlock()
	rw.Lock()
	for _, err := range refusals(t, rw.RUnlock, rw.RUnlockContext) {
		require.Contains(t, err.Error(), me+" holds the rwlock.RWMutex for writing, and Unlock releases that hold")
	}
	rw.Unlock()
	var f fair.RWMutex
	f.RLock()
	require.Contains(t, refusals(t, f.Unlock)[0].Error(), "the fair.RWMutex is held for reading, and RUnlock ")
	require.Contains(t, refusals(t, f.NewCond().Wait)[0].Error(), "the fair.RWMutex is held for reading")
	f.RUnlock()
	f.Lock()
	require.Contains(t, refusals(t, f.RUnlock)[0].Error(), "the fair.RWMutex is held for writing, and Unlock ")
	f.Unlock()
}

func TestARefusalNamesThreeReadersAtMost(t *testing.T) {
	var rw rwlock.RWMutex
	for range 5 {
		elsewhere(t, rw.RLock)
	}
	for _, err := range refusals(t, rw.Unlock, rw.RUnlock) {
		require.Regexp(t, `held for reading by goroutine \d+, goroutine \d+, goroutine \d+ and 2 more; `, err.Error())
	}
}

func TestAnUnlockWithoutOwnersNamesTheType(t *testing.T) {
	var l rwlock.StampedLock
	for name, calls := range map[string][]any{
		"the fair.Mutex is free":         {new(fair.Mutex).Unlock, new(fair.Mutex).UnlockContext},
		"the fair.BargingMutex is free":  {new(fair.BargingMutex).Unlock, new(fair.BargingMutex).UnlockContext},
		"the fair.RWMutex is free":       {new(fair.RWMutex).Unlock, new(fair.RWMutex).RUnlockContext},
		"the spin.Mutex is free":         {new(spin.Mutex).Unlock, new(spin.Mutex).UnlockContext},
		"the spin.MCS is free":           {new(spin.MCS).Unlock, new(spin.MCS).UnlockContext},
		"the spin.Ticket is free":        {new(spin.Ticket).Unlock, new(spin.Ticket).UnlockContext},
		"the rwlock.StampedLock is free": {l.WriteLocker().UnlockContext, func() { l.Unlock(1) }},
		"the fair.Mutex is free$":        {new(fair.Mutex).NewCond().Wait, new(fair.Mutex).NewCond().SignalContext},
		"the lock is free":               {condition.New(new(spin.MCS)).Signal},
		"the \\*sync.Mutex is free, or":  {locks.FromSync(new(sync.Mutex)).UnlockContext},
	} {
		for _, err := range refusals(t, calls...) {
			require.Regexp(t, `^\w+: .*lock not held by the caller: `+name, err.Error())
		}
	}
	st := l.WriteLock()
	require.Contains(t, refusals(t, l.ReadLocker().UnlockContext)[0].Error(), "the rwlock.StampedLock is held for writing")
	l.UnlockWrite(st)
}

func TestASecondReleaseOfPermitsSaysSo(t *testing.T) {
	p, err := semaphore.NewWeighted(2).AcquireContext(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, p.ReleaseContext(t.Context()))
	require.EqualError(t, p.ReleaseContext(t.Context()),
		"semaphore: ReleaseContext: lock not held by the caller: the permits are released already")
	require.ErrorIs(t, p.Err(), locks.ErrNotHeld)
}
