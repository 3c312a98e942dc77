package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// permitChecks are for stores of semaphores. All other checks see a semaphore of one permit.
var permitChecks = []check{
	{"PermitsAreCounted", hasPermits, permitsAreCounted},
	{"PermitsReturn", hasPermits, permitsReturn},
	{"PermitsOfTheDead", hasPermits, permitsOfTheDead},
	{"PermitsInspected", func(s *suite) bool { return hasPermits(s) && has[driver.Inspector](s) }, permitsInspected},
	{"PermitsWakeAll", hasPermits, permitsWakeAll},
	{"PermitsTried", func(s *suite) bool { return s.cfg.Semaphore != nil }, permitsTried},
	{"PermitsShared", func(s *suite) bool { return s.cfg.Semaphore != nil }, permitsShared},
	{"PermitsUnderFaults", func(s *suite) bool { return s.cfg.Semaphore != nil }, permitsUnderFaults},
}

func hasPermits(s *suite) bool { return s.cfg.Semaphore != nil && hasStore(s) }

// permits asks once for n permits of size, by a new acquisition.
func (c *client) permits(name string, n, size int64, ttl time.Duration) (acquisition string, reply driver.Reply) {
	c.Helper()
	acquisition = c.acquisition()
	c.mine(name, acquisition)
	req := requestOf(name, acquisition, ttl)
	req.Permits, req.Size = n, size
	reply = answerOf(c, Acquire, func() (driver.Reply, error) { return c.requests.Acquire(c.ctx, req) })
	if !reply.Held {
		c.refusal(name, acquisition)
		if reply.Wait > minute+minute/50 {
			c.broken(fmt.Sprintf("Reply.Wait is no longer than a lease, not %v", reply.Wait), c)
		}
	}
	return acquisition, reply
}

// gets returns an acquisition that has n of size permits.
func (c *client) gets(name string, n, size int64, others ...*client) string {
	c.Helper()
	acquisition, reply := c.permits(name, n, size, minute)
	if !reply.Held {
		c.broken(fmt.Sprintf("%d of %d permits are given if they are free", n, size), append(others, c)...)
	}
	return acquisition
}

// getsNot ends the check if n of size permits are given.
func (c *client) getsNot(name string, n, size int64, others ...*client) {
	c.Helper()
	if _, reply := c.permits(name, n, size, minute); reply.Held {
		c.broken(fmt.Sprintf("%d of %d permits are not given if fewer are free", n, size), append(others, c)...)
	}
}

// permitsAreCounted takes permits in several ways until none is left.
func permitsAreCounted(s *suite) {
	a, b := s.client(), s.client()
	var name string
	for _, takes := range [][]int64{{1, 1, 1}, {2, 1}, {1, 2}, {3}} {
		name = s.name()
		clients := []*client{a, b, a}
		left := int64(3)
		for i, n := range takes {
			for more := left + 1; more <= 3; more++ {
				clients[i].getsNot(name, more, 3, a, b)
			}
			clients[i].gets(name, n, 3, a, b)
			left -= n
		}
		a.getsNot(name, 1, 3, b)
		b.getsNot(name, 1, 3, a)
	}
	// The size of the request counts.
	b.getsNot(name, 1, 2, a)
	b.gets(name, 1, 4, a)
}

// permitsReturn releases permits one acquisition after the other. Nobody else's return with them.
func permitsReturn(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	one, two := a.gets(name, 1, 3), b.gets(name, 2, 3, a)
	a.release(name, one)
	b.holds(name, two, "while others release theirs", a)
	a.getsNot(name, 2, 3, b)
	one = a.gets(name, 1, 3, b)
	b.release(name, two)
	b.release(name, two) // late
	a.holds(name, one, "while others release theirs", b)
	b.getsNot(name, 3, 3, a)
	two = b.gets(name, 2, 3, a)
	if r := b.renew(name, one+"0", minute); r {
		b.broken("Renew prolongs no hold of an acquisition that has none", a, b)
	}
	a.release(name, one)
	b.release(name, two)
	a.gets(name, 3, 3, b)
}

