package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ledger has the holds that the store must have, by all requests that came to the store and all its
// answers. It judges the answers.
//
// A hold is sure from its answer on. It is sure until its lease ends, counted from when the request
// was sent, or until a request to end it is sent. It is possible from the request on: until its
// lease ends, counted from the answer, or until the answer to its release.
//
// A store that is exact decides in no time, wakes its waiters at once, and never fails by itself.
type ledger struct {
	life *life

	mu       sync.Mutex
	requests int
	locks    map[string]*account // by Requests.key
	murky    time.Time           // until then the server may have something else than it promised
}

// account is one lock.
type account struct {
	entries map[string]*entry
	token   uint64
	many    int // entries, before old entries are dropped
	places  int // taken so far
	forces  int // requests to break the lock that are under way
	forced  int // how many of them have ended
}

// entry is one acquisition.
type entry struct {
	p        *process
	a        *account
	name     string
	by       string // the acquisition
	shared   bool
	many     int64
	held     bool
	from     time.Time // it has surely held since then, if it surely does
	sure     time.Time // it holds surely until then
	most     time.Time // it does not hold any more from then on
	token    uint64    // or 0 if the server may have another one
	doubt    bool      // the outcome of a request is unknown
	denied   bool      // the first release has found no hold
	overdue  bool      // the request that took it came when the client no longer counted with it
	lost     bool      // its user has given it back, and knows that it was lost
	releases int       // answered
	released bool      // a release has ended it: a store that remembers that may say it again
	least    time.Duration
	longest  time.Duration
	busy     int       // requests under way
	serial   int       // of the last request
	place    int       // in the queue, counted from 1; 0: none
	vague    bool      // the place may have ended meanwhile
	asked    time.Time // the last time for the lock
	listens  bool      // the last refusal says that its watch had begun
	queued   time.Time // the last time with its place
	watches  int
	watching time.Time
}

func newLedger(l *life) *ledger { return &ledger{life: l, locks: make(map[string]*account)} }

// never is after each life.
var never = time.Duration(math.MaxInt64 / 4)

// blur is by how much times may differ that should be equal.
const blur = 2 * time.Millisecond

// placeLives is how long a place of an exact store's queue lasts at least and at most without a
// request.
const (
	placeLives = 4 * time.Second
	placeGone  = 6 * time.Second
)

// key is under what the ledger has the lock called name of r's server.
func (r *Requests) key(name string) string {
	if r.server == 0 {
		return name
	}
	return fmt.Sprintf("%s on server %d", name, r.server)
}

func (b *ledger) account(key string) *account {
	a := b.locks[key]
	if a == nil {
		a = &account{entries: make(map[string]*entry)}
		b.locks[key] = a
	}
	return a
}

func (b *ledger) entry(r *Requests, id driver.HoldID) *entry {
	a := b.account(r.key(id.Name))
	e := a.entries[id.Acquisition]
	if e == nil {
		if now := time.Now(); len(a.entries) > a.many {
			keep := max(time.Minute, 4*b.life.ttl) // requests may come two leases late
			for acquisition, e := range a.entries {
				if e.watches == 0 && now.Sub(e.asked) > keep && now.After(e.most.Add(keep)) {
					delete(a.entries, acquisition)
				}
			}
			a.many = max(32, 2*len(a.entries))
		}
		e = &entry{p: r.port, a: a, name: id.Name, by: id.Acquisition, shared: r.shares, many: 1}
		a.entries[id.Acquisition] = e
	}
	return e
}

func (b *ledger) exact() bool { return b.life.cfg.exact && time.Now().After(b.murky) }

func (b *ledger) breaks(rule string, text string, es ...*entry) {
	var who []*process
	for _, e := range es {
		if e != nil {
			who = append(who, e.p)
		}
	}
	b.life.breaks("the store: "+rule, text, who...)
}

// begins counts a request. In no ledger it returns nil.
func (b *ledger) begins() (at time.Time) {
	b.requests++
	return time.Now()
}

// asks begins a request about e. The result over ends the request, and says whether another request
// was under way with it, so that their order is unknown. A request to break the lock concerns
// entries too that are made while it is under way.
func (e *entry) asks() (over func() bool) {
	e.busy++
	e.serial++
	serial, forced := e.serial, e.a.forced
	return func() bool {
		e.busy--
		return e.busy > 0 || e.serial != serial || e.a.forces > 0 || e.a.forced != forced
	}
}

