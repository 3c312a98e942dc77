//go:build lockexplore

package explore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/keyed"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/singleton"
)

// wrong returns the text of the finding of a program, which must have one of this kind.
func wrong(t *testing.T, k Kind, f func(x *X), opts ...Option) string {
	t.Helper()
	r := search(t, configure(opts), f)
	require.NoError(t, r.err)
	require.NotNil(t, r.finding)
	require.Equal(t, k, r.finding.Kind, "%s", r.report())
	for range 5 {
		again := search(t, configure([]Option{Replay(r.replay())}), f)
		require.NoError(t, again.err)
		require.NotNil(t, again.finding)
		again.schedules = r.schedules
		require.Equal(t, r.report(), again.report())
	}
	return r.finding.Text
}

func TestAHolderThatWaitsForAChannelIsNamed(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		var m fair.Mutex
		c := make(chan int)
		x.Go("sends", func() {
			m.Lock()
			select {
			case c <- 1:
			case <-x.Context().Done():
			}
			m.Unlock()
		})
		x.Go("receives", func() {
			m.Lock()
			m.Unlock()
			<-c
		})
	})
	require.Regexp(t, `sends is blocked outside of locks at report_test.go:\d+,\s+holds fair.Mutex#1 at report_test.go:\d+`, text)
	require.Regexp(t, `receives waits in Lock of fair.Mutex#1 at report_test.go:\d+,\s+held by sends`, text)
}

func TestAHolderWithoutGoThatWaitsForAChannelIsNamed(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		var m fair.Mutex
		c := make(chan int)
		go func() {
			m.Lock()
			select {
			case c <- 1:
			case <-x.Context().Done():
			}
			m.Unlock()
		}()
		x.Step()
		m.Lock()
		m.Unlock()
		<-c
	})
	require.Regexp(t, `go \d is blocked outside of locks at report_test.go:\d+.*\n\s+holds fair.Mutex#1`, text)
}

func TestAHolderThatHasEndedIsNamed(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		var m fair.Mutex
		x.Go("forgets", m.Lock)
		x.Wait()
		m.Lock()
	})
	require.Contains(t, text, "forgets has ended,\n    holds fair.Mutex#1")
}

func TestAWaitGivesUpAllHolds(t *testing.T) {
	text := wrong(t, LostWakeup, func(x *X) {
		var m reentrant.Mutex
		c := m.NewCond()
		x.Go("waits", func() {
			m.Lock()
			m.Lock()
			c.Wait()
			m.Unlock()
			m.Unlock()
		})
		x.Go("locks", func() {
			m.Lock()
			m.Unlock()
		})
	})
	require.NotContains(t, text, "holds")
	require.NotContains(t, text, "held by")
}

func TestPermitsAreCountedInReports(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		s := semaphore.NewWeighted(3)
		x.Go("gives two of three", func() {
			x.Check(s.Acquire(x.Context(), 3) == nil, "not acquired")
			s.Release(2)
		})
		x.Go("gives all", func() {
			x.Check(s.Acquire(x.Context(), 2) == nil, "not acquired")
			s.Release(2)
		})
		x.Wait()
		_ = s.Acquire(context.Background(), 3)
	})
	require.Contains(t, text, "held by gives two of three")
	require.NotContains(t, text, "held by gives all")
}

func TestAConvertedStampIsHeldAsWhatItIs(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		var l rwlock.StampedLock
		st := l.ReadLock()
		x.Check(l.TryConvertToWriteLock(st) != 0, "not converted")
		x.Go("reads", func() { l.ReadLock() })
	})
	require.Contains(t, text, "held by main")
	require.NotContains(t, text, "read by main")

	text = wrong(t, Deadlock, func(x *X) {
		var l rwlock.StampedLock
		st := l.WriteLock()
		l.TryConvertToReadLock(st)
		x.Go("writes", func() { l.WriteLock() })
	})
	require.Contains(t, text, "read by main")
	require.NotContains(t, text, "held by main")
}

// tenant is a key whose text is code of the program.
type tenant struct {
	name string
	n    int
}

func (tenant) String() string { panic("the report calls the program") }

func TestAKeyIsShownByItsValue(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		set := keyed.New[tenant](locks.FIFO)
		x.Go("locks", func() { set.Of(tenant{"a", 7}).Lock() })
		x.Wait()
		set.Of(tenant{"a", 7}).Lock()
	})
	require.Contains(t, text, `keyed.Mutex({name:"a" n:7})`)
}

func TestAPanicsValueIsShownWithoutItsMethods(t *testing.T) {
	text := wrong(t, Panic, func(*X) { panic(tenant{"secret", 7}) })
	require.Contains(t, text, "a explore.tenant")
	require.NotContains(t, text, "PANIC=")
}

func TestALeakedGoroutineHasItsPlace(t *testing.T) {
	text := wrong(t, Leak, func(x *X) {
		c := make(chan int)
		x.Go("leaks", func() {
			x.Step()
			select {
			case <-c:
			case <-x.Context().Done():
			}
		})
	})
	require.Regexp(t, `leaks is blocked outside of locks at report_test.go:\d+`, text)
}

