package locks_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cas"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	anystore "github.com/jucgo/locks/distributed/open"
	opener "github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/lockstest/explore"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/singleton"
	"github.com/jucgo/locks/spin"
	"github.com/jucgo/locks/synchronizer"
)

// zeros makes the zero value of each exported struct of the packages, except for leasetest.
var zeros = map[string]func() any{
	"cas.Marked":         zero[cas.Marked[int]],
	"cas.Packed":         zero[cas.Packed],
	"cas.Stack":          zero[cas.Stack[int]],
	"cas.Stamped":        zero[cas.Stamped[int]],
	"cas.Versioned":      zero[cas.Versioned[int]],
	"caslock.Client":     zero[caslock.Client],
	"caslock.Record":     zero[caslock.Record],
	"condition.Cond":     zero[condition.Cond],
	"deadlock.Lock":      zero[deadlock.Lock],
	"deadlock.Orphan":    zero[deadlock.Orphan],
	"deadlock.Wait":      zero[deadlock.Wait],
	"driver.Claim":       zero[driver.Claim],
	"driver.Config":      zero[driver.Config],
	"driver.Group":       zero[driver.Group[string, *lease.Client]],
	"driver.HoldID":      zero[driver.HoldID],
	"driver.MutexConfig": zero[driver.MutexConfig],
	"driver.Opening":     zero[opener.Opening],
	"driver.Options":     zero[opener.Options],
	"driver.Released":    zero[driver.Released],
	"driver.Reply":       zero[driver.Reply],
	"driver.Request":     zero[driver.Request],
	"driver.Scheme":      zero[opener.Scheme],
	"driver.State":       zero[driver.State],
	"explore.Case":       zero[explore.Case],
	"explore.Lease":      zero[explore.Lease],
	"explore.X":          zero[explore.X],
	"fair.BargingMutex":  zero[fair.BargingMutex],
	"fair.Mutex":         zero[fair.Mutex],
	"fair.RWMutex":       zero[fair.RWMutex],
	"fence.Gate":         zero[fence.Gate],
	"keyed.Mutex":        zero[keyed.Mutex[string]],
	"keyed.Mutexes":      zero[keyed.Mutexes[string]],
	"leader.Election":    zero[leader.Election],
	"lease.Client":       zero[lease.Client],
	"lease.Mutex":        zero[lease.Mutex],
	"lease.RWMutex":      zero[lease.RWMutex],
	"lease.Semaphore":    zero[lease.Semaphore],
	"locks.Guarded":      zero[locks.Guarded[int]],
	"locks.Info":         zero[locks.Info],
	"locks.Party":        zero[locks.Party],
	"locks.RWGuarded":    zero[locks.RWGuarded[int]],
	"lockstest.Config":   zero[lockstest.Config],
	"named.Provider":     zero[named.Provider],
	"open.Client":        zero[anystore.Client],
	"record.Event":       zero[record.Event],
	"record.Histogram":   zero[record.Histogram],
	"record.Hold":        zero[record.Hold],
	"record.Options":     zero[record.Options],
	"record.Recorder":    zero[record.Recorder],
	"record.Stats":       zero[record.Stats],
	"record.Wait":        zero[record.Wait],
	"reentrant.Mutex":    zero[reentrant.Mutex],
	"rwlock.RWMutex":     zero[rwlock.RWMutex],
	"rwlock.Snapshot":    zero[rwlock.Snapshot[int]],
	"rwlock.StampedLock": zero[rwlock.StampedLock],
	"semaphore.Weighted": zero[semaphore.Weighted],
	"singleton.Lazy":     zero[singleton.Lazy[int]],
	"spin.Backoff":       zero[spin.Backoff],
	"spin.MCS":           zero[spin.MCS],
	"spin.Mutex":         zero[spin.Mutex],
	"spin.Ticket":        zero[spin.Ticket],
	"synchronizer.Sync":  zero[synchronizer.Sync[anything]],
}

// anything are rules under which each call succeeds.
type anything struct{}

func (anything) Acquire(w, _ uint64) (uint64, bool) { return w, true }
func (anything) Release(w, _ uint64) (uint64, bool) { return w, true }

func zero[T any]() any { return new(T) }

