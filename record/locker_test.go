package record_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// plainLeased is a leased lock with plain methods.
type plainLeased struct{ *fakelock.Leased }

func (l plainLeased) Lock()   { _ = l.LockContext(context.Background()) }
func (l plainLeased) Unlock() { _ = l.UnlockContext(context.Background()) }

// plainOnly is a lock with plain methods that cannot be inspected.
type plainOnly struct{ locks.TryLocker }

func (l plainOnly) Lock()   { _ = l.LockContext(context.Background()) }
func (l plainOnly) Unlock() { _ = l.UnlockContext(context.Background()) }

// neverHeld is an Inspect that finds the lock free.
type neverHeld struct{}

func (neverHeld) Inspect(context.Context) (locks.Info, error) { return locks.Info{}, nil }

type inspectedOnly struct {
	locks.TryLocker
	neverHeld
}

type inspectedLeased struct {
	*fakelock.Leased
	neverHeld
}

type inspectedPlainLeased struct {
	plainLeased
	neverHeld
}

func TestWrapperHasTheInterfacesOfItsLock(t *testing.T) {
	for name, c := range map[string]struct {
		lock                     locks.TryLocker
		plain, leased, inspected bool
	}{
		"context methods only": {lock: &fakelock.Lock{}},
		"plain":                {lock: plainOnly{&fakelock.Lock{}}, plain: true},
		"plain and inspected":  {lock: new(fair.Mutex), plain: true, inspected: true},
		"inspected":            {lock: inspectedOnly{TryLocker: &fakelock.Lock{}}, inspected: true},
		"leased":               {lock: fakelock.NewLeased(""), leased: true},
		"leased and inspected": {lock: inspectedLeased{Leased: fakelock.NewLeased("")}, leased: true, inspected: true},
		"plain and leased":     {lock: plainLeased{fakelock.NewLeased("")}, plain: true, leased: true},
		"all": {
			lock:  inspectedPlainLeased{plainLeased: plainLeased{fakelock.NewLeased("")}},
			plain: true, leased: true, inspected: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := record.New(record.Options{}).Wrap("l", c.lock)
			_, plain := w.(sync.Locker)
			_, leased := w.(locks.Leased)
			require.Equal(t, c.plain, plain, "sync.Locker")
			require.Equal(t, c.leased, leased, "locks.Leased")
			i, inspected := w.(locks.Inspector)
			require.Equal(t, c.inspected, inspected, "locks.Inspector")
			if inspected {
				info, err := i.Inspect(t.Context())
				require.NoError(t, err)
				require.False(t, info.Held)
			}
			require.Equal(t, c.lock, w.(interface{ Unwrap() locks.TryLocker }).Unwrap())
		})
	}
}

func TestPlainMethodsAreWatched(t *testing.T) {
	r := record.New(record.Options{Events: 10})
	l := r.Wrap("l", new(reentrant.Mutex)).(sync.Locker)
	l.Lock()
	l.Lock()
	require.EqualValues(t, 1, r.Stats()[0].Held)
	l.Unlock()
	l.Unlock()
	w, a, u := record.Waiting, record.Acquired, record.Released
	require.Equal(t, []record.Kind{w, a, w, a, u, u}, kinds(r))
	require.Zero(t, r.Stats()[0].Held)
}

func TestPlainUnlockPanicsAsTheLockDoes(t *testing.T) {
	var m reentrant.Mutex
	var want any
	func() {
		defer func() { want = recover() }()
		m.Unlock()
	}()
	r := record.New(record.Options{Events: 10})
	require.PanicsWithError(t, want.(error).Error(), r.Wrap("l", &m).(sync.Locker).Unlock)
	events, _ := r.Events()
	require.Len(t, events, 1)
	require.Equal(t, record.Refused, events[0].Kind)
	require.ErrorIs(t, events[0].Err, locks.ErrNotHeld)
}

// refuser is a lock whose Lock panics with a value that is not an error.
type refuser struct{ locks.TryLocker }

func (*refuser) Lock()   { panic("refused") }
func (*refuser) Unlock() { panic("refused") }

func TestPlainLockThatPanicsIsNoLongerWaiting(t *testing.T) {
	r := record.New(record.Options{Events: 10})
	l := r.Wrap("l", &refuser{new(fakelock.Lock)}).(sync.Locker)
	require.PanicsWithValue(t, "refused", l.Lock)
	require.PanicsWithValue(t, "refused", l.Unlock)
	s := r.Stats()[0]
	require.Zero(t, s.Waiting)
	require.Zero(t, s.Held)
	require.Equal(t, [...]uint64{1, 1}, [...]uint64{s.Failed, s.Refused})
	events, _ := r.Events()
	require.ErrorContains(t, events[1].Err, "refused")
}

// speaker is a lock that panics with itself. Its String could take the lock.
type speaker struct {
	locks.TryLocker
	asked bool
}

func (s *speaker) Lock()          { panic(s) }
func (s *speaker) Unlock()        { panic(s) }
func (s *speaker) String() string { s.asked = true; return "" }

// failure is a speaker that is an error.
type failure struct{ speaker }

func (f *failure) Lock()         { panic(f) }
func (f *failure) Unlock()       { panic(f) }
func (f *failure) Error() string { return f.String() }

func TestARecorderCallsNoMethodOfAPanicsValue(t *testing.T) {
	s, f := &speaker{TryLocker: new(fakelock.Lock)}, &failure{speaker{TryLocker: new(fakelock.Lock)}}
	for _, l := range []locks.TryLocker{s, f} {
		r := record.New(record.Options{Events: 10})
		w := r.Wrap("l", l).(sync.Locker)
		require.Panics(t, w.Lock)
		require.Panics(t, w.Unlock)
		events, _ := r.Events()
		require.Error(t, events[1].Err)
		require.Error(t, events[2].Err)
	}
	require.False(t, s.asked)
	require.False(t, f.asked)
}

func TestPlainViewsOfReadWriteLocksAreWatched(t *testing.T) {
	r := record.New(record.Options{})
	rw := r.WrapReadWrite("rw", new(rwlock.RWMutex))
	for _, view := range []locks.TryLocker{rw.ReadLocker(), rw.WriteLocker()} {
		l := view.(sync.Locker)
		l.Lock()
		l.Unlock()
	}
	for _, s := range r.Stats() {
		require.EqualValues(t, 1, s.Released, s.Lock)
	}
}

func TestPlainMethodsAllocateNothing(t *testing.T) {
	l := record.New(record.Options{}).Wrap("l", new(fair.Mutex)).(sync.Locker)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l.Lock()
		l.Unlock()
	}))
}
