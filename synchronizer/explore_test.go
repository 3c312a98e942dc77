package synchronizer_test

import (
	"context"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/lockstest/explore"
)

// The locks of the examples under all schedules.

func TestTheMutexOfRulesAdmitsOne(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var m Mutex
		n := 0
		add := func() {
			was := n
			x.Step()
			n = was + 1
			m.Unlock()
		}
		for range 2 {
			x.Go("adds", func() {
				m.Lock()
				add()
			})
		}
		x.Go("tries", func() {
			if m.TryLock() {
				add()
			} else {
				m.Lock()
				add()
			}
		})
		x.Wait()
		x.Check(n == 3, "n is %d", n)
	}, explore.Preemptions(1))
}

func TestOneSignalOpensTheLatchForAll(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var l BooleanLatch
		result := 0
		for range 2 {
			x.Go("awaits", func() {
				l.Await()
				x.Check(result == 42, "the result is %d", result)
			})
		}
		x.Go("signals", func() {
			result = 42
			l.Signal()
		})
	})
}

func TestTheLatchOpensAfterTheLastCountDown(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		l := NewCountDownLatch(2)
		done := [2]bool{}
		for i := range done {
			x.Go("works", func() {
				done[i] = true
				l.CountDown()
			})
		}
		x.Go("awaits", func() {
			l.Await()
			x.Check(done[0] && done[1], "a worker is not done")
		})
	})
}

func TestTheCounterNeverExceedsItsBound(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		c := NewCounter(3)
		for range 3 {
			x.Go("counts", func() {
				c.Up(2)
				x.Check(c.Count() == 2, "the count is %d", c.Count())
				x.Check(c.Down(2), "it was not counted")
			})
		}
	}, explore.Preemptions(1))
}

func TestTheGateAdmitsWaitersWhenItOpens(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var g Gate
		for range 2 {
			x.Go("passes", func() { x.Check(g.Await(x.Context()) == nil, "it was not let through") })
		}
		x.Go("opens", g.Open)
	})
}

func TestAGateThatClosesAgainMayKeepAWaiter(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var g Gate
		x.Go("passes", func() { _ = g.Await(x.Context()) })
		x.Go("opens and closes", func() {
			g.Open()
			g.Close()
		})
	}, explore.Expect(explore.Deadlock))
}

func TestAWriterOfRulesIsAloneUnderAllSchedules(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		var l ReadWriteLock
		a, b := 0, 0
		for range 2 {
			x.Go("reads", func() {
				l.RLock()
				x.Check(a == b, "read %d and %d", a, b)
				l.RUnlock()
			})
		}
		x.Go("writes", func() {
			l.Lock()
			a++
			x.Step()
			b++
			l.Unlock()
		})
	}, explore.Preemptions(1))
}

func TestACancelledAcquisitionKeepsNoPermit(t *testing.T) {
	for _, p := range []locks.Policy{locks.FIFO, locks.NonFair} {
		t.Run(p.String(), func(t *testing.T) {
			explore.Run(t, func(x *explore.X) {
				s := NewSemaphore(2, p)
				ctx, cancel := context.WithCancel(x.Context())
				take := func(ctx context.Context, n uint64) func() {
					return func() {
						if s.Acquire(ctx, n) == nil {
							x.Check(s.Release(n), "it was not acquired")
						}
					}
				}
				x.Go("takes both", take(ctx, 2))
				x.Go("takes one", take(x.Context(), 1))
				x.Go("cancels", cancel)
				x.Wait()
				x.Check(s.s.Word() == 2, "%d permits are free", s.s.Word())
			})
		})
	}
}

func TestTheMailboxLosesNoLetterUnderAnySchedule(t *testing.T) {
	explore.Run(t, func(x *explore.X) {
		b := NewMailbox()
		letters := ""
		x.Go("puts", func() {
			b.Put("a")
			b.Put("b")
		})
		x.Go("takes", func() { letters = b.Take() + b.Take() })
		x.Wait()
		x.Check(letters == "ab", "the letters are %q", letters)
	}, explore.Preemptions(1))
}
