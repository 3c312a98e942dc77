package leasetest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks/internal/stacks"
	"github.com/jucgo/locks/internal/test/effort"
)

var (
	simulated = flag.Duration("leasetest.simulate", 0,
		"how much time each Simulate simulates, by new seeds, 0 for what its World says")
	service = flag.Bool("leasetest.service", false, "let each Simulate simulate services, see World.Service")
)

// World describes a simulation by [Simulate]: a server in memory, the processes that use it, and
// the time. Only Open is needed.
type World struct {
	// Open starts a new server and returns how its clients are opened, as for [TestInVirtualTime].
	// Requests to a Store suffer the faults of the network in front of the Store. If the Store has
	// a protocol of its own, send its requests by [Ask], or connect with [Link.Pipe]: then the
	// faults are there.
	Open func(tb testing.TB) Config

	// For is how much time is simulated in all. Default 10 minutes, or a day if Service is set. The
	// flag -leasetest.simulate=100h is for long runs, with new seeds.
	For time.Duration

	// Service makes the lives like the life of a service. Leases last 10 to 30 seconds, holds last
	// seconds to minutes, and lives last hours to days. Minutes to hours pass between two faults.
	// Without Service, something fails about each second, and several faults meet. The flag
	// -leasetest.service sets it.
	Service bool

	// Processes and Users are how many processes there are at most, and how many goroutines of each
	// use locks. Default 4 and 3.
	Processes, Users int

	// Servers is how many servers there are, each with faults of its own. Default 1. The nth Store
	// that Open opens is on the nth server. A Store on several servers reaches them through
	// [Link.Server].
	Servers int

	// Seeds are the seeds of lives that have found something. These lives come first, one after the
	// other.
	Seeds []uint64
}

// Simulate has processes use locks of a server in memory while everything fails that can fail. It
// simulates life after life. Each life has its seed, and a server of its own in a bubble of
// testing/synctest, where time costs nothing. Each run lives the same lives, whose seeds are drawn
// by t's name. So no change is refused for a rare finding that the change did not cause. With the
// flag -leasetest.simulate, or with LOCKS_SEARCH=new in the environment, each run draws new seeds.
//
// In a life, requests and answers take a random time with a long tail. They are lost, in one
// direction or in silence. They overtake each other. They are carried out twice, or up to two
// leases late. The server is away, or slow. Processes stand still while time goes on. They die or
// close their clients, and others take their place. Their goroutines wait, give up, extend, force,
// inspect, re-enter, have another goroutine unlock, and hold for longer than a lease.
//
// At every step, Simulate checks that
//
//   - no two holds that exclude each other are valid, so that a holder is told before a rival holds
//   - tokens grow from holder to holder
//   - a hold that was given back is over for its owner
//   - every error is true: a hold that ends early was lost, and a call fails for a reason
//   - what a late request takes is given back within a tenth of the lease, and so is a lock that is
//     granted after its user has left
//   - a client whose Close has returned nil has no lock in the store, and gets none later, unless
//     the store has sessions
//   - the store answers as a ledger of all requests says
//
// The tests of this package have stores in memory that decide each request at once. Of these,
// Simulate also checks that
//
//   - a try does not wait while nothing fails
//   - a renewal that fails is repeated soon
//   - a lost hold that a late renewal keeps in the store is given back
//
// Then all faults end. Each goroutine must get the lock once more, within two leases and 15
// seconds, and the time by which Config.SetClock has set the clock back. All clients are closed. No
// goroutine may be left, and nothing in the store, see Config.Rest.
//
// A failure tells its seed, and the life that is left without the faults, processes and time that
// the failure does not need. Then follow the actions of the two processes concerned. The flag
// -leasetest.seed lives one life again. The seed decides every fault and every action, and the time
// of each message. The runtime decides which goroutine of a bubble runs first if several are woken
// at the same nanosecond. Package lease draws its pauses after a failed request. So a seed is lived
// up to 20 times until it fails again.
func Simulate(t *testing.T, w World) {
	t.Helper()
	if w.Open == nil {
		t.Fatal("leasetest: a World needs Open")
	}
	w = w.withDefaults()
	if *seed != 0 {
		for range 20 {
			if f, _ := w.liveTelling(t, w.plan(*seed)); f != nil {
				t.Fatal(w.shorten(t, f).report(t.Name()))
			}
		}
		return
	}
	var total totals
	defer func() { t.Log(&total) }() // of a failure too
	live := func(seed uint64) {
		f, sum := w.liveTelling(t, w.plan(seed))
		total.add(sum)
		if f != nil {
			t.Fatal(w.shorten(t, f).report(t.Name()))
		}
	}
	for _, seed := range w.Seeds {
		live(seed)
	}
	for seeds := lifeSeeds(t.Name()); total.time < w.For; {
		live(seeds.Uint64())
	}
}

