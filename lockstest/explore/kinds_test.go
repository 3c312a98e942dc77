//go:build lockexplore

package explore

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/named"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/spin"
	"github.com/jucgo/locks/synchronizer"
)

// kinds are all local kinds of exclusive locks.
var kinds = map[string]func() locks.TryLocker{
	"fair.Mutex":            func() locks.TryLocker { return new(fair.Mutex) },
	"fair.BargingMutex":     func() locks.TryLocker { return new(fair.BargingMutex) },
	"fair.RWMutex":          func() locks.TryLocker { return new(fair.RWMutex).WriteLocker() },
	"reentrant.Mutex":       func() locks.TryLocker { return new(reentrant.Mutex) },
	"reentrant.Mutex, fair": func() locks.TryLocker { return reentrant.New(locks.FIFO) },
	"rwlock.RWMutex":        func() locks.TryLocker { return new(rwlock.RWMutex).WriteLocker() },
	"rwlock.RWMutex, fair":  func() locks.TryLocker { return rwlock.New(locks.FIFO).WriteLocker() },
	"rwlock.StampedLock":    func() locks.TryLocker { return new(rwlock.StampedLock).WriteLocker() },
	"spin.Mutex":            func() locks.TryLocker { return new(spin.Mutex) },
	"spin.MCS":              func() locks.TryLocker { return new(spin.MCS) },
	"spin.Ticket":           func() locks.TryLocker { return new(spin.Ticket) },
	"keyed.Mutex":           func() locks.TryLocker { return keyed.New[int](locks.NonFair).Of(1) },
	"named":                 func() locks.TryLocker { return named.New(locks.FIFO).Locker("a") },
	"Multi":                 func() locks.TryLocker { return locks.Multi(new(fair.Mutex), new(reentrant.Mutex)) },
	"semaphore.Weighted":    func() locks.TryLocker { return &permit{semaphore.NewWeighted(1)} },
	"synchronizer.Sync": func() locks.TryLocker {
		return &byRules{synchronizer.New(bit{}, 0, locks.NonFair)}
	},
	"synchronizer.Sync, fair": func() locks.TryLocker { return &byRules{new(synchronizer.Sync[bit])} },
}

// permit is a semaphore of one permit as a lock.
type permit struct{ *semaphore.Weighted }

func (l *permit) Lock()                           { _ = l.Acquire(context.Background(), 1) }
func (l *permit) Unlock()                         { l.Release(1) }
func (l *permit) TryLockFor(d time.Duration) bool { return l.TryAcquireFor(1, d) }

func (l *permit) LockContext(ctx context.Context) error { return l.Acquire(ctx, 1) }

func (l *permit) TryLockContext(context.Context) (bool, error) { return l.TryAcquire(1), nil }

func (l *permit) UnlockContext(context.Context) error {
	l.Release(1)
	return nil
}

// bit are the rules of a lock: the word is 1 while it is held.
type bit struct{}

func (bit) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 }
func (bit) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 }

// byRules is a synchronizer as a lock.
type byRules struct{ *synchronizer.Sync[bit] }

func (l *byRules) Lock()                           { l.Acquire(0) }
func (l *byRules) Unlock()                         { l.Release(0) }
func (l *byRules) TryLockFor(d time.Duration) bool { return l.AcquireFor(0, d) }

func (l *byRules) LockContext(ctx context.Context) error { return l.AcquireContext(ctx, 0) }

func (l *byRules) TryLockContext(context.Context) (bool, error) { return l.TryAcquire(0), nil }

func (l *byRules) UnlockContext(context.Context) error {
	l.Release(0)
	return nil
}

// plain has the methods that all kinds but Multi have as well.
type plain interface {
	Lock()
	Unlock()
	TryLockFor(d time.Duration) bool
}

func forEachKind(t *testing.T, test func(t *testing.T, newLock func() locks.TryLocker)) {
	for name, newLock := range kinds {
		t.Run(name, func(t *testing.T) { test(t, newLock) })
	}
}

// section is guarded by a lock: it fails the run if two goroutines are in it.
type section struct {
	x      *X
	inside atomic.Int32
}

func (s *section) run() {
	s.x.Check(s.inside.Add(1) == 1, "two goroutines have the lock")
	s.x.Step()
	s.inside.Add(-1)
}

