package leasetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/effort"
)

// usual is how long the checks of faults go on without the flag.
const usual = 3 * time.Second

var (
	long = flag.Duration("leasetest.long", usual, "for how long Chaos and PermitsUnderFaults go on, "+
		"with new seeds if it is longer; less than 3s shortens Turns too")
	seed = flag.Uint64("leasetest.seed", 0, "what Simulate, Chaos, History and PermitsUnderFaults choose by, "+
		"0 for the seeds that the names of the tests give")
)

// checkSeed returns the seed of the check.
func (s *suite) checkSeed() uint64 {
	switch {
	case *seed != 0:
		return *seed
	case *long > usual:
		return rand.Uint64()
	}
	return effort.Seed(s.Name())
}

// calm is how long a waiter may take to get on when everything is healed, in addition to a lease.
const calm = 10 * time.Second

// register is the resource that the lock protects. At each write it checks whether the writer's
// hold is valid, as a fenced resource cannot.
type register struct {
	mu      sync.Mutex
	visitor *visit // the last that wrote
	token   uint64 // the highest
	sold    int    // tickets

	visits, lapses int
}

// visit is one hold of a worker.
type visit struct {
	c     *client
	hold  locks.Hold
	over  bool  // the worker has stopped to rely on the hold
	ends  int64 // of the client's connections, when the worker asked for the lock
	wrote bool
	next  int // the number of the ticket that the worker sells
}

// valid says whether the worker may rely on the hold.
func (v *visit) valid() bool {
	return v.ends == v.c.ends.Load() && (v.hold == nil || v.hold.Err() == nil)
}

var errOver = errors.New("the hold has lapsed")

// write does something with the register under a hold. It returns errOver if the hold has lapsed
// by its own account, and otherwise says which promise is broken.
func (r *register) write(v *visit, sell bool) (broken string, other *client, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !v.valid() {
		if !v.over {
			v.over = true
			r.lapses++
		}
		return "", nil, errOver
	}
	if before := r.visitor; before != nil && before != v {
		other = before.c
		// The former visitor's hold is valid now, so it was when v's was found to be.
		if !before.over && before.valid() {
			return "no two holds are valid at once", other, nil
		}
		if v.wrote {
			return "no other hold is valid between two writes under one hold", other, nil
		}
	}
	if v.hold != nil {
		token := v.hold.Token()
		// Holders of one client may share a token, see lease.WithMaxLocalHandoffs.
		if token < r.token || token == r.token && token != 0 && other != nil && other != v.c {
			return fmt.Sprintf("the token increases from holder to holder: %d comes after %d",
				token, r.token), other, nil
		}
		r.token = token
	}
	if !v.wrote {
		v.wrote = true
		r.visitor, v.next = v, r.sold+1
		r.visits++
	}
	if sell {
		if v.next != r.sold+1 {
			return fmt.Sprintf("each ticket is sold once: number %d is sold as number %d", v.next, r.sold+1), other, nil
		}
		r.sold = v.next
		v.next++
	}
	return "", nil, nil
}

// leave is called before the unlock.
func (r *register) leave(v *visit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v.over = true
}

// holder returns the client that holds the lock, as far as the register knows, or nil.
func (r *register) holder() *client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.visitor == nil || r.visitor.over {
		return nil
	}
	return r.visitor.c
}

// grave is a testing.TB for one client, which ends before the test does.
type grave struct {
	testing.TB
	mu   sync.Mutex
	ends []func()
}

// Cleanup has f called by bury.
func (g *grave) Cleanup(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ends = append(g.ends, f)
}

func (g *grave) bury() {
	for {
		g.mu.Lock()
		n := len(g.ends)
		if n == 0 {
			g.mu.Unlock()
			return
		}
		f := g.ends[n-1]
		g.ends = g.ends[:n-1]
		g.mu.Unlock()
		f()
	}
}

// player is a client in the chaos, with its workers.
type player struct {
	*client
	grave   *grave
	ctx     context.Context // ends when the client is killed
	kill    context.CancelFunc
	workers []*worker
	wg      sync.WaitGroup
	stopped atomic.Bool
	killed  atomic.Bool
}

// end ends connections of the client by f. Nothing relies on holds that end with them.
func (c *client) end(f func()) {
	if c.cfg.EndsWithConnection {
		c.ends.Add(1)
	}
	f()
}

