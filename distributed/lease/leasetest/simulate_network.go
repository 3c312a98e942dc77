package leasetest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Ask has a server in memory carry out a request of link's client, and returns the answer. In a
// [World] the request suffers what the simulated network does. Otherwise it takes a random time of
// up to two milliseconds. The ctx of the request may end later than the caller's.
func Ask[T any](ctx context.Context, link *Link, request func(ctx context.Context) (T, error)) (none T, err error) {
	if p := link.port; p != nil {
		p.below.Store(true)
		return across(ctx, p, "", link.nth, request)
	}
	if err := ctx.Err(); err != nil {
		return none, context.Cause(ctx)
	}
	return lagging(request)(ctx)
}

// fate is the treatment of one request by the network.
type fate struct {
	up, down         time.Duration // how long the request and the answer take
	lostUp, lostDown bool
	error            time.Duration // when the caller gets an error, if that is sooner than an answer; 0: never
	passes           bool          // that error says that it passes by itself
	twice            bool
	part             bool // see parts
}

// within says that t is under way at now between process who and a server.
func (t trouble) within(now time.Duration, who, server int) bool {
	return (t.who < 0 || t.who == who) && (t.server == 0 || t.server == server+1) && t.at <= now && now < t.until
}

// fate draws what happens to a request that p sends to a server now. The nth request of a kind has
// the same fate in each life of a seed, as far as the same troubles are under way.
func (p *process) fate(op Op, server int) (f fate) {
	kind := string(op)
	if server >= 0 && p.life.world.Servers > 1 {
		kind = fmt.Sprint(op, " to server ", server)
	}
	p.mu.Lock()
	p.serials[kind]++
	n := p.serials[kind]
	p.mu.Unlock()
	h := fnv.New64a()
	text := strconv.AppendInt(make([]byte, 0, 64), int64(p.slot), 10)
	text = strconv.AppendInt(append(text, ' '), int64(p.incarnation), 10)
	h.Write(strconv.AppendInt(append(text, kind...), int64(n), 10))
	r := rand.New(rand.NewPCG(p.life.plan.seed, h.Sum64()))
	// Half of the messages take less than 0.7 ms, one of a thousand takes 30 ms.
	latency := func() time.Duration {
		d := 100*time.Microsecond + time.Duration(0.6*math.Exp(1.25*r.NormFloat64())*float64(time.Millisecond))
		return min(d, 50*time.Millisecond)
	}
	f.up, f.down = latency(), latency()
	f.passes = r.IntN(2) == 0
	ttl := p.life.ttl
	now := p.life.now()
	fails := func() time.Duration { return f.up + f.down + time.Duration(r.Int64N(int64(100*time.Millisecond))) }
	silence := func() time.Duration { return time.Duration(r.Int64N(int64(3 * ttl))) }
	for _, t := range p.life.plan.during(now, now) {
		if !t.within(now, p.slot, server) {
			continue
		}
		switch t.kind {
		case slowNet:
			f.up += time.Duration(r.ExpFloat64() * float64(ttl) / 8)
			f.down += time.Duration(r.ExpFloat64() * float64(ttl) / 8)
		case lossyNet, silentNet:
			f.lostUp = f.lostUp || r.IntN(4) == 0
			f.lostDown = f.lostDown || r.IntN(4) == 0
			if (f.lostUp || f.lostDown) && f.error == 0 {
				if f.error = fails(); t.kind == silentNet {
					f.error = silence()
				}
			}
		case lateNet:
			if r.IntN(2) == 0 {
				late := ttl / 4
				if r.IntN(2) == 0 {
					late = 2 * ttl
				}
				f.up += time.Duration(r.Int64N(int64(late)))
				f.error = fails()
			}
		case twiceNet:
			f.twice = r.IntN(2) == 0
		case cutUp, cutBoth: // what was sent arrives after the partition, or never
			if f.lostUp = r.IntN(2) == 0; !f.lostUp {
				f.up += t.until - now
			}
			f.error = silence()
		case cutDown:
			f.lostDown = true
			f.error = silence()
		case stalls:
			f.up += time.Duration(r.Int64N(int64(t.until-now) + 1))
		case parts:
			f.part = r.IntN(2) == 0
		}
	}
	f.up = min(f.up, p.latest())
	return f
}

// latest returns how late a request may come. In a store with sessions, the effect of a request
// that comes after its undoing would last as long as the session.
func (p *process) latest() time.Duration {
	if p.overSessions() {
		return p.life.ttl / 2
	}
	return 2 * p.life.ttl
}

