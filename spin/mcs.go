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

// MCS is a lock that admits in strict order of arrival. Each waiter in its queue looks at a flag
// of its own, which only the release to this waiter writes. The first waiter spins for as long
// as a [Backoff] has pause instructions, and parks then. The others park at once.
//
// A cancelled waiter is out of the queue when its call returns.
//
// The zero MCS is free. It must not be copied after first use. Like a [sync.Mutex] it belongs to
// no goroutine: one goroutine may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the next lock. Without
// contention, Lock and Unlock together cost two compare-and-swaps. With contention, each
// acquisition costs a change of goroutines, unless the next waiter is still spinning. Lock and
// Unlock do not allocate. Its twin in Java is new ReentrantLock(true), except that an MCS is
// without an owner.
//
// The algorithm is from J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
// Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991. A holder that did not
// wait needs no node, as in the K42 variant: M. L. Scott, "Shared-Memory Synchronization", 2013,
// section 4.3. Parking and cancellation are additions of this package.
type MCS struct {
	// tail is the last node of the queue. The first node is the holder's:
	//
	//	nil           free
	//	&bare         held by a holder without a node, no waiters
	//	holder        held by a holder that waited, no waiters
	//	another node  held; this is the node of the last waiter
	tail atomic.Pointer[mcsNode]

	// first is the next node of a holder without a node.
	first atomic.Pointer[mcsNode]

	// guard guards the removal of nodes, by the release that hands off and by a cancelled
	// waiter, and looks at the whole queue. A goroutine needs no guard to enqueue, or to acquire
	// and release a lock without waiters.
	guard  sync.Mutex
	holder *mcsNode // the holder's node; nil if the holder has no node, or the lock is free; guarded
}

var _ locks.TryLocker = (*MCS)(nil)

// bare is the node of all holders without a node of their own, in all locks. It is never
// written.
var bare mcsNode

// The states of a node. Its user is the goroutine that enqueued it:
//
//	spinning  the user looks at the state            release -> granted, user -> parked
//	parked    the user is parked, or about to park   release -> granted, and unparks; user, its
//	                                                 limit over -> out of the queue, spinning
//	granted   the user holds the lock, and does not  user -> taken, release -> released
//	          know yet
//	taken     the user holds the lock, and knows     release -> released
//	released  the user's hold is over                out of the queue; to be reused
//
// A release grants the lock, and a user cancels, with the guard held. A user cancels by
// compare-and-swap from parked. A release grants by a swap, which returns the state before.
// Therefore each wait ends exactly once, with the lock or without.
//
// No wake-up is lost: the user goes from spinning to parked by compare-and-swap, which fails
// after a grant. A grant that finds the user parked unparks it exactly once. If the limit of a
// user ends after the grant, the user has the lock, and takes that unpark.
//
// Any goroutine may unlock. Therefore a hold can be over before its user has noticed it, and the
// granting goroutine may still be about to unpark the user. A node is reused only after its user
// has come back from the wait and its hold was released. The later of the two recycles the node:
// the release if it finds taken, else the user, whose swap to taken fails.
const (
	spinning uint32 = iota
	parked
	granted
	taken
	released
)

// mcsNode is one acquisition that waited: it is in the queue until its hold is released.
type mcsNode struct {
	place park.Place
	state atomic.Uint32
	owner int64 // the owner for Queued

	// next is the node behind this node. A waiter that enqueues swaps tail first, and then sets
	// the next of the node before. In between next is nil although tail is another node.
	next atomic.Pointer[mcsNode]

	prev *mcsNode // the node before a waiter; guarded from when it is linked
}

// Nodes are reused: a contended acquisition allocates nothing in the steady state.
var mcsNodes = sync.Pool{New: park.Maker(func(n *mcsNode) *park.Place { return &n.place })}

func newMCSNode(owner int64) *mcsNode {
	n := mcsNodes.Get().(*mcsNode)
	n.owner = owner
	return n
}

func (n *mcsNode) recycle() {
	n.place.Reset()
	n.state.Store(spinning)
	n.prev = nil
	mcsNodes.Put(n)
}

