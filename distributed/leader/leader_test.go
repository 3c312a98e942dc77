package leader_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/named"
)

var errWork = errors.New("work failed")

// untilEnd leads until its ctx ends.
func untilEnd(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// journal is a list of events, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

func (j *journal) want(t *testing.T, lines ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, lines) {
		t.Errorf("journal:\n%s\nwant:\n%s", strings.Join(j.lines, "\n"), strings.Join(lines, "\n"))
	}
}

// options make the election write the journal. The reasons are named.
func (j *journal) options() []leader.Option {
	return []leader.Option{
		leader.WithOnGained(func(context.Context) { j.add("gained") }),
		leader.WithOnLost(func(reason error) { j.add("lost: " + name(reason)) }),
		leader.WithOnError(func(err error) { j.add("error: " + name(err)) }),
	}
}

func name(err error) string {
	var names []string
	for n, target := range map[string]error{
		"loss": locks.ErrLost, "resigned": leader.ErrResigned, "work": errWork, "network": errNetwork,
		"cancelled": context.Canceled, "closed": locks.ErrClosed,
	} {
		if errors.Is(err, target) {
			names = append(names, n)
		}
	}
	if err == nil {
		return "nil"
	}
	if strings.Contains(err.Error(), "\n") {
		names = append(names, "several lines")
	}
	if strings.Contains(err.Error(), "an exit of its goroutine") {
		names = append(names, "exit")
	}
	slices.Sort(names)
	return strings.Join(names, "+")
}

// candidate is a Run in a goroutine of its own.
type candidate struct {
	*process
	*leader.Election
	stop context.CancelFunc
	done chan error
}

func (s *server) campaign(t *testing.T, lead func(ctx context.Context) error, opts ...leader.Option) *candidate {
	t.Helper()
	p := s.start(t)
	ctx, stop := context.WithCancel(t.Context())
	c := &candidate{p, leader.New(p.lock, opts...), stop, make(chan error, 1)}
	go func() { c.done <- c.Run(ctx, lead) }()
	return c
}

// end ends the campaign, and checks that Run says so.
func (c *candidate) end(t *testing.T) {
	t.Helper()
	c.stop()
	if err := <-c.done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v, want an error matching context.Canceled", err)
	}
	c.close(t)
}

func TestTheFunctionsResultEndsRun(t *testing.T) {
	for _, want := range []error{nil, errWork} {
		synctest.Test(t, func(t *testing.T) {
			j := new(journal)
			c := new(server).campaign(t, func(context.Context) error { return want }, j.options()...)
			if err := <-c.done; err != want {
				t.Errorf("Run returned %v, want %v", err, want)
			}
			j.want(t, "gained", "lost: "+name(want))
			c.close(t)
		})
	}
}

func TestRunEndsWithItsContextAfterTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		cause := errors.New("shutdown")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(cause) })
		p := new(server).start(t)
		err := leader.Run(ctx, p.lock, func(ctx context.Context) error {
			<-ctx.Done()
			if got := context.Cause(ctx); got != cause {
				t.Errorf("the cause is %v, want %v", got, cause)
			}
			time.Sleep(time.Minute) // longer than the lease, which is renewed meanwhile
			j.add("returns")
			return errors.Join(ctx.Err(), errWork)
		}, j.options()...)
		for _, want := range []error{context.Canceled, cause, errWork} {
			if !errors.Is(err, want) {
				t.Errorf("Run returned %v, want an error matching %v", err, want)
			}
		}
		j.want(t, "gained", "returns", "lost: cancelled+work")
		p.close(t)
	})
}

func TestAnEndedContextMakesNobodyLeader(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := leader.Run(ctx, new(named.Provider).Locker("cron"), func(context.Context) error {
		t.Error("the function runs")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
}

func TestALostLeaderCampaignsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		var tokens []uint64
		c := s.campaign(t, func(ctx context.Context) error {
			h, ok := locks.HoldFrom(ctx)
			if !ok {
				t.Error("the function's ctx has no hold")
				return nil
			}
			tokens = append(tokens, h.Token())
			<-ctx.Done()
			j.add("ends: " + name(context.Cause(ctx)))
			return nil // after a loss, this is no result
		}, j.options()...)
		synctest.Wait()
		s.evict()
		time.Sleep(time.Minute)
		j.want(t, "gained", "ends: loss", "lost: loss", "gained")
		c.end(t)
		if !slices.Equal(tokens, []uint64{1, 2}) {
			t.Errorf("tokens %v, want 1 and 2", tokens)
		}
	})
}

func TestAnUnnoticedLossIsNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		terms := 0
		c := s.campaign(t, func(context.Context) error {
			if terms++; terms == 1 {
				s.evict()
			}
			return errWork
		}, j.options()...)
		if err := <-c.done; err != errWork {
			t.Errorf("Run returned %v, want %v", err, errWork)
		}
		j.want(t, "gained", "lost: loss+work", "gained", "lost: work")
		c.close(t)
	})
}

func TestNoTwoLeadersOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		var leaders, terms atomic.Int32
		lead := func(ctx context.Context) error {
			if n := leaders.Add(1); n != 1 {
				t.Errorf("%d leaders at a time", n)
			}
			terms.Add(1)
			<-ctx.Done()
			leaders.Add(-1)
			return ctx.Err()
		}
		var all []*candidate
		for range 3 {
			all = append(all, s.campaign(t, lead))
		}
		faults := []func(c *candidate){
			func(c *candidate) { c.cut(true) },
			func(c *candidate) { c.Resign(5 * time.Second) },
			func(c *candidate) { c.cut(false) },
			func(c *candidate) { c.Resign(0) },
		}
		for n := range 200 {
			faults[n%len(faults)](all[n%len(all)])
			time.Sleep(time.Duration(n%7) * time.Second)
		}
		// A store that answers nobody for a while.
		for _, c := range all {
			c.cut(true)
		}
		time.Sleep(time.Minute)
		if n := leaders.Load(); n != 0 {
			t.Errorf("%d leaders while the store is out of reach", n)
		}
		for _, c := range all {
			c.cut(false)
		}
		time.Sleep(time.Minute)
		if n := leaders.Load(); n != 1 {
			t.Errorf("%d leaders after the outage", n)
		}
		for _, c := range all {
			c.end(t)
		}
		if n := terms.Load(); n < 50 {
			t.Errorf("only %d terms", n)
		}
	})
}

func TestASlowFunctionDelaysTheNextCampaignHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		c := s.campaign(t, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			j.add("returns")
			return nil
		}, j.options()...)
		synctest.Wait()
		s.evict()
		time.Sleep(30 * time.Second)
		j.want(t, "gained") // the function still runs
		time.Sleep(time.Minute)
		j.want(t, "gained", "returns", "lost: loss", "gained")
		c.end(t)
	})
}

func TestAnOutageEndsTheTermBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		var ended time.Time
		c := s.campaign(t, func(ctx context.Context) error {
			<-ctx.Done()
			ended = time.Now()
			return nil
		}, j.options()...)
		synctest.Wait()
		c.cut(true)
		time.Sleep(time.Minute)
		s.mu.Lock()
		if !ended.Before(s.ends) {
			t.Errorf("the function was told %v after the store's lease", ended.Sub(s.ends))
		}
		s.mu.Unlock()
		c.cut(false)
		time.Sleep(time.Minute)
		j.mu.Lock()
		lines := slices.Compact(slices.Clone(j.lines))
		n := len(j.lines)
		j.mu.Unlock()
		if want := []string{"gained", "lost: loss", "error: network", "gained"}; !slices.Equal(lines, want) {
			t.Errorf("journal %q, want %q", lines, want)
		}
		if n < 8 || n > 20 { // 3 lines, and pauses that double from 250 ms to 10 s in less than a minute
			t.Errorf("%d campaigns failed in a minute", n-3)
		}
		c.end(t)
	})
}

func TestAPausedLeadersHoldReportsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		c := s.campaign(t, func(ctx context.Context) error {
			h, _ := locks.HoldFrom(ctx)
			if err := h.Err(); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			if err := h.Err(); !errors.Is(err, locks.ErrLost) {
				t.Errorf("Err returned %v after the loss", err)
			}
			return nil
		})
		synctest.Wait()
		c.cut(true)
		time.Sleep(2 * ttl)
		c.cut(false)
		c.end(t)
	})
}

func TestAResignedLeaderStaysOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		c := s.campaign(t, func(ctx context.Context) error {
			<-ctx.Done()
			j.add("ends: " + name(context.Cause(ctx)))
			return ctx.Err()
		}, j.options()...)
		synctest.Wait()
		c.Resign(time.Minute)
		time.Sleep(59 * time.Second)
		j.want(t, "gained", "ends: resigned", "lost: resigned")
		if s.held() {
			t.Error("the lock is still held")
		}
		time.Sleep(2 * time.Second)
		j.want(t, "gained", "ends: resigned", "lost: resigned", "gained")
		c.end(t)
	})
}

func TestAFunctionResignsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		l := new(named.Provider).Locker("cron")
		e := leader.New(l, j.options()...)
		ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
		defer stop()
		err := e.Run(ctx, func(ctx context.Context) error {
			e.Resign(time.Minute)
			return errWork // reported, but no result: the ctx has ended
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		j.want(t, "gained", "lost: resigned+work", "gained", "lost: resigned+work")
	})
}

func TestResignEndsACampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		first := s.campaign(t, untilEnd)
		synctest.Wait()
		second := s.campaign(t, untilEnd, j.options()...)
		synctest.Wait()
		second.Resign(time.Hour)
		synctest.Wait()
		first.end(t)
		time.Sleep(time.Minute)
		j.want(t) // the lock is free, and second stays out
		second.Resign(0)
		time.Sleep(time.Minute)
		j.want(t, "gained")
		second.end(t)
	})
}

func TestResignBeforeRunDelaysTheCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := leader.New(new(named.Provider).Locker("cron"))
		e.Resign(time.Minute)
		begin := time.Now()
		if err := e.Run(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != time.Minute {
			t.Errorf("led after %v, want a minute", d)
		}
	})
}

func TestResignForNoTimeCampaignsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := leader.New(new(named.Provider).Locker("cron"))
		begin, terms := time.Now(), 0
		err := e.Run(t.Context(), func(context.Context) error {
			if terms++; terms < 10 {
				e.Resign(0)
			}
			return nil
		})
		if d := time.Since(begin); err != nil || terms != 10 || d != 0 {
			t.Errorf("%d terms in %v, want 10 at once; error %v", terms, d, err)
		}
	})
}

func TestAPanicReleasesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		s := new(server)
		p := s.start(t)
		e := leader.New(p.lock, j.options()...)
		func() {
			defer func() {
				if v := recover(); v != "boom" {
					t.Errorf("recovered %v", v)
				}
			}()
			_ = e.Run(t.Context(), func(context.Context) error { panic("boom") })
		}()
		// The Election can run again, and nobody holds the lock.
		if err := e.Run(t.Context(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		j.want(t, "gained", "lost: exit", "gained", "lost: nil")
		p.close(t)
	})
}

func TestGoexitReleasesTheLock(t *testing.T) {
	l := new(named.Provider).Locker("cron")
	j := new(journal)
	e := leader.New(l, j.options()...)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = e.Run(context.Background(), func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-exited
	if err := e.Run(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	j.want(t, "gained", "lost: exit", "gained", "lost: nil")
}

func TestAnExitAfterTheEndHasBothReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = leader.Run(ctx, new(named.Provider).Locker("cron"), func(context.Context) error {
				stop()
				runtime.Goexit()
				return nil
			}, j.options()...)
		}()
		<-done
		j.want(t, "gained", "lost: cancelled+exit")
	})
}

func TestResignBeforeTheFunctionKeepsItFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		var e *leader.Election
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		e = leader.New(new(named.Provider).Locker("cron"),
			leader.WithOnGained(func(context.Context) { j.add("gained"); e.Resign(time.Minute) }),
			leader.WithOnLost(func(reason error) { j.add("lost: " + name(reason)) }))
		_ = e.Run(ctx, func(context.Context) error {
			j.add("leads")
			return nil
		})
		j.want(t, "gained", "lost: resigned")
	})
}

func TestTwoElectionsOfOneOwnerHaveOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, o := new(named.Provider).Locker("cron"), locks.NewOwner()
		ctx, stop := context.WithCancel(locks.WithOwner(t.Context(), o))
		var leaders, most atomic.Int32
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				_ = leader.Run(ctx, l, func(ctx context.Context) error {
					most.Store(max(most.Load(), leaders.Add(1)))
					defer leaders.Add(-1)
					return untilEnd(ctx)
				})
			})
		}
		synctest.Wait()
		stop()
		all.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d leaders at a time", n)
		}
	})
}