// exportedStructs returns the exported structs of the packages, except for leasetest, from the list
// of the API.
func exportedStructs(t *testing.T) (names []string) {
	t.Helper()
	list, err := os.Open("api/locks.txt")
	require.NoError(t, err)
	defer list.Close()
	line := regexp.MustCompile(`^(\S+): type (\w+)(\[.*\])? struct$`)
	for lines := bufio.NewScanner(list); lines.Scan(); {
		m := line.FindStringSubmatch(lines.Text())
		if m != nil && m[1] != "distributed/lease/leasetest" {
			names = append(names, path.Base(m[1])+"."+m[2])
		}
	}
	return names
}

func TestEveryFailureOfAZeroValueNamesIt(t *testing.T) {
	names := exportedStructs(t)
	require.Len(t, zeros, len(names))
	for _, name := range names {
		require.Contains(t, zeros, name)
		if name == "driver.Opening" {
			continue // its methods need arguments that are not zero
		}
		methods := reflect.TypeOf(zeros[name]())
		for i := range methods.NumMethod() {
			t.Run(name+"."+methods.Method(i).Name, func(t *testing.T) {
				defer func() {
					if err, ok := recover().(runtime.Error); ok {
						require.NoError(t, err)
					}
				}()
				call(reflect.ValueOf(zeros[name]()).Method(i))
			})
		}
	}
}

// call calls f with a context, with functions that return zero values, with locks, and else with
// zero values.
func call(f reflect.Value) {
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		in := f.Type().In(i)
		switch {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(context.Background()))
		case in == reflect.TypeFor[*condition.Cond]():
			args = append(args, reflect.ValueOf(new(condition.Cond)))
		case in == reflect.TypeFor[locks.TryLocker]():
			args = append(args, reflect.ValueOf(new(fair.Mutex)))
		case in == reflect.TypeFor[locks.ReadWriteLocker]():
			args = append(args, reflect.ValueOf(new(fair.RWMutex)))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for k := range in.NumOut() {
					out = append(out, reflect.Zero(in.Out(k)))
				}
				return out
			}))
		case !f.Type().IsVariadic() || i < f.Type().NumIn()-1:
			args = append(args, reflect.Zero(in))
		}
	}
	f.Call(args)
}

func TestAZeroCondReportsItsMissingLock(t *testing.T) {
	ctx := context.Background()
	var c condition.Cond
	for _, f := range []func(){c.Wait, c.Signal, c.Broadcast, func() { c.HasWaiters() }} {
		require.PanicsWithValue(t, condition.ErrNoLock, f)
	}
	_, err := c.WaitersContext(ctx)
	for _, err := range []error{
		err, c.WaitContext(ctx), c.SignalContext(ctx), c.BroadcastContext(ctx),
		c.WaitWhile(ctx, func() bool { return true }),
	} {
		require.ErrorIs(t, err, condition.ErrNoLock)
	}
}

func TestAZeroLockWithALeaseReturnsAnError(t *testing.T) {
	none := lease.NewRWMutex(nil, nil)
	for _, l := range []*lease.Mutex{
		{}, new(lease.Client).Mutex("it"), new(lease.Semaphore).Locker(1), none.ReadMutex(), none.WriteMutex(),
		new(lease.RWMutex).ReadMutex(), new(lease.RWMutex).WriteMutex(),
	} {
		require.ErrorContains(t, l.LockContext(t.Context()), "make a client by lease.New")
		_, err := l.TryLockContext(t.Context())
		require.ErrorContains(t, err, "make a client by lease.New")
		require.ErrorIs(t, l.UnlockContext(t.Context()), locks.ErrNotHeld)
		_, err = l.Hold(t.Context())
		require.ErrorIs(t, err, locks.ErrNotHeld)
	}
	_, err := new(lease.Semaphore).AcquireContext(t.Context(), 1)
	require.ErrorContains(t, err, "make a client by lease.New")
}

func TestAZeroValueSaysHowToMakeOne(t *testing.T) {
	_, err := new(singleton.Lazy[int]).Get()
	require.ErrorIs(t, err, locks.ErrNilFunc)
	require.ErrorContains(t, new(locks.Guarded[int]).With(t.Context(), func(*int) error { return nil }), "nil")
	for text, f := range map[string]func(){
		"keyed: a zero Mutex belongs to no set: use Mutexes.Of": func() { new(keyed.Mutex[int]).IsFair() },
		"explore: Select: a zero Case: use Receive, Send or Default": func() {
			new(explore.X).Select(explore.Case{})
		},
		"record: Wrap: a zero Recorder records nothing: use New": func() {
			new(record.Recorder).Wrap("l", new(fair.Mutex))
		},
	} {
		require.PanicsWithValue(t, text, f)
	}
}

