package lockstest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/stacks"
)

// check is one rule. Its name is the subtest's.
type check struct {
	name    string
	applies func(Config) bool // nil means to every lock
	run     func(*suite)
}

// TestTryLocker runs every check that applies to the locks of cfg as a subtest of t, each with
// a new lock.
func TestTryLocker(t *testing.T, cfg Config) {
	t.Helper()
	cfg = cfg.withDefaults()
	for _, c := range checks {
		if c.applies == nil || c.applies(cfg) {
			t.Run(c.name, func(t *testing.T) { c.on(t, cfg) })
		}
	}
}

// on runs the check on a new lock.
func (c check) on(tb testing.TB, cfg Config) {
	// Registered first and so run last, after New's own clean-up.
	before := goleak.IgnoreCurrent()
	tb.Cleanup(func() {
		if !tb.Failed() {
			goleak.VerifyNone(tb, append([]goleak.Option{before}, cfg.IgnoreLeaks...)...)
		}
	})
	s := &suite{TB: tb, cfg: cfg, l: cfg.New(tb)}
	s.x = s.l
	if cfg.shared() {
		s.x = cfg.Exclusive(s.l)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer s.close()
	c.run(s)
}

// suite is one check at work.
type suite struct {
	testing.TB
	cfg     Config
	l       locks.TryLocker // the lock under test
	x       locks.TryLocker // excludes the holders of l; l itself unless l is a read view
	ctx     context.Context // ends with the check, whatever happens
	cancel  context.CancelFunc
	parties []*party
}

func (s *suite) close() {
	s.cancel()
	for _, p := range s.parties {
		close(p.calls)
	}
	timeout := time.NewTimer(s.cfg.Timeout)
	defer timeout.Stop()
	for _, p := range s.parties {
		select {
		case <-p.gone:
		case <-timeout.C:
			s.Errorf("a call does not return although its context ended")
			return
		}
	}
}

// party is a goroutine, and an owner, that makes the calls it is sent, one after the other.
type party struct {
	s     *suite
	id    locks.Owner // the goroutine
	calls chan *call
	gone  chan struct{}
}

// call is one call that a party makes.
type call struct {
	p    *party
	f    func()
	done chan struct{}
	ok   bool
	err  error
}

func (s *suite) party() *party {
	p := &party{s: s, calls: make(chan *call, 1), gone: make(chan struct{})}
	s.parties = append(s.parties, p)
	born := make(chan struct{})
	go func() {
		defer close(p.gone)
		p.id = locks.CurrentOwner(context.Background())
		close(born)
		for c := range p.calls {
			func() {
				defer close(c.done)
				defer func() {
					if r := recover(); r != nil {
						s.Errorf("the lock panics: %v", keytext.Panic(r))
					}
				}()
				c.f()
			}()
		}
	}()
	<-born
	return p
}

// start begins a call and does not wait for its end.
func (p *party) start(f func(c *call)) *call {
	c := &call{p: p, done: make(chan struct{})}
	c.f = func() { f(c) }
	p.calls <- c
	return c
}

// await returns when the call has returned.
func (s *suite) await(c *call, what string) {
	s.Helper()
	select {
	case <-c.done:
		return
	default:
	}
	timeout := time.NewTimer(s.cfg.Timeout)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		s.Fatalf("%s hangs: it has not returned after %v", what, s.cfg.Timeout)
	}
}

func (p *party) do(what string, f func(c *call)) *call {
	p.s.Helper()
	c := p.start(f)
	p.s.await(c, what)
	return c
}

func (p *party) startLock(l locks.Locker, ctx context.Context) *call {
	return p.start(func(c *call) { c.err = l.LockContext(ctx) })
}

func (p *party) lock(l locks.Locker, ctx context.Context) error {
	p.s.Helper()
	return p.do("LockContext", func(c *call) { c.err = l.LockContext(ctx) }).err
}

func (p *party) try(l locks.TryLocker, ctx context.Context) (bool, error) {
	p.s.Helper()
	c := p.do("TryLockContext", func(c *call) { c.ok, c.err = l.TryLockContext(ctx) })
	return c.ok, c.err
}

func (p *party) unlock(l locks.Locker, ctx context.Context) error {
	p.s.Helper()
	return p.do("UnlockContext", func(c *call) { c.err = l.UnlockContext(ctx) }).err
}

// mustLock, mustTry and mustUnlock end the check if the call fails.
func (p *party) mustLock(l locks.Locker) {
	p.s.Helper()
	require.NoError(p.s, p.lock(l, p.s.ctx), "LockContext")
}

func (p *party) mustTry(l locks.TryLocker) {
	p.s.Helper()
	ok, err := p.try(l, p.s.ctx)
	require.NoError(p.s, err, "TryLockContext")
	require.True(p.s, ok, "TryLockContext must take the lock")
}

