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

// MCS is a lock that admits in strict order of arrival, from a queue in which each waiter looks
// at a flag of its own and at nothing that others write: the release touches the flag of the one
// waiter whose turn it is. The first in the queue spins, for as long as a [Backoff] has pause
// instructions to spend; the others, and it too then, sleep until they are called.
//
// A waiter that gives up is out of the queue when its call returns.
//
// The zero MCS is free. It must not be copied after first use. Like a [sync.Mutex] it belongs to
// no goroutine: one may lock it and another unlock it, and locking it twice hangs.
//
// In the terms of the Go memory model, an unlock synchronizes before the lock that follows it.
// Uncontended it costs two compare-and-swaps of a pointer; contended, a change of goroutines for
// each acquisition, unless the next one is still spinning. Neither allocates. Its twin in Java is
// new ReentrantLock(true), without an owner.
//
// The algorithm is from J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable
// Synchronization on Shared-Memory Multiprocessors", ACM Transactions on Computer Systems 9(1),
// 1991. A holder that did not have to wait has no node, as in its variant of the K42 operating
// system: M. L. Scott, "Shared-Memory Synchronization", 2013, section 4.3. That a waiter blocks,
// and can give up, is ours.
type MCS struct {
	// tail is the last in the queue, whose head is the holder:
	//
	//	nil           free
	//	&bare         held by one without a node, nobody waits
	//	holder        held by one that waited, nobody waits
	//	another node  held, this one waits, and is the last
	tail atomic.Pointer[mcsNode]

	// first is the next of the holder if that has no node.
	first atomic.Pointer[mcsNode]

	// guard is for all who take nodes out of the queue: the release that hands over, and the
	// waiter that gives up; and for those who look at all of it. It is not needed to join the
	// queue, or to take and free a lock for which nobody waits.
	guard  sync.Mutex
	holder *mcsNode // the holder's node, or nil if it has none or there is none; guarded
}

var _ locks.TryLocker = (*MCS)(nil)

// bare is the node of all holders without one, in all locks. Nothing is ever written to it.
var bare mcsNode

// The states of a node: what its user does, and what has been done for it.
//
//	spinning  it looks at its state                  release -> granted, user -> parked
//	parked    it is parked, or about to park         release -> granted, and unparks; user, its
//	                                                 limit over -> out of the queue, spinning
//	granted   it holds the lock, and does not        user -> taken, release -> released
//	          know yet
//	taken     it holds the lock, and knows           release -> released
//	released  it was the holder                      out of the queue; to be used again
//
// A release grants, and a user gives up, with the guard held, and both by compare-and-swap from
// parked or a swap that shows what was: whether a wait ends with the lock is decided once.
//
// No wake-up is lost, since the user goes from spinning to parked by compare-and-swap, which a
// grant makes fail; and a grant that finds it parked unparks it, exactly once. One whose limit
// ends when it has been granted has the lock, and takes that unpark.
//
// As any goroutine may unlock, a hold can be over before the waiter that got it has noticed; and
// a releaser may still be about to unpark it. So a node is used again only when both its user has
// come back from its wait and its hold was released, by whichever of the two comes second: the
// release if it finds taken, else the user, whose step to taken fails.
const (
	spinning uint32 = iota
	parked
	granted
	taken
	released
)

// mcsNode is one acquisition that had to wait: in the queue until its hold is released.
type mcsNode struct {
	place park.Place
	state atomic.Uint32
	who   int64 // whom inspection shows

	// next is the node behind this one. A waiter that joins the queue swaps tail first, and then
	// sets the next of the one before; in between next is nil although tail is another node.
	next atomic.Pointer[mcsNode]

	prev *mcsNode // the node before a waiter; guarded from when it is linked
}

// Nodes are used again: a contended acquisition allocates nothing in the steady state.
var mcsNodes = sync.Pool{New: func() any { return new(mcsNode) }}

func newMCSNode(who int64) *mcsNode {
	n := mcsNodes.Get().(*mcsNode)
	n.who = who
	return n
}

func (n *mcsNode) recycle() {
	n.place.Reset()
	n.state.Store(spinning)
	n.prev = nil
	mcsNodes.Put(n)
}

// link returns where the one behind n is found.
func (m *MCS) link(n *mcsNode) *atomic.Pointer[mcsNode] {
	if n == &bare {
		return &m.first
	}
	return &n.next
}

// Lock takes the lock, and waits for it behind all who came before.
func (m *MCS) Lock() {
	if !m.tail.CompareAndSwap(nil, &bare) {
		m.wait(0)
	}
}