// link returns the pointer to the node behind n.
func (m *MCS) link(n *mcsNode) *atomic.Pointer[mcsNode] {
	if n == &bare {
		return &m.first
	}
	return &n.next
}

// Lock acquires the lock, and waits for it behind all earlier waiters.
func (m *MCS) Lock() {
	sched.Begin("Lock", m)
	if !m.take() {
		m.wait(0)
	}
}

// wait acquires the lock for an owner, or for the calling goroutine if owner is 0.
//
// wait parks in its own frame, because a goroutine that wakes pays for each frame that it returns
// through. If wait called waitLimited, a contended Lock would take 6 to 8 % longer (Go 1.26.8 and
// 1.27.0).
func (m *MCS) wait(owner int64) {
	if owner == 0 {
		owner = goid.Get()
	}
	n := newMCSNode(owner)
	if !m.enqueue(n) {
		n.recycle()
		return
	}
	if n.state.Load() < granted && n.state.CompareAndSwap(spinning, parked) {
		n.place.Park()
	}
	if !n.state.CompareAndSwap(granted, taken) {
		n.recycle()
	}
}

// enqueue appends n to the queue, and spins if n is the first waiter. If the lock was free, enqueue
// acquires the lock without n, and returns false.
func (m *MCS) enqueue(n *mcsNode) bool {
	for {
		prev := m.tail.Load()
		if prev == nil {
			if m.take() {
				return false
			}
			continue
		}
		n.prev = prev
		if m.tail.CompareAndSwap(prev, n) {
			// prev cannot leave the queue before it is linked to n.
			first := prev == &bare || prev.state.Load() >= granted
			m.link(prev).Store(n)
			if first {
				n.spin()
			}
			return true
		}
	}
}

// spin waits for a grant until its budget is used up. Only the first waiter spins: for the
// others each turn ahead takes about as long as parking.
func (n *mcsNode) spin() {
	if sched.On && sched.Explored() {
		return
	}
	for b := (Backoff{}); n.state.Load() < granted && !b.Spun(); {
		b.Pause()
	}
}

// waitLimited acquires the lock, and reports whether it did before the limit ended.
func (m *MCS) waitLimited(owner int64, l *park.Limit) bool {
	n := newMCSNode(owner)
	l.Open(&n.place)
	if !m.enqueue(n) {
		n.recycle()
		return true
	}
	if n.state.CompareAndSwap(spinning, parked) && !await(l, &n.place, func() bool { return m.cancel(n) }) {
		n.recycle()
		return false
	}
	if !n.state.CompareAndSwap(granted, taken) {
		n.recycle()
	}
	return true
}

// cancel removes the waiter n from the queue, and returns true, unless n was granted the lock.
func (m *MCS) cancel(n *mcsNode) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	if !n.state.CompareAndSwap(parked, spinning) {
		return false
	}
	m.remove(n)
	return true
}

// remove removes the waiter n from the queue. The guard is held.
func (m *MCS) remove(n *mcsNode) {
	before := m.link(n.prev)
	for {
		if s := m.behind(n); s != nil {
			s.prev = n.prev
			n.next.Store(nil)
			before.Store(s)
			return
		}
		// Once tail is the node before, other goroutines may link their nodes to it. If the swap
		// fails, another goroutine is enqueuing behind n, and the loop waits for its node.
		before.Store(nil)
		if m.tail.CompareAndSwap(n, n.prev) {
			return
		}
	}
}

// behind returns the node behind n, or nil if n is the last. A goroutine between its two steps
// to enqueue needs only a processor for the second step; behind waits for it. The guard is held.
func (m *MCS) behind(n *mcsNode) *mcsNode {
	for b := (Backoff{}); ; b.Pause() {
		if s := m.link(n).Load(); s != nil {
			return s
		}
		if t := m.tail.Load(); t == n || t == nil {
			return nil
		}
	}
}

// head returns the holder's node. The guard is held.
func (m *MCS) head() *mcsNode {
	if m.holder == nil {
		return &bare
	}
	return m.holder
}

// Unlock releases the lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if the lock is free.
func (m *MCS) Unlock() {
	sched.Begin("Unlock", m)
	if !m.free() {
		m.unlock()
	}
}