func (e *entry) surely(now time.Time) bool   { return e.held && now.Before(e.sure) }
func (e *entry) possibly(now time.Time) bool { return now.Before(e.most) }

// acquire judges an answer to a request for the lock.
func (b *ledger) acquire(ctx context.Context, r *Requests, req driver.Request, waits bool,
	call func() (driver.Reply, error)) (driver.Reply, error) {
	if b == nil {
		return call()
	}
	session := optional[driver.Session](r) != nil
	b.mu.Lock()
	began := b.begins()
	e := b.entry(r, req.HoldID)
	if gone := began.Sub(e.queued); e.place > 0 && gone > placeLives {
		e.vague = gone < placeGone
		if waits || !e.vague {
			e.place = 0
		}
	}
	if e.asked = began; waits {
		e.queued = began
	}
	permits, size := req.Weigh()
	e.many = permits
	wasSure := e.surely(began)
	over := e.asks()
	a := b.account(r.key(req.Name))
	before, most := a.token, e.most
	e.most = began.Add(never) // the store may decide at any time
	b.mu.Unlock()
	reply, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	mixed := over() && !began.Equal(now)
	e.doubt = e.doubt || mixed
	if !mixed && e.most.Equal(began.Add(never)) {
		e.most = most
	}
	murky := now.Before(b.murky)
	if err != nil {
		switch {
		case errors.Is(err, locks.ErrForeign), errors.Is(err, driver.ErrRefused):
			if b.exact() && began.Equal(now) && !errors.Is(err, locks.ErrForeign) {
				b.breaks("no request fails by itself", err.Error(), e)
			}
		default:
			e.doubt = true
			e.most = now.Add(never)
		}
		return reply, err
	}
	if reply.Held {
		var taken int64
		for other, x := range a.entries {
			if x == e || !x.surely(now) || x.from.After(began) || murky {
				continue
			}
			if e.shared && x.shared {
				continue
			}
			if taken += x.many; size > 1 && taken+permits <= size {
				continue
			}
			b.breaks("it gives a lock once", fmt.Sprintf("%q: %s gets it while %s has it for %v", req.Name,
				tail(req.Acquisition), tail(other), x.sure.Sub(now)), x, e)
		}
		switch {
		case wasSure && e.surely(now) && e.token > 0 && (reply.Token < e.token || b.life.cfg.exact && reply.Token != e.token):
			// Otherwise a repeated request may take another token, as the scripts of Redis do.
			b.breaks("a hold keeps its token", fmt.Sprintf("%d, before %d", reply.Token, e.token), e)
		case !mixed && b.exact() && !e.held && reply.Token != 0 && reply.Token <= before && size == 1 && !e.shared && !murky && e.token != reply.Token:
			b.breaks("tokens grow", fmt.Sprintf("%d comes after %d", reply.Token, before), e)
		}
		for _, x := range a.entries {
			if x != e && !e.held && reply.Token != 0 && reply.Token == x.token && !murky {
				b.breaks("each hold has a token of its own", fmt.Sprint(reply.Token), x, e)
			}
		}
		if b.life.cfg.FIFO && !e.held && !e.vague && !murky && b.life.cfg.exact {
			for other, x := range a.entries {
				if x != e && x.place > 0 && !x.vague && (e.place == 0 || x.place < e.place) && now.Sub(x.queued) < placeLives {
					b.breaks("locks go in order of arrival", fmt.Sprintf("%s comes before %s", tail(req.Acquisition), tail(other)), x, e)
				}
			}
		}
		if !e.surely(now) {
			e.from = now
		}
		if e.place, e.vague = 0, false; e.held && e.possibly(now) {
			e.least, e.longest = min(e.least, req.TTL), max(e.longest, req.TTL)
		} else {
			e.least, e.longest = req.TTL, req.TTL
		}
		sent, simulated := ctx.Value(sentKey{}).(time.Time)
		e.overdue = simulated && now.Sub(sent) > req.TTL-blur
		if r.port.settled && !e.overdue && !session && !murky {
			b.breaks(closedFree, fmt.Sprintf("%q is given to %s", req.Name, tail(req.Acquisition)), e)
		}
		e.held, e.token = true, reply.Token
		a.token = max(a.token, reply.Token)
		b.prolonged(e, began, now, req.TTL, session)
		if mixed {
			e.sure = time.Time{}
		}
		if sent, left := ctx.Value(aloneKey{}).(time.Time); left {
			b.orphan(r, req, sent, now, false)
		} else if left, ok := ctx.Value(leftKey{}).(*atomic.Int64); ok && left.Load() > 0 && simulated {
			b.orphan(r, req, sent, now, true)
		}
		return reply, nil
	}
	if wasSure && e.surely(now) && !murky {
		b.breaks("a holder that asks again has the lock", fmt.Sprintf("%q refused to %s", req.Name, tail(req.Acquisition)), e)
	}
	if waits && e.place == 0 && optional[driver.Queue](r) != nil {
		a.places++
		e.place = a.places
		e.vague = e.vague || r.port.ctx.Err() != nil || r.port.closing.Load() > 0
	}
	if e.listens = reply.Listening; b.exact() && began.Equal(now) {
		b.refused(a, e, req, reply, now, session)
		if reply.Wait > 0 && reply.Wait <= 2*b.life.ttl && e.watches > 0 {
			b.asksAgain(e, now, reply.Wait, "a waiter asks when the lease of the holder ends")
		}
	}
	return reply, nil
}

