package spin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
)

// Ticket is a lock that admits in strict order of arrival, like a shop that serves by numbers.
// Each goroutine takes the next ticket with one atomic addition, and waits until that ticket is
// served. The waiter with the next ticket spins for as long as a [Backoff] has pause
// instructions, and parks then. The others park at once.
//
// A cancelled waiter leaves its ticket behind, marked as void, and releases skip the void ticket.
// If no later ticket exists, the waiter takes its ticket back instead. Therefore the lock has at
// most as many void tickets as waiters, however many waiters cancel while the lock is held.
//
// The zero Ticket is free. It must not be copied after first use. Like a [sync.Mutex] it belongs
// to no goroutine: one goroutine may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock. Without
// contention, Lock costs an addition, and Unlock a compare-and-swap. With contention, each
// acquisition costs a change of goroutines, unless the next waiter is still spinning. Lock and
// Unlock do not allocate. Its twin in Java is new ReentrantLock(true), except that a Ticket is
// without an owner.
//
// The algorithm is from D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts and
// Sequencers", Communications of the ACM 22(2), 1979: next is the sequencer, serving the
// eventcount. The lock with backoff by the distance in the queue is from J. M. Mellor-Crummey
// and M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors",
// ACM TOCS 9(1), 1991. Parking and cancellation are additions of this package.
type Ticket struct {
	next atomic.Uint64 // the ticket of the next goroutine that calls Lock

	// serving is the ticket of the holder, shifted left by one, plus the flag sleepers:
	//
	//	serving  next    sleepers
	//	t        t       0         free
	//	t        t+1     0         held, no waiters
	//	t        > t+1   0         held, all waiters spin or are about to enqueue
	//	t        > t+1   1         held, the queue is not empty
	//
	// All other combinations are illegal. Only tickets that were taken back are used twice. 63
	// bits suffice for all tickets.
	serving atomic.Uint64

	guard sync.Mutex
	queue ticketQueue // guarded
}

var _ locks.TryLocker = (*Ticket)(nil)

// sleepers in Ticket.serving means that the queue is not empty. Then the uncontended release
// fails, and the slow one looks at the queue. While sleepers is set, serving and the queue
// change only with the guard held.
const sleepers = 1

// The states of a waiter with ticket t, and the steps that leave them:
//
//	spinning  t is taken, but not in the queue         user: sees serving >= t -> holder
//	                                                   user: guard, serving < t -> asleep
//	asleep    the node is in the queue, and the user   release: guard, serving becomes t, takes
//	          is parked or about to park                 the node out and unparks -> holder
//	                                                   user: guard, its limit ended -> gone
//	holder    serving == t, or the hold is over        the node is in no queue
//	gone      t was taken back from next, or is in     release: skips it
//	          the queue as part of a void range
//
// No wake-up is lost. A waiter enqueues with the guard held, after it has seen that serving is less
// than t, and with sleepers set. From then on serving changes only with the guard held. Therefore
// the release that sets serving to t finds the node, removes it, and unparks it exactly once. If
// serving becomes t before the waiter has enqueued, the waiter sees the new value before it parks.
// By then serving may be greater than t: any goroutine may unlock, even for a holder that has not
// noticed its hold yet.
//
// A wait ends exactly once, by a grant or by a cancellation. Both remove the waiter from the
// queue with the guard held. If the limit of a waiter ends after its grant, the waiter has the
// lock. It takes the unpark that was sent to it before its node is reused.

// Lock acquires the lock, and waits for it behind all earlier waiters.
func (m *Ticket) Lock() {
	sched.Begin("Lock", m)
	if t := m.next.Add(1) - 1; m.serving.Load() != t<<1 {
		m.wait(t, 0)
	}
}

// wait waits until ticket t is served, for an owner, or for the calling goroutine if owner is 0.
//
// wait parks in its own frame, because a goroutine that wakes pays for each frame that it returns
// through. If wait called waitLimited, a contended Lock would take 6 to 15 % longer (Go 1.26.8 and
// 1.27.0).
func (m *Ticket) wait(t uint64, owner int64) {
	if m.spin(t) {
		return
	}
	if owner == 0 {
		owner = goid.Get()
	}
	n := newTicketNode(t, owner)
	m.guard.Lock()
	queued := m.enqueue(n)
	m.guard.Unlock()
	if queued {
		n.place.Park()
	}
	n.recycle()
}

// spin waits for ticket t while t is the next ticket, until its budget is used up. A waiter with
// a later ticket does not spin: each turn ahead takes about as long as parking.
func (m *Ticket) spin(t uint64) bool {
	var b Backoff
	for {
		switch now := m.serving.Load() >> 1; {
		case now >= t:
			return true
		case now+1 < t || b.Spun() || sched.On && sched.Explored():
			return false
		}
		b.Pause()
	}
}

// enqueue puts n in the queue, and returns false if its ticket is served already. The guard is
// held.
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

// waitLimited takes a ticket, waits until the ticket is served, and reports whether the ticket was
// served before the limit ended.
func (m *Ticket) waitLimited(owner int64, l *park.Limit) bool {
	t := m.next.Add(1) - 1
	if m.spin(t) {
		return true
	}
	n := newTicketNode(t, owner)
	l.Open(&n.place)
	m.guard.Lock()
	queued := m.enqueue(n)
	m.guard.Unlock()
	if queued && !await(l, &n.place, func() bool { return m.cancel(n) }) {
		return false // n belongs to the queue, or to another user, now
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

// void makes the ticket of n, which is in the queue, void. The guard is held. Other goroutines may
// reuse n as soon as the guard is released.
//
// The waiter can take back the last ticket, and the void tickets right before it, because no
// later ticket exists. If another goroutine takes a ticket at this moment, next has changed, and
// the swap fails. Therefore the last ticket is always the holder's or a waiter's.
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
		// The holder cannot release the lock meanwhile without the guard.
		m.serving.Add(^uint64(sleepers - 1))
	}
}