//go:noinline // so that Unlock is inlined
func (m *MCS) unlock() {
	if !m.release() {
		panic(free("Unlock", "spin.MCS"))
	}
}

// release hands the lock off to the first waiter, or frees it. It returns false, and does
// nothing, if the lock is free.
func (m *MCS) release() bool {
	m.guard.Lock()
	h := m.head()
	for {
		n := m.behind(h)
		if n == nil {
			if m.tail.CompareAndSwap(h, nil) {
				break
			}
			if m.tail.Load() == nil {
				m.guard.Unlock()
				return false
			}
			continue
		}
		m.link(h).Store(nil)
		m.holder = n
		was := n.state.Swap(granted)
		m.guard.Unlock()
		if was == parked {
			n.place.Unpark()
		}
		h.retire()
		return true
	}
	m.holder = nil
	m.guard.Unlock()
	h.retire()
	return true
}

// retire ends the hold of n, which is no longer in the queue.
func (n *mcsNode) retire() {
	if n != &bare && n.state.Swap(released) == taken {
		n.recycle()
	}
}

// TryLock acquires the lock if it is free, and reports whether it did. While a goroutine waits,
// the lock is never free: it is handed off. Java's tryLock().
func (m *MCS) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", m)(&ok)
	}
	return m.tail.Load() == nil && m.take()
}

// TryLockFor acquires the lock, waits for it in the queue for at most d, and reports whether it
// did. With d <= 0 it does not wait. Java's tryLock(time, unit).
func (m *MCS) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", m)(&ok)
	}
	return m.TryLock() || d > 0 && m.waitLimited(goid.Get(), park.After(d))
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. If ctx ends, the waiter is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *MCS) LockContext(ctx context.Context) (err error) {
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
	// Ticket has the same lines. In one function for both, a contended LockContext would take 7 %
	// longer (Go 1.26.8, eight goroutines on two processors).
	owner := int64(locks.CurrentOwner(ctx))
	l := park.Until(ctx)
	if l == nil {
		m.wait(owner)
		return nil
	}
	if !m.waitLimited(owner, l) {
		return ctxerr.Ended(op, ctx)
	}
	return nil
}

// TryLockContext is TryLock for call sites that also work with distributed locks. It ignores a
// ctx that ends later, but a ctx that has ended already is an error even if the lock is free.
func (m *MCS) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", m)(&ok)
	}
	return tryLockContext(ctx, m)
}

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *MCS) UnlockContext(context.Context) error {
	sched.Begin("UnlockContext", m)
	return unlockError(m.free() || m.release(), "spin.MCS")
}

// NewCond returns a new condition of the lock. Signalled waiters join the lock's queue one after
// the other, in the order of the signals. Java's newCondition().
func (m *MCS) NewCond() *condition.Cond { return condition.New(&attach.Lock{Locker: m}) }

// IsLocked reports whether the lock is held.
func (m *MCS) IsLocked() bool { return m.tail.Load() != nil }

// HasQueued reports whether a goroutine waits for the lock.
func (m *MCS) HasQueued() bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	t := m.tail.Load()
	return t != nil && t != m.head()
}

// each calls f with the owner of each waiter, longest wait first, until f returns false.
func (m *MCS) each(f func(owner int64) bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	for n := m.behind(m.head()); n != nil && f(n.owner); {
		n = m.behind(n)
	}
}

// QueueLength returns the number of goroutines that wait for the lock. It counts the queue's nodes
// one by one.
func (m *MCS) QueueLength() (length int) {
	m.each(func(int64) bool { length++; return true })
	return length
}

// IsQueued reports whether o waits for the lock.
func (m *MCS) IsQueued(o locks.Owner) (found bool) {
	m.each(func(owner int64) bool { found = owner == int64(o); return !found })
	return found
}

// Queued returns the owners that wait for the lock, longest wait first.
func (m *MCS) Queued() (owners []locks.Owner) {
	m.each(func(owner int64) bool { owners = append(owners, locks.Owner(owner)); return true })
	return owners
}

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *MCS) Inspect(ctx context.Context) (locks.Info, error) {
	return inspect(ctx, m)
}

// String describes the lock and its state.
func (m *MCS) String() string { return describe("spin.MCS", m, m) }