// asksAgain checks that the waiter of e asks for the lock soon after the time wait.
func (b *ledger) asksAgain(e *entry, from time.Time, wait time.Duration, rule string) {
	b.life.messages.Go(func() {
		time.Sleep(wait + wakes)
		b.mu.Lock()
		asleep := e.watches > 0 && !e.asked.After(from) && b.exact()
		b.mu.Unlock()
		if asleep && e.p.healthy(from) && !b.life.ended() && e.p.ctx.Err() == nil && !e.p.isRaw() {
			b.breaks(rule, fmt.Sprintf("%q: it was refused at %v for %v", e.name, from.Sub(b.life.began), wait), e)
		}
	})
}

// tokenOf returns the token of the hold of id, or 0 if it is unknown.
func (b *ledger) tokenOf(r *Requests, id driver.HoldID) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.account(r.key(id.Name)).entries[id.Acquisition]; e != nil {
		return e.token
	}
	return 0
}

// refused judges the refusal of an exact store.
func (b *ledger) refused(a *account, e *entry, req driver.Request, reply driver.Reply, now time.Time, session bool) {
	permits, size := req.Weigh()
	var taken int64
	soonest, latest := never, time.Duration(0) // of the ends, of which one may be right now
	for _, x := range a.entries {
		if x == e {
			continue
		}
		if x.most.Add(blur).After(now) && !(e.shared && x.shared) {
			taken += x.many
			left := x.most.Sub(now)
			soonest, latest = min(soonest, left), max(latest, left)
			if x.doubt {
				taken = size
				soonest, latest = never, never
			}
		}
		if x.place > 0 && now.Sub(x.queued) < placeGone && (e.place == 0 || e.vague || x.vague || x.place < e.place) {
			return // a waiter may be first
		}
	}
	if taken <= size-permits {
		b.breaks("it gives a free lock", fmt.Sprintf("%q is refused to %s", req.Name, tail(req.Acquisition)), e)
	}
	if !session && latest < never && reply.Wait > 0 && !e.shared {
		if reply.Wait > latest+blur || reply.Wait < soonest-blur {
			b.breaks("it tells for how long a lock is held", fmt.Sprintf("%v, but the ends are in %v to %v", reply.Wait, soonest, latest), e)
		}
	}
	if reply.Listening && e.watches == 0 {
		b.breaks("it listens with a watch only", tail(req.Acquisition), e)
	}
}

// prolonged notes that a hold lasts for d.
func (b *ledger) prolonged(e *entry, began, now time.Time, d time.Duration, session bool) {
	switch {
	case session && (e.p.below.Load() || e.p.ctx.Err() != nil || e.p.closing.Load() > 0):
		e.sure, e.most = time.Time{}, now.Add(never) // it lasts as long as the session
	case session:
		e.sure, e.most = now.Add(never), now.Add(never)
	case began.Equal(now):
		e.sure, e.most = now.Add(d), now.Add(d)
	default:
		// A lapsed lock may stay in the store until another client takes it.
		if e.sure, e.most = began.Add(e.least), now.Add(never); e.doubt { // a request may come yet
			e.sure = time.Time{}
		}
	}
}

