package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// faultChecks use locks while requests and networks fail.
var faultChecks = []check{
	{"AcquireFaults", hasStore, acquireFaults},
	{"WaitFaults", hasStore, waitFaults},
	{"RenewFaults", hasStore, renewFaults},
	{"ReleaseFaults", hasStore, releaseFaults},
	{"UndoFaults", hasStore, undoFaults},
	{"LeaveFaults", has[driver.Queue], leaveFaults},
	{"NetworkFaults", hasStore, networkFaults},
	{"DeadHolder", hasStore, deadHolder},
	{"LivingHolder", hasStore, livingHolder},
	{"Reentry", hasStore, reentry},
	{"LockKeys", nil, lockKeys},
	{"ForceUnlock", has[driver.Breaker], forceUnlock},
}

// allFaults are all faults that can happen to a request.
var allFaults = []Fault{LostRequest, LostReply, SilentRequest, SilentReply, Late, Repeated}

func (f Fault) silent() bool { return f == SilentRequest || f == SilentReply }

// duel is two clients that want one lock. Requests of the client suffer, requests of the rival do
// not.
type duel struct {
	*crew
	client, rival *client
	name          string
	register      register
}

// duelHold is a hold in a duel.
type duelHold struct {
	*visit
	l     locks.TryLocker
	owner context.Context
}

// duels runs a duel for each element of what, six at a time. Each duel has a client of its own, and
// the same rival.
func duels[T any](s *suite, what []T, run func(d *duel, t T)) {
	w, rival := s.crew(), s.client()
	room := make(chan struct{}, 6)
	for _, t := range what {
		room <- struct{}{}
		d := &duel{crew: w, client: s.mortal(lease.WithReleaseTimeout(s.cfg.TTL)), rival: rival, name: s.name()}
		w.wg.Go(func() {
			defer func() { <-room }()
			d.client.event("%v", t)
			run(d, t)
		})
	}
	w.wait()
}

// breaks shows what the clients did to the lock of the duel.
func (d *duel) breaks(promise string, clients ...*client) {
	d.crew.breaksOf(d.name, promise, clients...)
}

func (d *duel) newHold(c *client) *duelHold {
	return &duelHold{
		visit: &visit{c: c, ends: c.ends.Load()}, l: c.lock(d.name),
		owner: locks.WithOwner(d.ctx, locks.NewOwner()),
	}
}

// tries makes the rival try to lock, until the time end or until the rival has the lock. Then it
// returns the rival's hold. Each round calls meanwhile.
func (d *duel) tries(end time.Time, meanwhile func()) *duelHold {
	for time.Now().Before(end) && d.ctx.Err() == nil {
		h := d.newHold(d.rival)
		// A context that ends would cost a connection for each try on some stores.
		if ok, _ := h.l.TryLockContext(h.owner); ok {
			d.begins(h)
			return h
		}
		meanwhile()
		d.pause(20 * time.Millisecond)
	}
	return nil
}

// begins is the first moment of a hold.
func (d *duel) begins(h *duelHold) {
	if leased, ok := h.l.(locks.Leased); ok {
		h.hold, _ = leased.Hold(h.owner)
	}
	d.relies(h)
}

// locks has c lock within the time limit. It returns nil if that fails.
func (d *duel) locks(c *client, limit time.Duration) (*duelHold, error) {
	h := d.newHold(c)
	ctx, cancel := context.WithTimeout(h.owner, limit)
	defer cancel()
	asked := time.Now()
	if err := h.l.LockContext(ctx); err != nil {
		if late := time.Since(asked) - limit; late > d.cfg.Timeout {
			d.breaks(fmt.Sprintf("LockContext returns when its context ends, not %v later", late), c)
		}
		return nil, err
	}
	d.begins(h)
	return h, nil
}

// takes has c lock, while nothing fails. It returns nil if that breaks the promise.
func (d *duel) takes(c *client) *duelHold {
	h, _, err := persist(c, func() (*duelHold, error) { return d.locks(c, d.cfg.Timeout) })
	if err != nil {
		d.breaks(fmt.Sprintf("LockContext succeeds on a healthy store (%v)", err), c)
	}
	return h
}

