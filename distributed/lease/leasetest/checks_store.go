package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/joined"
)

// storeChecks call the methods of Stores directly.
var storeChecks = []check{
	{"OneHolder", hasStore, oneHolder},
	{"OneWinner", hasStore, oneWinner},
	{"OtherNames", hasStore, otherNames},
	{"OddNames", nil, oddNames},
	{"AtOnce", hasStore, atOnce},
	{"RepeatedAcquire", hasStore, repeatedAcquire},
	{"TwoRequests", has[driver.Queue], twoRequests},
	{"ReleaseIsAtomic", hasStore, releaseIsAtomic},
	{"Takeover", hasStore, takeover},
	{"LapsedHold", hasStore, lapsedHold},
	{"RenewedLease", hasStore, renewedLease},
	{"RenewTellsTheTruth", hasStore, renewTellsTheTruth},
	{"LateRequests", hasStore, lateRequests},
	{"RenewsAll", hasStore, renewsAll},
	{"ReleasesAll", has[driver.BatchReleaser], releasesAll},
	{"Tokens", hasStore, tokens},
	{"Notices", hasStore, notices},
	{"OtherWatches", hasStore, otherWatches},
	{"NoticesForAll", hasStore, noticesForAll},
	{"Awaited", func(s *suite) bool { return !(s.cfg.FIFO && has[driver.Queue](s)) && hasStore(s) }, awaited},
	{"Contention", has[driver.ContentionProber], contention},
	{"QueueOrder", has[driver.Queue], queueOrder},
	{"QueueLeave", has[driver.Queue], queueLeave},
	{"QueueNotices", has[driver.Queue], queueNotices},
	{"DeadWaiter", has[driver.Queue], deadWaiter},
	{"Breaks", has[driver.Breaker], breaks},
	{"Inspection", has[driver.Inspector], inspection},
	{"BreakNotice", has[driver.Breaker], breakNotice},
	{"NoFalseLoss", has[driver.LossNotifier], noFalseLoss},
	{"SessionLoss", has[driver.Session], sessionLoss},
	{"SessionFrees", has[driver.Session], sessionFrees},
	{"ForeignData", func(s *suite) bool { return s.cfg.Foreign != nil && hasStore(s) }, foreignData},
	{"EndedContexts", hasStore, endedContexts},
	{"MarkedErrors", hasStore, markedErrors},
	{"FailedRequests", hasStore, failedRequests},
}

const minute = time.Minute

// mine remembers an acquisition for the end of the check.
func (c *client) mine(name, acquisition string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, driver.HoldID{Name: name, Acquisition: acquisition})
}

// refusal forgets an acquisition that was refused without a place in the queue. A store keeps no
// record of such an acquisition. Some checks ask hundreds of times.
func (c *client) refusal(name, acquisition string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = slices.DeleteFunc(c.ids, func(id driver.HoldID) bool { return id == holdID(name, acquisition) })
}

// slow is how late an error comes that a store's own limit for a request may have caused.
const slow = 250 * time.Millisecond

// persist repeats a request whose error came late: on a busy machine a request may exceed the
// store's own limit, though nothing fails. An error that comes early or is final is returned at
// once. Repeated reports whether there was an earlier request.
func persist[T any](c *client, ask func() (T, error)) (reply T, repeated bool, err error) {
	for end := time.Now().Add(c.cfg.Timeout); ; repeated = true {
		asked := time.Now()
		reply, err = ask()
		now := time.Now()
		early := now.Sub(asked) < slow
		if err == nil || early || isFinal(err) || now.After(end) || c.ctx.Err() != nil {
			return reply, repeated, err
		}
	}
}

// isFinal reports whether package lease does not ask again after err.
func isFinal(err error) bool {
	return errors.Is(err, locks.ErrForeign) || errors.Is(err, driver.ErrRefused) && !errors.Is(err, driver.ErrUnavailable)
}

// healthy ends the check if there is an error, since nothing fails.
func (c *client) healthy(op Op, err error) {
	c.Helper()
	if err != nil {
		c.broken(fmt.Sprintf("%s succeeds on a healthy store (%v)", op, err), c)
	}
}

// answerOf returns the answer of a healthy store to a request that may be repeated.
func answerOf[T any](c *client, op Op, ask func() (T, error)) T {
	c.Helper()
	reply, _, err := persist(c, ask)
	c.healthy(op, err)
	return reply
}

func holdID(name, acquisition string) driver.HoldID {
	return driver.HoldID{Name: name, Acquisition: acquisition}
}

func requestOf(name, acquisition string, ttl time.Duration) driver.Request {
	return driver.Request{HoldID: holdID(name, acquisition), TTL: ttl}
}

// acquire asks once.
func (c *client) acquire(name, acquisition string, d time.Duration) driver.Reply {
	c.Helper()
	c.mine(name, acquisition)
	reply, _, err := persist(c, func() (driver.Reply, error) {
		return c.requests.Acquire(c.ctx, requestOf(name, acquisition, d))
	})
	c.healthy(Acquire, err)
	if !reply.Held {
		c.refusal(name, acquisition)
	}
	// A store may keep a lock a little longer, such as for clocks that differ.
	if reply.Wait > d+d/50 && !reply.Held && d == minute {
		c.broken(fmt.Sprintf("Reply.Wait is no longer than the lease of the holder, not %v", reply.Wait), c)
	}
	return reply
}

const freeIsGiven = "a free lock is given to the client that asks"

// take returns a new acquisition that has the free lock called name.
func (c *client) take(name string) (acquisition string, reply driver.Reply) {
	c.Helper()
	acquisition = c.acquisition()
	c.atOnce(freeIsGiven, func() bool {
		reply = c.acquire(name, acquisition, minute)
		return reply.Held
	}, c)
	return acquisition, reply
}

// takeFor is take with a short lease. If the store does not say since when the hold counts, it is
// since the request. A store may refuse a lease of which a request on a busy machine has used up
// much: then the client asks again.
func (c *client) takeFor(name string, ttl time.Duration) (acquisition string, reply driver.Reply) {
	c.Helper()
	acquisition = c.acquisition()
	for end := driver.Now().Add(c.cfg.Timeout); ; {
		asked := driver.Now()
		if reply = c.acquire(name, acquisition, ttl); reply.Held {
			if reply.Since.IsZero() {
				reply.Since = asked
			}
			return acquisition, reply
		}
		if now := driver.Now(); now.Sub(asked) < ttl/4 || now.After(end) {
			c.broken(freeIsGiven, c)
		}
	}
}

// refused ends the check if the client gets the lock.
func (c *client) refused(name string, holders ...*client) {
	c.Helper()
	if c.acquire(name, c.acquisition(), minute).Held {
		c.broken("a held lock is given to no other client", append(holders, c)...)
	}
}

func (c *client) lookup(name, acquisition string) driver.Reply {
	c.Helper()
	return answerOf(c, Lookup, func() (driver.Reply, error) {
		return c.requests.Lookup(c.ctx, requestOf(name, acquisition, minute))
	})
}

// holds ends the check unless Lookup and Renew say that acquisition has the lock.
func (c *client) holds(name, acquisition, when string, others ...*client) {
	c.Helper()
	if !c.lookup(name, acquisition).Held {
		c.broken("Lookup finds the holder "+when, append(others, c)...)
	}
	if !c.renew(name, acquisition, minute) {
		c.broken("Renew prolongs the hold "+when, append(others, c)...)
	}
}

// holdsNot ends the check if Lookup or Renew say that acquisition has the lock.
func (c *client) holdsNot(name, acquisition, when string, others ...*client) {
	c.Helper()
	if c.lookup(name, acquisition).Held {
		c.broken("Lookup finds no hold "+when, append(others, c)...)
	}
	if c.renew(name, acquisition, minute) {
		c.broken("Renew prolongs no hold "+when, append(others, c)...)
	}
}