// orphan checks that r's client soon gives the lock back: a request that the client had given up
// has acquired it, or whose user has left. In the second case, unanswered is true: the client may
// still wait for the answer, and does not rely on it.
func (b *ledger) orphan(r *Requests, req driver.Request, sent, gave time.Time, unanswered bool) {
	p, l := r.port, b.life
	within := req.TTL/10 + 200*time.Millisecond // the pause of a sweep, and a request
	if unanswered {
		within += 50 * time.Millisecond // in which the answer may come
	}
	p.mu.Lock()
	asks := optional[driver.Queue](r) != nil && !p.left[req.Acquisition] // it will ask for the same again
	p.mu.Unlock()
	if asks || gave.Add(within).After(sent.Add(req.TTL*8/10)) || p.isRaw() {
		return
	}
	l.messages.Go(func() {
		time.Sleep(within)
		p.mu.Lock()
		touched, pending := p.touched[req.Acquisition], p.pending[req.Acquisition]
		p.mu.Unlock()
		standing := p.runs() <= within || slices.ContainsFunc(l.plan.during(l.now()-within, l.now()), func(t trouble) bool {
			return (t.kind == dies || t.kind == closes) && t.who == p.slot &&
				t.at <= l.now() && t.until >= l.now()-within
		})
		if touched.Before(gave) && (unanswered || pending == 0) && !standing && !p.dead.Load() && p.closing.Load() == 0 && !l.ended() && p.ctx.Err() == nil {
			l.breaks("what a late request takes is given back", fmt.Sprintf("%q by %s, which it got at %v and has not given back at %v",
				req.Name, tail(req.Acquisition), gave.Sub(l.began), l.now()), p)
		}
	})
}

// loses notes that the user of v has given it back, and has learned that it was lost.
func (b *ledger) loses(v *possession) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.possessed(v); e != nil {
		e.lost = true
		b.givesBack(e)
	}
}

// givesBack checks that a client soon gives back a lost hold that the store still has, or that a
// late request has just prolonged. b.mu is held.
func (b *ledger) givesBack(e *entry) {
	began := time.Now()
	if !e.lost || !e.surely(began) || !b.exact() || e.p.overSessions() || e.p.isRaw() {
		return
	}
	within := b.life.ttl*4/10 + 200*time.Millisecond // a tenth of the longest sweep, and a request
	b.life.messages.Go(func() {
		time.Sleep(within)
		b.mu.Lock()
		kept := e.surely(time.Now()) && b.exact()
		b.mu.Unlock()
		if kept && e.p.idles(e.by, began, within) {
			b.breaks("a lost hold is given back", fmt.Sprintf("%q by %s, which the store had at %v and has for %v more",
				e.name, tail(e.by), began.Sub(b.life.began), time.Until(e.sure)), e)
		}
	})
}

