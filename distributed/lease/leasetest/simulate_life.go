package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// life is one plan at work, in a bubble.
type life struct {
	testing.TB // of the bubble
	world      World
	plan       plan
	cfg        Config
	ttl        time.Duration
	began      time.Time
	log        *journal
	ledger     *ledger
	ctx        context.Context // ends with the trouble and the calm, or with the first finding
	cancel     context.CancelFunc
	names      []string
	messages   sync.WaitGroup // on their way
	over       chan struct{}  // closed when nothing should be there any more
	jobs       sync.WaitGroup // the ends of processes
	calming    atomic.Bool
	calmed     chan struct{} // closed with calming
	broken     atomic.Bool
	count      atomic.Int64 // acquisitions
	lost       atomic.Int64
	long       time.Duration // when the last client was closed
	back       time.Duration // by how much the server's clock was set back in all

	mu        sync.Mutex
	finding   *finding
	processes []*process // by slot
	journals  int        // how many processes there were
	visits    map[string][]*possession
	tokens    map[string]uint64 // the highest
	forced    map[string]time.Time
	reset     time.Time // when the server forgot something or its clock jumped
	cleanups  []func()
	caused    int
}

func newLife(t *testing.T, w World, p plan) *life {
	l := &life{
		TB: t, world: w, plan: p, began: time.Now(), log: newJournal(), over: make(chan struct{}), calmed: make(chan struct{}),
		visits: make(map[string][]*possession),
		tokens: make(map[string]uint64), forced: make(map[string]time.Time),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	cfg := w.Open(quiet{t, l})
	if l.ttl = cfg.TTL; l.ttl <= 0 {
		l.ttl = p.ttl
	}
	if cfg.Poll <= 0 {
		cfg.Poll = 2 * time.Second
		if p.service && !cfg.FIFO { // a place in the queue of a store may end sooner
			cfg.Poll = 20 * time.Second
		}
	}
	l.cfg = cfg.withDefaults()
	l.ledger = newLedger(l)
	plain := []string{"orders", "ORDERS"}
	switch {
	case !l.cfg.anyName:
		plain = []string{"orders", "invoices"}
	case p.seed%4 == 0:
		plain = []string{"the-locks-of-the-name-which-is-long-1", "the-locks-of-the-name-which-is-long/1"}
	case p.seed%2 == 0:
		plain = []string{"the-locks-of-the-name-which-is-long-🔒", "the-locks-of-the-name-which-is-long-🔑"}
	}
	for _, name := range plain[:p.names] {
		l.names = append(l.names, l.cfg.Name(name))
	}
	return l
}

// quiet is the testing.TB of the clients and servers that a life opens. A failure is a finding, and
// does not fail the test.
type quiet struct {
	testing.TB
	life *life
}

func (q quiet) Helper()                         {}
func (q quiet) Cleanup(f func())                { q.life.cleanups = append(q.life.cleanups, f) }
func (q quiet) Error(args ...any)               { q.life.breaks(whole, fmt.Sprint(args...)) }
func (q quiet) Errorf(format string, a ...any)  { q.life.breaks(whole, fmt.Sprintf(format, a...)) }
func (q quiet) Fatal(args ...any)               { q.Error(args...); runtime.Goexit() }
func (q quiet) Fatalf(format string, a ...any)  { q.Errorf(format, a...); runtime.Goexit() }
func (q quiet) FailNow()                        { q.Error("failed"); runtime.Goexit() }
func (q quiet) Fail()                           { q.Error("failed") }
func (q quiet) Failed() bool                    { return q.life.broken.Load() }
func (q quiet) Log(args ...any)                 {}
func (q quiet) Logf(format string, args ...any) {}

const whole = "the clients and the store do what they say"

func (l *life) now() time.Duration { return time.Since(l.began) }
func (l *life) ended() bool        { return l.broken.Load() }

// breaks notes the first finding and ends the life.
func (l *life) breaks(rule, text string, who ...*process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.finding != nil {
		return
	}
	f := &finding{plan: l.plan, rule: rule, text: text, at: l.now()}
	for _, p := range who {
		if p != nil && !slices.Contains(f.who, p.n) {
			f.who = append(f.who, p.n)
		}
	}
	f.timeline = l.log.last(60, "", f.who...)
	named := make(map[string]string)
	short := func(text string) string {
		return serialNumbers.ReplaceAllStringFunc(text, func(serial string) string {
			if named[serial] == "" {
				named[serial] = fmt.Sprintf("#%d", len(named)+1)
			}
			return named[serial]
		})
	}
	f.timeline, f.text = short(f.timeline), short(f.text)
	l.finding = f
	l.broken.Store(true)
	l.cancel()
}

// serialNumbers are the numbers of acquisitions, which count from the time.
var serialNumbers = regexp.MustCompile(`([0-9a-f]{8}-[0-9a-f-]{27}:)?\b94668\d{10,}\b`)

func (l *life) found() *finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finding
}

