package leader_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
)

// scripted is a lock whose answers a test sets.
type scripted struct {
	lock     func() error
	unlocked error
	info     locks.Info
}

func (s *scripted) LockContext(context.Context) error            { return s.lock() }
func (s *scripted) TryLockContext(context.Context) (bool, error) { return false, errNetwork }
func (s *scripted) UnlockContext(context.Context) error          { return s.unlocked }

func (s *scripted) Inspect(context.Context) (locks.Info, error) { return s.info, nil }

// campaigns runs an election whose pauses are at most a second at first, and an hour later. Each
// event is one of the campaigns: "fails", "is lost", "resigns", or "resigns in the campaign". It
// returns the pause before each campaign but the first.
func campaigns(t *testing.T, events ...string) (pauses []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		var e *leader.Election
		var last time.Time
		n := 0
		s := &scripted{}
		s.lock = func() error {
			if n > 0 {
				pauses = append(pauses, time.Since(last))
			}
			last = time.Now()
			n++
			if n > len(events) {
				return nil
			}
			switch events[n-1] {
			case "fails":
				return errNetwork
			case "resigns in the campaign":
				e.Resign(0)
				return errNetwork
			}
			return nil
		}
		e = leader.New(s, leader.WithBackoff(time.Second, time.Hour))
		err := e.Run(t.Context(), func(context.Context) error {
			s.unlocked = nil
			switch {
			case n > len(events):
			case events[n-1] == "is lost":
				s.unlocked = locks.ErrLost
			case events[n-1] == "resigns":
				e.Resign(0)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	return pauses
}

// about checks that a pause is random between half of d and d.
func about(t *testing.T, pause, d time.Duration) {
	t.Helper()
	if pause < d/2 || pause > d {
		t.Errorf("a pause of %v, want %v to %v", pause, d/2, d)
	}
}

func TestAFailedCampaignDoublesThePause(t *testing.T) {
	p := campaigns(t, "fails", "fails", "fails")
	about(t, p[0], time.Second)
	about(t, p[1], 2*time.Second)
	about(t, p[2], 4*time.Second)
}

func TestALeadershipMakesThePauseShortAgain(t *testing.T) {
	p := campaigns(t, "fails", "fails", "fails", "is lost", "fails", "is lost", "is lost")
	for _, pause := range p[3:] {
		about(t, pause, time.Second)
	}
	p = campaigns(t, "fails", "fails", "fails", "resigns", "fails")
	if p[3] != 0 {
		t.Errorf("a pause of %v after a resignation for no time", p[3])
	}
	about(t, p[4], time.Second)
}

func TestAResignationInACampaignIsNoLeadership(t *testing.T) {
	p := campaigns(t, "fails", "fails", "fails", "resigns in the campaign", "fails")
	if p[3] != 0 {
		t.Errorf("a pause of %v after a resignation for no time", p[3])
	}
	about(t, p[4], 8*time.Second)
}

func TestAResignationWhileTheLockIsAcquiredMakesNobodyLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := &scripted{}
		e := leader.New(s, j.options()...)
		s.lock = func() error {
			e.Resign(time.Hour)
			return nil
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := e.Run(ctx, untilEnd); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		j.want(t)
	})
}

func TestAForeignLockEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := leader.Run(ctx, &scripted{lock: func() error { return locks.ErrForeign }}, untilEnd)
		if !errors.Is(err, locks.ErrForeign) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestOneTimeIsAllowedForAllPauses(t *testing.T) {
	leader.New(&scripted{}, leader.WithBackoff(time.Second, time.Second))
}

func TestRunReturnsAfterTheLastCallOfItsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, over := 0, false
		s := &scripted{lock: func() error { return nil }, info: locks.Info{Held: true}} // it does not know its holder
		news := leader.WithNewLeader(func(l leader.Leader) {
			if l != (leader.Leader{}) {
				t.Errorf("the leader is %+v", l)
			}
			calls++
			time.Sleep(time.Minute)
			over = true
		})
		err := leader.Run(t.Context(), s, func(context.Context) error {
			time.Sleep(30 * time.Second)
			return nil
		}, news)
		if err != nil || calls != 1 || !over {
			t.Errorf("%d calls, the last one over: %t; error %v", calls, over, err)
		}
	})
}

func TestTheReasonOfALeaderThatSaysWhyItEndsIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *leader.Election
		var reasons []error
		ctx, stop := context.WithCancel(t.Context())
		e = leader.New(&scripted{lock: func() error { return nil }}, leader.WithOnLost(func(reason error) {
			reasons = append(reasons, reason)
			stop()
		}))
		_ = e.Run(ctx, func(ctx context.Context) error {
			e.Resign(time.Hour)
			return context.Cause(ctx)
		})
		if len(reasons) != 1 || reasons[0].Error() != leader.ErrResigned.Error() {
			t.Errorf("the reasons are %v", reasons)
		}
	})
}

func TestTheReasonOfAnExitHasTheEndBeforeIt(t *testing.T) {
	cause := errors.New("maintenance")
	for end, want := range map[string][]error{
		"resigned": {leader.ErrResigned}, "cancelled": {context.Canceled, cause},
	} {
		t.Run(end, func(t *testing.T) {
			var reason error
			done := make(chan struct{})
			e := leader.New(&scripted{lock: func() error { return nil }}, leader.WithOnLost(func(r error) { reason = r }))
			go func() {
				defer close(done)
				ctx, stop := context.WithCancelCause(t.Context())
				_ = e.Run(ctx, func(context.Context) error {
					if end == "resigned" {
						e.Resign(0)
					} else {
						stop(cause)
					}
					runtime.Goexit()
					return nil
				})
			}()
			<-done
			for _, err := range want {
				if !errors.Is(reason, err) {
					t.Errorf("the reason is %v, which does not match %v", reason, err)
				}
			}
		})
	}
}

func TestAnOptionWithoutAFunctionIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := []error{errNetwork, nil}
		s := &scripted{}
		s.lock = func() (err error) {
			err, failures = failures[0], failures[1:]
			return err
		}
		err := leader.Run(t.Context(), s, func(context.Context) error { return nil },
			leader.WithOnGained(nil), leader.WithOnLost(nil), leader.WithOnError(nil), leader.WithNewLeader(nil))
		if err != nil || len(failures) > 0 {
			t.Errorf("Run returned %v, with %d campaigns left", err, len(failures))
		}
	})
}