// renewsAgain checks that a client soon repeats a renewal that has just failed, for the holds that
// are not renewed.
func (b *ledger) renewsAgain(r *Requests, ids []driver.HoldID, renewed []bool, d time.Duration) {
	if b == nil || r.port.isRaw() || r.port.overSessions() || d != b.life.ttl { // it is no extension
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	began := time.Now()
	within := d/30 + 50*time.Millisecond
	for i, id := range ids {
		if i < len(renewed) && renewed[i] {
			continue
		}
		e := b.entry(r, id)
		v := b.life.possession(e)
		if v == nil || !b.exact() || !e.surely(began.Add(within)) {
			continue
		}
		b.life.messages.Go(func() {
			time.Sleep(within)
			if v.valid() && !v.extended.Load() && v.gaveBack.Load() == 0 && e.p.idles(e.by, began, within) {
				b.breaks("a renewal that fails is repeated soon", fmt.Sprintf("%s: no request since %v", v, began.Sub(b.life.began)), e)
			}
		})
	}
}

// lookup judges an answer of Lookup.
func (b *ledger) lookup(r *Requests, req driver.Request, call func() (driver.Reply, error)) (driver.Reply, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	began := b.begins()
	e := b.entry(r, req.HoldID)
	sure := e.surely(began)
	b.mu.Unlock()
	reply, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	switch {
	case now.Before(b.murky):
	case err != nil:
	case reply.Held && !e.possibly(began.Add(-blur)):
		b.breaks("Lookup finds holds only", tail(req.Acquisition), e)
	case !reply.Held && sure && e.surely(now):
		b.breaks("Lookup finds each hold", tail(req.Acquisition), e)
	case reply.Held && e.held && e.surely(now) && e.token > 0 && reply.Token != e.token:
		b.breaks("Lookup tells the token of the hold", fmt.Sprintf("%d, not %d", reply.Token, e.token), e)
	case reply.Held && !e.held:
		e.held, e.from, e.token = true, now, reply.Token
	}
	return reply, err
}

// renew judges an answer of Renew.
func (b *ledger) renew(r *Requests, ids []driver.HoldID, d time.Duration, call func() ([]bool, error)) ([]bool, error) {
	if b == nil {
		return call()
	}
	session := optional[driver.Session](r) != nil
	b.mu.Lock()
	began := b.begins()
	sure := make([]bool, len(ids))
	over := make([]func() bool, len(ids))
	for i, id := range ids {
		e := b.entry(r, id)
		over[i] = e.asks()
		sure[i] = e.surely(began)
		e.least, e.longest = min(e.least, d), max(e.longest, d)
		if !session && e.surely(began.Add(d)) { // it may end sooner from now on
			e.sure = began.Add(d)
		}
	}
	b.mu.Unlock()
	ok, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	mixed := make([]bool, len(ids))
	for i := range ids {
		mixed[i] = over[i]() && !began.Equal(now)
		e := b.entry(r, ids[i])
		e.doubt = e.doubt || mixed[i]
	}
	murky := now.Before(b.murky)
	if err != nil && b.exact() && began.Equal(now) && !errors.Is(err, ErrFault) {
		b.breaks("no request fails by itself", err.Error(), b.entry(r, ids[0]))
	}
	for i, id := range ids {
		e := b.entry(r, id)
		switch {
		case i >= len(ok) || err != nil && !ok[i]:
			e.doubt = e.doubt || e.held
			if e.doubt && !session {
				e.most = now.Add(never)
			}
		case ok[i] && !e.possibly(began.Add(-blur)) && !murky:
			b.breaks("Renew prolongs holds only", tail(id.Acquisition), e)
		case !ok[i] && sure[i] && e.surely(now) && !murky:
			b.breaks("Renew finds each hold", fmt.Sprintf("%q by %s, which has it for %v", id.Name, tail(id.Acquisition), e.sure.Sub(now)), e)
		case ok[i]:
			if !session {
				if b.prolonged(e, began, now, d, session); mixed[i] {
					e.sure = time.Time{}
				}
				b.givesBack(e)
			}
		case !e.doubt:
			e.held, e.sure, e.most = false, time.Time{}, now
		}
	}
	return ok, err
}

// release judges an answer of Release.
func (b *ledger) release(r *Requests, id driver.HoldID, call func() (driver.Released, error)) (driver.Released, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	began := b.begins()
	e := b.entry(r, id)
	sure := e.surely(began)
	until := e.sure
	e.sure = time.Time{}
	awaited := b.awaited(r, id.Name)
	over := e.asks()
	b.mu.Unlock()
	reply, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if over() {
		e.sure, sure = time.Time{}, false
		e.doubt = e.doubt || !began.Equal(now)
	}
	switch {
	case now.Before(b.murky):
		e.doubt = e.doubt || err != nil
	case errors.Is(err, driver.ErrRefused) && sure && !e.doubt:
		e.sure = until // it still holds
		if b.exact() && began.Equal(now) {
			b.breaks("no request fails by itself", err.Error(), e)
		}
	case err != nil && b.exact() && began.Equal(now):
		b.breaks("no request fails by itself", err.Error(), e)
	case err != nil:
		e.doubt = true
	case reply.Held && !e.released && !e.possibly(began.Add(-blur)):
		b.breaks("Release ends holds only", tail(id.Acquisition), e)
	case !reply.Held && sure && now.Before(until) && e.held && b.exact():
		b.breaks("Release says that it has ended the hold", tail(id.Acquisition), e)
	case reply.Held && !reply.Awaited && awaited && b.exact() && !b.life.cfg.FIFO:
		b.breaks("Release says that others wait", tail(id.Acquisition), e)
	}
	if err == nil {
		e.held = false
		e.releases++
		e.denied = !reply.Held && e.releases == 1
		if e.most = now; e.doubt && e.p.below.Load() {
			e.most = now.Add(never)
		}
		if reply.Held {
			e.released = true
			b.freed(r.key(id.Name), now)
		}
	}
	return reply, err
}

// releaseAll judges an answer of ReleaseAll.
func (b *ledger) releaseAll(r *Requests, ids []driver.HoldID, call func() ([]bool, error)) ([]bool, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	b.begins()
	for _, id := range ids {
		b.entry(r, id).sure = time.Time{}
	}
	b.mu.Unlock()
	done, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for i, id := range ids {
		e := b.entry(r, id)
		if i < len(done) && done[i] {
			e.held = false
			if e.most = now; e.doubt && e.p.below.Load() {
				e.most = now.Add(never)
			}
		} else {
			e.doubt = true
		}
	}
	return done, err
}

// awaited says that another process surely waits for the lock.
func (b *ledger) awaited(r *Requests, name string) bool {
	for _, x := range b.account(r.key(name)).entries {
		if x.p != r.port && x.watches > 0 {
			return true
		}
	}
	return false
}

// leave judges what follows when a place is given up.
func (b *ledger) leave(r *Requests, id driver.HoldID, call func() error) error {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	b.begins()
	e := b.entry(r, id)
	first := e.place
	for _, x := range b.account(r.key(id.Name)).entries {
		if x.place > 0 && x.place < first {
			first = 0
		}
	}
	e.place = 0
	b.mu.Unlock()
	err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if err == nil && first > 0 && b.isFree(r.key(id.Name), now) {
		b.freed(r.key(id.Name), now)
	}
	return err
}

func (b *ledger) isFree(key string, now time.Time) bool {
	for _, x := range b.account(key).entries {
		if x.possibly(now) {
			return false
		}
	}
	return true
}

// force judges an answer of Break.
func (b *ledger) force(r *Requests, name string, call func() (bool, error)) (bool, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	began := b.begins()
	a := b.account(r.key(name))
	sure, possible := false, false
	var held, owners []*entry // the entries that may have the lock, and the entries that surely have it
	var over []func() bool
	for _, x := range a.entries {
		over = append(over, x.asks())
		if x.surely(began) {
			sure, owners = true, append(owners, x)
		}
		possible = possible || x.possibly(began)
		if x.possibly(began) {
			held = append(held, x)
		}
		x.sure = time.Time{}
	}
	a.forces++
	b.life.mu.Lock()
	b.life.forced[name] = began.Add(b.life.ttl) // the answer may come late
	b.life.mu.Unlock()
	b.mu.Unlock()
	broken, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	a.forces--
	mixed := false // with other requests, so that their order is unknown
	for _, end := range over {
		mixed = end() || mixed
	}
	a.forced++
	b.life.mu.Lock()
	b.life.forced[name] = now
	b.life.mu.Unlock()
	if err != nil || now.Before(b.murky) {
		for _, x := range held {
			x.doubt = true
		}
		return broken, err
	}
	for _, x := range a.entries { // a request that came later may have been decided sooner
		possible = possible || !x.asked.Before(began)
	}
	if broken && !possible || !broken && sure && !mixed && b.exact() {
		b.breaks("Break says whether the lock was held", fmt.Sprint(broken), held...)
	}
	for _, x := range owners { // an earlier holder may have learned of its loss before
		if x.held && x.p != r.port && broken && b.exact() && optional[driver.LossNotifier](r) != nil {
			b.life.messages.Go(func() { x.tells(name, now) })
		}
	}
	for _, x := range held {
		x.held = false
		if !x.doubt {
			x.most = now
		}
	}
	if broken {
		b.freed(r.key(name), now)
	}
	return broken, err
}

// tells looks whether the holder has learned of its loss, of which the store can tell.
func (e *entry) tells(name string, broken time.Time) {
	time.Sleep(wakes)
	p := e.p
	p.mu.Lock()
	heard := !p.causes[name].Before(broken)
	p.mu.Unlock()
	if !heard && p.healthy(broken) && !p.life.ended() && p.ctx.Err() == nil {
		p.life.ledger.breaks("it tells holders of their losses", fmt.Sprintf("%q was freed by force %v ago", name, wakes), e)
	}
}

// inspect judges an answer of Inspect.
func (b *ledger) inspect(r *Requests, name string, call func() (driver.State, error)) (driver.State, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	began := b.begins()
	b.mu.Unlock()
	state, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if err != nil || !b.exact() || !began.Equal(now) {
		return state, err
	}
	wrong := func(what string, e *entry) { b.breaks("Inspect tells what is there", what, e) }
	places := 0
	shared := false
	found := func(acquisition string) *driver.Claim {
		for i := range state.Holders {
			if state.Holders[i].Acquisition == acquisition {
				return &state.Holders[i]
			}
		}
		return nil
	}
	for acquisition, x := range b.account(r.key(name)).entries {
		claim := found(acquisition)
		if x.place > 0 && !x.vague && now.Sub(x.queued) < placeLives {
			places++
			if !slices.ContainsFunc(state.Waiters, func(w driver.Claim) bool { return w.Acquisition == acquisition }) {
				wrong("a waiter is missing: "+tail(acquisition), x)
			}
		}
		switch {
		case x.surely(now) && claim == nil:
			wrong("the holder is missing: "+tail(acquisition), x)
		case claim == nil:
		case !x.possibly(now):
			wrong("it is no holder: "+tail(acquisition), x)
		case x.surely(now) && x.token > 0 && claim.Token != x.token:
			wrong(fmt.Sprintf("the token is %d, not %d", claim.Token, x.token), x)
		case x.sure.Equal(x.most) && (claim.Left-x.most.Sub(now)).Abs() > blur && x.most.Sub(now) < time.Hour:
			wrong(fmt.Sprintf("%v are left, not %v", claim.Left, x.most.Sub(now)), x)
		case x.many > 1 && claim.Permits != x.many:
			wrong(fmt.Sprintf("%d permits, not %d", claim.Permits, x.many), x)
		case x.surely(now) && !state.Held:
			wrong("the lock is free", x)
		case x.surely(now) && claim.Left > b.life.ttl+blur && x.most.Sub(now) >= time.Hour:
			wrong(fmt.Sprintf("%v of a session are left", claim.Left), x)
		}
		shared = shared || x.shared || x.many > 0 && b.life.cfg.Semaphore != nil
	}
	for _, h := range state.Holders {
		if b.account(r.key(name)).entries[h.Acquisition] == nil {
			wrong("nobody is "+h.Acquisition, nil)
		}
	}
	switch {
	case state.Held && len(state.Holders) == 0:
		wrong("a free lock is held", nil)
	case state.Shared && !shared:
		wrong("an exclusive lock is shared", nil)
	case state.Waiting > len(state.Waiters):
		wrong(fmt.Sprintf("%d wait, but %d are waiters", state.Waiting, len(state.Waiters)), nil)
	}
	return state, err
}

// contended judges an answer of Contended.
func (b *ledger) contended(r *Requests, name string, call func() (bool, error)) (bool, error) {
	if b == nil {
		return call()
	}
	b.mu.Lock()
	began := b.begins()
	awaited := b.awaited(r, name)
	b.mu.Unlock()
	others, err := call()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && awaited && !others && b.exact() && began.Equal(time.Now()) {
		b.breaks("Contended finds waiters", name)
	}
	return others, err
}

// notified judges the news of a loss.
func (b *ledger) notified(r *Requests, id driver.HoldID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	e := b.account(r.key(id.Name)).entries[id.Acquisition]
	if e != nil && e.surely(now) && !now.Before(b.murky) && !b.life.wasForced(id.Name, now) { // the news may be old
		b.breaks("it calls no living hold lost", tail(id.Acquisition), e)
	}
}

// ends notes that a process has ended: its holds end with its session, if it has a session.
func (b *ledger) ends(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p.opened) == 0 || optional[driver.Session](p.opened[0]) == nil {
		return
	}
	now := time.Now()
	for _, a := range b.locks {
		for _, e := range a.entries {
			if e.p != p {
				continue
			}
			e.sure, e.vague = time.Time{}, true
			if e.most.After(now) { // nothing else may free it any more
				e.most = now.Add(never)
			}
		}
	}
}