// lifeSeeds draws the seeds of the lives of a test.
func lifeSeeds(test string) *rand.PCG {
	first := effort.Seed(test)
	if *simulated > 0 {
		first = rand.Uint64()
	}
	return rand.NewPCG(first, 0)
}

func (t *totals) String() string {
	return fmt.Sprintf("%v simulated in %d lives: %d acquisitions, %d requests, %d losses, %d faults",
		t.time.Round(time.Second), t.lives, t.acquisitions, t.requests, t.losses, t.faults)
}

// liveTelling lives p, and prints p's seed in any case: a life may panic, or may never end. A
// verbose test prints each life, for tools/lives.
func (w World) liveTelling(t *testing.T, p plan) (f *finding, sum totals) {
	t.Helper()
	began := time.Now()
	slow := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "leasetest: a life has taken a minute so far: %s\n", replay(t.Name(), p.seed))
	})
	returned := false
	defer func() {
		if slow.Stop(); !returned {
			t.Logf("a life does not return: %s", replay(t.Name(), p.seed))
		}
	}()
	if testing.Verbose() {
		t.Logf("seed %d begins", p.seed)
	}
	f, sum = w.liveCounting(t, p)
	returned = true
	if testing.Verbose() {
		t.Logf("seed %d: %v, in %v", p.seed, &sum, time.Since(began).Round(time.Millisecond))
		if f != nil { // it takes seconds to shorten it
			t.Logf("%s\n%s", f.head(t.Name()), f.text)
		}
	}
	return f, sum
}

func (w World) withDefaults() World {
	if *simulated > 0 {
		w.For = *simulated
	}
	w.Service = w.Service || *service
	if w.For <= 0 {
		w.For = 10 * time.Minute
		if w.Service {
			w.For = 24 * time.Hour
		}
	}
	if w.Processes <= 0 {
		w.Processes = 4
	}
	if w.Users <= 0 {
		w.Users = 3
	}
	return w
}

// totals counts the simulated events.
type totals struct {
	lives, acquisitions, requests, losses, faults int
	time                                          time.Duration
}

func (t *totals) add(u totals) {
	t.lives += u.lives
	t.acquisitions += u.acquisitions
	t.requests += u.requests
	t.losses += u.losses
	t.faults += u.faults
	t.time += u.time
}

// trouble is one fault of a plan.
type trouble struct {
	kind      troubleKind
	at, until time.Duration // from the beginning of the life
	who       int           // the process, or -1 for all
	server    int           // counted from 1, or 0 for all
}

type troubleKind string

const (
	slowNet    troubleKind = "slow network"
	lossyNet   troubleKind = "messages are lost"
	silentNet  troubleKind = "messages are lost in silence"
	lateNet    troubleKind = "requests are late"
	twiceNet   troubleKind = "requests are carried out twice"
	cutUp      troubleKind = "requests do not arrive"
	cutDown    troubleKind = "answers do not arrive"
	cutBoth    troubleKind = "partition"
	parts      troubleKind = "renewals succeed in part"
	down       troubleKind = "the server is away"
	stalls     troubleKind = "the server is slow"
	pauses     troubleKind = "the process stands still"
	dies       troubleKind = "the process dies"
	closes     troubleKind = "the client is closed"
	forgets    troubleKind = "the server forgets"
	clockJumps troubleKind = "the server's clock jumps"
)

// ofServer says that the trouble concerns all processes.
func (k troubleKind) ofServer() bool {
	return k == down || k == stalls || k == forgets || k == clockJumps
}