// waits makes the client wait for the lock. LockContext returns the error of a first request. On
// a busy machine the first request may exceed the store's own limit, though nothing fails. Then
// the client asks again, as in persist, if again says that its trouble has not begun.
func (d *duel) waits(again func() bool) (h *duelHold, err error) {
	for end := time.Now().Add(d.cfg.Timeout); ; {
		asked := time.Now()
		h, err = d.locks(d.client, 2*d.cfg.Timeout)
		now := time.Now()
		early := now.Sub(asked) < slow
		if err == nil || early || isFinal(err) || now.After(end) || d.ctx.Err() != nil || !again() {
			return h, err
		}
		d.client.event("LockContext: %v", err)
	}
}

// relies is a moment at which the holder relies on its hold. It says whether the hold is valid.
func (d *duel) relies(h *duelHold) bool {
	broken, other, err := d.register.write(h.visit, false)
	if broken != "" {
		clients := []*client{h.c}
		if other != nil {
			clients = append(clients, other)
		}
		d.breaks(broken, clients...)
	}
	return err == nil && broken == ""
}

// unlocks releases h. An unlock that fails is a loss.
func (d *duel) unlocks(h *duelHold) error {
	d.register.leave(h.visit)
	asked := time.Now()
	err := h.l.UnlockContext(h.owner)
	if err != nil && !errors.Is(err, locks.ErrLost) && d.ctx.Err() == nil {
		d.breaks(fmt.Sprintf("an unlock that fails is a loss (%v)", err), h.c)
	}
	if late := time.Since(asked); late > d.cfg.TTL+d.cfg.Timeout {
		d.breaks(fmt.Sprintf("an unlock returns by the release timeout, not after %v", late), h.c)
	}
	return err
}

// rivals makes the rival acquire the lock, which must succeed within a lease. The hold before may
// be nil.
func (d *duel) rivals(before *duelHold) *duelHold {
	h, _, err := persist(d.rival, func() (*duelHold, error) {
		return d.locks(d.rival, d.client.term(d.cfg.TTL)+d.cfg.Timeout)
	})
	if err != nil {
		d.breaks(fmt.Sprintf("a fault leaves no lock stuck for longer than a lease (%v)", err), d.client, d.rival)
		return nil
	}
	if before != nil && d.client.requests.asked(d.client.stored(d.name)) != "" {
		d.truth(nil)
	}
	return h
}

// truth compares what Lookup says of the client's last acquisition with its hold, or with none.
func (d *duel) truth(h *duelHold) {
	name := d.client.stored(d.name)
	reply, err := d.client.requests.Unwrap().Lookup(d.ctx, requestOf(name, d.client.requests.asked(name), minute))
	if err != nil || reply.Held == (h != nil) || h != nil && !d.relies(h) { // it may have lapsed meanwhile
		return
	}
	d.breaks(fmt.Sprintf("Lookup tells the truth after a fault, not %v", reply.Held), d.client, d.rival)
}

// calm ends all faults. The rival has the lock and keeps it. Then each of the two locks once more.
func (d *duel) calm(h *duelHold) {
	d.client.link.Heal()
	d.client.requests.Heal()
	if h == nil || d.ctx.Err() != nil {
		return
	}
	for range 2 {
		before := d.relies(h) // the session of a client on a busy machine may have ended
		late := d.client.requests.Deliver()
		owner := locks.WithOwner(d.ctx, locks.NewOwner())
		ok, err := d.client.lock(d.name).TryLockContext(owner)
		after := d.relies(h)
		switch {
		case ok && after:
			d.breaks("a held lock is given to no other client", d.rival, d.client)
		case late > 0 && before && !after && optional[driver.Session](d.rival.requests) == nil:
			d.breaks("late requests end no hold of another client", d.client, d.rival)
		case ok:
			_ = d.client.lock(d.name).UnlockContext(owner)
		case err != nil:
			d.client.event("TryLockContext: %v", err) // the network may not be back
		}
	}
	d.unlocks(h)
	// A network needs some tries until it is back.
	end := time.Now().Add(d.client.term(d.cfg.TTL) + 2*d.cfg.Timeout)
	for d.ctx.Err() == nil {
		again, err := d.locks(d.client, d.cfg.Timeout)
		if err == nil {
			d.unlocks(again)
			break
		}
		if time.Now().After(end) {
			d.breaks(fmt.Sprintf("a client locks again when everything is healed (%v)", err), d.client)
		}
		d.pause(20 * time.Millisecond)
	}
	if again := d.rivals(nil); again != nil {
		d.unlocks(again)
	}
}