// gaveUp notes that a Session is told of a loss. It frees soon what it may keep. If its client is
// being closed, the end of the session may be what frees the lock.
func (b *ledger) gaveUp(r *Requests, id driver.HoldID) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(r, id)
	e.held, e.sure = false, time.Time{}
	frees := !e.doubt && !r.port.below.Load() && r.port.closing.Load() == 0
	if soon := time.Now().Add(wakes); frees && e.most.After(soon) {
		e.most = soon
	}
}

// watch notes a watch, until the function that it returns is called.
func (b *ledger) watch(r *Requests, id driver.HoldID) (closed func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begins()
	e := b.entry(r, id)
	e.watches++
	e.watching = time.Now()
	if !e.listens && b.exact() {
		b.asksAgain(e, e.watching.Add(-time.Nanosecond), 0, "a waiter asks once more when its watch has begun")
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		e.watches--
	}
}

// wakes is how long it may take until a waiter asks again that was told.
const wakes = 500 * time.Millisecond

// freed checks that the waiters that must learn of a release soon ask for the lock: the first
// waiter in a queue, or all.
func (b *ledger) freed(key string, now time.Time) {
	if !b.exact() {
		return
	}
	var told []*entry
	for _, x := range b.account(key).entries {
		switch {
		case x.watches > 0 && x.place == 0:
			told = append(told, x)
		case x.place > 0:
			if x.vague || now.Sub(x.queued) > placeLives {
				return // its place may have ended, or may be another one than counted
			}
		}
	}
	var first *entry
	for _, x := range b.account(key).entries {
		if x.place > 0 && (first == nil || x.place < first.place) {
			first = x
		}
	}
	if first != nil {
		if told = nil; first.watches > 0 {
			told = append(told, first)
		}
	}
	for _, x := range told {
		watching := x.watching
		b.life.messages.Go(func() {
			time.Sleep(wakes)
			b.mu.Lock()
			asleep := x.watches > 0 && x.watching.Equal(watching) && x.asked.Before(now)
			b.mu.Unlock()
			if asleep && x.p.healthy(now) && !b.life.ended() && x.p.ctx.Err() == nil {
				b.breaks("a release wakes waiters", fmt.Sprintf("%q was free at %v, and a waiter still waits at %v",
					key, now.Sub(b.life.began), b.life.now()), x)
			}
		})
	}
}