func (p *process) overSessions() bool {
	return len(p.opened) > 0 && optional[driver.Session](p.opened[0]) != nil
}

// errAway is the error of a request to a server that is away.
var errAway = driver.Mark(errors.New("the server is away"),
	driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)

// across sends a request of p to a server over the simulated network.
func across[T any](
	ctx context.Context, p *process, op Op, server int, call func(context.Context) (T, error)) (none T, err error) {
	type answer struct {
		result T
		err    error
	}
	sent := time.Now() // as the client knows: the process may stand still
	if err := p.proceed(); err != nil {
		return none, err
	}
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	f := p.fate(op, server)
	if !p.overSessions() {
		// A process that stood still meanwhile sends late. The client counts from before that.
		f.up = min(f.up, max(p.latest()-time.Since(sent), 0))
	}
	answers := make(chan answer, 1)
	var mu sync.Mutex
	gone := false // the caller has left
	l := p.life
	l.messages.Go(func() {
		time.Sleep(f.up)
		if f.lostUp || l.ended() {
			return
		}
		mu.Lock()
		left := gone
		mu.Unlock()
		if left && op == Watch { // the caller may have another one by now
			return
		}
		if l.troubled(down, p.slot, server) {
			answers <- answer{err: errAway}
			return
		}
		keep := context.WithValue(context.WithoutCancel(ctx), partKey{}, f.part)
		keep = context.WithValue(keep, sentKey{}, sent)
		keep, cancel := context.WithTimeout(keep, time.Minute)
		defer cancel()
		if f.twice && op != Watch { // at the same moment: nobody else decides in between
			second := keep
			l.messages.Go(func() { discard(call(second)) })
		}
		mu.Lock()
		if gone {
			keep = context.WithValue(keep, aloneKey{}, sent)
		}
		mu.Unlock()
		result, err := call(keep)
		time.Sleep(f.down)
		if f.lostDown {
			discard(result, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if gone {
			discard(result, err)
			return
		}
		answers <- answer{result, err}
	})
	var fails <-chan time.Time
	if f.error > 0 {
		timer := time.NewTimer(f.error)
		defer timer.Stop()
		fails = timer.C
	}
	var a answer
	select {
	case a = <-answers:
	case <-fails:
		if a.err = fmt.Errorf("%w: no answer", ErrFault); f.passes {
			a.err = driver.Mark(a.err, driver.ErrUnavailable)
		}
	case <-p.buried:
		a.err = fmt.Errorf("%w: the process is dead", ErrFault)
	case <-ctx.Done():
		a.err = context.Cause(ctx)
	}
	mu.Lock()
	gone = true
	mu.Unlock()
	select {
	case late := <-answers: // with the error
		if a.err != nil {
			discard(late.result, late.err)
		}
	default:
	}
	if err := p.proceed(); err != nil {
		discard(a.result, a.err)
		return none, err
	}
	return a.result, a.err
}

// These are keys of values in the contexts of requests, which the network sets when it delivers
// them.
type (
	partKey  struct{} // the renewal succeeds in part
	sentKey  struct{} // when the request was sent
	aloneKey struct{} // the same, if its caller has left
	leftKey  struct{} // when the user that asked has left, since the life began
)

func is(ctx context.Context, key any) bool {
	on, _ := ctx.Value(key).(bool)
	return on
}

// noticing is a Watch whose notices cross the network of p.
type noticing struct {
	inner driver.Watch
	c     chan struct{}
	once  sync.Once
	over  chan struct{}
}

func (p *process) notices(w driver.Watch, server int, closed func()) *noticing {
	n := &noticing{inner: w, c: make(chan struct{}, 1), over: make(chan struct{})}
	p.life.messages.Go(func() {
		defer closed()
		for {
			select {
			case _, open := <-w.C():
				if !open {
					p.life.breaks("the channel of a watch is never closed", "", p)
					return
				}
			case <-n.over:
				return
			case <-p.life.over:
				p.life.breaks("each watch is closed", "", p)
				return
			}
			f := p.fate(Watch, server)
			if f.lostUp || f.lostDown || f.error > 0 || p.life.troubled(down, p.slot, server) {
				continue
			}
			p.life.messages.Go(func() {
				time.Sleep(f.down)
				if p.proceed() != nil {
					return
				}
				select {
				case n.c <- struct{}{}:
				default:
				}
			})
		}
	})
	return n
}

func (n *noticing) C() <-chan struct{} { return n.c }

func (n *noticing) Close() {
	n.once.Do(func() { close(n.over); n.inner.Close() })
}

// simulate is request in a simulation.
func simulate[T any](r *Requests, ctx context.Context, op Op, what string,
	call func(context.Context) (T, error)) (result T, err error) {
	p := r.port
	r.mu.Lock()
	r.counts[op]++
	r.mu.Unlock()
	if p.below.Load() { // the network is there
		if err = p.proceed(); err == nil {
			var ended atomic.Int64
			stop := context.AfterFunc(ctx, func() { ended.Store(int64(p.life.now())) })
			result, err = call(ctx)
			over := !stop()
			at := time.Duration(ended.Load()) // 0 if the context ends just now
			late := min(p.life.now()-at, p.runs())
			if over && at > 0 && late > time.Second {
				p.life.breaks("a request ends with its context", fmt.Sprintf("%s %s, %v later", op, what, late), p)
			}
			if p.dead.Load() {
				discard(result, err)
				err = p.proceed()
			} else if stands := p.proceed(); stands != nil {
				discard(result, err)
				err = stands
			}
		}
	} else {
		result, err = across(ctx, p, op, r.server, call)
	}
	if err != nil {
		r.log.add(r.who, "%s %s: error %v", op, what, err)
	} else {
		r.log.add(r.who, "%s %s: %s", op, what, short(result))
	}
	return result, err
}

// ledger returns the ledger of a simulation, or nil.
func (r *Requests) ledger() *ledger {
	if r.port == nil {
		return nil
	}
	return r.port.life.ledger
}

// renew asks the store to renew holds, or some of them.
func (r *Requests) renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	call := func(some []driver.HoldID) ([]bool, error) {
		return r.ledger().renew(r, some, d, func() ([]bool, error) { return r.inner.Renew(ctx, some, d) })
	}
	if n := len(holds) / 2; n > 0 && is(ctx, partKey{}) {
		ok, err := call(holds[:n])
		if err == nil {
			err = fmt.Errorf("%w: the renewal succeeds in part", ErrFault)
		}
		return append(ok, make([]bool, len(holds)-len(ok))...), err
	}
	return call(holds)
}

func (r *Requests) watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	w, err := r.inner.Watch(ctx, id)
	if r.port == nil || w == nil {
		return w, err
	}
	return r.port.notices(w, r.server, r.ledger().watch(r, id)), err
}

