//go:build race

package lockstest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
)

// forgetful is a lock with one method that does not synchronize in the eyes of the race detector.
type forgetful struct {
	timedMutex
	flaw fakelock.Flaw
}

// Methods of a forgetful lock.
const (
	forgetsLock   fakelock.Flaw = "LockContext does not happen after the release"
	forgetsTry    fakelock.Flaw = "TryLockContext does not happen after the release"
	forgetsTryFor fakelock.Flaw = "TryLockFor does not happen after the release"
	forgetsPlain  fakelock.Flaw = "Lock does not happen after the release"
)

// forget returns with synchronization ignored if that is the flaw. Its result undoes it.
func (l *forgetful) forget(flaw fakelock.Flaw) func() {
	if l.flaw != flaw {
		return func() {}
	}
	runtime.RaceDisable()
	return runtime.RaceEnable
}

func (l *forgetful) LockContext(ctx context.Context) error {
	defer l.forget(forgetsLock)()
	return l.timedMutex.LockContext(ctx)
}

func (l *forgetful) TryLockContext(ctx context.Context) (bool, error) {
	defer l.forget(forgetsTry)()
	return l.timedMutex.TryLockContext(ctx)
}

func (l *forgetful) TryLockFor(d time.Duration) bool {
	defer l.forget(forgetsTryFor)()
	return l.timedMutex.TryLockFor(d)
}

func (l *forgetful) Lock() {
	defer l.forget(forgetsPlain)()
	_ = l.timedMutex.LockContext(background)
}

func (l *forgetful) TryLock() bool {
	ok, _ := l.timedMutex.TryLockContext(background)
	return ok
}

func (l *forgetful) Unlock() {
	if err := l.UnlockContext(background); err != nil {
		panic(err)
	}
}

func forgetfulLock(flaw fakelock.Flaw) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &forgetful{timedMutex{fake: fake{Reentrant: true}}, flaw}
		},
		Reentrant: true, FIFO: true, Waiting: queue,
	}
}

func init() {
	for _, flaw := range []fakelock.Flaw{forgetsLock, forgetsTry, forgetsTryFor, forgetsPlain} {
		racy = append(racy, brokenLock{"UnlockHappensBeforeTheNextLock", forgetfulLock, flaw})
	}
}
