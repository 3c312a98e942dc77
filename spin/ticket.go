package spin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/park"
)

// Ticket is a lock that admits in strict order of arrival, like the counter of a bakery: each
// goroutine takes the next ticket, with one atomic addition, and waits until that is served. The
// one whose turn is next spins for it, for as long as a [Backoff] has pause instructions to
// spend; the others, and it too then, sleep until they are called.
//
// A waiter that gives up leaves its ticket behind, marked as void, and it is passed over; the
// last ticket is simply taken back. So the lock keeps no more void tickets than there are
// waiters, however many give up while somebody holds it.
//
// The zero Ticket is free. It must not be copied after first use. Like a [sync.Mutex] it belongs
// to no goroutine: one may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the lock that follows it.
// Uncontended it costs an addition and a compare-and-swap; contended, a change of goroutines for
// each acquisition, unless the next one is still spinning. Neither allocates. Its twin in Java is
// new ReentrantLock(true), without an owner.
//
// The algorithm is from D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts and
// Sequencers", Communications of the ACM 22(2), 1979: next is the sequencer, serving the
// eventcount. J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors", ACM Transactions on Computer Systems 9(1), 1991, made it the
// lock that backs off by its place in the line. That a waiter blocks, and can give up, is ours.
type Ticket struct {
	next atomic.Uint64 // the ticket that the next one to come takes

	// serving is the ticket of the holder, shifted left by one, and sleepers:
	//
	//	serving  next    sleepers
	//	t        t       0         free
	//	t        t+1     0         held, nobody waits
	//	t        > t+1   0         held, all who wait are spinning or on their way to the queue
	//	t        > t+1   1         held, the queue is not empty
	//
	// All others are illegal. Tickets are never used twice, but for those that were taken back,
	// and 63 bits of them do not run out.
	serving atomic.Uint64

	guard sync.Mutex
	queue ticketQueue // guarded
}

var _ locks.TryLocker = (*Ticket)(nil)

// sleepers in Ticket.serving says that the queue is not empty, so that the uncontended release
// fails, and looks at the queue. While it is set, serving and the queue change only with the
// guard held.
const sleepers = 1

// What a waiter with ticket t is, and who makes it something else:
//
//	spinning  t is taken, but not in the queue         user: sees serving >= t -> holder
//	                                                   user: guard, serving < t -> asleep
//	asleep    its node is in the queue, and it is      release: guard, serving becomes t, takes
//	          parked or about to park                    the node out and unparks -> holder
//	                                                   user: guard, its limit ended -> gone
//	holder    serving == t, or the hold is over        the node is in no queue
//	gone      t was taken back from next, or is in     release: passes over it
//	          the queue as part of a void range
//
// No wake-up is lost. A waiter goes to the queue only together with the finding, guard held, that
// serving is less than t and sleepers is set. From then on serving moves only with the guard
// held, so the release that moves it to t finds the node and unparks it: exactly once, since it
// takes the node out. A waiter that is not in the queue yet when serving becomes t finds that
// when it looks, at the latest before it would sleep. serving may be past t by then: any
// goroutine may unlock, also for a holder that has not noticed yet that it is one.
//
// Grant and cancellation are decided once: both need the guard, and both end asleep by taking the
// waiter out of the queue, so that the second comes too late. One whose limit ends when it has
// been granted has the lock, and takes the unpark that was sent for it before the node is used
// again.

// Lock takes the lock, and waits for it behind all who came before.
func (m *Ticket) Lock() {
	if t := m.next.Add(1) - 1; m.serving.Load() != t<<1 {
		m.wait(t, 0)
	}
}

// wait waits until ticket t is served. A party without an identity is the goroutine.
//
// It is one frame with the wait in it: a goroutine that comes back from a switch pays for each
// frame that it returns through.
func (m *Ticket) wait(t uint64, who int64) {
	if m.spin(t) {
		return
	}
	if who == 0 {
		who = goid.Get()
	}
	n := newTicketNode(t, who)
	m.guard.Lock()
	queued := m.enqueue(n)
	m.guard.Unlock()
	if queued {
		n.place.Park()
	}
	n.recycle()
}