// proceed waits while the client is stopped.
func (p *player) proceed() {
	for p.stopped.Load() && p.ctx.Err() == nil {
		p.pause(5 * time.Millisecond)
	}
}

// worker is a goroutine that locks again and again.
type worker struct {
	*player
	random *rand.Rand
	turns  atomic.Int64 // how often it had the lock
	round  int64        // the stage's when it had the lock last
}

// stage is the chaos.
type stage struct {
	*crew
	register register
	lock     string
	random   *rand.Rand // of the goroutine that causes the trouble
	players  []*player
	term     time.Duration // of a hold
	sessions bool          // the store has them
	mortals  bool          // the death of a client ends its holds
	troubled atomic.Bool
	round    atomic.Int64 // odd during a recovery
	heals    []heal
	faults   map[string]int
	buried   sync.WaitGroup
	late     sync.WaitGroup

	mu       sync.Mutex
	longest  time.Duration // wait
	recovery time.Duration // the longest
}

// heal ends a fault of a player.
type heal struct {
	at time.Time
	p  *player
}

// chaos makes workers of several clients sell tickets, while the clients are killed, stopped and
// cut off. After a time of trouble everything is healed, and then each worker must get the lock.
func chaos(s *suite) {
	seed := s.checkSeed()
	st := &stage{crew: s.crew(), lock: s.name(), random: rand.New(rand.NewPCG(seed, 0)), faults: make(map[string]int)}
	defer func() {
		if s.Failed() {
			s.Logf("seed %d", seed)
		}
	}()
	s.Cleanup(func() { // the last clients end at once
		st.cancel()
		for _, p := range st.players {
			p.kill()
			st.buried.Go(func() { p.wg.Wait(); p.grave.bury() })
		}
		st.buried.Wait()
	})
	for range s.cfg.Clients {
		st.players = append(st.players, st.enters())
	}
	st.term = s.cfg.TTL
	if c := st.players[0]; c.requests != nil {
		st.term, st.sessions = c.client.term(s.cfg.TTL), optional[driver.Session](c.requests) != nil
		st.mortals = c.canDie()
	}
	began := time.Now()
	for time.Since(began) < *long && st.ctx.Err() == nil {
		st.trouble(min(*long-time.Since(began), 3*time.Second))
		st.heal()
		st.recover()
	}
	st.cancel()
	for _, p := range st.players {
		p.wg.Wait()
	}
	st.late.Wait()
	st.wait()
	var faults []string
	for _, f := range slices.Sorted(maps.Keys(st.faults)) {
		faults = append(faults, fmt.Sprintf("%s: %d", f, st.faults[f]))
	}
	s.Logf("chaos of %v, seed %d: %d acquisitions, %d of them lapsed, %d tickets, the longest wait %v, "+
		"the longest recovery %v; %s", time.Since(began).Round(time.Second/10), seed, st.register.visits,
		st.register.lapses, st.register.sold, st.longest.Round(time.Millisecond),
		st.recovery.Round(time.Millisecond), strings.Join(faults, "; "))
}

// enters opens a new client with two workers.
func (st *stage) enters() *player {
	g := &grave{TB: st.TB}
	opens := &suite{TB: g, cfg: st.cfg, ctx: st.suite.ctx, log: st.log, count: st.count}
	opts := []lease.Option{lease.WithReleaseTimeout(st.cfg.TTL)}
	if st.cfg.EndsWithConnection { // a handed-off hold may have ended
		opts = append(opts, lease.WithMaxLocalHandoffs(0))
	}
	p := &player{client: opens.mortal(opts...), grave: g}
	st.count = opens.count
	p.ctx, p.kill = context.WithCancel(st.ctx)
	for range 2 {
		w := &worker{player: p, random: rand.New(rand.NewPCG(st.random.Uint64(), 0))}
		p.workers = append(p.workers, w)
		p.wg.Go(func() { st.work(w) })
	}
	return p
}

// work locks, sells and unlocks until the client is killed.
func (st *stage) work(w *worker) {
	l := w.client.lock(st.lock)
	for ; w.ctx.Err() == nil; st.proceed(w) {
		owner := locks.WithOwner(w.ctx, locks.NewOwner())
		ctx, cancel := owner, context.CancelFunc(func() {})
		asked, ends := time.Now(), w.ends.Load()
		if st.troubled.Load() && w.random.IntN(4) == 0 { // it gives up soon
			ctx, cancel = context.WithTimeout(owner, time.Duration(w.random.IntN(300))*time.Millisecond)
		}
		err := l.LockContext(ctx)
		cancel()
		if err != nil {
			st.pause(10 * time.Millisecond)
			continue
		}
		st.mu.Lock()
		st.longest = max(st.longest, time.Since(asked))
		st.mu.Unlock()
		st.visit(w, l, owner, ends)
		w.round = st.round.Load() // before the turn counts: the next recovery needs another turn
		w.turns.Add(1)
		st.pause(time.Duration(w.random.IntN(3)) * time.Millisecond)
	}
}