// permitsOfTheDead has a client die with two of three permits. Those of the living one stay.
func permitsOfTheDead(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	if !a.canDie() {
		return
	}
	ttl := s.cfg.TTL + s.cfg.TTL/4
	since := driver.Now()
	mine, reply := a.permits(name, 2, 3, ttl)
	if !reply.Held {
		s.broken("permits are given if they are free", a)
	}
	if !reply.Since.IsZero() {
		since = reply.Since
	}
	theirs := b.gets(name, 1, 3, a)
	term := a.term(ttl)
	a.die()
	var got driver.Reply
	s.soon("the permits of a dead client return with its lease", term+s.cfg.Timeout, func() bool {
		_, got = b.permits(name, 2, 3, minute)
		if early := term - driver.Now().Sub(since); got.Held && early > 0 {
			s.broken(fmt.Sprintf("a dead client keeps its permits for its lease, not for %v less", early), a, b)
		}
		return got.Held
	}, a, b)
	b.holds(name, theirs, "when permits of a dead client have returned", a)
	b.getsNot(name, 1, 3, a)
	if b.releases(name, mine) {
		s.broken("a late Release finds no permits", a, b)
	}
	b.getsNot(name, 1, 3, a)
}

// permitsInspected compares the permits of each acquisition with the answer of Inspect.
func permitsInspected(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, theirs := a.gets(name, 2, 4), b.gets(name, 1, 4, a)
	state := answerOf(b, Inspect, func() (driver.State, error) { return inspector(b).Inspect(s.ctx, name) })
	found := make(map[string]int64)
	for _, h := range state.Holders {
		found[h.Acquisition] = h.Permits
	}
	if len(state.Holders) != 2 || found[mine] != 2 || found[theirs] != 1 {
		s.broken(fmt.Sprintf("Inspect tells who has how many permits, not %v", found), a, b)
	}
}

func inspector(c *client) driver.Inspector { return c.requests }

// permitsWakeAll releases two permits, for which two waiters wait. Neither relies on its poll.
func permitsWakeAll(s *suite) {
	name, w := s.name(), s.crew()
	a := s.client()
	held := s.cfg.Semaphore(a.provider, name, 2)
	p, err := held.AcquireContext(s.ctx, 2)
	if err != nil {
		s.broken(fmt.Sprintf("permits are given if they are free (%v)", err), a)
	}
	both := make(chan struct{}) // closed when two have a permit at once
	var inside sync.WaitGroup
	inside.Add(2)
	go func() { inside.Wait(); close(both) }()
	for range 2 {
		c := s.client(lease.WithPoll(10 * s.cfg.Timeout))
		asked := func() int { return c.requests.Count(Acquire, Enqueue) }
		before := asked()
		w.wg.Go(func() {
			ctx, cancel := context.WithTimeout(w.ctx, 2*s.cfg.Timeout)
			defer cancel()
			p, err := s.cfg.Semaphore(c.provider, name, 2).AcquireContext(ctx, 1)
			inside.Done()
			if err == nil {
				select {
				case <-both:
				case <-ctx.Done():
					err = errors.New("one waits still")
				}
				_ = p.ReleaseContext(w.ctx)
			}
			if err != nil {
				w.breaks(fmt.Sprintf("a release wakes all waiters for which there are permits (%v)", err), c)
			}
		})
		s.soon("a waiter asks the store", s.cfg.Timeout, func() bool { return asked() > before }, c)
	}
	s.pause(s.cfg.TTL / 4) // until their watches have begun. If they have not, they ask once more
	if err := p.ReleaseContext(s.ctx); err != nil {
		s.broken(fmt.Sprintf("a release of permits succeeds (%v)", err), a)
	}
	w.wait()
}

// tray is a semaphore seen from outside of the store.
type tray struct {
	size    int64
	mu      sync.Mutex
	visits  map[*tenure]bool
	tokens  map[uint64]*client
	grants  int
	expired int
}

// tenure has the permits of one acquisition.
type tenure struct {
	c       *client
	permits locks.Permits
}

// enter adds a tenure, and says which promise is broken.
func (t *tray) enter(v *tenure) (broken string, clients []*client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := v.permits.Count()
	clients = []*client{v.c}
	// All of them were granted before now, and each is valid at a later time. So all are valid now,
	// if v is valid after that.
	for other := range t.visits {
		if other.permits.Err() == nil {
			taken += other.permits.Count()
			clients = append(clients, other.c)
		}
	}
	if v.permits.Err() != nil {
		t.expired++
		return "", nil
	}
	t.visits[v] = true
	t.grants++
	if taken > t.size {
		return fmt.Sprintf("no more than %d permits are held at once, not %d", t.size, taken), clients
	}
	if token := v.permits.Token(); token != 0 {
		if t.tokens[token] != nil {
			return fmt.Sprintf("no two acquisitions have the token %d", token), []*client{v.c, t.tokens[token]}
		}
		t.tokens[token] = v.c
	}
	return "", nil
}