// limit is how long a call may take that suffers f.
func (d *duel) limit(f Fault) time.Duration {
	if f.silent() {
		return 300 * time.Millisecond
	}
	return d.cfg.Timeout
}

// acquireFaults loses the request for a free lock, and also the question what became of it.
func acquireFaults(s *suite) {
	type trouble struct{ acquire, lookup Fault }
	var all []trouble
	for _, f := range allFaults {
		all = append(all, trouble{f, ""})
	}
	for _, f := range allFaults {
		all = append(all, trouble{LostReply, f})
	}
	duels(s, all, func(d *duel, t trouble) {
		r := d.client.requests
		r.Next(Acquire, t.acquire)
		r.Next(Enqueue, t.acquire)
		if t.lookup != "" {
			r.Next(Lookup, t.lookup)
		}
		limit := d.limit(t.acquire)
		if t.lookup.silent() {
			limit = d.limit(t.lookup)
		}
		h, err := d.locks(d.client, limit)
		if err != nil {
			d.client.event("LockContext: %v", err)
		}
		if h != nil {
			if d.relies(h) {
				d.truth(h)
			}
			owner := locks.WithOwner(d.ctx, locks.NewOwner())
			if ok, _ := d.rival.lock(d.name).TryLockContext(owner); ok {
				if d.relies(h) {
					d.breaks("a held lock is given to no other client", d.client, d.rival)
				}
				_ = d.rival.lock(d.name).UnlockContext(owner) // the hold lapsed, on a busy machine
			}
			d.unlocks(h)
		}
		r.Heal() // what is undone takes time else
		d.calm(d.rivals(h))
	})
}

// waitFaults loses what a waiter asks for.
func waitFaults(s *suite) {
	type trouble struct {
		op Op
		f  Fault
	}
	var all []trouble
	for _, op := range []Op{Acquire, Enqueue, Watch} {
		if op == Enqueue && !has[driver.Queue](s) {
			continue
		}
		for _, f := range allFaults {
			all = append(all, trouble{op, f})
		}
	}
	duels(s, all, func(d *duel, t trouble) {
		before := d.rivals(nil)
		if before == nil {
			return
		}
		r := d.client.requests
		// LockContext returns the error of a first request. The second request is a waiter's.
		var strikes int // with which request of this kind
		plan := func() {
			if t.op == Watch {
				strikes = r.Count(t.op) + 1
				r.Next(t.op, t.f)
			} else {
				strikes = r.Count(t.op) + 2
				r.Next(t.op, "", t.f)
			}
		}
		plan()
		var waited sync.WaitGroup
		var h *duelHold
		var err error
		waited.Go(func() {
			h, err = d.waits(func() bool {
				if r.Count(t.op) >= strikes {
					return false
				}
				if r.planned(t.op) { // else it was healed before it came
					r.Heal()
					plan()
				}
				return true
			})
		})
		for end := time.Now().Add(d.cfg.Poll); r.planned(t.op) && time.Now().Before(end) && d.ctx.Err() == nil; {
			s.pause(time.Millisecond) // a store may have no request of this kind
		}
		if t.f.silent() {
			s.pause(100 * time.Millisecond) // the request is on its way
			r.Heal()
		}
		d.unlocks(before)
		waited.Wait()
		r.Heal()
		if err != nil {
			d.breaks(fmt.Sprintf("a waiter gets the lock after a fault (%v)", err), d.client, d.rival)
			return
		}
		d.unlocks(h)
		d.calm(d.rivals(h))
	})
}