// possessed returns the entry of a hold of a user, by its token, or nil. b.mu is held.
func (b *ledger) possessed(v *possession) *entry {
	a := b.locks[v.name]
	if a == nil || v.hold.Token() == 0 {
		return nil
	}
	for _, e := range a.entries {
		if e.p == v.u.process && e.token == v.hold.Token() {
			return e
		}
	}
	return nil
}

// lasts checks that a hold does not last longer for its user than in the store.
func (b *ledger) lasts(v *possession) {
	ends, limited := v.hold.Deadline()
	if !limited || !b.life.cfg.exact {
		return
	}
	b.mu.Lock()
	e := b.possessed(v)
	long := e != nil && !e.overdue && b.exact() && e.surely(time.Now()) && ends.After(e.sure.Add(blur))
	var sure time.Time
	if long {
		sure = e.sure
	}
	b.mu.Unlock()
	if long && v.valid() {
		b.breaks("a hold does not last longer here than in the store",
			fmt.Sprintf("%s ends at %v, and in the store at %v", v, ends.Sub(b.life.began), sure.Sub(b.life.began)), e)
	}
}

// denied reports whether the store has said to the only request to release v that it was not held.
func (b *ledger) denied(v *possession) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.possessed(v)
	return e != nil && e.denied && b.exact()
}