func TestMoreGoroutinesThanPossibleAreAFinding(t *testing.T) {
	for name, start := range map[string]func(x *X, f func()){
		"Go": func(x *X, f func()) { x.Go("works", f) },
		"go": func(_ *X, f func()) { go f() },
	} {
		t.Run(name, func(t *testing.T) {
			r := search(t, configure([]Option{Schedules(1)}), func(x *X) {
				var m fair.Mutex
				for range maxGoroutines + 10 {
					start(x, func() {
						m.Lock()
						m.Unlock()
					})
				}
			})
			require.NotNil(t, r.finding)
			require.Contains(t, r.finding.String(), "more than 256 goroutines")
			require.Contains(t, r.finding.String(), "report_test.go:")
		})
	}
}

func TestALazyValueIsADecision(t *testing.T) {
	peeked := map[bool]bool{}
	r := correct(t, func(x *X) {
		l := singleton.New(func() (int, error) { return 1, nil })
		x.Go("gets", func() { l.MustGet() })
		_, ok := l.Peek()
		peeked[ok] = true
	})
	require.Len(t, peeked, 2)
	require.Equal(t, "which are all that there are", r.complete)
	require.Empty(t, r.doubt)
}

func TestAWaitForALazyValueIsOneForALock(t *testing.T) {
	text := wrong(t, Deadlock, func(x *X) {
		var m fair.Mutex
		l := singleton.New(func() (int, error) {
			m.Lock()
			defer m.Unlock()
			return 1, nil
		})
		x.Go("gets under the lock", func() {
			m.Lock()
			l.MustGet()
			m.Unlock()
		})
		x.Go("gets", func() { l.MustGet() })
	})
	require.Contains(t, text, "waits in MustGet of singleton.Lazy#")
	require.Contains(t, text, "held by gets under the lock")
}

func TestAWorkerUnderTheContextOfTheRunIsNoFinding(t *testing.T) {
	for name, start := range map[string]func(x *X, f func()){
		"Go": func(x *X, f func()) { x.Go("works", f) },
		"go": func(_ *X, f func()) { go f() },
	} {
		t.Run(name, func(t *testing.T) {
			correct(t, func(x *X) {
				var m fair.Mutex
				c := m.NewCond()
				items := 0
				start(x, func() {
					m.Lock()
					defer m.Unlock()
					for {
						for items == 0 {
							if c.WaitContext(x.Context()) != nil {
								return
							}
						}
						items--
					}
				})
				m.Lock()
				items++
				c.Signal()
				m.Unlock()
				x.Wait()
				m.Lock()
				x.Check(items == 0, "%d items are left", items)
				m.Unlock()
			})
		})
	}
}

func TestATimerBesideWorkIsADecision(t *testing.T) {
	wrong(t, Failure, func(x *X) {
		var m fair.Mutex
		done := false
		x.Go("works", func() {
			m.Lock()
			m.Unlock()
			m.Lock()
			done = true
			m.Unlock()
		})
		x.Go("gives up", func() {
			time.Sleep(time.Second)
			m.Lock()
			x.Check(done, "the time was over before the work was done")
			m.Unlock()
		})
	})
	wrong(t, Failure, func(x *X) {
		var m fair.Mutex
		late := false
		timer := time.AfterFunc(time.Second, func() {
			m.Lock()
			late = true
			m.Unlock()
		})
		m.Lock()
		m.Unlock()
		m.Lock()
		x.Check(!late, "the timer has fired")
		m.Unlock()
		timer.Stop()
	})
}

func TestADeadlineMayEndDuringWork(t *testing.T) {
	wrong(t, Failure, func(x *X) {
		var m fair.Mutex
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if m.LockContext(ctx) != nil {
			return
		}
		x.Step()
		x.Check(ctx.Err() == nil, "the deadline ended during the work")
		m.Unlock()
	})
}

func TestAContextMayEndRightAfterAnOperation(t *testing.T) {
	wrong(t, Failure, func(x *X) {
		var m fair.Mutex
		ctx, cancel := context.WithCancel(x.Context())
		x.Go("locks", func() {
			if m.LockContext(ctx) != nil {
				return
			}
			if ctx.Err() != nil {
				return // and the lock is held by nobody
			}
			m.Unlock()
		})
		x.Go("cancels", cancel)
		x.Wait()
		x.Check(!m.IsLocked(), "the lock is held by nobody")
	})
}

func TestALongRunIsShownInPart(t *testing.T) {
	r := search(t, configure([]Option{Steps(1000)}), func(x *X) {
		x.Go("spins", func() {
			for {
				x.Step()
			}
		})
	})
	require.NotNil(t, r.finding)
	text := r.report()
	require.Contains(t, text, "more steps")
	require.Less(t, strings.Count(text, "\n"), 2*ends+20)
	require.Contains(t, text, "\n 200  ")
	require.NotContains(t, text, "\n 500  ")
}