func (c *client) renew(name, acquisition string, d time.Duration) bool {
	c.Helper()
	renewed := answerOf(c, Renew, func() ([]bool, error) {
		return c.requests.Renew(c.ctx, []driver.HoldID{{Name: name, Acquisition: acquisition}}, d)
	})
	if len(renewed) != 1 {
		c.broken("Renew answers for each hold", c)
	}
	return renewed[0]
}

// release gives back the lock that acquisition has.
func (c *client) release(name, acquisition string) driver.Released {
	c.Helper()
	released, repeated := c.releaseAgain(name, acquisition)
	released.Held = released.Held || repeated // an earlier request may have been carried out
	return released
}

// releases reports whether Release says that acquisition, which does not have the lock, had it
// until now. No request may say so.
func (c *client) releases(name, acquisition string) bool {
	c.Helper()
	released, _ := c.releaseAgain(name, acquisition)
	return released.Held
}

// releaseAgain returns the last answer of Release, and whether the store left an earlier request
// unanswered.
func (c *client) releaseAgain(name, acquisition string) (released driver.Released, repeated bool) {
	c.Helper()
	released, repeated, err := persist(c, func() (driver.Released, error) {
		return c.requests.Release(c.ctx, holdID(name, acquisition))
	})
	if errors.Is(err, locks.ErrLost) { // the lock was not held until now
		return driver.Released{}, repeated
	}
	c.healthy(Release, err)
	return released, repeated
}

const heldUntilNow = "Release says that the lock was held until now"

// lockPersistently is l.LockContext. It asks again after an error that a busy machine may have
// caused: see [persist].
func (c *client) lockPersistently(ctx context.Context, l locks.TryLocker) error {
	_, _, err := persist(c, func() (none struct{}, err error) { return none, l.LockContext(ctx) })
	return err
}

func (c *client) leave(name, acquisition string) {
	c.Helper()
	queue := optional[driver.Queue](c.requests)
	answerOf(c, Leave, func() (none struct{}, err error) { return none, queue.Leave(c.ctx, holdID(name, acquisition)) })
}

// broke breaks the lock called name with breaker, and returns the answer to the last request.
// repeated reports whether there was an earlier request.
func (c *client) broke(breaker driver.Breaker, name string) (held, repeated bool) {
	c.Helper()
	held, repeated, err := persist(c, func() (bool, error) { return breaker.Break(c.ctx, name) })
	c.healthy(Break, err)
	return held, repeated
}

// free releases the hold of acquisition.
func (c *client) free(name, acquisition string) {
	c.Helper()
	if !c.release(name, acquisition).Held {
		c.broken(heldUntilNow, c)
	}
}

// await asks with f until it is true.
func (s *suite) await(promise string, f func() bool, clients ...*client) {
	s.Helper()
	for end := time.Now().Add(s.cfg.Timeout); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.broken(fmt.Sprintf("%s, within %v", promise, s.cfg.Timeout), clients...)
		}
	}
}

// atOnce is for a promise that is true at once. For a store with LateLeave it may become true
// soon.
func (s *suite) atOnce(promise string, f func() bool, clients ...*client) {
	s.Helper()
	switch {
	case s.cfg.LateLeave:
		s.soon(promise, s.cfg.Limit/2, f, clients...)
	case !f():
		s.broken(promise, clients...)
	}
}

