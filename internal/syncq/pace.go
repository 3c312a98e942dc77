package syncq

import (
	"runtime"
	"time"

	"github.com/jucgo/locks/internal/pause"
)

// This file lets the next waiter of a FIFO lock wake up early.
//
// A hand-over readies the new holder, which runs when the releasing goroutine sleeps, as a rule: the Go scheduler does not
// give it to another processor at once, since that costs more than a short hand-over by one. What the
// releasing goroutine does outside of the lock, up to its next wait, is thus done while somebody holds the lock who does not
// run, and one processor does everything.
//
// So a release may rouse, besides the new holder, the waiter that is first behind it. That one spins until it is its turn, on
// another processor if there is one: from then on two processors take turns, one in the section and one outside of it, and
// a hand-over is a store that the spinning waiter sees. Where there is work outside, that takes a third off each turn. Where there
// is none, or the processors are far from each other, it can cost twice as much; and no section that takes long is worth a
// processor that spins. Hence a lock tries both, and looks at the clock.
//
// Only who is patient waits like this, where nothing else can end the wait. The order of the queue is what it was: who
// is roused early does not take the lock but is granted it, and sleeps again if that takes too long.

// pace finds out whether the next waiter should wake up early: it tries without, then with, and stays for long with
// what was faster.
type pace struct {
	turns   uint8 // hand-overs, modulo 256
	ahead   bool  // it should
	slow    uint8 // how many periods of the try were too slow, or, after it, how many in a row
	phase   phase
	periods uint16 // of the phase
	vain    uint8  // how many tries in a row were in vain
	calm    uint8  // how many periods ago one was stalled, at most calmFor
	since   time.Duration
	took    uint32 // nanoseconds of the periods of the phase, without the first ones
	plain   uint32 // those of the last tryPlain
}

type phase uint8

const (
	tryPlain phase = iota
	tryAhead
	decided
)

const (
	// period is how many hand-overs there are between two looks at the clock.
	period = 64
	// counted is how many periods of a try count, behind those in which it settles. The change to waking early takes longest: a
	// processor that sleeps has to be woken first, and everybody spins in vain until then.
	counted       = 12
	settling      = 4
	settlingAhead = 12
	// termAhead is for how many periods a decision for waking early holds, unless it turns out to be no faster any more, and term for
	// how many one against it does, after maxVain tries in vain. The tries are less than a hundredth of either, and so are not what the
	// longest waits of a hundred are made of.
	termAhead = 60_000
	term      = 4000
	maxVain   = 5
	// A period shorter than tooFast has hand-overs and nothing else, by one processor; there is nothing to divide. In tooMany that are
	// longer than tooSlow the lock is held for some microseconds each time, which is too long to spin.
	tooFast = period * 300 * time.Nanosecond
	tooSlow = period * 1500 * time.Nanosecond
	tooMany = 4
	// tooManyInARow are so many that it is not that a processor was taken away, after which it takes a while to find back.
	tooManyInARow = 16
	// expectRounds is how often the waiter that woke up early looks at its state, a pause apart: for a few turns. After yieldAfter
	// it gives its processor away for once, in case that the holder is to run there.
	expectRounds = 150
	yieldAfter   = 40
	// One that is poised does so for about as long as it takes to put a processor to sleep and wake it: an interrupt, or
	// something that the runtime has to do, keeps the holder for less, as a rule, and everybody waits twice if the next one
	// sleeps by then.
	poisedRounds = 3000
	poisedYield  = 500
	// A period longer than stalled is one in which the system gave a processor to others. It has more to do than processors then, and
	// who spins for long takes the time of who is to run, the holder among them. So nobody does before there were calmFor others.
	stalled = 500 * time.Microsecond
	calmFor = 250
	// Every so many waiters that are roused early, one lets others have its processor first, which is soon back. Else they might not get it
	// for long: whom a release readies comes before all others, and runs in what is left of its time slice, and there is always one.
	// The system's part of Go takes the processor away from somebody every 10 ms then, be it from one that has called Lock and is not in
	// the queue yet, and it comes back as late. It is an odd number, for the processors take turns.
	breathe = 4095
)