// ofProcess says that the trouble concerns a process and no messages.
func (k troubleKind) ofProcess() bool { return k == pauses || k == dies || k == closes }

// plan is a life before it is lived, as drawn by its seed.
type plan struct {
	seed      uint64
	processes int
	users     int
	names     int
	raw       bool          // process 0 sends requests without a client
	ttl       time.Duration // unless the Config has one
	pace      time.Duration // how long a user thinks
	relies    time.Duration // how long a user has a hold
	long      time.Duration // the trouble
	calm      bool          // whether the calm is lived
	service   bool          // see World.Service
	troubles  []trouble     // in order of their beginnings
	longest   time.Duration // trouble
}

func (w World) plan(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{seed: seed, calm: true, service: w.Service}
	p.processes = 2 + r.IntN(max(1, w.Processes-1))
	p.users = 1 + r.IntN(w.Users)
	p.names = 1 + r.IntN(2)
	p.raw = r.IntN(3) == 0
	var often time.Duration // between two troubles, at most twice
	lasts := func() time.Duration { return time.Duration(r.Int64N(int64(p.ttl) * 2)) }
	if w.Service {
		p.ttl = 10*time.Second + time.Duration(r.IntN(20_000))*time.Millisecond
		p.relies = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}[r.IntN(3)]
		p.pace = p.relies * time.Duration(1+r.IntN(8))
		p.long = time.Duration(2+r.IntN(46)) * time.Hour
		often = []time.Duration{5 * time.Minute, 20 * time.Minute, time.Hour, 3 * time.Hour}[r.IntN(4)]
		lasts = func() time.Duration { // some end within a lease, some after many
			return time.Duration(r.Int64N(int64(p.ttl) * []int64{1, 4, 20}[r.IntN(3)]))
		}
	} else {
		p.ttl = 1500*time.Millisecond + time.Duration(r.IntN(2000))*time.Millisecond
		p.pace = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second}[r.IntN(4)]
		p.relies = p.pace / 2
		p.long = time.Duration(5+r.IntN(25)) * time.Second
		if p.pace >= 200*time.Millisecond {
			p.long *= 4
		}
	}
	kinds := []troubleKind{
		slowNet, lossyNet, lossyNet, silentNet, lateNet, lateNet, lateNet, twiceNet, cutUp, cutDown, cutBoth, parts, down, stalls,
		pauses, dies, closes, forgets, clockJumps,
	}
	// A life has some kinds of trouble, so that each of them also occurs alone.
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	if kinds = kinds[:1+r.IntN(len(kinds))]; r.IntN(2) == 0 {
		kinds = kinds[:min(len(kinds), 3)]
	}
	if often == 0 {
		often = time.Duration(300+r.IntN(3000)) * time.Millisecond
	}
	for at := time.Duration(0); at < p.long; at += time.Duration(r.Int64N(int64(2 * often))) {
		k := kinds[r.IntN(len(kinds))]
		t := trouble{kind: k, at: at, who: r.IntN(p.processes)}
		t.until = min(p.long, at+lasts())
		if k.ofServer() {
			t.who = -1
			if !w.Service {
				t.until = min(t.until, at+time.Second)
			}
		}
		p.troubles = append(p.troubles, t)
	}
	if w.Servers > 1 {
		r := rand.New(rand.NewPCG(seed, 2))
		for i := range p.troubles {
			if t := &p.troubles[i]; !t.kind.ofProcess() && r.IntN(4) > 0 {
				t.server = 1 + r.IntN(w.Servers)
			}
		}
	}
	for _, t := range p.troubles {
		p.longest = max(p.longest, t.until-t.at)
	}
	return p
}

// during returns the troubles that may be under way between two times, and perhaps some others.
func (p *plan) during(from, to time.Duration) []trouble {
	at := func(t trouble, d time.Duration) int { return cmp.Compare(t.at, d) }
	first, _ := slices.BinarySearchFunc(p.troubles, from-p.longest, at)
	next, _ := slices.BinarySearchFunc(p.troubles, to+1, at)
	return p.troubles[min(first, next):next]
}