func (l *life) sum() totals {
	l.ledger.mu.Lock() // the race detector does not know that each request has ended
	defer l.ledger.mu.Unlock()
	return totals{lives: 1, acquisitions: int(l.count.Load()), losses: int(l.lost.Load()),
		requests: l.ledger.requests, faults: l.caused, time: l.long}
}

// troubled says whether a trouble of this kind is under way between a process and a server.
func (l *life) troubled(kind troubleKind, who, server int) bool {
	now := l.now()
	return slices.ContainsFunc(l.plan.during(now, now), func(t trouble) bool { return t.kind == kind && t.within(now, who, server) })
}

// pause sleeps, until the life ends at the latest.
func (l *life) pause(d time.Duration) {
	timer := time.NewTimer(max(d, time.Microsecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.ctx.Done():
	}
}

// thinks pauses until the calm of a service begins at the latest. Other users think for seconds.
func (l *life) thinks(d time.Duration) {
	if !l.plan.service {
		l.pause(d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.calmed:
	case <-l.ctx.Done():
	}
}

// process is one client of the server, with its users.
type process struct {
	life        *life
	slot        int // the place of the process, which a process before it may have had
	incarnation int
	n           int // in the journal
	link        *Link
	grave       *grave
	provider    locks.Provider
	opened      []*Requests
	below       atomic.Bool // the network is under the Store, see Ask
	ctx         context.Context
	kill        context.CancelFunc
	users       sync.WaitGroup
	dead        atomic.Bool
	buried      chan struct{}
	once        sync.Once
	closing     atomic.Int64 // the time since the life began, or 0
	settled     bool         // Close has returned nil. Guarded by ledger.mu

	mu      sync.Mutex
	gate    chan struct{}        // closed while the process runs
	wentOn  time.Time            // when it stood still last
	serials map[string]int       // requests, by kind and server
	touched map[string]time.Time // when the client asked or heard of an acquisition last
	pending map[string]int       // how many requests about an acquisition are under way
	causes  map[string]time.Time // when the store said last that a hold is lost, by name
	doubts  map[string]bool      // the acquisitions with a request that failed
	left    map[string]bool      // the acquisitions that were released or have left the queue
	given   map[string]bool      // the acquisitions that have had the lock, as the client knows
}

// patience is the release timeout of the clients.
const patience = time.Second

func (l *life) enters(slot, incarnation int) *process {
	l.mu.Lock()
	l.journals++
	p := &process{life: l, slot: slot, incarnation: incarnation, n: l.journals}
	l.mu.Unlock()
	p.buried, p.gate = make(chan struct{}), make(chan struct{})
	close(p.gate)
	p.serials, p.touched = make(map[string]int), make(map[string]time.Time)
	p.causes, p.pending = make(map[string]time.Time), make(map[string]int)
	p.doubts, p.given, p.left = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	p.ctx, p.kill = context.WithCancel(l.ctx)
	p.grave = &grave{TB: quiet{l.TB, l}}
	p.link = NewLink(p.grave)
	p.link.ttl, p.link.port = l.ttl, p
	r := p.random(-1)
	opts := []lease.Option{
		lease.WithTTL(l.ttl), lease.WithPoll(l.cfg.Poll), lease.WithReleaseTimeout(patience),
		lease.WithWrapper(func(inner driver.Store) driver.Store {
			requests := newRequests(inner, l.log, p.n)
			requests.port, requests.server = p, min(len(p.opened), max(l.world.Servers, 1)-1)
			p.opened = append(p.opened, requests)
			return requests
		}),
	}
	if r.IntN(3) == 0 {
		opts = append(opts, lease.WithMaxLocalHandoffs(0))
	}
	p.provider = l.cfg.Open(p.grave, p.link, opts...)
	if l.cfg.Read != nil && len(p.opened) > 1 {
		for _, r := range p.opened[:len(p.opened)-1] {
			r.shares = true
		}
	}
	p.event("begins")
	if p.isRaw() {
		p.users.Go(p.asksRaw)
		return p
	}
	for i := range l.plan.users {
		u := &user{process: p, i: i, random: p.random(i)}
		p.users.Go(u.work)
	}
	return p
}

// isRaw says that the process sends requests without a client.
func (p *process) isRaw() bool { return p.slot == 0 && p.life.plan.raw && len(p.opened) > 0 }

func (p *process) random(user int) *rand.Rand {
	return rand.New(rand.NewPCG(p.life.plan.seed, uint64(p.slot)<<40|uint64(p.incarnation)<<20|uint64(user+2)))
}

func (p *process) event(format string, args ...any) { p.life.log.add(p.n, format, args...) }

// proceed waits while the process stands still. A dead process waits until it is buried.
func (p *process) proceed() error {
	for {
		if p.dead.Load() {
			<-p.buried
			return fmt.Errorf("%w: the process is dead", ErrFault)
		}
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		select {
		case <-gate:
			if !p.dead.Load() {
				return nil
			}
		case <-p.buried:
		}
	}
}

// shut ends the silence of a dead process.
func (p *process) shut() { p.once.Do(func() { close(p.buried) }) }

func (p *process) stand() {
	p.event("stands still")
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		p.gate = make(chan struct{})
	default: // it stands still already
	}
}

func (p *process) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
		p.wentOn = time.Now()
		p.life.log.add(p.n, "goes on")
	}
}