// A nil pointer in an interface is not equal to nil. It is the value of an interface field that got
// an unset pointer.
func TestANilPointerIsANilLock(t *testing.T) {
	run := func(context.Context) error { t.Error("runs"); return nil }
	r := record.New(record.Options{})
	for _, l := range []locks.TryLocker{
		(*fair.Mutex)(nil), (*fair.BargingMutex)(nil), (*reentrant.Mutex)(nil), (*spin.Mutex)(nil),
		(*spin.MCS)(nil), (*spin.Ticket)(nil), (*keyed.Mutex[string])(nil), (*rwlock.RWMutex)(nil),
		(*fair.RWMutex)(nil).ReadLocker(), (*rwlock.StampedLock)(nil).WriteLocker(), (*lease.Mutex)(nil),
	} {
		require.EqualError(t, locks.Do(t.Context(), l, run), "locks: Do: nil lock", "%T", l)
		ran, err := locks.TryDo(t.Context(), l, run)
		require.False(t, ran)
		require.EqualError(t, err, "locks: TryDo: nil lock", "%T", l)
		err = locks.NewGuarded(l, 1).With(t.Context(), func(*int) error { return run(nil) })
		require.EqualError(t, err, "locks: Guarded.With: nil lock", "%T", l)
		require.PanicsWithValue(t, "record: Wrap: nil lock", func() { r.Wrap("l", l) }, "%T", l)
		require.PanicsWithValue(t, fmt.Sprintf("locks: Multi: member 1 is a nil %T", l), func() {
			locks.Multi(new(fair.Mutex), l)
		})
		if plain, ok := l.(sync.Locker); ok {
			require.PanicsWithValue(t, "condition: New of a nil Locker", func() { condition.New(plain) }, "%T", l)
		}
		if plain, ok := l.(locks.SyncLocker); ok {
			require.PanicsWithValue(t, "locks: FromSync of a nil lock", func() { locks.FromSync(plain) }, "%T", l)
		}
	}
	for _, l := range []locks.ReadWriteLocker{(*fair.RWMutex)(nil), (*rwlock.RWMutex)(nil), (*rwlock.StampedLock)(nil)} {
		require.PanicsWithValue(t, "record: WrapReadWrite: nil lock", func() { r.WrapReadWrite("l", l) }, "%T", l)
		err := locks.NewRWGuarded(l, 1).Read(t.Context(), func(*int) error { return run(nil) })
		require.EqualError(t, err, "locks: RWGuarded.Read: nil lock", "%T", l)
	}
	require.PanicsWithValue(t, "locks: FromSync of a nil lock", func() { locks.FromSync((*sync.Mutex)(nil)) })
}

// A call on a nil lock neither succeeds nor waits, in any package.
func TestMethodsOfANilLockPanicAtOnce(t *testing.T) {
	types := []reflect.Type{reflect.TypeFor[*lease.Mutex](), reflect.TypeFor[*lease.Semaphore]()}
	for _, zero := range zeros {
		types = append(types, reflect.TypeOf(zero()))
	}
	asks, called := regexp.MustCompile("Lock|Acquire|Release|Inspect"), 0
	for _, typ := range types {
		isLock := typ.Implements(reflect.TypeFor[locks.TryLocker]()) || typ.Implements(reflect.TypeFor[sync.Locker]()) ||
			typ.Implements(reflect.TypeFor[locks.ReadWriteLocker]()) || typ.Implements(reflect.TypeFor[locks.Semaphore]())
		for i := range typ.NumMethod() {
			name := typ.Method(i).Name
			if !isLock || !asks.MatchString(name) || strings.HasSuffix(name, "Locker") {
				continue
			}
			called++
			func() {
				defer func() {
					err, ok := recover().(runtime.Error)
					require.True(t, ok, "%v.%s", typ, name)
					require.Contains(t, err.Error(), "nil", "%v.%s", typ, name)
				}()
				f := reflect.Zero(typ).Method(i)
				if strings.HasSuffix(name, "AcquireContext") { // of a semaphore
					f.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(int64(1))})
				} else {
					call(f)
				}
			}()
		}
	}
	require.Greater(t, called, 100)
}