func (t *tray) leave(v *tenure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.visits, v)
}

func newTray(size int64) *tray {
	return &tray{size: size, visits: make(map[*tenure]bool), tokens: make(map[uint64]*client)}
}

// use acquires n permits, works and releases them. It returns false if that broke a promise, or if
// the crew is to end.
func (w *crew) use(
	c *client, sem locks.Semaphore, t *tray, n int64, limit time.Duration, healthy bool, work func()) bool {
	wait := context.WithTimeout
	if healthy {
		wait = w.patient
	}
	ctx, cancel := wait(w.ctx, limit)
	p, err := sem.AcquireContext(ctx, n)
	cancel()
	if err != nil {
		if healthy {
			w.breaks(fmt.Sprintf("while nothing fails, a waiter gets its permits within %v (%v)", limit, ended(ctx, err)), c)
		}
		return false
	}
	w.grants.Add(1)
	v := &tenure{c, p}
	if broken, clients := t.enter(v); broken != "" {
		w.breaks(broken, clients...)
	}
	work()
	t.leave(v)
	err = p.ReleaseContext(w.ctx)
	if err != nil && (healthy || !errors.Is(err, locks.ErrLost)) && w.ctx.Err() == nil {
		w.breaks(fmt.Sprintf("a release of permits succeeds, or is a loss after a fault (%v)", err), c)
		return false
	}
	return true
}

// permitsTried asks for permits without waiting, through the semaphore. The answer has permits and
// no error, or neither of them, or an error alone.
func permitsTried(s *suite) {
	const size = 3
	a, b, name := s.client(), s.client(), s.name()
	try := func(c *client, n int64, want bool) locks.Permits {
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
		defer cancel()
		p, ok, err := s.cfg.Semaphore(c.provider, name, size).TryAcquireContext(ctx, n)
		switch {
		case n > size:
			if p != nil || ok || !errors.Is(err, locks.ErrTooLarge) {
				s.broken(fmt.Sprintf("a try for %d of %d permits is an error alone, not %v, %t, %v", n, size, p, ok, err), c)
			}
		case err != nil || ok != want || (p != nil) != want:
			s.broken(fmt.Sprintf("a try for %d permits says %t and no error, not %v, %t, %v", n, want, p, ok, err), a, b)
		case want && (p.Count() != n || p.Err() != nil):
			s.broken(fmt.Sprintf("permits that were tried for are held: %d, not %d (%v)", n, p.Count(), p.Err()), c)
		}
		return p
	}
	release := func(c *client, p locks.Permits) {
		if err := p.ReleaseContext(s.ctx); err != nil {
			s.broken(fmt.Sprintf("a release of permits succeeds (%v)", err), c)
		}
	}
	try(a, size+1, false)
	two := try(a, 2, true)
	try(b, 2, false)
	one := try(b, 1, true)
	try(a, 1, false)
	release(a, two)
	try(b, 3, false)
	two = try(b, 2, true)
	release(b, one)
	release(b, two)
	release(a, try(a, size, true))
}

// permitsShared makes several clients acquire different numbers of permits.
func permitsShared(s *suite) {
	const size = 3
	name, w, t := s.name(), s.crew(), newTray(size)
	alone := s.together(name, size)
	until := time.Now().Add(2 * time.Second)
	for range min(4, s.cfg.Clients) {
		c := s.client()
		sem := s.cfg.Semaphore(c.provider, name, size)
		for i := range 3 {
			w.wg.Go(func() {
				for time.Now().Before(until) {
					// A slow store gives all permits out only if they are held for longer than it
					// takes. It takes longer while several clients ask.
					work := func() { s.pause(time.Duration(1+10*i)*time.Millisecond + time.Duration(4*i)*alone) }
					if !w.use(c, sem, t, int64(i%2+1), s.cfg.Timeout, true, work) {
						return
					}
				}
			})
		}
	}
	w.wait()
	s.Logf("%d clients took permits %d times", s.count, t.grants)
}