// holder returns the number of an acquisition that has the lock of this key, or "".
func (b *ledger) holder(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	found := ""
	for acquisition, e := range b.account(key).entries {
		if serial := tail(acquisition); e.surely(now) && serial > found {
			found = serial
		}
	}
	return found
}

// reset notes that the server may have something else than it has promised.
func (b *ledger) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.murky = time.Now().Add(3*b.life.ttl + placeGone)
	for _, a := range b.locks {
		a.token = 0
		for _, e := range a.entries {
			e.sure, e.doubt, e.token = time.Time{}, true, 0
			e.vague = e.vague || e.place > 0
			if e.most = time.Now().Add(never); b.life.cfg.exact && !e.p.overSessions() {
				e.most = b.murky // unless it is renewed by then
			}
		}
	}
}

const closedFree = "a client that is closed without an error has no lock, and gets none"

// closed looks whether the store has anything of a client whose Close has returned nil. From now on
// no request of the client may take a lock. The end of a session gives back what a session keeps.
func (b *ledger) closed(p *process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if p.below.Load() || p.isRaw() || p.overSessions() || now.Before(b.murky) {
		return
	}
	p.settled = true
	for name, a := range b.locks {
		for acquisition, e := range a.entries {
			if e.p == p && !e.overdue && e.surely(now.Add(blur)) {
				b.breaks(closedFree, fmt.Sprintf("%q by %s", name, tail(acquisition)), e)
			}
		}
	}
}

// waits returns the processes that wait or may be in the way of a waiter, with a line about each.
func (b *ledger) waits() (who []*process, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for name, a := range b.locks {
		for acquisition, e := range a.entries {
			switch {
			case e.watches > 0:
				text += fmt.Sprintf("process %d waits for %q by %s\n", e.p.n, name, tail(acquisition))
			case e.place > 0 && now.Sub(e.queued) < placeGone:
				text += fmt.Sprintf("process %d has a place for %q by %s\n", e.p.n, name, tail(acquisition))
			case e.possibly(now):
				text += fmt.Sprintf("process %d may hold %q by %s, surely until %v\n", e.p.n, name, tail(acquisition), e.sure.Sub(b.life.began))
			default:
				continue
			}
			who = append(who, e.p)
		}
	}
	return who, text
}