// runs returns for how long the process has run since it was dead or stood still. It may go on
// later than its plan says, such as after another trouble.
func (p *process) runs() time.Duration {
	if p.dead.Load() {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
		return time.Since(p.wentOn)
	default:
		return 0
	}
}

// idles says that the client has run for the time d, and has asked and heard nothing of an
// acquisition after began.
func (p *process) idles(acquisition string, began time.Time, d time.Duration) bool {
	p.mu.Lock()
	touched, pending := p.touched[acquisition], p.pending[acquisition]
	p.mu.Unlock()
	return !touched.After(began) && pending == 0 && p.runs() > d && p.closing.Load() == 0 && !p.life.ended() &&
		p.ctx.Err() == nil
}

// healthy says that nothing troubled the process between from and now, and that no earlier trouble
// lasts.
func (p *process) healthy(from time.Time) bool {
	l := p.life
	at, now := from.Sub(l.began)-4*l.ttl, l.now()
	return !p.dead.Load() && p.closing.Load() == 0 && !slices.ContainsFunc(l.plan.during(at, now), func(t trouble) bool {
		return (t.who < 0 || t.who == p.slot) && t.at <= now && t.until >= at
	})
}

// ends puts another process in the place of p, whose client is closed later.
func (l *life) ends(p *process, after time.Duration) {
	l.ledger.ends(p)
	p.kill()
	p.goOn()
	l.jobs.Go(func() {
		time.Sleep(after)
		p.shut()
		p.link.Heal()
		p.users.Wait()
		p.grave.bury()
	})
	if l.broken.Load() || l.calming.Load() {
		return
	}
	l.processes[p.slot] = l.enters(p.slot, p.incarnation+1)
}

// close closes the client while its users use it. After a Close without an error, the ledger checks
// that the client has no lock.
func (p *process) close() {
	c, ok := p.provider.(interface {
		Close(ctx context.Context) error
	})
	if !ok {
		return
	}
	p.goOn()
	p.event("is closed")
	p.closing.Store(int64(p.life.now()))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := c.Close(ctx)
	p.event("is closed: %v", err)
	if err == nil {
		p.life.ledger.closed(p)
	}
}

// live lives the plan.
func (l *life) live() {
	for slot := range l.plan.processes {
		l.processes = append(l.processes, l.enters(slot, 0))
	}
	ends := make(map[int]time.Duration) // when the trouble of a slot ends that needs an end
	for _, t := range l.plan.troubles {
		l.heal(ends, t.at)
		l.pause(t.at - l.now())
		if l.ended() {
			break
		}
		l.cause(t, ends)
	}
	l.heal(ends, l.plan.long)
	l.pause(l.plan.long - l.now())
	if !l.ended() && l.plan.calm {
		l.calm()
	}
	l.cancel()
	for _, p := range l.processes {
		p.goOn()
		p.link.Heal()
		if p.dead.Load() {
			p.shut()
		}
		p.users.Wait()
		p.grave.bury()
		p.shut()
	}
	l.long = l.now()
	l.jobs.Wait()
	time.Sleep(time.Minute) // for what is on its way
	close(l.over)
	l.messages.Wait()
	if !l.ended() && l.plan.calm && l.cfg.Rest != nil {
		for _, name := range l.names {
			l.cfg.Rest(quiet{l.TB, l}, name)
		}
	}
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	time.Sleep(time.Hour)
	if left := stray(); left != "" {
		l.breaks("no goroutine is left", left)
	}
}