func TestTheFunctionActsForTheCallersOwner(t *testing.T) {
	l, o := new(named.Provider).Locker("cron"), locks.NewOwner()
	for want, ctx := range map[locks.Owner]context.Context{
		o:                               locks.WithOwner(t.Context(), o),
		locks.CurrentOwner(t.Context()): t.Context(),
	} {
		err := leader.Run(ctx, l, func(ctx context.Context) error {
			if got := locks.CurrentOwner(ctx); got != want {
				t.Errorf("the owner is %v, want %v", got, want)
			}
			other := make(chan locks.Owner)
			go func() { other <- locks.CurrentOwner(ctx) }()
			if got := <-other; got == want != (want == o) {
				t.Errorf("the owner in another goroutine is %v", got)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestACandidateHearsOfEachNewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &described{TryLocker: new(named.Provider).Locker("cron")}
		var news []locks.Party
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		first, second := locks.Party{Label: "host-1", Token: 3}, locks.Party{Label: "host-2"}
		lock.set(locks.Info{}, errNetwork)
		go func() {
			defer close(done)
			_ = leader.Run(ctx, lock, untilEnd, leader.WithNewLeader(func(l leader.Leader) { news = append(news, l) }))
		}()
		for _, holder := range []locks.Party{first, {Label: "host-1", Left: time.Second}, {}, second} {
			time.Sleep(10 * time.Second)
			lock.set(locks.Info{Held: holder.Label != "", Holders: []locks.Party{holder}}, nil)
		}
		time.Sleep(10 * time.Second)
		stop()
		<-done
		if !slices.Equal(news, []locks.Party{first, second}) {
			t.Errorf("news of %v", news)
		}
	})
}

func TestAClosedClientEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal)
		c := new(server).campaign(t, untilEnd, j.options()...)
		synctest.Wait()
		c.close(t)
		if err := <-c.done; !errors.Is(err, locks.ErrClosed) || errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v, want an error matching ErrClosed", err)
		}
	})
}

func TestAnElectionRunsOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(server).campaign(t, untilEnd)
		synctest.Wait()
		if err := c.Run(t.Context(), untilEnd); err == nil || !strings.Contains(err.Error(), "runs already") {
			t.Errorf("the second Run returned %v", err)
		}
		c.end(t)
	})
}

func TestMisuseIsAnError(t *testing.T) {
	l := new(named.Provider).Locker("cron")
	var none context.Context
	if err := leader.Run(none, l, untilEnd); !errors.Is(err, locks.ErrNilContext) {
		t.Errorf("nil ctx: %v", err)
	}
	news := leader.WithNewLeader(func(leader.Leader) {})
	if err := leader.Run(t.Context(), bare{l}, untilEnd, news); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no Inspect: %v", err)
	}
	for _, no := range []locks.TryLocker{nil, (*fair.Mutex)(nil)} {
		const want = "leader: nil lock"
		if err := leader.Run(t.Context(), no, untilEnd); err == nil || err.Error() != want {
			t.Error("Run with a nil lock:", err)
		}
		if _, _, err := leader.New(no).Leader(t.Context()); err == nil || err.Error() != want {
			t.Error("Leader of a nil lock:", err)
		}
	}
	if err := leader.Run(t.Context(), l, nil); !errors.Is(err, locks.ErrNilFunc) {
		t.Error("a nil function:", err)
	}
	for _, b := range [][2]time.Duration{{0, 1}, {2, 1}, {-1, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("WithBackoff(%d, %d) is accepted", b[0], b[1])
				}
			}()
			leader.New(l, leader.WithBackoff(b[0], b[1]))
		}()
	}
}

// described is a lock that knows its holder.
type described struct {
	locks.TryLocker
	mu   sync.Mutex
	info locks.Info
	err  error
}

func (d *described) set(info locks.Info, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.info, d.err = info, err
}

func (d *described) Inspect(context.Context) (locks.Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.info, d.err
}

// bare is a lock that knows nothing.
type bare struct{ locks.TryLocker }

func TestLeaderIsTheLocksHolder(t *testing.T) {
	l := new(named.Provider).Locker("cron")
	us := locks.Party{Label: "host-1", PID: 7, Token: 3}
	for _, c := range []struct {
		lock locks.TryLocker
		want locks.Party
		ok   bool
		err  error
	}{
		{&described{l, sync.Mutex{}, locks.Info{}, nil}, locks.Party{}, false, nil},
		{&described{l, sync.Mutex{}, locks.Info{Held: true}, nil}, locks.Party{}, true, nil},
		{&described{l, sync.Mutex{}, locks.Info{Held: true, Holders: []locks.Party{us}}, nil}, us, true, nil},
		{&described{l, sync.Mutex{}, locks.Info{}, errNetwork}, locks.Party{}, false, errNetwork},
		{bare{l}, locks.Party{}, false, errors.ErrUnsupported},
	} {
		got, ok, err := leader.New(c.lock).Leader(t.Context())
		if got != c.want || ok != c.ok || !errors.Is(err, c.err) {
			t.Errorf("%+v: Leader returned %v, %v, %v", c, got, ok, err)
		}
	}
}