// errFreeTicket is made once, so that Unlock stays short.
var errFreeTicket = free("Unlock", "spin.Ticket")

// Unlock releases the lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if the lock is free.
func (m *Ticket) Unlock() {
	sched.Begin("Unlock", m)
	w := m.serving.Load()
	if w&sleepers != 0 || w>>1 == m.next.Load() || !m.serving.CompareAndSwap(w, w+2) {
		if !m.release() {
			panic(errFreeTicket)
		}
	}
}

// release serves the next ticket that is not void. It reports false, and does nothing, if the
// lock is free.
func (m *Ticket) release() bool {
	m.guard.Lock()
	for {
		w := m.serving.Load()
		// next is never less than serving, and serving never decreases. Therefore the two are
		// equal here only if they are equal at one moment.
		if w>>1 == m.next.Load() {
			m.guard.Unlock()
			return false
		}
		to, n := w>>1+1, m.queue.head
		for n != nil && n.void() && n.from == to {
			to, n = n.to, n.next
		}
		var successor *ticketNode
		if n != nil && n.from == to {
			successor, n = n, n.next
		}
		then := to << 1
		if n != nil {
			then |= sleepers
		}
		if !m.serving.CompareAndSwap(w, then) {
			continue // another goroutine has released, or sleepers was set
		}
		for m.queue.head != n {
			h := m.queue.head
			m.queue.remove(h)
			if h != successor {
				h.recycle()
			}
		}
		m.guard.Unlock()
		if successor != nil {
			successor.place.Unpark() // the last access: the node belongs to its user again
		}
		return true
	}
}

// TryLock acquires the lock if it is free, and reports whether it did. While a goroutine waits,
// the lock is never free: it is handed off. Java's tryLock().
func (m *Ticket) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", m)(&ok)
	}
	w := m.serving.Load()
	return w&sleepers == 0 && m.next.CompareAndSwap(w>>1, w>>1+1)
}

// TryLockFor acquires the lock, waits for it in the queue for at most d, and reports whether it
// did. With d <= 0 it does not wait. Java's tryLock(time, unit).
func (m *Ticket) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	return m.TryLock() || d > 0 && m.waitLimited(goid.Get(), park.After(d))
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *Ticket) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", m)(&err)
	}
	const op = "spin: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if m.TryLock() {
		return nil
	}
	// MCS has the same lines. In one function for both, a contended LockContext would take 19 %
	// longer (Go 1.26.8, eight goroutines on two processors).
	owner := int64(locks.CurrentOwner(ctx))
	l := park.Until(ctx)
	if l == nil {
		m.wait(m.next.Add(1)-1, owner)
		return nil
	}
	if !m.waitLimited(owner, l) {
		return ctxerr.Ended(op, ctx)
	}
	return nil
}

// TryLockContext is TryLock for call sites that also work with distributed locks. It ignores a
// ctx that ends later, but a ctx that has ended already is an error even if the lock is free.
func (m *Ticket) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", m)(&ok)
	}
	return tryLockContext(ctx, m)
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *Ticket) UnlockContext(context.Context) error {
	sched.Begin("UnlockContext", m)
	return unlockError(m.release(), "spin.Ticket")
}

// NewCond returns a new condition of the lock. Signalled waiters take their tickets one after
// the other, in the order of the signals. Java's newCondition().
func (m *Ticket) NewCond() *condition.Cond { return condition.New(&attach.Lock{Locker: m}) }

// out returns the number of tickets that are not served to the end: the holder's, the waiters',
// and the void tickets.
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

// IsLocked reports whether the lock is held.
func (m *Ticket) IsLocked() bool { return m.out() > 0 }

// HasQueued reports whether a goroutine waits for the lock.
func (m *Ticket) HasQueued() bool { return m.out() > 1 }

// QueueLength returns the number of goroutines that wait for the lock.
func (m *Ticket) QueueLength() int {
	m.guard.Lock()
	defer m.guard.Unlock()
	return int(max(m.out(), 1) - 1 - m.queue.voids)
}

// IsQueued reports whether a goroutine of owner o is parked in the queue. It does not see a
// spinning waiter, which spins for a moment only.
func (m *Ticket) IsQueued(o locks.Owner) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	for n := m.queue.head; n != nil; n = n.next {
		if n.owner == int64(o) && !n.void() {
			return true
		}
	}
	return false
}

// Queued returns the owners that wait for the lock, longest wait first, without spinning
// waiters.
func (m *Ticket) Queued() []locks.Owner {
	m.guard.Lock()
	defer m.guard.Unlock()
	var owners []locks.Owner
	for n := m.queue.head; n != nil; n = n.next {
		if !n.void() {
			owners = append(owners, locks.Owner(n.owner))
		}
	}
	return owners
}

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *Ticket) Inspect(ctx context.Context) (locks.Info, error) {
	return inspect(ctx, m)
}

// String describes the lock and its state.
func (m *Ticket) String() string { return describe("spin.Ticket", m, m) }