// proceed waits while the client is stopped, and while others recover after w has. A store that
// keeps no order may pass one waiter for long on a busy machine.
func (st *stage) proceed(w *worker) {
	w.player.proceed()
	for w.round%2 == 1 && w.round == st.round.Load() && w.ctx.Err() == nil {
		st.pause(5 * time.Millisecond)
	}
}

// visit relies on the lock for some time.
func (st *stage) visit(w *worker, l locks.TryLocker, owner context.Context, ends int64) {
	v := &visit{c: w.client, ends: ends}
	if leased, ok := l.(locks.Leased); ok {
		v.hold, _ = leased.Hold(owner)
	}
	until := time.Now().Add(time.Duration(w.random.IntN(2000)) * time.Microsecond)
	if st.troubled.Load() && w.random.IntN(50) == 0 { // such as a long pause
		until = until.Add(time.Duration(w.random.Int64N(int64(st.cfg.TTL))))
	}
	if v.hold != nil && w.random.IntN(20) == 0 {
		_ = v.hold.Extend(owner, st.cfg.TTL)
	}
	for sell := false; ; sell = true {
		w.proceed()
		broken, other, err := st.register.write(v, sell)
		if broken != "" {
			clients := []*client{w.client}
			if other != nil && other != w.client {
				clients = append(clients, other)
			}
			st.breaks(broken, clients...)
		}
		if w.killed.Load() { // the lock stays with the dead client until the hold has lapsed
			return
		}
		if err != nil || broken != "" || sell && time.Now().After(until) || w.ctx.Err() != nil {
			break
		}
		st.pause(min(time.Until(until), 5*time.Millisecond))
	}
	st.register.leave(v)
	err := l.UnlockContext(owner)
	if err != nil && !errors.Is(err, locks.ErrLost) && w.ctx.Err() == nil {
		st.breaks(fmt.Sprintf("an unlock that fails is a loss (%v)", err), w.client)
	}
}

// cause counts a fault and puts it into the client's journal.
func (st *stage) cause(p *player, what string) {
	st.faults[what]++
	p.event("chaos: %s", what)
}

// trouble causes faults for some time. Each of them ends by itself.
func (st *stage) trouble(d time.Duration) {
	st.troubled.Store(true)
	pace := []time.Duration{50, 100, 250}[st.random.IntN(3)] * time.Millisecond
	for until := time.Now().Add(d); time.Now().Before(until) && st.ctx.Err() == nil; {
		st.pause(time.Duration(st.random.Int64N(int64(pace))))
		now := time.Now()
		st.heals = slices.DeleteFunc(st.heals, func(h heal) bool {
			if now.After(h.at) {
				h.p.healed()
				return true
			}
			return false
		})
		if st.sessions { // what comes later than a lease keeps the lock as long as the session lasts
			for _, p := range st.players {
				st.deliver(p)
			}
		}
		i := st.pick()
		p := st.players[i]
		if p.stopped.Load() {
			continue
		}
		switch st.random.IntN(12) {
		case 0:
			if st.mortals {
				st.cause(p, "killed")
				st.dies(p)
				st.players[i] = st.enters()
			}
		case 1:
			st.stop(p)
		case 2, 3, 4:
			st.cutOff(p)
		case 5, 6, 7, 8, 9:
			st.lose(p)
		default:
			st.deliver(p)
		}
	}
}

// pick returns the number of a player, half of the time the holder's number.
func (st *stage) pick() int {
	i := st.random.IntN(len(st.players))
	if st.random.IntN(2) == 0 {
		if c := st.register.holder(); c != nil {
			i = max(0, slices.IndexFunc(st.players, func(p *player) bool { return p.client == c }))
		}
	}
	return i
}