// renewFaults loses one renewal, or all.
func renewFaults(s *suite) {
	type trouble struct {
		f   Fault
		all bool
	}
	var all []trouble
	for _, f := range allFaults {
		all = append(all, trouble{f, false})
		if f != Repeated {
			all = append(all, trouble{f, true})
		}
	}
	duels(s, all, func(d *duel, t trouble) {
		h := d.takes(d.client)
		if h == nil {
			return
		}
		r := d.client.requests
		if t.all {
			r.Always(Renew, t.f)
		} else {
			r.Next(Renew, t.f)
		}
		// A hold whose renewals are lost ends. The holder knows that before the rival has the lock,
		// which begins checks.
		next := d.tries(time.Now().Add(3*d.client.term(d.cfg.TTL)/2), func() {
			if !t.all {
				d.relies(h)
			}
		})
		r.Heal()
		d.unlocks(h)
		if next == nil {
			next = d.rivals(h)
		}
		d.calm(next)
	})
}

// releaseFaults loses one release, or all.
func releaseFaults(s *suite) {
	type trouble struct {
		f   Fault
		all bool
	}
	var all []trouble
	for _, f := range allFaults {
		all = append(all, trouble{f, false})
	}
	all = append(all, trouble{LostRequest, true}, trouble{LostReply, true}, trouble{SilentReply, true})
	duels(s, all, func(d *duel, t trouble) {
		h := d.takes(d.client)
		if h == nil {
			return
		}
		r := d.client.requests
		if t.all {
			r.Always(Release, t.f)
		} else {
			r.Next(Release, t.f)
		}
		if d.unlocks(h) == nil {
			d.truth(nil)
		}
		if optional[driver.Session](r) != nil {
			r.Heal() // its session would keep the lock
		}
		next := d.rivals(nil)
		r.Heal()
		d.calm(next)
	})
}

// undoFaults makes the caller give up while its request is on its way, and loses the request that
// undoes it.
func undoFaults(s *suite) {
	type trouble struct{ acquire, release Fault }
	var all []trouble
	for _, f := range allFaults {
		all = append(all, trouble{SilentReply, f})
	}
	for _, f := range []Fault{SilentRequest, Late} {
		all = append(all, trouble{f, ""})
	}
	duels(s, all, func(d *duel, t trouble) {
		r := d.client.requests
		r.Next(Acquire, t.acquire)
		r.Next(Enqueue, t.acquire)
		r.Next(Lookup, t.acquire)
		if t.release != "" {
			r.Next(Release, t.release)
		}
		h, _ := d.locks(d.client, 100*time.Millisecond)
		if h != nil {
			d.unlocks(h)
		}
		if optional[driver.Session](r) != nil {
			r.Heal() // its session would keep the lock
		}
		d.calm(d.rivals(nil))
	})
}

// leaveFaults makes a waiter give up, and loses the request that gives up its place.
func leaveFaults(s *suite) {
	duels(s, allFaults, func(d *duel, f Fault) {
		before := d.rivals(nil)
		if before == nil {
			return
		}
		r := d.client.requests
		r.Next(Leave, f)
		if h, _ := d.locks(d.client, 300*time.Millisecond); h != nil {
			d.breaks("a held lock is given to no other client", d.client, d.rival)
		}
		d.unlocks(before)
		d.calm(d.rivals(nil))
	})
}

// networkFaults does to connections what networks do, at each stage of a hold.
func networkFaults(s *suite) {
	if !s.ready().connects() {
		s.Log("the network cannot fail: the client does not connect through its Link")
		return
	}
	var all []networkFault
	for _, what := range []string{"cut", "replies", "requests", "delay", "refuse", "reset"} {
		for _, when := range []string{"acquire", "wait", "hold", "late in the hold", "release"} {
			all = append(all, networkFault{what, when})
		}
	}
	duels(s, all, network)
}

// networkFault is a fault and the moment at which it happens.
type networkFault struct{ what, when string }