// together makes two clients hold a permit at the same time, three times. It returns the shortest
// time that an acquisition took, at most 50 ms: the first acquisitions open connections.
func (s *suite) together(name string, size int64) time.Duration {
	a, b, alone := s.client(), s.client(), 50*time.Millisecond
	for range 3 {
		var all []locks.Permits
		for _, c := range []*client{a, b} {
			ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
			began := driver.Now()
			p, err := s.cfg.Semaphore(c.provider, name, size).AcquireContext(ctx, 1)
			cancel()
			if err != nil {
				s.broken(fmt.Sprintf("a semaphore has several holders at once (%v)", err), a, b)
			}
			all, alone = append(all, p), min(alone, driver.Now().Sub(began))
		}
		for _, p := range all {
			if err := p.ReleaseContext(s.ctx); err != nil {
				s.broken(fmt.Sprintf("a release of permits succeeds (%v)", err), a, b)
			}
		}
	}
	return alone
}

// permitsUnderFaults does the same while requests and networks fail and clients die. Afterwards all
// permits are there.
func permitsUnderFaults(s *suite) {
	const size = 4
	chance := s.checkSeed()
	name, w, t := s.name(), s.crew(), newTray(size)
	defer func() {
		if s.Failed() {
			s.Logf("seed %d", chance)
		}
	}()
	random := rand.New(rand.NewPCG(chance, 1))
	var clients []*client
	for range 3 {
		clients = append(clients, s.mortal(lease.WithReleaseTimeout(s.cfg.TTL)))
	}
	dies := s.mortal(lease.WithReleaseTimeout(s.cfg.TTL))
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	for _, c := range append(clients, dies) {
		sem := s.cfg.Semaphore(c.provider, name, size)
		for i := range 2 {
			w.wg.Go(func() {
				for ctx.Err() == nil && w.ctx.Err() == nil {
					if !w.use(c, sem, t, int64(i+1), s.cfg.TTL, false, func() { s.pause(2 * time.Millisecond) }) {
						s.pause(10 * time.Millisecond)
					}
				}
			})
		}
	}
	ops := []Op{Acquire, Lookup, Renew, Release, Watch, Enqueue, Leave}
	for until := time.Now().Add(*long); time.Now().Before(until) && w.ctx.Err() == nil; {
		s.pause(time.Duration(random.IntN(50)) * time.Millisecond)
		c := clients[random.IntN(len(clients))]
		switch random.IntN(8) {
		case 0:
			c.link.Cut()
			s.pause(time.Duration(random.IntN(200)) * time.Millisecond)
			c.link.Heal()
		case 1:
			c.deliver()
		default:
			for _, r := range c.opened {
				r.Next(ops[random.IntN(len(ops))], allFaults[random.IntN(len(allFaults))])
			}
		}
	}
	if dies.canDie() {
		dies.die()
	}
	for _, c := range clients {
		c.link.Heal()
		for _, r := range c.opened {
			r.Heal()
		}
		c.deliver()
	}
	end()
	w.wg.Wait()
	w.wait()
	fresh := s.client()
	limit := dies.endOf(s.cfg.TTL) + calm + s.cfg.Timeout
	all, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	p, err := s.cfg.Semaphore(fresh.provider, name, size).AcquireContext(all, size)
	if err != nil {
		s.broken(fmt.Sprintf("all permits return within %v after everything is healed (%v)", limit, err),
			append(clients, dies, fresh)...)
	}
	if err := p.ReleaseContext(s.ctx); err != nil {
		s.broken(fmt.Sprintf("a release of permits succeeds (%v)", err), fresh)
	}
	again := s.crew()
	for _, c := range clients {
		sem, ok := s.cfg.Semaphore(c.provider, name, size), false
		// A network needs some tries until it is back.
		for end := time.Now().Add(limit); !ok && time.Now().Before(end) && again.ctx.Err() == nil; {
			if ok = again.use(c, sem, t, 1, limit, false, func() {}); !ok {
				s.pause(20 * time.Millisecond)
			}
		}
		if !ok && again.ctx.Err() == nil {
			s.broken(fmt.Sprintf("each client gets permits within %v after everything is healed", limit), c)
		}
	}
	again.wait()
	s.Logf("seed %d: permits were taken %d times, and had lapsed %d times", chance, t.grants, t.expired)
}

// deliver brings late requests of the client to the store.
func (c *client) deliver() {
	for _, r := range c.opened {
		r.Deliver()
	}
}

// endOf is how long the holds of a client that dies last.
func (c *client) endOf(ttl time.Duration) time.Duration {
	if c.requests == nil {
		return ttl
	}
	return c.term(ttl)
}