// dies kills a client, and closes it when its lease has ended.
func (st *stage) dies(p *player) {
	p.killed.Store(true)
	st.heals = slices.DeleteFunc(st.heals, func(h heal) bool { return h.p == p }) // it stays dead
	p.die()
	p.kill()
	st.buried.Go(func() {
		p.wg.Wait()
		time.Sleep(st.term + time.Second) // a session would go on if it were healed before
		p.grave.bury()
	})
}

// healsLater ends the faults of the client after some time, up to a lease and a quarter.
func (st *stage) healsLater(p *player) {
	d := time.Duration(st.random.Int64N(int64(st.cfg.TTL) * 5 / 4))
	st.heals = append(st.heals, heal{time.Now().Add(d), p})
}

// stop makes a player behave like a stopped process: it sends no request, reads no answer, and
// its work under the lock stands still. When it goes on, the hold may have lapsed.
func (st *stage) stop(p *player) {
	st.cause(p, "stopped")
	p.stopped.Store(true)
	st.heals = slices.DeleteFunc(st.heals, func(h heal) bool { return h.p == p })
	for _, r := range p.opened {
		for _, op := range []Op{Acquire, Lookup, Renew, Release, Watch, Enqueue, Leave, Contended} {
			r.Always(op, SilentRequest)
		}
	}
	p.link.Cut()
	st.healsLater(p)
}

// cutOff does something to the network of the client.
func (st *stage) cutOff(p *player) {
	if !p.link.Used() {
		st.lose(p)
		return
	}
	type trouble struct {
		what  string
		begin func()
	}
	t := []trouble{
		{"cut", p.link.Cut},
		{"replies cut", p.link.CutReplies},
		{"requests cut", p.link.CutRequests},
		{"connections refused", func() { p.end(p.link.Refuse) }},
		{"replies delayed", func() { p.link.Delay(time.Duration(st.random.IntN(100)) * time.Millisecond) }},
		{"connections reset", func() { p.end(p.link.Reset) }},
	}[st.random.IntN(6)]
	st.cause(p, t.what)
	t.begin()
	st.healsLater(p)
}

// lose has requests of the client suffer a fault.
func (st *stage) lose(p *player) {
	if len(p.opened) == 0 {
		return
	}
	r := p.opened[st.random.IntN(len(p.opened))]
	ops := []Op{Acquire, Lookup, Renew, Release, Watch, Enqueue, Leave}
	faults := []Fault{LostRequest, LostReply, SilentRequest, SilentReply, Late, Repeated}
	op, f := ops[st.random.IntN(len(ops))], faults[st.random.IntN(len(faults))]
	st.cause(p, string(f))
	if st.random.IntN(8) == 0 {
		r.Always(op, f)
		st.healsLater(p)
		return
	}
	for range 1 + st.random.IntN(3) {
		r.Next(op, f)
	}
}

// deliver brings late requests of the client to the store.
func (st *stage) deliver(p *player) {
	for _, r := range p.opened {
		st.late.Go(func() { r.Deliver() })
	}
}

// healed ends all faults of the client.
func (p *player) healed() {
	for _, r := range p.opened {
		r.Heal()
	}
	p.end(p.link.Heal)
	p.stopped.Store(false)
	p.event("chaos: healed")
}

// heal ends all trouble.
func (st *stage) heal() {
	st.troubled.Store(false)
	st.heals = nil
	for _, p := range st.players {
		p.healed()
		st.deliver(p)
	}
}

// recover waits until each worker has had the lock. The limit is between two turns: all turns
// together take long on a slow server or a busy machine.
func (st *stage) recover() {
	type start struct {
		*worker
		turns int64
	}
	var all []start
	for _, p := range st.players {
		for _, w := range p.workers {
			all = append(all, start{w, w.turns.Load()})
		}
	}
	st.round.Add(1)
	defer st.round.Add(1)
	const look = 5 * time.Millisecond
	looks := 0
	began := time.Now()
	for last := began; st.ctx.Err() == nil; st.pause(look) {
		looks++
		waiting := len(all)
		all = slices.DeleteFunc(all, func(w start) bool { return w.worker.turns.Load() > w.turns })
		if len(all) < waiting {
			last, looks = time.Now(), 0
		}
		st.recovery = max(st.recovery, time.Since(began))
		if len(all) == 0 {
			return
		}
		// On a machine that is too busy the pauses take longer, and so may all else.
		if limit := st.term + calm; time.Since(last) > limit && looks > int(limit/look/2) {
			st.breaks(fmt.Sprintf("after everything is healed, the next waiter gets on within %v", limit),
				all[0].client)
			return
		}
	}
}