// asks notes that the client asks about acquisitions. The result end notes the answer.
func (p *process) asks(ids ...driver.HoldID) (end func(held bool, err error)) {
	if p == nil {
		return func(bool, error) {}
	}
	touch := func(by int, held bool, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, id := range ids {
			p.touched[id.Acquisition] = time.Now()
			p.pending[id.Acquisition] += by
			p.doubts[id.Acquisition] = p.doubts[id.Acquisition] || err != nil
			p.given[id.Acquisition] = p.given[id.Acquisition] || held
		}
	}
	touch(1, false, nil)
	return func(held bool, err error) { touch(-1, held, err) }
}

// leaves notes that the client gives acquisitions up, or their holds back.
func (p *process) leaves(ids ...driver.HoldID) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.left[id.Acquisition] = true
	}
}

// lost tells a Session of a loss, unless the process stands still or is dead.
func (p *process) lost(r *Requests, id driver.HoldID) {
	p.life.messages.Go(func() {
		if p.proceed() == nil {
			p.life.ledger.gaveUp(r, id)
			r.inner.(driver.Session).Lost(id)
		}
	})
}

// hears notes that the store calls a hold lost, and looks whether its holder knows it soon.
func (p *process) hears(r *Requests, id driver.HoldID) {
	if p == nil {
		return
	}
	now := time.Now()
	p.mu.Lock()
	p.causes[id.Name] = now
	p.mu.Unlock()
	token := p.life.ledger.tokenOf(r, id)
	if token == 0 {
		return
	}
	l := p.life
	l.messages.Go(func() {
		time.Sleep(wakes)
		if p.runs() < wakes || l.ended() {
			return
		}
		l.mu.Lock()
		if l.reset.After(now) { // a server that forgets gives the token again
			l.mu.Unlock()
			return
		}
		i := slices.IndexFunc(l.visits[id.Name], func(v *possession) bool {
			return v.u.process == p && v.hold != nil && v.hold.Token() == token && v.valid() && v.asked.Before(now)
		})
		var kept *possession
		if i >= 0 {
			kept = l.visits[id.Name][i]
		}
		l.mu.Unlock()
		if kept != nil {
			l.breaks("a holder knows soon of a loss that the store tells", kept.String(), p)
		}
	})
}