// spin waits for ticket t as long as it is the next one, and the time to spin is not used up. For
// one further back each turn before its own takes about as long as a change of goroutines: it had
// better sleep at once.
func (m *Ticket) spin(t uint64) bool {
	var b Backoff
	for {
		switch now := m.serving.Load() >> 1; {
		case now >= t:
			return true
		case now+1 < t || b.Spun():
			return false
		}
		b.Pause()
	}
}

// enqueue puts n in the queue, unless its ticket is served by now. The guard is held.
func (m *Ticket) enqueue(n *ticketNode) bool {
	for {
		w := m.serving.Load()
		if w>>1 >= n.from {
			return false
		}
		if w&sleepers != 0 || m.serving.CompareAndSwap(w, w|sleepers) {
			m.queue.insert(n)
			return true
		}
	}
}

// waitLimited takes a ticket, waits until it is served, and reports whether it was before the
// limit ended.
func (m *Ticket) waitLimited(who int64, l *park.Limit) bool {
	defer l.Stop()
	t := m.next.Add(1) - 1
	if m.spin(t) {
		return true
	}
	n := newTicketNode(t, who)
	l.Open(&n.place)
	m.guard.Lock()
	queued := m.enqueue(n)
	m.guard.Unlock()
	if queued && !await(l, &n.place, func() bool { return m.cancel(n) }) {
		return false // n is the queue's, or somebody else's, now
	}
	n.recycle()
	return true
}

// cancel makes the ticket of n void, and reports true, unless n was granted the lock.
func (m *Ticket) cancel(n *ticketNode) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	if !n.queued {
		return false
	}
	m.void(n)
	return true
}

// void makes the ticket of n, which is in the queue, void. The guard is held. Others may use n
// again as soon as the guard is released.
//
// The last ticket of all can be taken back, and the void ones before it with it, since nobody has
// one behind it. If somebody takes one at this moment, next has moved on, and the swap fails. So
// the last ticket is the holder's, or that of a waiter: a lock has more than one ticket out only
// if somebody waits.
func (m *Ticket) void(n *ticketNode) {
	q := &m.queue
	if m.next.CompareAndSwap(n.to, n.from) {
		if p := n.prev; p != nil && p.void() && p.to == n.from && m.next.CompareAndSwap(p.to, p.from) {
			q.remove(p)
			p.recycle()
		}
		q.remove(n)
		n.recycle()
	} else {
		q.annul(n)
	}
	if q.head == nil {
		// The holder cannot free the lock meanwhile without the guard.
		m.serving.Add(^uint64(sleepers - 1))
	}
}

// Unlock releases the lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if the lock is free.
func (m *Ticket) Unlock() {
	w := m.serving.Load()
	if w&sleepers != 0 || w>>1 == m.next.Load() || !m.serving.CompareAndSwap(w, w+2) {
		if !m.release() {
			panic(locks.ErrNotHeld)
		}
	}
}

// release serves the next ticket that is not void. It reports false, and does nothing, if the
// lock is free.
func (m *Ticket) release() bool {
	m.guard.Lock()
	for {
		w := m.serving.Load()
		// next is never behind serving, which never goes back, so that they are equal here only
		// if they are at the same time.
		if w>>1 == m.next.Load() {
			m.guard.Unlock()
			return false
		}
		to, n := w>>1+1, m.queue.head
		for n != nil && n.void() && n.from == to {
			to, n = n.to, n.next
		}
		var heir *ticketNode
		if n != nil && n.from == to {
			heir, n = n, n.next
		}
		then := to << 1
		if n != nil {
			then |= sleepers
		}
		if !m.serving.CompareAndSwap(w, then) {
			continue // released by somebody else, or queued has been
		}
		for m.queue.head != n {
			h := m.queue.head
			m.queue.remove(h)
			if h != heir {
				h.recycle()
			}
		}
		m.guard.Unlock()
		if heir != nil {
			heir.place.Unpark() // the last touch: it is its user's again
		}
		return true
	}
}