// heal ends the troubles that end until the time at.
func (l *life) heal(ends map[int]time.Duration, at time.Duration) {
	for {
		next := -1
		for slot, end := range ends {
			if end <= at && (next < 0 || end < ends[next]) {
				next = slot
			}
		}
		if next < 0 || l.ended() {
			return
		}
		l.pause(ends[next] - l.now())
		delete(ends, next)
		p := l.processes[next]
		p.link.Heal()
		p.goOn()
	}
}

// cause begins a trouble. Those of the network are in the fates of its messages.
func (l *life) cause(t trouble, ends map[int]time.Duration) {
	l.caused++
	if t.who < 0 {
		for _, p := range l.processes {
			p.event("trouble: %s", t.kind)
		}
		switch t.kind {
		case forgets:
			if l.cfg.Forget != nil {
				l.resets()
				l.cfg.Forget()
			}
		case clockJumps:
			if l.cfg.SetClock != nil {
				l.resets()
				by := min(t.until-t.at, l.ttl)
				if t.at%2 == 0 { // nanoseconds: by chance
					by = -by
					l.back -= by
				}
				l.cfg.SetClock(by)
			}
		case down:
			for _, p := range l.processes {
				if p.link.Used() {
					t.link(p).Refuse()
					ends[p.slot] = t.until
				}
			}
		}
		return
	}
	p := l.processes[t.who]
	p.event("trouble: %s", t.kind)
	switch t.kind {
	case pauses:
		p.stand()
		if p.link.Used() {
			p.link.Cut()
		}
	case dies:
		p.dead.Store(true)
		p.link.Cut()
		l.ends(p, 3*l.ttl+time.Second)
		return
	case closes:
		if t.until-t.at < l.ttl/2 { // many holds are given back at once
			l.pause(0)
		}
		p.close()
		after := p.latest() // what is late then must not find the client gone
		if p.overSessions() {
			after = 0
		}
		l.ends(p, after)
		return
	default:
		if !p.link.Used() {
			return
		}
		link := t.link(p)
		switch t.kind {
		case cutUp:
			link.CutRequests()
		case cutDown:
			link.CutReplies()
		case cutBoth, silentNet:
			link.Cut()
		case lossyNet:
			link.Reset()
		case slowNet, lateNet:
			link.Delay((t.until - t.at) / 8)
		}
	}
	ends[t.who] = max(ends[t.who], t.until)
}

// link returns the network of p that t concerns.
func (t trouble) link(p *process) *Link {
	if t.server > 0 {
		return p.link.Server(t.server - 1)
	}
	return p.link
}

// resets notes that the server breaks its promises of before.
func (l *life) resets() {
	l.mu.Lock()
	l.reset = time.Now()
	clear(l.tokens)
	l.mu.Unlock()
	l.ledger.reset()
}

// calm waits until each user has had each lock once more.
func (l *life) calm() {
	l.calming.Store(true)
	close(l.calmed)
	for _, p := range l.processes {
		p.event("everything is healed")
	}
	done := make(chan struct{})
	go func() {
		for _, p := range l.processes {
			p.users.Wait()
		}
		close(done)
	}()
	timer := time.NewTimer(l.turnBound())
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		who, what := l.ledger.waits()
		l.breaks("each waiter gets its turn after everything is healed", what, who...)
		<-done
	}
}

// turnBound is how long it may take until each user has had each lock, when everything is healed.
// Locks of dead processes, and locks that a late request takes, end after two leases. Each time
// when the server's clock was set back has prolonged them.
func (l *life) turnBound() time.Duration { return 2*l.ttl + 15*time.Second + l.back }

// possession is a hold in the hands of a user.
type possession struct {
	u        *user
	name     string
	hold     locks.Hold
	shared   bool
	many     int64     // permits
	asked    time.Time // when the user began to acquire it
	began    time.Time
	extended atomic.Bool  // perhaps to a time that is shorter than a renewal takes
	over     atomic.Bool  // the user does not rely on it
	gaveBack atomic.Int64 // when the user began to give it back, since the life began, or 0
}