func network(d *duel, t networkFault) {
	link, term := d.client.link, d.client.term(d.cfg.TTL)
	begin := map[string]func(){"cut": link.Cut, "replies": link.CutReplies, "requests": link.CutRequests,
		"delay":  func() { link.Delay(term / 10) },
		"refuse": func() { d.client.end(link.Refuse) }, "reset": func() { d.client.end(link.Reset) }}[t.what]
	heal := func() { d.client.end(link.Heal) }
	d.client.connects()
	switch t.when {
	case "acquire":
		begin()
		h, _ := d.locks(d.client, 300*time.Millisecond)
		if h != nil {
			d.unlocks(h)
		}
		heal()
		d.calm(d.rivals(nil))
		return
	case "wait":
		before := d.rivals(nil)
		if before == nil {
			return
		}
		var waited sync.WaitGroup
		var h *duelHold
		var err error
		// A waiter asks, and watches.
		asked := func() int64 { return int64(d.client.requests.Count(Acquire, Enqueue, Watch)) }
		var n atomic.Int64
		var begun atomic.Bool
		n.Store(asked())
		waited.Go(func() {
			h, err = d.waits(func() bool { n.Store(asked()); return !begun.Load() })
		})
		for end := time.Now().Add(d.cfg.Timeout); asked() < n.Load()+2 && time.Now().Before(end); {
			d.pause(time.Millisecond)
		}
		begun.Store(true)
		begin()
		d.pause(100 * time.Millisecond)
		heal()
		d.unlocks(before)
		waited.Wait()
		if h == nil {
			d.breaks(fmt.Sprintf("a waiter gets the lock when the network is back (%v)", err), d.client, d.rival)
			return
		}
		d.unlocks(h)
		d.calm(d.rivals(nil))
		return
	}
	h := d.takes(d.client)
	if h == nil {
		return
	}
	if t.when == "late in the hold" {
		d.pause(term / 3)
	}
	begin()
	if t.when == "release" {
		d.unlocks(h)
		heal()
		d.calm(d.rivals(nil))
		return
	}
	next := d.tries(time.Now().Add(5*term/4), func() {}) // begins compares the holds
	heal()
	d.unlocks(h)
	if next == nil {
		next = d.rivals(nil)
	}
	d.calm(next)
}

// deadHolder has a client die that holds a lock. Its hold has ended when another client has one.
func deadHolder(s *suite) {
	d := &duel{crew: s.crew(), rival: s.client(), client: s.mortal(), name: s.name()}
	if !d.client.canDie() {
		return
	}
	since := driver.Now()
	h := d.takes(d.client)
	if h == nil {
		d.wait()
	}
	term := d.client.term(s.cfg.TTL)
	d.client.die()
	if optional[driver.Session](d.client.requests) != nil {
		since = since.Add(-term / 3) // the session's last sign of life may be before the hold
	}
	next := d.rivals(nil)
	if early := term - driver.Now().Sub(since); next != nil && early > 0 {
		d.breaks(fmt.Sprintf("a dead holder keeps the lock for its lease, not %v less", early), d.client, d.rival)
	}
	if h.hold != nil && h.hold.Err() == nil {
		d.breaks("a hold has ended when another client has the lock", d.client, d.rival)
	}
	if next != nil {
		d.unlocks(next)
	}
	d.wait()
}

// livingHolder makes a client keep its lock for three leases, while another client waits all the
// time.
func livingHolder(s *suite) {
	d := &duel{crew: s.crew(), rival: s.client(), client: s.mortal(), name: s.name()}
	h := d.takes(d.client)
	if h == nil {
		d.wait()
	}
	term := d.client.term(s.cfg.TTL)
	if next := d.tries(time.Now().Add(3*term), func() { d.relies(h) }); next != nil {
		// On a machine that is too busy the hold may end. The holder knows it then.
		s.Log("the hold lapsed, on a busy machine")
		d.unlocks(next)
	}
	d.unlocks(h)
	if next := d.rivals(nil); next != nil {
		d.unlocks(next)
	}
	d.wait()
}