func (p *party) mustUnlock(l locks.Locker) {
	p.s.Helper()
	require.NoError(p.s, p.unlock(l, p.s.ctx), "UnlockContext")
}

// mustBeHeld ends the check unless the lock is held, by l or by x.
func (s *suite) mustBeHeld(why string) {
	s.Helper()
	ok, err := s.party().try(s.x, s.ctx)
	require.NoError(s, err, why)
	require.False(s, ok, "the lock is free, but must be held: %s", why)
}

// mustBeFree ends the check unless a new party can acquire and release the lock.
func (s *suite) mustBeFree(why string) {
	s.Helper()
	p := s.party()
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	require.NoError(s, p.lock(s.x, ctx), "the lock is held, but must be free: %s", why)
	require.NoError(s, p.unlock(s.x, s.ctx), why)
	if s.cfg.shared() {
		p.mustTry(s.l)
		p.mustUnlock(s.l)
	}
}

// mustWait returns when c, a LockContext of l, waits, as one of n waiters.
func (s *suite) mustWait(c *call, l locks.TryLocker, n int) {
	s.Helper()
	s.mustWaitUnless(nil, c, l, n)
}

// mustWaitUnless returns when c, a LockContext of l, waits, as one of n waiters, or when met is
// closed. If met is not nil, c may return too. A waiter that is counted must then also be seen
// blocked, because it may be counted before it has called all methods of its context.
func (s *suite) mustWaitUnless(met <-chan struct{}, c *call, l locks.TryLocker, n int) {
	s.Helper()
	var (
		start = time.Now()
		quiet = start // since when the goroutine has been seen blocked, and nothing else
		looks int     // how often, since then
	)
	for {
		select {
		case <-met:
			return
		case <-c.done:
			if met != nil {
				return
			}
			s.Fatalf("LockContext returned (error %v) although another one holds the lock", c.err)
		default:
		}
		if s.cfg.Waiting != nil {
			if s.cfg.Waiting(l) == n &&
				(met == nil || blocked(c.p.id) || time.Since(start) >= 100*s.cfg.Settle) {
				return
			}
			if time.Since(start) > s.cfg.Timeout {
				s.Fatalf("%d waiters are counted, want %d", s.cfg.Waiting(l), n)
			}
			runtime.Gosched()
			continue
		}
		looks++
		now := time.Now()
		if !blocked(c.p.id) {
			looks, quiet = 0, now
		}
		// On a busy machine one pause can last longer than Settle. A waiter that spins is never
		// seen blocked.
		if looks >= 4 && now.Sub(quiet) >= s.cfg.Settle || now.Sub(start) >= 100*s.cfg.Settle {
			return
		}
		time.Sleep(s.cfg.Settle / 8)
	}
}

// blocked reports whether the goroutine waits for something, by its stack trace. Nothing else
// shows from outside that a call waits.
func blocked(goroutine locks.Owner) bool {
	all, _ := stacks.All()
	g, lives := all[int64(goroutine)]
	return lives && !strings.HasPrefix(g.State, "run") // running or runnable
}

// mustStillWait ends the check if c returns within the time Settle.
func (s *suite) mustStillWait(c *call, why string) {
	s.Helper()
	timer := time.NewTimer(s.cfg.Settle)
	defer timer.Stop()
	select {
	case <-c.done:
		s.Fatalf("LockContext returned (error %v): %s", c.err, why)
	case <-timer.C:
	}
}

// mustCount ends the check unless n wait for l, as far as that can be known.
func (s *suite) mustCount(l locks.TryLocker, n int, why string) {
	s.Helper()
	if s.cfg.Waiting != nil {
		require.Equal(s, n, s.cfg.Waiting(l), "waiters: %s", why)
	}
}

// together runs f in n goroutines at once and returns when all have ended. f's ctx
// ends with the check.
func (s *suite) together(n int, f func(i int) error) {
	s.Helper()
	var (
		wg    sync.WaitGroup
		errs  = make([]error, n)
		start = make(chan struct{})
		done  = make(chan struct{})
	)
	for i := range n {
		wg.Go(func() {
			<-start
			defer func() {
				if r := recover(); r != nil {
					errs[i] = fmt.Errorf("the lock panics: %w", keytext.Panic(r))
				}
			}()
			errs[i] = f(i)
		})
	}
	close(start)
	go func() {
		wg.Wait()
		close(done)
	}()
	// A contended check is many calls one after the other.
	timeout := time.NewTimer(10 * s.cfg.Timeout)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
		s.cancel()
		s.Fatalf("the goroutines hang: they have not ended after %v", 10*s.cfg.Timeout)
	}
	for _, err := range errs {
		require.NoError(s, err)
	}
}
