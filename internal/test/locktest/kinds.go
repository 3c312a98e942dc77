// Package locktest has the shared parts of the tests of mutexes and their conditions: the table
// of the locks, and the suites that every lock must pass.
package locktest

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

// Lock has the methods that all mutexes of the module have in common.
type Lock interface {
	sync.Locker
	locks.TryLocker
	TryLock() bool
	TryLockFor(d time.Duration) bool
	NewCond() *condition.Cond
	IsLocked() bool
	HasQueued() bool
	QueueLength() int
	IsQueued(o locks.Owner) bool
	Queued() []locks.Owner
	String() string
}

// Tryer has the methods of a view of a read-write lock beyond locks.TryLocker.
type Tryer interface {
	sync.Locker
	TryLock() bool
	TryLockFor(d time.Duration) bool
}

// Kind is one kind of lock.
type Kind struct {
	Name  string
	New   func() Lock
	FIFO  bool
	Owned bool // knows its owner, and is reentrant
}

// Kinds returns all kinds of locks on the queued synchronizer.
func Kinds() []Kind { return slices.Concat(Fair(), Reentrant(), Keyed(), ReadWrite(), Spin()[:1]) }

// Apart returns the locks with queues of their own.
func Apart() []Kind { return Spin()[1:] }

// Fair returns the locks of package fair.
func Fair() []Kind {
	return []Kind{
		{Name: "fair.Mutex", New: func() Lock { return new(fair.Mutex) }, FIFO: true},
		{Name: "fair.BargingMutex", New: func() Lock { return new(fair.BargingMutex) }},
	}
}

// Reentrant returns the locks of package reentrant.
func Reentrant() []Kind {
	return []Kind{
		{Name: "reentrant.Mutex NonFair", New: func() Lock { return new(reentrant.Mutex) }, Owned: true},
		{Name: "reentrant.Mutex FIFO", New: func() Lock { return reentrant.New(locks.FIFO) }, FIFO: true, Owned: true},
	}
}

// Keyed returns the locks of package keyed.
func Keyed() []Kind {
	return []Kind{
		{Name: "keyed.Mutex NonFair", New: func() Lock { return new(keyed.Mutexes[string]).Of("key") }, Owned: true},
		{
			Name: "keyed.Mutex FIFO", FIFO: true, Owned: true,
			New: func() Lock { return keyed.New[int](locks.FIFO).Of(7) },
		},
	}
}

// Spin returns the locks of package spin.
func Spin() []Kind {
	return []Kind{
		{Name: "spin.Mutex", New: func() Lock { return new(spin.Mutex) }},
		{Name: "spin.Ticket", New: func() Lock { return new(spin.Ticket) }, FIFO: true},
		{Name: "spin.MCS", New: func() Lock { return new(spin.MCS) }, FIFO: true},
	}
}

// ReadWrite returns the write sides of rwlock.RWMutex. Some of them have been read before, and so
// are biased to readers when they are locked first.
func ReadWrite() []Kind {
	var kinds []Kind
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		name := "rwlock.RWMutex " + p.String()
		kinds = append(kinds,
			Kind{Name: name, New: func() Lock { return WriteSide{rwlock.New(p)} }, FIFO: p == locks.FIFO, Owned: true},
			Kind{Name: name + " after reads", New: func() Lock {
				rw := rwlock.New(p)
				rw.RLock()
				rw.RUnlock()
				return WriteSide{rw}
			}, FIFO: p == locks.FIFO, Owned: true})
	}
	return kinds
}

// WriteSide is an RWMutex as a mutex, with a mutex's words for the same things.
type WriteSide struct{ *rwlock.RWMutex }

func (w WriteSide) IsLocked() bool { return w.IsWriteLocked() }
func (w WriteSide) IsHeld() bool   { return w.IsWriteHeld() }
func (w WriteSide) HoldCount() int { return w.WriteHoldCount() }
func (w WriteSide) String() string {
	return strings.Replace(w.RWMutex.String(), "[write-locked", "[locked", 1)
}

// Situation is one test that a lock must pass.
type Situation struct {
	Name string
	Test func(t *testing.T, k Kind)
}

// Run runs all situations with each of kinds.
func Run(t *testing.T, kinds []Kind, situations []Situation) {
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			for _, s := range situations {
				t.Run(s.Name, func(t *testing.T) { s.Test(t, k) })
			}
		})
	}
}

// Await waits until done returns true. It is for tests outside of bubbles; inside of a bubble use
// synctest.Wait.
func Await(t testing.TB, done func() bool, what string) {
	t.Helper()
	for began := time.Now(); ; {
		asked := time.Now()
		if done() {
			return
		}
		now := time.Now()
		require.Less(t, now.Sub(began), 2*time.Minute, "waited in vain for %s", what)
		// Such as a walk through a long queue, which no goroutine can join meanwhile.
		if cost := now.Sub(asked); cost > 50*time.Microsecond {
			time.Sleep(4 * cost)
		} else {
			runtime.Gosched()
		}
	}
}

// PanicsWith checks that f panics with an error that matches want.
func PanicsWith(t testing.TB, want error, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		got := recover()
		err, _ := got.(error)
		require.ErrorIs(t, err, want, "the panic is %v", got)
	}()
	f()
}

// Me returns the calling goroutine.
func Me() locks.Owner { return locks.CurrentOwner(nil) } //nolint:staticcheck // nil stands for no owner