// reentry asks nothing of the store.
func reentry(s *suite) {
	c, name := s.client(), s.name()
	l, owner := c.lock(name), s.someone()
	must := func(what string, err error) {
		s.Helper()
		if err != nil {
			s.broken(fmt.Sprintf("%s succeeds on a healthy store (%v)", what, err), c)
		}
	}
	must("LockContext", l.LockContext(owner))
	asked := c.requests.Count(Acquire, Enqueue, Lookup, Release)
	err := l.LockContext(owner)
	if errors.Is(err, locks.ErrDeadlock) {
		must("UnlockContext", l.UnlockContext(owner))
		return // a lock without re-entry
	}
	must("re-entry", err)
	ok, err := l.TryLockContext(owner)
	must("re-entry by TryLockContext", err)
	if !ok {
		s.broken("TryLockContext by the holder is true", c)
	}
	must("UnlockContext", l.UnlockContext(owner))
	must("UnlockContext", l.UnlockContext(owner))
	if n := c.requests.Count(Acquire, Enqueue, Lookup, Release) - asked; n > 0 {
		s.broken(fmt.Sprintf("re-entry asks nothing of the store, not %d times", n), c)
	}
	must("UnlockContext", l.UnlockContext(owner))
}

// lockKeys compares the names by which locks.Multi orders locks. The text of the store behind a
// name may differ: each client here may reach the store by an address of its own.
func lockKeys(s *suite) {
	a, b, name, other := s.client(), s.client(), s.name(), s.name()
	order := func(c *client, name string) (string, bool) {
		l, ok := c.lock(name).(interface{ LockKey() string })
		if !ok {
			return "", false
		}
		key, _, _ := strings.Cut(l.LockKey(), "\x00")
		return key, key != ""
	}
	key, ok := order(a, name)
	if !ok {
		return // the lock has no order
	}
	if again, _ := order(b, name); again != key {
		s.broken(fmt.Sprintf("a lock has one key for all clients, not %q and %q", key, again), a, b)
	}
	if another, _ := order(b, other); another == key {
		s.broken(fmt.Sprintf("two locks have two keys, not %q each", key), a, b)
	}
}

// forceUnlock makes a client free the lock of another client.
func forceUnlock(s *suite) {
	d := &duel{crew: s.crew(), rival: s.client(), client: s.mortal(), name: s.name()}
	breaker, ok := d.rival.lock(d.name).(interface {
		ForceUnlock(ctx context.Context) (bool, error)
	})
	if !ok {
		s.Log("the lock has no ForceUnlock")
		return
	}
	var h *duelHold
	for tries := 1; ; tries++ {
		if h = d.takes(d.client); h == nil {
			d.wait()
		}
		d.register.leave(h.visit) // it may rely on the lock no more
		held, err := breaker.ForceUnlock(s.ctx)
		if errors.Is(err, errors.ErrUnsupported) {
			d.unlocks(h)
			return
		}
		if err == nil && held {
			break
		}
		// On a busy machine the hold can have lapsed before.
		if err != nil || h.hold == nil || h.hold.Err() == nil || tries == 5 {
			s.broken(fmt.Sprintf("ForceUnlock frees a held lock (%v, %v)", held, err), d.client, d.rival)
		}
		d.unlocks(h)
	}
	next := d.rivals(nil)
	if h.hold != nil {
		select {
		case <-h.hold.Lost():
		case <-time.After(d.client.term(s.cfg.TTL) + s.cfg.Timeout):
			s.broken("a holder learns of a forced unlock", d.client, d.rival)
		}
	}
	if err := h.l.UnlockContext(h.owner); !errors.Is(err, locks.ErrLost) {
		s.broken(fmt.Sprintf("an unlock after a forced one is a loss (%v)", err), d.client, d.rival)
	}
	if next != nil {
		if !d.relies(next) {
			d.breaks("the former holder's unlock ends no hold of another client", d.client, d.rival)
		}
		d.unlocks(next)
	}
	d.wait()
}