// correct fails the test if a search has a finding.
func correct(t *testing.T, f func(x *X), opts ...Option) result {
	t.Helper()
	r := search(t, configure(opts), f)
	if r.finding != nil {
		require.Nil(t, r.finding, "%s", r.report())
	}
	require.NoError(t, r.err)
	return r
}

func TestEveryKindOfLockExcludesUnderAllSchedules(t *testing.T) {
	forEachKind(t, func(t *testing.T, newLock func() locks.TryLocker) {
		r := correct(t, func(x *X) {
			l, s := newLock(), section{x: x}
			for range 2 {
				x.Go("enters", func() {
					x.Check(l.LockContext(x.Context()) == nil, "not acquired")
					s.run()
					x.Check(l.UnlockContext(x.Context()) == nil, "not released")
				})
			}
			x.Wait()
			ok, err := l.TryLockContext(x.Context())
			x.Check(ok && err == nil, "the lock is not free")
		})
		require.Greater(t, r.schedules, 10)
		require.NotEmpty(t, r.complete)
	})
}

func TestACancelledWaiterLeavesNoLockBehind(t *testing.T) {
	forEachKind(t, func(t *testing.T, newLock func() locks.TryLocker) {
		var acquired, ended bool
		correct(t, func(x *X) {
			l, s := newLock(), section{x: x}
			ctx, cancel := context.WithCancel(x.Context())
			x.Go("holds", func() {
				x.Check(l.LockContext(x.Context()) == nil, "not acquired")
				s.run()
				x.Check(l.UnlockContext(x.Context()) == nil, "not released")
			})
			x.Go("waits", func() {
				if l.LockContext(ctx) != nil {
					ended = true
					return
				}
				acquired = true
				s.run()
				x.Check(l.UnlockContext(x.Context()) == nil, "not released")
			})
			x.Go("cancels", cancel)
			x.Wait()
			ok, err := l.TryLockContext(x.Context())
			x.Check(ok && err == nil, "the lock is not free")
		}, atMost(2000))
		require.True(t, acquired && ended, "both ends of the wait are explored")
	})
}

func TestATimeLimitEndsBeforeAndAfterAGrant(t *testing.T) {
	forEachKind(t, func(t *testing.T, newLock func() locks.TryLocker) {
		if _, ok := newLock().(plain); !ok {
			return
		}
		var acquired, ended bool
		correct(t, func(x *X) {
			l, s := newLock().(plain), section{x: x}
			x.Go("holds", func() {
				l.Lock()
				s.run()
				l.Unlock()
			})
			x.Go("waits", func() {
				if !l.TryLockFor(time.Second) {
					ended = true
					return
				}
				acquired = true
				s.run()
				l.Unlock()
			})
			x.Wait()
			l.Lock()
		}, atMost(2000))
		require.True(t, acquired && ended, "both ends of the wait are explored")
	})
}

func TestADeadlineEndsBeforeAndAfterAGrant(t *testing.T) {
	forEachKind(t, func(t *testing.T, newLock func() locks.TryLocker) {
		var acquired, ended bool
		correct(t, func(x *X) {
			l, s := newLock(), section{x: x}
			x.Go("holds", func() {
				x.Check(l.LockContext(x.Context()) == nil, "not acquired")
				s.run()
				x.Check(l.UnlockContext(x.Context()) == nil, "not released")
			})
			x.Go("waits", func() {
				ctx, cancel := context.WithTimeout(x.Context(), time.Second)
				defer cancel()
				if l.LockContext(ctx) != nil {
					ended = true
					return
				}
				acquired = true
				s.run()
				x.Check(l.UnlockContext(x.Context()) == nil, "not released")
			})
		}, atMost(2000))
		require.True(t, acquired && ended, "both ends of the wait are explored")
	})
}

// latch is a primitive that announces nothing, and parks by internal/park.
type latch struct {
	guard   sync.Mutex
	open    bool
	waiters []*park.Place
}

func (l *latch) await() {
	l.guard.Lock()
	if l.open {
		l.guard.Unlock()
		return
	}
	p := new(park.Place)
	p.Init()
	l.waiters = append(l.waiters, p)
	l.guard.Unlock()
	p.Park()
}

func (l *latch) release() {
	l.guard.Lock()
	l.open = true
	waiters := l.waiters
	l.guard.Unlock()
	for _, p := range waiters {
		p.Unpark()
	}
}