// measure ends a period at t. Inside a testing/synctest bubble, where time stands still, all are too fast. On the way out of
// one, as on the way in, the clock jumps.
//
// A period may be slow by chance, when the system takes a processor away. So it counts as no slower than tooSlow, and only tooMany in
// one try, or tooManyInARow after it, tell that the lock is held for long, or that waking early does not pay any more.
func (p *pace) measure(t time.Duration, procs int) {
	took := t - p.since
	p.since = t
	switch {
	case took > stalled:
		p.calm = 0
	case p.calm < calmFor:
		p.calm++
	}
	slow := took > tooSlow || took < 0 || p.phase == decided && p.ahead && took > time.Duration(p.plain/counted)
	p.periods++
	if p.phase == decided {
		if p.slow++; !slow {
			p.slow = 0
		}
		if p.slow == tooManyInARow || p.periods >= p.term() {
			p.begin(tryPlain, false)
		}
		return
	}
	settled := uint16(settling)
	if p.phase == tryAhead {
		settled = settlingAhead
	}
	if p.periods <= settled {
		return
	}
	if slow {
		p.slow++
		took = tooSlow
	}
	p.took += uint32(took)
	switch {
	case p.slow == tooMany && p.phase == tryPlain:
		p.begin(tryPlain, false)
	case p.slow == tooMany:
		p.decide(false)
	case p.periods < settled+counted:
	case p.phase == tryAhead:
		p.decide(p.took < p.plain-p.plain/5)
	default:
		p.plain = p.took
		if p.plain < uint32(counted*tooFast) || procs == 1 {
			p.begin(decided, false)
		} else {
			p.begin(tryAhead, true)
		}
	}
}

// decide ends a try.
func (p *pace) decide(ahead bool) {
	switch {
	case ahead:
		p.vain = 0
	case p.vain < maxVain:
		p.vain++
	}
	p.begin(decided, ahead)
}

// term returns for how many periods a decision holds. One against waking early may be due to another processor that did not come in
// time, and is soon looked at again, and less and less often.
func (p *pace) term() uint16 {
	switch {
	case p.ahead:
		return termAhead
	case p.vain == 0:
		return term
	}
	return term >> (maxVain - p.vain)
}

func (p *pace) begin(ph phase, ahead bool) {
	p.phase, p.ahead, p.periods, p.took, p.slow = ph, ahead, 0, 0, 0
}

// processors returns how many goroutines can run at a time: the machine, or what the system lets the process use of it, may have fewer
// processors than GOMAXPROCS says.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// ahead returns the waiter that is first, behind a holder who has just been granted the lock, if it has to be unparked so as to
// spin. The guard is held.
func (s *Sync) ahead(policy Policy) *node {
	n := s.queue.head
	if policy == NonFair || n == nil || !n.patient {
		return nil
	}
	if s.pace.turns++; s.pace.turns%period == 0 {
		s.pace.measure(now(), processors())
	}
	to := roused
	if s.pace.calm == calmFor {
		to = poised
	}
	if !s.pace.ahead || s.Word.Load()&shared != 0 || !n.state.CompareAndSwap(asleep, to) {
		return nil
	}
	if s.early++; s.early == breathe {
		s.early, n.breathe = 0, true
	}
	return n
}

// expect returns true when n, which was roused before its turn, has the lock, and false if it does not get it soon. It is
// asleep then, as it was before: if it was granted the lock meanwhile, the compare-and-swap fails, and there is no other unpark.
func (n *node) expect() bool {
	was, rounds, yieldAfter := n.state.Load(), expectRounds, yieldAfter
	if n.breathe {
		n.breathe = false
		runtime.Gosched()
	}
	if was == poised {
		rounds, yieldAfter = poisedRounds, poisedYield
	}
	for i := range rounds {
		if n.state.Load() == granted {
			return true
		}
		if i == yieldAfter {
			runtime.Gosched()
		}
		pause.Pause(1)
	}
	return was == granted || !n.state.CompareAndSwap(was, asleep)
}