// wait takes the lock. A party without an identity is the goroutine.
//
// It is one frame with the wait in it: a goroutine that comes back from a switch pays for each
// frame that it returns through.
func (m *MCS) wait(who int64) {
	if who == 0 {
		who = goid.Get()
	}
	n := newMCSNode(who)
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

// enqueue joins the queue, and spins if n is the first to wait. It reports false if the lock was
// free; it is the caller's then, and n was not needed.
func (m *MCS) enqueue(n *mcsNode) bool {
	for {
		prev := m.tail.Load()
		if prev == nil {
			if m.TryLock() {
				return false
			}
			continue
		}
		n.prev = prev
		if m.tail.CompareAndSwap(prev, n) {
			// Until it is linked to n, prev stays where it is.
			first := prev == &bare || prev.state.Load() >= granted
			m.link(prev).Store(n)
			if first {
				n.spin()
			}
			return true
		}
	}
}

// spin waits for a grant until the time to spin is used up. For one further back each turn before
// its own takes about as long as a change of goroutines: it had better sleep at once.
func (n *mcsNode) spin() {
	for b := (Backoff{}); n.state.Load() < granted && !b.Spun(); {
		b.Pause()
	}
}

// waitLimited takes the lock, and reports whether it could before the limit ended.
func (m *MCS) waitLimited(who int64, l *park.Limit) bool {
	defer l.Stop()
	n := newMCSNode(who)
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

// cancel takes the waiter n out of the queue, and reports true, unless n was granted the lock.
func (m *MCS) cancel(n *mcsNode) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	if !n.state.CompareAndSwap(parked, spinning) {
		return false
	}
	m.remove(n)
	return true
}

// remove takes the waiter n out of the queue. The guard is held.
func (m *MCS) remove(n *mcsNode) {
	before := m.link(n.prev)
	for {
		if s := m.behind(n); s != nil {
			s.prev = n.prev
			n.next.Store(nil)
			before.Store(s)
			return
		}
		// As soon as tail is the one before, others may link to that. If the swap fails, somebody
		// joins behind n, and is put there then.
		before.Store(nil)
		if m.tail.CompareAndSwap(n, n.prev) {
			return
		}
	}
}

// behind returns the node behind n, or nil if n was the last at that moment. It waits for one
// that is between its two steps to join, which needs no more for the second than a processor. The
// guard is held.
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

// head returns the node of the holder. The guard is held.
func (m *MCS) head() *mcsNode {
	if m.holder == nil {
		return &bare
	}
	return m.holder
}

// Unlock releases the lock, to the longest waiter if there is one. It panics with
// [locks.ErrNotHeld] if the lock is free.
func (m *MCS) Unlock() {
	if !m.tail.CompareAndSwap(&bare, nil) {
		if !m.release() {
			panic(locks.ErrNotHeld)
		}
	}
}

// release frees the lock or hands it over. It reports false, and does nothing, if it is free.
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

// retire ends the hold of n, which is out of the queue.
func (n *mcsNode) retire() {
	if n != &bare && n.state.Swap(released) == taken {
		n.recycle()
	}
}

// TryLock takes the lock if it is free, and reports whether it did. While anybody waits it is
// not: it is handed over from holder to holder. Java's tryLock().
func (m *MCS) TryLock() bool { return m.tail.Load() == nil && m.tail.CompareAndSwap(nil, &bare) }

// TryLockFor takes the lock, waits for it in the queue for at most d, and reports whether it was
// taken. With d <= 0 it does not wait. Java's tryLock(time, unit).
func (m *MCS) TryLockFor(d time.Duration) bool {
	return m.TryLock() || d > 0 && m.waitLimited(goid.Get(), park.After(d))
}

// LockContext is Lock until ctx ends. A ctx that has ended already is an error even if the lock
// is free. A waiter whose ctx ends is out of the queue when the call returns. Java's
// lockInterruptibly().
func (m *MCS) LockContext(ctx context.Context) error {
	const op = "spin: LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if m.TryLock() {
		return nil
	}
	who := int64(locks.CurrentOwner(ctx))
	if ctx.Done() == nil {
		m.wait(who)
		return nil
	}
	if !m.waitLimited(who, park.Until(ctx)) {
		return ctxerr.Ended(op, ctx)
	}
	return nil
}

// TryLockContext is TryLock for call sites that may go distributed. ctx bounds nothing here; but
// one that has ended already is an error, even if the lock is free.
func (m *MCS) TryLockContext(ctx context.Context) (bool, error) { return tryLockContext(ctx, m) }

// UnlockContext is Unlock, but returns an error that matches [locks.ErrNotHeld] where Unlock
// panics. It ignores ctx.
func (m *MCS) UnlockContext(context.Context) error { return unlocked(m.release()) }

// NewCond returns a new condition of the lock. Those who were signalled join its queue one after
// the other, in the order of the signals. Java's newCondition().
func (m *MCS) NewCond() *condition.Cond { return condition.New(locker{m}) }

// IsLocked reports whether anybody holds the lock.
func (m *MCS) IsLocked() bool { return m.tail.Load() != nil }

// HasQueued reports whether anybody waits for the lock.
func (m *MCS) HasQueued() bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	t := m.tail.Load()
	return t != nil && t != m.head()
}

// each calls f with all who wait, longest wait first, until it returns false.
func (m *MCS) each(f func(who int64) bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	for n := m.behind(m.head()); n != nil && f(n.who); {
		n = m.behind(n)
	}
}

// QueueLength returns the number of goroutines that wait for the lock. It goes through all of
// them.
func (m *MCS) QueueLength() (length int) {
	m.each(func(int64) bool { length++; return true })
	return length
}

// IsQueued reports whether o waits for the lock.
func (m *MCS) IsQueued(o locks.Owner) (found bool) {
	m.each(func(who int64) bool { found = who == int64(o); return !found })
	return found
}

// Queued returns those who wait for the lock, longest wait first.
func (m *MCS) Queued() (owners []locks.Owner) {
	m.each(func(who int64) bool { owners = append(owners, locks.Owner(who)); return true })
	return owners
}

// Inspect describes the lock, whose holder is not known. See [locks.Inspector].
func (m *MCS) Inspect(ctx context.Context) (locks.Info, error) {
	return info.State{
		Held: m.IsLocked(), Waiting: m.QueueLength(), Waiters: m.Queued(),
	}.Answer("spin: Inspect", ctx)
}

// String describes the lock and its state.
func (m *MCS) String() string { return describe("spin.MCS", m, m) }