// soon is await for a promise that should be true already. A store may be a little late.
func (s *suite) soon(promise string, late time.Duration, f func() bool, clients ...*client) {
	s.Helper()
	began := driver.Now()
	for n := 1; ; n++ {
		asked := driver.Now() // a busy machine matters before, and not afterwards
		if f() {
			return
		}
		if n >= 10 && asked.Sub(began) > late {
			s.broken(fmt.Sprintf("%s, within %v", promise, late), clients...)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func oneHolder(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine := a.acquisition()
	other := b.numbered(tail(mine)) // clients count their acquisitions, so that numbers may be the same
	a.holdsNot(name, mine, "of a free lock")
	if a.releases(name, mine) {
		s.broken("Release says that a free lock was not held", a)
	}
	if !a.acquire(name, mine, minute).Held {
		s.broken(freeIsGiven, a)
	}
	a.holds(name, mine, "after the acquisition")
	if b.acquire(name, other, minute).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	b.refused(name, a)
	a.refused(name, a) // another acquisition of the same client
	a.holdsNot(name, a.acquisition(), "of another acquisition of the holder's client")
	if a.releases(name, a.acquisition()) {
		s.broken("Release frees nothing for another acquisition of the holder's client", a)
	}
	b.holdsNot(name, other, "of a client that was refused", a)
	if b.releases(name, other) {
		s.broken("Release says that a client that was refused held nothing", a, b)
	}
	a.holds(name, mine, "after a release by a client that was refused", b)
	b.refused(name, a)
	a.free(name, mine)
	a.holdsNot(name, mine, "after the release")
	if a.releases(name, mine) {
		s.broken("the second Release says that the lock was not held", a)
	}
	other, _ = b.take(name)
	if a.releases(name, mine) {
		s.broken("a late Release says that the lock was not held", a, b)
	}
	b.holds(name, other, "after a late release of the former holder", a)
	a.holdsNot(name, mine, "after another client has the lock", b)
	b.free(name, other)
}

func oneWinner(s *suite) {
	clients := make([]*client, s.cfg.Clients)
	for i := range clients {
		clients[i] = s.client()
	}
	name := s.name()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		tries := make([]string, len(clients))
		won := make([]bool, len(clients))
		errs := make([]error, len(clients))
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i, c := range clients {
			tries[i] = c.acquisition()
			c.mine(name, tries[i])
			wg.Go(func() {
				<-start
				reply, _, err := persist(c, func() (driver.Reply, error) {
					return c.requests.Acquire(c.ctx, requestOf(name, tries[i], minute))
				})
				won[i], errs[i] = reply.Held, err
			})
		}
		close(start)
		wg.Wait()
		if err := joined.Errors(errs...); err != nil {
			s.broken(fmt.Sprintf("Acquire succeeds on a healthy store (%v)", err))
		}
		winners := 0
		for _, w := range won {
			if w {
				winners++
			}
		}
		if winners > 1 {
			s.broken(fmt.Sprintf("one of %d clients that ask at once gets the lock, not %d", len(clients), winners))
		}
		for i, c := range clients {
			if c.lookup(name, tries[i]).Held != won[i] {
				s.broken("Lookup tells what Acquire said", c)
			}
			if won[i] && !c.release(name, tries[i]).Held || !won[i] && c.releases(name, tries[i]) {
				s.broken("Release says whether the lock was held until now", c)
			}
		}
	}
}

func otherNames(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	names := []string{name, name + "-1", name + "-10", name + "-1-0"}
	holds := make([]string, len(names))
	s.used(names[1:]...)
	for i, n := range names {
		holds[i], _ = []*client{a, b}[i%2].take(n)
	}
	for i, n := range names {
		for j, acquisition := range holds {
			c := []*client{a, b}[j%2]
			if c.lookup(n, acquisition).Held != (i == j) {
				s.broken("locks of other names have other holders", a, b)
			}
			if i != j && c.releases(n, acquisition) {
				s.broken("Release frees no lock of another name", a, b)
			}
		}
	}
	var ids []driver.HoldID
	for i, n := range names {
		if i%2 == 0 {
			ids = append(ids, driver.HoldID{Name: n, Acquisition: holds[i]},
				driver.HoldID{Name: n, Acquisition: a.acquisition()})
		}
	}
	renewed := answerOf(a, Renew, func() ([]bool, error) { return a.requests.Renew(s.ctx, ids, minute) })
	if !slices.Equal(renewed, []bool{true, false, true, false}) {
		s.broken(fmt.Sprintf("Renew says of each hold whether it is one, in order, not %v", renewed), a)
	}
	for i, n := range names {
		[]*client{a, b}[i%2].free(n, holds[i])
	}
}

// oddNames has locks whose names differ a little. The store may refuse a name, by an error.
func oddNames(s *suite) {
	a, b, plain := s.client(), s.client(), randomName()
	long := strings.Repeat("-long", 40)
	var names []string
	for _, odd := range []string{"", "A", "a", "-a", "1", "-1", "--1", "-01", long, long + "-1", long + "-2"} {
		names = append(names, s.named(plain+odd))
	}
	if s.cfg.anyName {
		for _, odd := range []string{" ", "/a", "/A", "%", "'", ":a", "é", "e", "..", "\\", "_", "\t", "😀", "😁"} {
			names = append(names, plain+odd)
		}
	}
	type holder struct {
		owner context.Context
		visit
	}
	holders := make(map[string]*holder)
	for _, n := range names {
		owner, ends := s.someone(), a.ends.Load()
		ctx, cancel := context.WithTimeout(owner, s.cfg.Timeout)
		err := a.lock(n).LockContext(ctx)
		ended := ctx.Err() != nil
		cancel()
		switch {
		case err == nil:
			h := &holder{owner: owner, visit: visit{c: a, ends: ends}}
			if leased, ok := a.lock(n).(locks.Leased); ok {
				h.hold, _ = leased.Hold(owner)
			}
			holders[n] = h
		case ended:
			s.broken(fmt.Sprintf("locks of other names have other holders: %q is free", n), a)
		default:
			s.Logf("no lock can be called %q: %v", n, err)
		}
	}
	for n, h := range holders {
		// A machine that is busy for a lease loses holds.
		if ok, _ := b.lock(n).TryLockContext(s.someone()); ok && h.valid() {
			s.broken(fmt.Sprintf("a held lock is given to no other client, also if it is called %q", n), a, b)
		}
		if err := a.lock(n).UnlockContext(h.owner); err != nil && (h.valid() || !errors.Is(err, locks.ErrLost)) {
			s.broken(fmt.Sprintf("%s (%v)", unlocks, err), a)
		}
	}
}

// atOnce makes one client send requests for several locks at the same time.
func atOnce(s *suite) {
	c, w := s.client(), s.crew()
	var answered atomic.Int64
	var naming sync.Mutex
	for range 8 {
		name, began := s.name(), time.Now()
		// A busy machine may answer late for a while: only a store that never answers is broken.
		more := func() bool { return answered.Load() == 0 && time.Since(began) < s.cfg.Timeout }
		w.wg.Go(func() {
			for n := 0; (n < 10 || more()) && w.ctx.Err() == nil; n++ {
				mine, other := c.acquisition(), c.acquisition()
				c.mine(name, mine)
				c.mine(name, other)
				first, err1 := c.requests.Acquire(s.ctx, requestOf(name, mine, minute))
				second, err2 := c.requests.Acquire(s.ctx, requestOf(name, other, minute))
				found, err3 := c.requests.Lookup(s.ctx, requestOf(name, mine, minute))
				renewed, err4 := c.requests.Renew(s.ctx, []driver.HoldID{{Name: name, Acquisition: mine}}, minute)
				released, err5 := c.requests.Release(s.ctx, holdID(name, mine))
				if err := joined.Errors(err1, err2, err3, err4, err5); err != nil {
					c.event("%v", err)
					naming.Lock()
					name = s.name() // the holds under the other name are in doubt
					naming.Unlock()
					w.pause(20 * time.Millisecond)
					continue
				}
				answered.Add(1)
				switch {
				case !first.Held && s.cfg.SpuriousTry:
				case !first.Held || second.Held || !found.Held || found.Token != first.Token ||
					!slices.Equal(renewed, []bool{true}) || !released.Held:
					w.breaksOf(name, "each request gets its own answer, though others are under way", c)
				}
			}
		})
	}
	w.wait()
	if answered.Load() == 0 {
		s.broken("requests succeed on a healthy store, also several at once", c)
	}
}

func repeatedAcquire(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, first := a.take(name)
	a.acquire(name, mine, minute) // it may say anything, and take another token
	if found := a.lookup(name, mine); !found.Held || found.Token < first.Token {
		s.broken(fmt.Sprintf("a repeated Acquire leaves the hold (%+v)", found), a)
	}
	b.refused(name, a)
	a.free(name, mine)
	a.holdsNot(name, mine, "after the release of an acquisition that was asked for twice", b)
	other, _ := b.take(name)
	b.free(name, other)
}

// twoRequests sends two requests for one acquisition at once, as if the first were late, while
// another client releases the lock. They lead to one hold or to one place, and neither request
// ends the hold or the place of the other. Only a Queue is asked again for one acquisition.
func twoRequests(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	ask := map[Op]func(context.Context, driver.Request) (driver.Reply, error){
		Acquire: a.requests.Acquire, Enqueue: a.requests.Enqueue,
	}
	began := time.Now()
	for round := 0; time.Since(began) < 2*time.Second || round < 10; round++ {
		for op, request := range ask {
			mine := a.acquisition()
			a.mine(name, mine)
			other, _ := b.take(name)
			var wg sync.WaitGroup
			var held atomic.Bool
			for range 2 {
				wg.Go(func() {
					reply, err := request(s.ctx, requestOf(name, mine, minute))
					if err == nil && reply.Held { // a store may refuse the second request by an error
						held.Store(true)
					}
				})
			}
			time.Sleep(time.Duration(round%10) * 100 * time.Microsecond)
			b.free(name, other)
			wg.Wait()
			found := a.lookup(name, mine).Held
			switch {
			case held.Load() && !found:
				s.broken("a request ends no hold that another one of its acquisition has got", a, b)
			case !found && op == Enqueue:
				s.soon("a waiter that has asked twice at once gets the lock", s.cfg.Limit/2,
					func() bool { return a.ask(name, mine).Held }, a, b)
				found = true
			}
			if found {
				a.holds(name, mine, "after two requests at once", b)
				b.refused(name, a)
				a.free(name, mine)
			}
			a.holdsNot(name, mine, "after the release of an acquisition that has asked twice at once", b)
		}
	}
	other, _ := b.take(name)
	b.free(name, other)
}

// releaseIsAtomic repeats a release while another client takes the lock over. A Store that looks
// first, and then deletes what is there, frees the lock of the next holder.
func releaseIsAtomic(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		mine, _ := a.take(name)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 200 * time.Microsecond) // one after the other's look
				_, _, err := persist(a, func() (driver.Released, error) {
					return a.requests.Release(s.ctx, holdID(name, mine))
				})
				if !errors.Is(err, locks.ErrLost) {
					errs[i] = err
				}
			})
		}
		other := b.acquisition()
		for end := time.Now().Add(s.cfg.Timeout); !b.acquire(name, other, minute).Held; other = b.acquisition() {
			if time.Now().After(end) {
				s.broken("a lock that was released is given to the client that asks", a, b)
			}
		}
		wg.Wait()
		a.healthy(Release, joined.Errors(errs...))
		b.holds(name, other, "after repeated releases of the former holder", a)
		c.refused(name, a, b)
		b.free(name, other)
	}
}

// term is how long a hold of the client lasts that asks for the lease ttl.
func (c *client) term(ttl time.Duration) time.Duration {
	if s := optional[driver.Session](c.requests); s != nil {
		return s.Term()
	}
	return ttl
}