func (v *possession) valid() bool {
	return !v.over.Load() && !v.u.dead.Load() && (v.hold == nil || v.hold.Err() == nil)
}

// checks looks whether holds of name exclude each other that are valid.
func (l *life) checks(name string, size int64) {
	l.mu.Lock()
	var all []*possession
	for _, v := range l.visits[name] {
		if v.valid() {
			all = append(all, v)
		}
	}
	reset, forced := l.reset, l.lastForced(name)
	l.mu.Unlock()
	var taken int64
	for i, v := range all {
		taken += v.many
		for _, w := range all[:i] {
			if size > 0 || v.shared && w.shared {
				continue
			}
			if time.Since(reset) < l.ttl+time.Second { // one of them learns of its loss by then
				continue
			}
			if time.Since(forced) < 2*l.ttl { // the holder learns of it by its renewal, which an extension puts off
				continue
			}
			l.breaks("no two holds are valid at once", fmt.Sprintf("%s of %q and %s", w, name, v), w.u.process, v.u.process)
		}
	}
	if size > 0 && taken > size && time.Since(reset) > l.ttl+time.Second {
		l.breaks("no more permits are held than there are", fmt.Sprintf("%d of %d of %q: %v", taken, size, name, all),
			all[0].u.process, all[len(all)-1].u.process)
	}
}

func (v *possession) String() string {
	token := uint64(0)
	if v.hold != nil {
		token = v.hold.Token()
	}
	return fmt.Sprintf("the hold of process %d, user %d, since %v, token %d", v.u.n, v.u.i,
		v.began.Sub(v.u.life.began).Round(time.Microsecond), token)
}

// enter notes a new hold.
func (l *life) enter(v *possession, size int64) {
	l.count.Add(1)
	v.u.event("user %d has %q", v.u.i, v.name)
	// Of several members, the first may be lost before the last is acquired.
	given := l.cfg.members == nil || v.valid()
	if at := v.u.closing.Load(); given && at > 0 && !v.shared && time.Duration(at) < l.now() {
		l.breaks("a client that is closed gives no lock", v.String(), v.u.process)
	}
	if v.hold != nil && size == 0 && !v.shared {
		token := v.hold.Token()
		l.mu.Lock()
		last := l.tokens[v.name]
		if time.Since(l.reset) < l.ttl+time.Second { // the server may have forgotten that it gave this token
			token, last = 0, 0
		}
		l.tokens[v.name] = max(token, l.tokens[v.name])
		var before *process
		for _, w := range l.visits[v.name] {
			before = w.u.process
		}
		l.mu.Unlock()
		if token < last || token == last && token != 0 && before != v.u.process {
			if v.valid() && !l.wasForced(v.name, v.began) {
				l.breaks("tokens grow from holder to holder", fmt.Sprintf("%s comes after token %d", v, last), v.u.process, before)
			}
		}
	}
	l.mu.Lock()
	all := l.visits[v.name]
	if len(all) > 64 {
		all = slices.DeleteFunc(all, func(w *possession) bool { return w.over.Load() })
	}
	l.visits[v.name] = append(all, v)
	l.mu.Unlock()
	l.checks(v.name, size)
}

// possession returns the hold of e in the hands of a user, or nil.
func (l *life) possession(e *entry) *possession {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range slices.Backward(l.visits[e.name]) {
		if v.u.process == e.p && v.hold != nil && e.token != 0 && v.hold.Token() == e.token && !v.over.Load() {
			return v
		}
	}
	return nil
}

func (v *possession) leave() { v.over.Store(true) }

// wasForced says whether a process has freed the lock by force since then.
func (l *life) wasForced(name string, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lastForced(name).Before(since.Add(-4 * l.ttl))
}

// lastForced returns when a process has freed the lock by force, or a lock that it consists of.
// l.mu is held.
func (l *life) lastForced(name string) (last time.Time) {
	for _, member := range l.members(name) {
		if at := l.forced[member]; at.After(last) {
			last = at
		}
	}
	return last
}

// members returns the names of the locks that the lock called name consists of.
func (l *life) members(name string) []string {
	if l.cfg.members == nil {
		return []string{name}
	}
	return l.cfg.members(name)
}
