package filelock

import (
	"context"
	"math/rand/v2"
	"time"
)

// Owners that have passed the local queue poll for the kernel's lock. A thread that sleeps in
// flock would notice a release sooner, but a cancelled waiter could not get it out of there,
// and the thread would acquire the lock later.
const (
	shortest = time.Millisecond
	longest  = 25 * time.Millisecond
	// giveWayKnown is how long a process gives way to others that wait: long enough for each of
	// them to try once.
	giveWayKnown = longest + 5*time.Millisecond
	// giveWayUnknown is the same if the system does not tell whether another process waits.
	giveWayUnknown = time.Millisecond
	// maxLocalTime is how long a lock goes from one local holder to the next before a release
	// unlocks the file.
	maxLocalTime = 100 * time.Millisecond
)

// backoff makes the pauses of one poller.
type backoff struct {
	timer *time.Timer
	last  time.Duration
}

// next returns the next pause: 1 ms first, then half as much longer each time, up to 25 ms. Of
// that it returns a random part between half and all, so that pollers do not all try at once.
func (b *backoff) next() time.Duration {
	if b.last = min(b.last+b.last/2, longest); b.last == 0 {
		b.last = shortest
	}
	return b.last/2 + rand.N(b.last/2)
}

// wait returns after d, or when one of the contexts ends.
func (b *backoff) wait(x, y context.Context, d time.Duration) {
	if b.timer == nil {
		b.timer = time.NewTimer(d)
	} else {
		b.timer.Reset(d)
	}
	select {
	case <-b.timer.C:
	case <-x.Done():
	case <-y.Done():
	}
}

func (b *backoff) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

// poller is the part of an acquisition that polls the kernel.
type poller struct {
	backoff
	polls bool // f.polling is this one's
	marks bool // other processes are told that this one waits
}

// pause makes the caller the poller of f, and returns after one pause. If givingWay is 0, that
// is the pause before the next try. Otherwise the caller gives way to other processes for at
// most that long. f.mu is held, but not during the pause.
func (p *poller) pause(ctx, open context.Context, f *file, givingWay time.Duration) {
	p.polls, f.polling = true, true
	if givingWay == 0 && !p.marks {
		p.marks = true
		f.d.mark()
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	if givingWay == 0 {
		p.wait(ctx, open, p.next())
	} else {
		p.giveWay(ctx, open, f, givingWay)
	}
}

// giveWay returns after d, or sooner if no other process is known to wait any more.
func (p *poller) giveWay(ctx, open context.Context, f *file, d time.Duration) {
	for end := time.Now().Add(d); ctx.Err() == nil && open.Err() == nil && time.Now().Before(end); {
		p.wait(ctx, open, shortest)
		f.mu.Lock()
		waits, known := f.d.marked()
		f.mu.Unlock()
		if known && !waits {
			return
		}
	}
}

// end ends the polling, and lets the waiters for its result go on. f.mu is held.
func (p *poller) end(f *file) {
	p.stop()
	if p.marks {
		f.d.unmark()
	}
	if p.polls {
		f.polling = false
		if f.changed != nil {
			close(f.changed)
			f.changed = nil
		}
	}
}

// await returns when the present poller has ended, or one of the contexts. f.mu is held, but
// not during the wait.
func (f *file) await(ctx, open context.Context) {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	case <-open.Done():
	}
}

// mayHandOff reports whether a release may hand the kernel's lock off to the next local waiter.
// f.mu is held.
func (f *file) mayHandOff(most int) bool {
	if f.mode == unlocked || most == 0 || !f.local.HasQueued() {
		return false
	}
	if f.handedOff.IsZero() {
		f.handedOff = time.Now()
	}
	if f.turns <= most && time.Since(f.handedOff) < maxLocalTime {
		return true
	}
	f.owed = true
	return false
}

// courtesy returns how long this process should give way to others, because it has had its
// share of turns, whether by hand-off or from the kernel. f.mu is held.
func (f *file) courtesy(most int) time.Duration {
	if f.mode != unlocked || f.turns <= most && !f.owed {
		return 0
	}
	owed := f.owed
	f.turns, f.owed = 0, false
	if waits, known := f.d.marked(); waits {
		return giveWayKnown
	} else if !known && owed {
		return giveWayUnknown
	}
	return 0
}