// canDie says whether the death of a client ends its holds.
func (c *client) canDie() bool {
	if optional[driver.Session](c.requests) == nil || c.connects() {
		return true
	}
	c.Log("sessions cannot end: the client does not connect through its Link")
	return false
}

// connects says whether the client reaches its store through its Link.
func (c *client) connects() bool {
	if !c.link.Used() { // it may connect with its first request
		name, mine := c.name(), c.acquisition()
		c.acquire(name, mine, minute)
		c.release(name, mine)
	}
	return c.link.Used()
}

// takenOver waits until c gets the lock of holder, whose last sign of life was at the time since.
// It returns the acquisition.
func (c *client) takenOver(name string, holder *client, since time.Time, term time.Duration) string {
	c.Helper()
	const rest = "Reply.Wait is what is left of the lease of a dead client"
	session := optional[driver.Session](holder.requests) != nil
	slack := term / 20
	var began, kept, free time.Time // Reply.Wait says that the lock is kept until then, and free from then on
	var last time.Duration
	for {
		mine := c.acquisition()
		asked := driver.Now()
		reply := c.acquire(name, mine, minute)
		now := driver.Now()
		if reply.Held {
			if early := now.Sub(since); early < term {
				c.broken(fmt.Sprintf("a holder keeps the lock for its lease of %v, not for %v", term, early), holder, c)
			}
			if early := kept.Sub(now); early > slack {
				c.broken(fmt.Sprintf("%s, not %v more", rest, early), holder, c)
			}
			return mine
		}
		if began.IsZero() {
			began = now
		}
		// The server's answer about its clock does not depend on how busy this machine is.
		if reply.Wait > 0 {
			if until := asked.Add(reply.Wait); until.After(kept) {
				kept = until
			}
			// It may be the same for a while, such as the longest time that the store tells.
			if until := now.Add(reply.Wait); reply.Wait < last && (free.IsZero() || until.Before(free)) {
				free = until
			}
			last = reply.Wait
		}
		if differ := kept.Sub(free); !free.IsZero() && differ > slack {
			c.broken(fmt.Sprintf("%s, and answers do not differ by %v", rest, differ), holder, c)
		}
		limit := 2 * term
		if session { // whose end the server looks for from time to time
			limit = term + c.cfg.Timeout
		}
		if asked.Sub(began) > limit {
			c.broken(fmt.Sprintf("a dead client loses the lock after its lease of %v", term), holder, c)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func takeover(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	if !a.canDie() {
		return
	}
	ttl := s.cfg.TTL + s.cfg.TTL/4 // no whole number of seconds
	_, reply := a.takeFor(name, ttl)
	a.die()
	other := b.takenOver(name, a, reply.Since, a.term(ttl))
	b.holds(name, other, "after it took over", a)
	b.free(name, other)
}

// lapsedHold asks about a hold that has lapsed while no other client came in between. In a store
// without a clock it may last until then.
func lapsedHold(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	if optional[driver.Session](a.requests) != nil {
		return // its holds last without renewals
	}
	mine, _ := a.takeFor(name, s.cfg.TTL)
	s.pause(3 * s.cfg.TTL / 2)
	found := a.lookup(name, mine).Held
	switch {
	case !a.renew(name, mine, minute):
		a.holdsNot(name, mine, "that has lapsed")
		other, _ := b.take(name)
		b.free(name, other)
	case !found:
		s.broken("Renew prolongs no hold that Lookup does not find", a)
	default:
		b.refused(name, a)
		a.free(name, mine)
	}
}

// tooBusy is noted if a check cannot tell a lapsed hold from a machine that stood still.
const tooBusy = "a renewal came too late: this machine is too busy for the check"

// renewedLease has a client that lives keep its lock, and lose it a lease after its last renewal.
func renewedLease(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	mine, _ := a.takeFor(name, s.cfg.TTL)
	term := a.term(s.cfg.TTL)
	session := optional[driver.Session](a.requests) != nil
	since := driver.Now()
	began := since
	for driver.Now().Sub(began) < 5*term/2 {
		asked := driver.Now()
		if !a.renew(name, mine, s.cfg.TTL) {
			if driver.Now().Sub(since) >= term {
				s.Log(tooBusy)
				return
			}
			s.broken("Renew prolongs a hold whose lease has not ended", a, b)
		}
		since = asked
		for driver.Now().Sub(since) < term/4 {
			if b.acquire(name, b.acquisition(), minute).Held {
				if driver.Now().Sub(since) >= term {
					s.Log(tooBusy)
					return
				}
				s.broken("a client that renews its hold keeps it", a, b)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if !session {
		b.takenOver(name, a, since, term)
		a.holdsNot(name, mine, "after another client took over", b)
		return
	}
	asked := driver.Now()
	switch {
	case a.release(name, mine).Held:
	case asked.Sub(since) >= term:
		s.Log(tooBusy)
	default:
		s.broken(heldUntilNow, a)
	}
}

func renewTellsTheTruth(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine := a.acquisition()
	if a.renew(name, mine, minute) {
		s.broken("Renew acquires no free lock", a)
	}
	other, _ := b.take(name)
	b.free(name, other)
	if b.renew(name, other, minute) {
		s.broken("Renew does not acquire a lock anew", b)
	}
	mine, _ = a.take(name)
	if !a.renew(name, mine, minute) {
		s.broken("Renew prolongs the hold of a living holder", a)
	}
	if b.renew(name, b.acquisition(), minute) {
		s.broken("Renew prolongs nothing for another acquisition", a, b)
	}
	a.holds(name, mine, "after a renewal of another acquisition", b)
	a.free(name, mine)
}

// lateRequests sends what a client asked for before another client took its lock over.
func lateRequests(s *suite) {
	a, b, c, name := s.mortal(), s.client(), s.client(), s.name()
	late := a.acquisition()
	mine, reply := a.takeFor(name, s.cfg.TTL)
	var other string
	if optional[driver.Session](a.requests) != nil {
		a.free(name, mine) // its session goes on
		other, _ = b.take(name)
	} else {
		other = b.takenOver(name, a, reply.Since, s.cfg.TTL)
	}
	for range 2 {
		a.holdsNot(name, mine, "after another client took over", b)
		if a.releases(name, mine) {
			s.broken("a late Release says that the lock was not held", a, b)
		}
		if a.acquire(name, mine, minute).Held || a.acquire(name, late, minute).Held {
			s.broken("a late Acquire does not take the lock of a living holder", a, b)
		}
		if q := optional[driver.Queue](a.requests); q != nil {
			a.leave(name, mine)
		}
		b.holds(name, other, "after late requests of the former holder", a)
		c.refused(name, a, b)
	}
	b.free(name, other)
	a.holdsNot(name, mine, "after another client has had the lock", b)
	c.free(name, first(c.take(name)))
}

// first returns the acquisition of a take.
func first(acquisition string, _ driver.Reply) string { return acquisition }

func tokens(s *suite) {
	name := s.name()
	var last uint64
	var before *client
	next := func(c *client, how string, reply driver.Reply, acquisition string) {
		s.Helper()
		found := c.lookup(name, acquisition)
		if found.Held && found.Token != reply.Token {
			s.broken(fmt.Sprintf("Lookup tells the token of Acquire, %d, not %d", reply.Token, found.Token), c)
		}
		if before != nil && (reply.Token != 0 || last != 0) && reply.Token <= last {
			s.broken(fmt.Sprintf("the token increases %s: %d comes after %d", how, reply.Token, last), before, c)
		}
		last, before = reply.Token, c
	}
	a, b := s.client(), s.client()
	for i := range 6 {
		c := []*client{a, b}[i%2]
		mine, reply := c.take(name)
		next(c, "from holder to holder", reply, mine)
		if !c.renew(name, mine, minute) {
			s.broken("Renew prolongs the hold of a living holder", c)
		}
		c.free(name, mine)
	}
	if breaker := b.breaker(name); breaker != nil {
		mine, reply := a.take(name)
		next(a, "from holder to holder", reply, mine)
		b.broke(breaker, name)
		mine, reply = b.take(name)
		next(b, "after a break", reply, mine)
		b.free(name, mine)
	}
	d := s.mortal()
	if d.canDie() {
		mine, reply := d.takeFor(name, s.cfg.TTL)
		next(d, "for a new client", reply, mine)
		d.die()
		mine = a.takenOver(name, d, reply.Since, d.term(s.cfg.TTL))
		next(a, "over a takeover", a.lookup(name, mine), mine)
		a.free(name, mine)
	}
	c := s.client()
	mine, reply := c.take(name)
	next(c, "for a new client", reply, mine)
	c.free(name, mine)
}

// ask is one request of a waiter.
func (c *client) ask(name, acquisition string) driver.Reply {
	c.Helper()
	q := optional[driver.Queue](c.requests)
	if q == nil {
		return c.acquire(name, acquisition, minute)
	}
	c.mine(name, acquisition)
	return answerOf(c, Enqueue, func() (driver.Reply, error) {
		return q.Enqueue(c.ctx, requestOf(name, acquisition, minute))
	})
}

// noticed is called for each value from the channel of a Watch.
func (c *client) noticed(open bool) {
	c.Helper()
	c.event("a notice")
	if !open {
		c.broken("the channel of a Watch is never closed", c)
	}
}

// notices releases a lock at each moment of another client's wait.
func notices(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	const before, between, after = "before the Watch", "after the Watch", "after the waiter asked again"
	const anew = "after a Watch that follows a closed one"
	for _, when := range []string{before, between, after, anew, before, between, after, anew} {
		mine, _ := a.take(name)
		other := b.acquisition()
		reply := b.ask(name, other)
		if reply.Held {
			s.broken("a held lock is given to no other client", a, b)
		}
		if when == before {
			a.free(name, mine)
		}
		w := b.watch(name, other)
		if w == nil {
			s.Log("the store has no notices: waiters ask from time to time")
			return
		}
		if when == between {
			a.free(name, mine)
		}
		if when == anew {
			w.Close()
			reply = b.ask(name, other)
			w = b.watch(name, other)
		}
		if !reply.Listening {
			reply = b.ask(name, other) // as a lease.Client does
		}
		if when == after || when == anew {
			a.free(name, mine)
		}
		b.told("a waiter is told of a release "+when, name, other, reply, w, a)
		w.Close()
		b.free(name, other)
	}
}

func contention(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, _ := a.take(name)
	other := b.acquisition()
	if b.ask(name, other).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	w := b.watch(name, other)
	if w != nil {
		defer w.Close()
	}
	b.ask(name, other)
	s.await("Contended tells of a waiter that has a Watch", func() bool {
		return answerOf(a, Contended, func() (bool, error) { return a.requests.Contended(s.ctx, name) })
	}, a, b)
	a.free(name, mine)
}

func queueOrder(s *suite) {
	if !s.cfg.FIFO {
		return
	}
	clients := []*client{s.client(), s.client(), s.client(), s.client()}
	name := s.name()
	holder, places := clients[0], make([]string, len(clients))
	places[0], _ = holder.take(name)
	for i, c := range clients[1:] {
		places[i+1] = c.acquisition()
		if c.ask(name, places[i+1]).Held {
			s.broken("a held lock is given to no other client", holder, c)
		}
	}
	for i, c := range clients[1:] { // a place is kept
		if c.ask(name, places[i+1]).Held {
			s.broken("a held lock is given to no other client", holder, c)
		}
	}
	s.pause(s.cfg.Poll) // a waiter asks again by then
	for i, c := range clients[:len(clients)-1] {
		c.free(name, places[i])
		for j := len(clients) - 1; j > i+1; j-- {
			if clients[j].ask(name, places[j]).Held {
				s.broken("the lock goes to clients in order of arrival", clients[i+1], clients[j])
			}
		}
		next := clients[i+1]
		s.soon("the first waiter gets the lock", s.cfg.Limit/2,
			func() bool { return next.ask(name, places[i+1]).Held }, c, next)
	}
	clients[len(clients)-1].free(name, places[len(clients)-1])
}

func queueLeave(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	mine, _ := a.take(name)
	second, third := b.acquisition(), c.acquisition()
	if b.ask(name, second).Held || c.ask(name, third).Held {
		s.broken("a held lock is given to no other client", a, b, c)
	}
	b.holdsNot(name, second, "of a waiter", a)
	b.leave(name, second)
	b.leave(name, second) // may be repeated
	a.free(name, mine)
	s.soon("a client that has left the queue blocks nobody", s.cfg.Limit/2,
		func() bool { return c.ask(name, third).Held }, b, c)
	b.holdsNot(name, second, "of a client that has left the queue", c)
	second, mine = b.acquisition(), a.acquisition()
	if b.ask(name, second).Held || a.ask(name, mine).Held {
		s.broken("a held lock is given to no other client", a, b, c)
	}
	a.leave(name, mine)
	mine = a.acquisition()
	if a.ask(name, mine).Held { // a place behind b
		s.broken("a held lock is given to no other client", a, c)
	}
	c.leave(name, third) // it has no place
	c.holds(name, third, "after a Leave without a place")
	c.free(name, third)
	if s.cfg.FIFO && a.ask(name, mine).Held {
		s.broken("a Leave takes the place of no other client", a, b, c)
	}
	a.leave(name, mine)
	s.soon("a waiter keeps its place when others leave", s.cfg.Limit/2,
		func() bool { return b.ask(name, second).Held }, a, b, c)
	b.free(name, second)
	other, _ := a.take(name)
	a.free(name, other)
}

// breaker returns the client's Store if it can break the lock called name, which is free.
func (c *client) breaker(name string) driver.Breaker {
	b := optional[driver.Breaker](c.requests)
	if b != nil {
		if _, err := b.Break(c.ctx, name); errors.Is(err, errors.ErrUnsupported) {
			c.Logf("this kind of lock cannot be broken: %v", err)
			return nil
		}
	}
	return b
}

func breaks(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	breaker := b.breaker(name)
	if breaker == nil {
		return
	}
	if held, _ := b.broke(breaker, name); held {
		s.broken("Break says that a free lock was not held", b)
	}
	mine, _ := a.take(name)
	if held, repeated := b.broke(breaker, name); !held && !repeated {
		s.broken("Break says that the lock was held", a, b)
	}
	a.holdsNot(name, mine, "after a break", b)
	other, _ := c.take(name)
	a.holdsNot(name, mine, "after a break", b, c)
	if a.releases(name, mine) {
		s.broken("Release after a break says that the lock was not held", a, b)
	}
	c.holds(name, other, "after requests of the holder before the break", a, b)
	c.free(name, other)
	if held, _ := b.broke(breaker, name); held {
		s.broken("Break says that a free lock was not held", b)
	}
}

func inspection(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	inspect := func() driver.State {
		s.Helper()
		return answerOf(c, Inspect, func() (driver.State, error) { return c.requests.Inspect(s.ctx, name) })
	}
	is := func(claim driver.Claim, acquisition string) bool { // the store may have other things in its place
		client := acquisition[:strings.LastIndexByte(acquisition, ':')]
		return strings.HasPrefix(claim.Acquisition, client) || claim.Acquisition == "" || claim.Identity != ""
	}
	if state := inspect(); state.Held || len(state.Holders) > 0 {
		s.broken("Inspect says that a free lock is free", c)
	}
	mine, reply := a.take(name)
	for range 2 {
		state := inspect()
		if !state.Held && len(state.Holders) == 0 || state.Shared || len(state.Holders) > 1 {
			s.broken(fmt.Sprintf("Inspect finds one holder, not %+v", state), a, c)
		}
		if len(state.Holders) == 1 && !is(state.Holders[0], mine) {
			s.broken(fmt.Sprintf("Inspect names the holder %s, not %+v", mine, state.Holders[0]), a, c)
		}
		for _, holder := range state.Holders {
			if holder.Token != 0 && holder.Token != reply.Token {
				s.broken(fmt.Sprintf("Inspect names the token %d, not %d", reply.Token, holder.Token), a, c)
			}
			left, term := holder.Left, a.term(minute)
			if left > term+term/50 || left != 0 && left < term/2 {
				s.broken(fmt.Sprintf("Inspect tells what is left of the lease of %v, not %v", term, left), a, c)
			}
		}
	}
	a.holds(name, mine, "after Inspect", c)
	if queue := optional[driver.Queue](b.requests); queue != nil {
		other := b.acquisition()
		if b.ask(name, other).Held {
			s.broken("a held lock is given to no other client", a, b)
		}
		if w, err := b.requests.Watch(s.ctx, holdID(name, other)); err == nil && w != nil {
			defer w.Close()
			b.ask(name, other) // a store may give places to acquisitions that have a Watch
		}
		state := inspect()
		if state.Waiting == 0 || state.Waiting > 1 || len(state.Waiters) == 0 && state.Waiting > 0 {
			s.broken(fmt.Sprintf("Inspect finds a waiter that has a place in the queue, not %+v", state), b, c)
		}
		if len(state.Waiters) > 0 && !is(state.Waiters[0], other) {
			s.broken(fmt.Sprintf("Inspect names the waiter %s, not %+v", other, state.Waiters[0]), b, c)
		}
		b.leave(name, other)
		if state := inspect(); state.Waiting > 0 {
			s.broken(fmt.Sprintf("Inspect finds no waiter that has left the queue, not %+v", state), b, c)
		}
	}
	a.free(name, mine)
	s.atOnce("Inspect says that a lock is free after its release", func() bool {
		state := inspect()
		return !state.Held && len(state.Holders) == 0
	}, a, c)
}

// noFalseLoss has the store say nothing of holds that live.
func noFalseLoss(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	var holds []string
	names := []string{name, name + "-1", name + "-2"}
	s.used(names[1:]...)
	for _, n := range names {
		mine, _ := a.take(n)
		holds = append(holds, mine)
		b.refused(n, a)
		b.release(n, b.acquisition())
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b.refused(name, a)
	}
	for i, n := range names {
		a.holds(n, holds[i], "among other holds", b)
		if lost := a.requests.losses(n, holds[i]); lost > 0 {
			s.broken("NotifyLoss is told of no hold that lives", a, b)
		}
		a.free(n, holds[i])
	}
	if breaker := b.breaker(name); breaker != nil {
		for i, n := range names {
			holds[i], _ = a.take(n)
		}
		b.broke(breaker, name)
		s.await("NotifyLoss is told of a hold that was broken, or Renew says so", func() bool {
			return a.requests.losses(name, holds[0]) > 0 || !a.renew(name, holds[0], minute)
		}, a, b)
		s.pause(100 * time.Millisecond) // other losses would come with it
		for i, n := range names[1:] {
			a.holds(n, holds[i+1], "after another hold was broken", b)
			if lost := a.requests.losses(n, holds[i+1]); lost > 0 {
				s.broken("NotifyLoss is told of no hold that lives", a, b)
			}
			a.free(n, holds[i+1])
		}
	}
}

// endedContexts checks that all requests return when their context has ended.
func endedContexts(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, _ := b.take(name)
	try := func(how string, newContext func() (context.Context, context.CancelFunc)) {
		s.Helper()
		id := a.acquisition()
		a.mine(name, id)
		calls := map[Op]func(context.Context){
			Acquire: func(ctx context.Context) { _, _ = a.requests.Acquire(ctx, requestOf(name, id, minute)) },
			Lookup:  func(ctx context.Context) { _, _ = a.requests.Lookup(ctx, requestOf(name, id, minute)) },
			Renew: func(ctx context.Context) {
				_, _ = a.requests.Renew(ctx, []driver.HoldID{{Name: name, Acquisition: id}}, minute)
			},
			Release: func(ctx context.Context) { _, _ = a.requests.Release(ctx, holdID(name, id)) },
			Watch: func(ctx context.Context) {
				if w, err := a.requests.Watch(ctx, holdID(name, id)); err == nil && w != nil {
					w.Close()
				}
			},
		}
		if q := optional[driver.Queue](a.requests); q != nil {
			calls[Enqueue] = func(ctx context.Context) { _, _ = q.Enqueue(ctx, requestOf(name, id, minute)) }
			calls[Leave] = func(ctx context.Context) { _ = q.Leave(ctx, holdID(name, id)) }
		}
		for op, call := range calls {
			ctx, cancel := newContext()
			done := make(chan struct{})
			go func() {
				defer close(done)
				call(ctx)
			}()
			select {
			case <-done:
				cancel()
			case <-time.After(s.cfg.Timeout):
				cancel()
				s.broken(fmt.Sprintf("%s returns when its context ends, %s", op, how), a)
			}
		}
	}
	try("before the call", func() (context.Context, context.CancelFunc) {
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		return ended, cancel
	})
	if a.connects() {
		a.link.Cut()
		try("while the network is silent", func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(s.ctx, 100*time.Millisecond)
		})
		a.link.Heal()
	}
	b.holds(name, mine, "after requests of another client whose contexts ended", a)
	b.free(name, mine)
}

// troubles are the faults of a network.
var troubles = map[string]func(*Link){
	"refuses connections": (*Link).Refuse,
	"resets connections":  (*Link).Reset,
	"loses replies":       (*Link).CutReplies,
	"loses requests":      (*Link).CutRequests,
}

// markedErrors has an error that matches driver.ErrRefused be true.
func markedErrors(s *suite) {
	a, b := s.client(), s.client()
	if !a.connects() {
		s.Log("requests cannot fail: the client does not connect through its Link")
		return
	}
	type request func(ctx context.Context, req driver.Request) (driver.Reply, error)
	requests := map[Op]request{Acquire: a.requests.Acquire}
	if optional[driver.Queue](a.requests) != nil {
		requests[Enqueue] = a.requests.Enqueue
	}
	for what, begin := range troubles {
		for op, request := range requests {
			name, id := s.name(), a.acquisition()
			a.mine(name, id)
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			begin(a.link)
			reply, err := request(ctx, requestOf(name, id, minute))
			cancel()
			a.link.Heal()
			if !errors.Is(err, driver.ErrRefused) {
				if err == nil && !reply.Held {
					s.broken(fmt.Sprintf("an %s that fails is an error, not a refusal", op), a)
				}
				continue
			}
			a.event("the network %s", what)
			other := b.acquisition()
			if b.lookup(name, id).Held || !b.acquire(name, other, minute).Held {
				s.broken("an error that matches ErrRefused says that nothing was done", a, b)
			}
			b.free(name, other)
		}
	}
}

// failedRequests has requests of a holder fail. That does not end its hold, and no answer says so.
func failedRequests(s *suite) {
	if s.cfg.EndsWithConnection {
		return
	}
	b := s.client()
	for what, begin := range troubles {
		a := s.client()
		if !a.connects() {
			s.Log("requests cannot fail: the client does not connect through its Link")
			return
		}
		names := []string{s.name(), s.name(), s.name()}
		var holds []string
		for _, name := range names {
			mine, _ := a.take(name)
			holds = append(holds, mine)
		}
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(s.ctx, 300*time.Millisecond)
			s.Cleanup(cancel)
			return ctx
		}
		begin(a.link)
		a.event("the network %s", what)
		found, err := a.requests.Lookup(brief(), requestOf(names[0], holds[0], minute))
		if err == nil && !found.Held {
			s.broken("a Lookup that fails is an error", a)
		}
		renewed, err := a.requests.Renew(brief(), []driver.HoldID{{Name: names[1], Acquisition: holds[1]}}, minute)
		if err == nil && slices.Contains(renewed, false) {
			s.broken("a Renew that fails is an error", a)
		}
		released, err := a.requests.Release(brief(), holdID(names[2], holds[2]))
		if err == nil && !released.Held || errors.Is(err, locks.ErrLost) {
			s.broken("a Release that fails is an error, and no loss", a)
		}
		if errors.Is(err, driver.ErrRefused) {
			b.refused(names[2], a)
		}
		a.link.Heal()
		for i, name := range names {
			s.await("a lock can be released when the network is healed", func() bool {
				ctx, cancel := context.WithTimeout(s.ctx, 5*time.Second)
				defer cancel()
				_, err := a.requests.Release(ctx, holdID(name, holds[i]))
				return err == nil || errors.Is(err, locks.ErrLost)
			}, a)
		}
	}
}

// renewsAll has one request prolong several holds.
func renewsAll(s *suite) {
	a, b := s.mortal(), s.client()
	if optional[driver.Session](a.requests) != nil {
		return // its holds last without renewals
	}
	var ids []driver.HoldID
	var asked time.Time
	for end := driver.Now().Add(s.cfg.Timeout); ; ids = nil {
		began := driver.Now()
		for range 3 {
			name := s.name()
			mine, _ := a.takeFor(name, s.cfg.TTL)
			ids = append(ids, driver.HoldID{Name: name, Acquisition: mine})
		}
		lost := driver.HoldID{Name: ids[0].Name, Acquisition: a.acquisition()}
		// Their leases become long, so that a busy machine does not matter from here on.
		asked = time.Now()
		all := slices.Insert(slices.Clone(ids), 1, lost)
		renewed := answerOf(a, Renew, func() ([]bool, error) { return a.requests.Renew(s.ctx, all, minute) })
		if slices.Equal(renewed, []bool{true, false, true, true}) {
			break
		}
		// A busy machine may have used up the lease of the first request. Then the client asks
		// again.
		if now := driver.Now(); now.Sub(began) < s.cfg.TTL/2 || now.After(end) {
			s.broken(fmt.Sprintf("Renew prolongs each of the holds, not %v", renewed), a)
		}
	}
	for time.Since(asked) < s.cfg.TTL+s.cfg.TTL/4 {
		time.Sleep(10 * time.Millisecond)
	}
	for _, id := range ids {
		b.refused(id.Name, a)
		a.free(id.Name, id.Acquisition)
	}
}

// releasesAll releases several holds by one request, as the end of a client does.
func releasesAll(s *suite) {
	a, b := s.client(), s.client()
	other := s.name()
	theirs, _ := b.take(other)
	ids := []driver.HoldID{holdID(other, a.acquisition())} // which does not hold it
	var names []string
	for range 3 {
		name := s.name()
		mine, _ := a.take(name)
		names, ids = append(names, name), append(ids, holdID(name, mine))
	}
	for range 2 { // it may be repeated
		done := answerOf(a, ReleaseAll, func() ([]bool, error) {
			return optional[driver.BatchReleaser](a.requests).ReleaseAll(s.ctx, ids)
		})
		if !slices.Equal(done, []bool{true, true, true, true}) {
			s.broken(fmt.Sprintf("ReleaseAll answers for each of the holds, not %v", done), a)
		}
	}
	b.holds(other, theirs, "after ReleaseAll for another acquisition", a)
	for i, name := range names {
		next, _ := b.take(name)
		late := answerOf(a, ReleaseAll, func() ([]bool, error) {
			return optional[driver.BatchReleaser](a.requests).ReleaseAll(s.ctx, ids[i+1:i+2])
		})
		if !slices.Equal(late, []bool{true}) {
			s.broken(fmt.Sprintf("ReleaseAll answers for a hold that has ended, not %v", late), a)
		}
		b.holds(name, next, "after a late ReleaseAll of the holder before", a)
		b.free(name, next)
	}
	b.free(other, theirs)
}

// watch returns a Watch of acquisition, or nil if the store gives no notices.
func (c *client) watch(name, acquisition string) driver.Watch {
	c.Helper()
	return answerOf(c, Watch, func() (driver.Watch, error) { return c.requests.Watch(c.ctx, holdID(name, acquisition)) })
}

// told waits until the lock is given to a waiter. The waiter asks only when it is told, or when the
// time of its last refusal is over.
func (c *client) told(promise, name, acquisition string, last driver.Reply, w driver.Watch, others ...*client) {
	c.Helper()
	for end := time.After(c.cfg.Timeout); !last.Held; last = c.ask(name, acquisition) {
		select {
		case _, open := <-w.C():
			c.noticed(open)
		case <-again(last):
		case <-end:
			c.broken(promise, append(others, c)...)
		}
	}
}

// again returns when to ask again after a refusal without a notice, or nil. The end of a lease of a
// minute is not a reason to ask again. The holder releases, and the waiter must be told of the
// release.
func again(refusal driver.Reply) <-chan time.Time {
	if refusal.Wait <= 0 || refusal.Wait >= minute/2 {
		return nil
	}
	return time.After(refusal.Wait)
}

// otherWatches ends one of two watches of a client. The other watch goes on.
func otherWatches(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	s.used(name + "-1")
	for _, other := range []string{name, name + "-1"} {
		mine, _ := a.take(name)
		also := mine
		if other != name {
			also, _ = a.take(other)
		}
		begin := func(name string) (place string, last driver.Reply, w driver.Watch) {
			place = b.acquisition()
			if b.ask(name, place).Held {
				s.broken("a held lock is given to no other client", a, b)
			}
			if w = b.watch(name, place); w == nil {
				return place, last, nil
			}
			if last = b.ask(name, place); last.Held {
				s.broken("a held lock is given to no other client", a, b)
			}
			return place, last, w
		}
		gone, _, ends := begin(name)
		if ends == nil {
			return
		}
		place, last, w := begin(other)
		ends.Close()
		if q := optional[driver.Queue](b.requests); q != nil {
			b.leave(name, gone)
		}
		a.free(other, also)
		b.told("a waiter is told of a release after the end of another Watch of its client", other, place, last, w, a)
		w.Close()
		b.free(other, place)
		if other != name {
			a.free(name, mine)
		}
	}
}

// noticesForAll passes the lock through all waiters, which ask only when they are told, or when
// the time is over that their last refusal named. Waiters that are told and do not get the lock
// wait again. If another waiter has the lock, they wait for a notice. If they were in each
// other's way, no waiter has it, and they wait for the named time.
func noticesForAll(s *suite) {
	a, name := s.client(), s.name()
	mine, _ := a.take(name)
	clients := []*client{s.client(), s.client(), s.client()}
	var wg sync.WaitGroup
	failed := make([]string, len(clients))
	for i, c := range clients {
		place := c.acquisition()
		if c.ask(name, place).Held {
			s.broken("a held lock is given to no other client", a, c)
		}
		w := c.watch(name, place)
		if w == nil {
			s.Log("the store has no notices: waiters ask from time to time")
			return
		}
		defer w.Close()
		last := c.ask(name, place)
		if last.Held {
			s.broken("a held lock is given to no other client", a, c)
		}
		wg.Go(func() {
			for end := time.After(s.cfg.Timeout); ; {
				select {
				case <-w.C():
					c.event("a notice")
				case <-again(last):
				case <-end:
					failed[i] = "each waiter is told until it has the lock"
					return
				}
				ask := c.requests.Acquire
				if optional[driver.Queue](c.requests) != nil {
					ask = c.requests.Enqueue
				}
				reply, _, err := persist(c, func() (driver.Reply, error) {
					return ask(s.ctx, requestOf(name, place, minute))
				})
				if err == nil && reply.Held {
					_, _, err = persist(c, func() (driver.Released, error) {
						return c.requests.Release(s.ctx, holdID(name, place))
					})
					if errors.Is(err, locks.ErrLost) {
						err = nil // an earlier request has released it
					}
				}
				if err != nil {
					failed[i] = fmt.Sprintf("requests succeed on a healthy store (%v)", err)
				}
				if err != nil || reply.Held {
					return
				}
				last = reply
			}
		})
	}
	a.free(name, mine)
	wg.Wait()
	for i, promise := range failed {
		if promise != "" {
			s.broken(promise, a, clients[i])
		}
	}
}

// awaited checks that a release says that another client waits. In a queue in order of arrival
// the other client comes first anyway.
func awaited(s *suite) {
	a, b, name := s.client(), s.client(), s.name()
	mine, _ := a.take(name)
	other := b.acquisition()
	if b.ask(name, other).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	w := b.watch(name, other)
	if w == nil {
		return // a store without notices may not know
	}
	defer w.Close()
	if b.ask(name, other).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	if released := a.release(name, mine); !released.Awaited {
		s.broken("Release says that the lock is awaited while another client has a Watch", a, b)
	}
}

// queueNotices checks that a release tells the waiter that gets the lock, even when the waiter
// before it has left.
func queueNotices(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	waiters := []*client{b, c}
	for _, leaves := range []bool{false, true} {
		mine, _ := a.take(name)
		var places []string
		var watches []driver.Watch
		for _, waiter := range waiters {
			place := waiter.acquisition()
			if waiter.ask(name, place).Held {
				s.broken("a held lock is given to no other client", a, waiter)
			}
			w := waiter.watch(name, place)
			if w == nil {
				return
			}
			defer w.Close()
			places, watches = append(places, place), append(watches, w)
			if waiter.ask(name, place).Held {
				s.broken("a held lock is given to no other client", a, waiter)
			}
		}
		if leaves || !s.cfg.FIFO {
			watches[0].Close()
			b.leave(name, places[0])
		}
		a.free(name, mine)
		if !leaves && s.cfg.FIFO {
			b.told("the first waiter is told of a release", name, places[0], driver.Reply{}, watches[0], a)
			b.free(name, places[0])
		}
		c.told("the next waiter is told of a release", name, places[1], driver.Reply{}, watches[1], a, b)
		c.free(name, places[1])
		watches[1].Close()
	}
}

// deadWaiter has the place of a dead client block nobody for longer than a lease or a session.
func deadWaiter(s *suite) {
	a, d, b, name := s.client(), s.mortal(), s.client(), s.name()
	if !d.canDie() {
		return
	}
	mine, _ := a.take(name)
	dead, place := d.acquisition(), b.acquisition()
	d.mine(name, dead)
	enqueue := func() {
		reply := answerOf(d, Enqueue, func() (driver.Reply, error) {
			return d.requests.Enqueue(s.ctx, requestOf(name, dead, s.cfg.TTL))
		})
		if reply.Held {
			s.broken("a held lock is given to no other client", a, d)
		}
	}
	enqueue()
	if w := d.watch(name, dead); w != nil {
		enqueue()
		defer w.Close()
	}
	d.die()
	if b.ask(name, place).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	a.free(name, mine)
	s.await("a waiter that died does not block the others",
		func() bool { return b.ask(name, place).Held }, d, b)
	b.free(name, place)
}

// breakNotice has a break tell the waiters.
func breakNotice(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	breaker := c.breaker(name)
	if breaker == nil {
		return
	}
	a.take(name)
	place := b.acquisition()
	if b.ask(name, place).Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	w := b.watch(name, place)
	if w == nil {
		return
	}
	defer w.Close()
	last := b.ask(name, place)
	if last.Held {
		s.broken("a held lock is given to no other client", a, b)
	}
	c.broke(breaker, name)
	b.told("a waiter is told of a break", name, place, last, w, a, c)
	b.free(name, place)
}

// sessionLoss has the store tell of a session that ended.
func sessionLoss(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	if optional[driver.LossNotifier](a.requests) == nil || !a.canDie() {
		return
	}
	mine, reply := a.take(name)
	since := driver.Now()
	if !reply.Since.IsZero() {
		since = reply.Since
	}
	a.link.Cut()
	other := b.takenOver(name, a, since, a.term(s.cfg.TTL))
	a.link.Heal()
	s.await("NotifyLoss is told of a hold whose session has ended",
		func() bool { return a.requests.losses(name, mine) > 0 }, a, b)
	b.holds(name, other, "after the former holder is back", a)
	b.free(name, other)
}

// sessionFrees has Lost free what the session keeps after the hold was lost, and nothing else if
// it is repeated.
func sessionFrees(s *suite) {
	a, b, name := s.mortal(), s.client(), s.name()
	owner := s.someone()
	l := a.lock(name)
	if err := l.LockContext(owner); err != nil {
		s.broken(fmt.Sprintf("LockContext succeeds on a healthy store (%v)", err), a)
	}
	h, err := l.(locks.Leased).Hold(owner)
	if err != nil {
		s.broken(fmt.Sprintf("Hold finds the hold (%v)", err), a)
	}
	a.requests.Always(Renew, LostRequest)
	select {
	case <-h.Lost():
	case <-time.After(a.term(s.cfg.TTL) + s.cfg.Timeout):
		s.broken("a hold that is not renewed is lost", a)
	}
	name = a.stored(name)
	other := b.acquisition()
	s.await("a hold that was lost is freed, though its session lasts",
		func() bool { return b.acquire(name, other, minute).Held }, a, b)
	for range 10 { // Lost returns before it has done anything
		a.requests.Lost(driver.HoldID{Name: name, Acquisition: a.requests.asked(name)})
		b.holds(name, other, "after Lost was repeated for the hold before", a)
	}
	b.free(name, other)
	_ = l.UnlockContext(owner) // it reports the loss
}

// foreignData checks that no request changes data that is not a lock.
func foreignData(s *suite) {
	a, name := s.client(), s.name()
	s.cfg.Foreign(s.TB, name)
	id := a.acquisition()
	for range 2 {
		reply, _, err := persist(a, func() (driver.Reply, error) {
			return a.requests.Acquire(s.ctx, requestOf(name, id, minute))
		})
		if reply.Held || !errors.Is(err, locks.ErrForeign) {
			s.broken(fmt.Sprintf("Acquire says that the name has no lock (%v)", err), a)
		}
		if released, err := a.requests.Release(s.ctx, holdID(name, id)); released.Held {
			s.broken(fmt.Sprintf("Release frees nothing that is no lock (%v)", err), a)
		}
		hold := []driver.HoldID{{Name: name, Acquisition: id}}
		if renewed, _ := a.requests.Renew(s.ctx, hold, minute); slices.Contains(renewed, true) {
			s.broken("Renew prolongs nothing that is no lock", a)
		}
		if breaker := optional[driver.Breaker](a.requests); breaker != nil {
			if broke, err := breaker.Break(s.ctx, name); broke || err == nil {
				s.broken("Break says that the name has no lock", a)
			}
		}
	}
}