// finding is a life that has failed.
type finding struct {
	plan     plan
	rule     string
	text     string
	at       time.Duration
	who      []int // the processes concerned
	timeline string
	tries    int // how many lives shortened it
}

// live lives p, and returns what it has found, or nil.
func (w World) live(t *testing.T, p plan) *finding {
	f, _ := w.liveCounting(t, p)
	return f
}

func (w World) liveCounting(t *testing.T, p plan) (f *finding, sum totals) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLife(t, w, p)
		l.live()
		f, sum = l.found(), l.sum()
	})
	return f, sum
}

// shorten takes away from a life that has failed what it does not need for that: time, processes,
// users and troubles. It gives up after some seconds.
func (w World) shorten(t *testing.T, f *finding) *finding {
	const limit = 15 * time.Second
	began := time.Now()
	tries := 0
	fails := func(p plan) bool {
		for range 3 {
			if time.Since(began) > limit {
				return false
			}
			tries++
			if again := w.live(t, p); again != nil && again.rule == f.rule {
				f = again
				return true
			}
		}
		return false
	}
	if p := f.plan; f.at < p.long {
		p.long = min(p.long, f.at+wakes+p.ttl)
		p.troubles = slices.DeleteFunc(slices.Clone(p.troubles), func(t trouble) bool { return t.at > f.at })
		p.calm = false
		fails(p)
	}
	for f.plan.processes > 1 {
		p := f.plan
		p.processes--
		p.troubles = slices.DeleteFunc(slices.Clone(p.troubles), func(t trouble) bool { return t.who >= p.processes })
		if !fails(p) {
			break
		}
	}
	for f.plan.users > 1 {
		p := f.plan
		p.users--
		if !fails(p) {
			break
		}
	}
	for n := max(1, len(f.plan.troubles)/2); n > 0; n /= 2 {
		for i := 0; i < len(f.plan.troubles); {
			p := f.plan
			p.troubles = slices.Delete(slices.Clone(p.troubles), i, min(i+n, len(p.troubles)))
			if !fails(p) {
				i += n
			}
		}
	}
	f.tries = tries
	return f
}

// head is the first line of the report. It has the seed, so that no shortened output lacks the
// seed.
func (f *finding) head(test string) string {
	return fmt.Sprintf("seed %d is broken at %v: %s: live it again by %s",
		f.plan.seed, f.at.Round(time.Microsecond), f.rule, replay(test, f.plan.seed))
}

// replay is the command that lives a life again.
func replay(test string, seed uint64) string {
	how := ""
	if *service {
		how = " -leasetest.service"
	}
	return fmt.Sprintf("go test -run '^%s$' -leasetest.seed=%d%s", test, seed, how)
}

// report describes the finding, and says how to find it again.
func (f *finding) report(test string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n", f.head(test), f.text)
	fmt.Fprintf(&b, "shortened by %d lives to %v, %d processes, %d users of each, %d faults:\n",
		f.tries, f.plan.long.Round(time.Millisecond), f.plan.processes, f.plan.users, len(f.plan.troubles))
	for _, t := range f.plan.troubles {
		who := "all"
		if t.who >= 0 {
			who = fmt.Sprintf("process %d", t.who)
		}
		if t.server > 0 {
			who += fmt.Sprintf(", server %d", t.server-1)
		}
		fmt.Fprintf(&b, "  %8.3f to %8.3f s  %s: %s\n", t.at.Seconds(), t.until.Seconds(), who, t.kind)
	}
	fmt.Fprintf(&b, "the processes concerned:\n%s", f.timeline)
	return b.String()
}

// stray returns the stacks of the goroutines of the caller's bubble except for the caller's.
func stray() string {
	buf := make([]byte, 1<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	_, bubble, ok := strings.Cut(stacks.State(all[0]), "synctest bubble ")
	if !ok {
		return ""
	}
	var left []string
	for _, g := range all[1:] {
		if strings.HasSuffix(stacks.State(g), "synctest bubble "+bubble) && !strings.Contains(g, "internal/synctest.Run(") && !strings.Contains(g, "testingSynctestTest") {
			left = append(left, g)
		}
	}
	return strings.Join(left, "\n\n")
}