func TestAWokenGoroutineWaitsForItsTurn(t *testing.T) {
	correct(t, func(x *X) {
		var l latch
		var step atomic.Int32
		x.Go("awaits", func() {
			l.await()
			x.Check(step.Load() != 1, "it runs beside the goroutine that woke it")
		})
		x.Go("opens", func() {
			step.Store(1)
			l.release()
			for range 100 {
				runtime.Gosched() // the woken one could run
			}
			step.Store(2)
		})
	})
}

func TestAPrimitiveThatOnlyParksIsExplored(t *testing.T) {
	order := map[int32]bool{}
	correct(t, func(x *X) {
		var l latch
		var n, first atomic.Int32
		for i := range int32(2) {
			x.Go("awaits", func() {
				l.await()
				if n.Add(1) == 1 {
					first.Store(i)
				}
			})
		}
		x.Go("opens", l.release)
		x.Wait()
		order[first.Load()] = true
	})
	require.Len(t, order, 2, "the woken go on in either order")

	r := search(t, configure(nil), func(x *X) {
		var l latch
		x.Go("awaits", l.await)
	})
	require.NotNil(t, r.finding)
}

func TestAPrimitiveThatOnlyParksIsNotTakenForTheLastLock(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var l latch
		var m fair.Mutex
		m.Lock()
		m.Unlock()
		l.await()
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Leak, r.finding.Kind)
	require.Contains(t, r.finding.Text, "blocked outside of locks")
}

func TestAResizeStopsAtNoDecisionInside(t *testing.T) {
	correct(t, func(x *X) {
		s := semaphore.NewWeighted(2)
		for n := range int64(2) {
			x.Go("resizes", func() {
				s.Resize(n + 1)
				x.Check(s.String() != "", "no text")
				_, err := s.Inspect(x.Context())
				x.Check(err == nil, "%v", err)
			})
		}
		x.Go("passes", func() {
			if s.Acquire(x.Context(), 2) == nil {
				s.Release(2)
			}
		})
		x.Wait()
		x.Check(s.Drain() == s.Size(), "%v", s)
	}, atMost(2000))
}

func TestALeaseRefusesANilContext(t *testing.T) {
	correct(t, func(x *X) {
		l := x.NewLease("job")
		x.Check(errors.Is(l.LockContext(nil), locks.ErrNilContext), "LockContext") //nolint:staticcheck // on purpose
		_, err := l.TryLockContext(nil)                                            //nolint:staticcheck // on purpose
		x.Check(errors.Is(err, locks.ErrNilContext), "TryLockContext")
	})
}

func TestALeaseReportsTheEndAndItsCause(t *testing.T) {
	cause := errors.New("the user has left")
	correct(t, func(x *X) {
		l := x.NewLease("job")
		ctx, cancel := context.WithCancelCause(x.Context())
		cancel(cause)
		_, err := l.TryLockContext(ctx)
		for _, err := range []error{l.LockContext(ctx), err} {
			x.Check(errors.Is(err, context.Canceled) && errors.Is(err, cause), "%v", err)
		}
	})
}

func TestAHoldOfAReadViewIsShownAsOne(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var l rwlock.StampedLock
		x.Check(l.ReadLocker().LockContext(x.Context()) == nil, "not acquired")
		_, err := l.ReadLocker().TryLockContext(x.Context())
		x.Check(err == nil, "%v", err)
		l.WriteLock()
	})
	require.NotNil(t, r.finding)
	require.Equal(t, 2, strings.Count(r.finding.Text, "read by main"), "%s", r.finding.Text)
}

func TestAStoreInAnUpdateOfASnapshotDeadlocks(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var s rwlock.Snapshot[int]
		s.Update(func(old int) int {
			s.Store(1)
			return old
		})
	})
	require.NotNil(t, r.finding)
	require.Equal(t, Deadlock, r.finding.Kind)
	require.Contains(t, r.finding.Text, "held by main")
}

func TestAFindingNamesOwnersLikeTheProgram(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m reentrant.Mutex
		x.Go("holds", m.Lock)
		x.Go("checks", func() {
			if err := m.UnlockContext(t.Context()); m.IsLocked() {
				x.Errorf("%v", err)
			}
		})
	})
	require.NotNil(t, r.finding)
	require.Contains(t, r.finding.Text, `reentrant: UnlockContext: lock not held by the caller, goroutine "checks": `+
		`the reentrant.Mutex is held by goroutine "holds"; a hold`)
}