// TryLock takes the lock if it is free, and reports whether it did. While anybody waits it is
// not: it is handed over from holder to holder. Java's tryLock().
func (m *Ticket) TryLock() bool {
	w := m.serving.Load()
	return w&sleepers == 0 && m.next.CompareAndSwap(w>>1, w>>1+1)
}

// TryLockFor takes the lock, waits for it in the line for at most d, and reports whether it was
// taken. With d <= 0 it does not wait. Java's tryLock(time, unit).
func (m *Ticket) TryLockFor(d time.Duration) bool {
	return m.TryLock() || d > 0 && m.waitLimited(goid.Get(), park.After(d))
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. A waiter whose ctx ends is out of the line when the call returns. Java's
// lockInterruptibly().
func (m *Ticket) LockContext(ctx context.Context) error {
	const op = "spin: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if m.TryLock() {
		return nil
	}
	who := int64(locks.CurrentOwner(ctx))
	if ctx.Done() == nil {
		m.wait(m.next.Add(1)-1, who)
		return nil
	}
	if !m.waitLimited(who, park.Until(ctx)) {
		return ctxerr.Ended(op, ctx)
	}
	return nil
}

// TryLockContext is TryLock for call sites that may go distributed. ctx bounds nothing here; but
// one that has ended already is an error, even if the lock is free.
func (m *Ticket) TryLockContext(ctx context.Context) (bool, error) { return tryLockContext(ctx, m) }

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *Ticket) UnlockContext(context.Context) error { return unlocked(m.release()) }

// NewCond returns a new condition of the lock. Those who were signalled take their tickets one
// after the other, in the order of the signals. Java's newCondition().
func (m *Ticket) NewCond() *condition.Cond { return condition.New(locker{m}) }

// out returns the number of tickets that were taken and not served to the end: the holder's and
// those of the waiters, and the void ones.
func (m *Ticket) out() uint64 {
	w := m.serving.Load()
	for {
		next := m.next.Load()
		again := m.serving.Load()
		if again>>1 == w>>1 {
			return next - w>>1
		}
		w = again
	}
}

// IsLocked reports whether anybody holds the lock.
func (m *Ticket) IsLocked() bool { return m.out() > 0 }

// HasQueued reports whether anybody waits for the lock.
func (m *Ticket) HasQueued() bool { return m.out() > 1 }

// QueueLength returns the number of goroutines that wait for the lock.
func (m *Ticket) QueueLength() int {
	m.guard.Lock()
	defer m.guard.Unlock()
	return int(max(m.out(), 1) - 1 - m.queue.voids)
}

// IsQueued reports whether o waits for the lock, asleep. One who is still spinning for it does so
// for a moment only, and is not seen.
func (m *Ticket) IsQueued(o locks.Owner) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	for n := m.queue.head; n != nil; n = n.next {
		if n.who == int64(o) && !n.void() {
			return true
		}
	}
	return false
}

// Queued returns those who wait for the lock, longest wait first, without those whom IsQueued
// does not see.
func (m *Ticket) Queued() []locks.Owner {
	m.guard.Lock()
	defer m.guard.Unlock()
	var owners []locks.Owner
	for n := m.queue.head; n != nil; n = n.next {
		if !n.void() {
			owners = append(owners, locks.Owner(n.who))
		}
	}
	return owners
}

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *Ticket) Inspect(ctx context.Context) (locks.Info, error) {
	return info.State{
		Held: m.IsLocked(), Waiting: m.QueueLength(), Waiters: m.Queued(),
	}.Answer("spin: Inspect", ctx)
}

// String describes the lock and its state.
func (m *Ticket) String() string { return describe("spin.Ticket", m, m) }
