package syncq

import (
	"context"
	"runtime"
	"time"

	"github.com/jucgo/locks/internal/pause"
)

// This file holds the slow paths: what waiters do, and what is done to them.

// admissible reports whether n, which is not in the queue, may take a lock whose word is w
// now. The guard is held.
func (s *Sync) admissible(n *node, w uint64, policy Policy) bool {
	if n.shared {
		return s.admissibleShared(w, policy)
	}
	return free(w)
}

func (s *Sync) admissibleShared(w uint64, policy Policy) bool {
	if !free(w) && w&shared == 0 {
		return false
	}
	head := s.queue.head
	return head == nil || policy == NonFair && head.shared
}

// admitShared takes a shared hold if a newcomer may have it now.
func (s *Sync) admitShared(policy Policy) bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	for {
		w := s.Word.Load()
		if !s.admissibleShared(w, policy) {
			return false
		}
		if s.Word.CompareAndSwap(w, (w|shared)+one) {
			return true
		}
	}
}

// take returns w with n as a holder.
func (n *node) take(w uint64) uint64 {
	if n.shared {
		return (w | shared) + one
	}
	return w | n.value
}

// enqueue lets n have the lock at once, or refuses it, and reports false, or puts it in the queue.
func (s *Sync) enqueue(n *node, policy Policy) bool {
	if refusing.Load() && s.hasOwners(n) {
		return s.enqueueUnlessCycle(n, policy)
	}
	s.guard.Lock()
	queued := s.enqueueGuarded(n, policy)
	s.guard.Unlock()
	if queued && s.readers.Load() != nil {
		s.Left(policy)
	}
	return queued
}

// enqueueGuarded is enqueue with the guard held. The caller is n's user.
//
// No wake-up is lost: n goes into the queue only together with a compare-and-swap that
// leaves queued set on a word that n could not take. If it is held, its release
// sees queued; if it is free, which takes NonFair, woken is set, and the first
// waiter is on its way. If it is held by visible readers, of whom none may be left, n's user
// has to look (Left) before it parks.
func (s *Sync) enqueueGuarded(n *node, policy Policy) bool {
	for {
		w := s.Word.Load()
		if s.admissible(n, w, policy) {
			if s.Word.CompareAndSwap(w, n.take(w)) {
				return false
			}
			continue
		}
		if explicit(n.who) && s.admitSibling(n) { // a goroutine of the same owner came first
			return false
		}
		if w&queued != 0 || s.Word.CompareAndSwap(w, w&^biased|queued) {
			if policy == NonFair {
				n.since = now()
			}
			s.join(n)
			return true
		}
	}
}

// wait takes the lock for n unless that is refused, reports whether it did, and gives n back.
func (s *Sync) wait(n *node, policy Policy) bool {
	if s.enqueue(n, policy) {
		s.await(n, policy, nil, false)
	}
	ok := !n.refused
	n.recycle()
	return ok
}

// waitLimited takes the lock for n, and reports whether it could before the limit.
func (s *Sync) waitLimited(n *node, policy Policy, l limit) bool {
	l.permit = n.place.Open()
	n.limited = true
	ok := (!s.enqueue(n, policy) || s.await(n, policy, &l, false)) && !n.refused
	l.stop()
	n.recycle()
	return ok
}

// await returns true when n, which is or was in the queue, holds the lock, and false when
// it left the queue because the limit ended. Which of the two is decided with
// the guard held, once. If awake, n was unparked since it was asleep.
func (s *Sync) await(n *node, policy Policy, l *limit, awake bool) bool {
	for {
		if !awake && !l.park(n) {
			s.guard.Lock()
			var next *node
			if n.in != nil {
				next = s.cancel(n)
			}
			state := n.state.Load()
			s.guard.Unlock()
			unpark(next)
			if state != asleep {
				n.place.Park() // the unpark was, or is about to be
			}
			return state == granted
		}
		awake = false
		if policy == FIFO || s.compete(n) {
			return true
		}
	}
}

// mine reports whether n, which is patient and was unparked, has the lock. If not, n is asleep.
func (s *Sync) mine(n *node, policy Policy) bool {
	switch {
	case n.state.Load() == asleep: // who is roused leaves that
		return true
	case policy == FIFO:
		return n.expect()
	default:
		return s.compete(n)
	}
}

// compete lets n, which is first in a NonFair queue, race for the lock, and reports whether
// it has it. If not, n is asleep, on a word that was held and not woken, or handoff,
// then; the release will see to it.
func (s *Sync) compete(n *node) bool {
	for {
		if n.state.Load() == granted {
			return true // whatever the word says: somebody may have ended that hold already
		}
		w := s.Word.Load()
		switch {
		case !n.shared && free(w) && explicit(int64(n.value)):
			// In one go with the guard held: a goroutine that shares the owner may let n in, or give up
			// the holds of all for a wait, and then nobody would know which hold is one too many.
			s.guard.Lock()
			var next *node
			in := n.in == nil
			if !in && s.Word.CompareAndSwap(w, n.take(w)) {
				in, next = true, s.leave(n)
			}
			s.guard.Unlock()
			unpark(next)
			if in {
				return true
			}
			continue
		case free(w) || n.shared && w&shared != 0:
			if s.Word.CompareAndSwap(w, n.take(w)) {
				s.guard.Lock()
				var next *node
				if n.in != nil {
					next = s.leave(n)
				} else {
					// A hold was granted as well: a shared one, or one that is over already.
					next = s.release(NonFair, 0)
				}
				s.guard.Unlock()
				unpark(next)
				return true
			}
			continue
		case w&handoff == 0 && n.lose():
			s.guard.Lock()
			ok := n.in == nil || s.Word.CompareAndSwap(w, w&^woken|handoff)
			s.guard.Unlock()
			if !ok {
				continue
			}
		case w&woken != 0:
			if !s.Word.CompareAndSwap(w, w&^woken) {
				continue
			}
		}
		if n.state.CompareAndSwap(roused, asleep) {
			return false
		}
		if !n.state.CompareAndSwap(nudged, roused) {
			return true // granted
		}
	}
}

// leave takes n, which has just become a holder by itself, out of the queue. It returns whom to
// unpark. The guard is held.
//
// Whoever may release for n may have done so before n came here. It left the wake-up that it
// owed to the one who was on the way, which is n, so n passes it on.
func (s *Sync) leave(n *node) *node {
	s.queue.remove(n)
	for s.queue.len > 0 {
		w := s.Word.Load()
		if free(w) {
			if s.Word.CompareAndSwap(w, w|woken) {
				return s.rouse()
			}
		} else if s.Word.CompareAndSwap(w, w&^(woken|handoff)) {
			if n.shared {
				return s.extend()
			}
			return nil
		}
	}
	s.clear(0)
	return nil
}

// cancel takes n out of the queue without the lock, and returns whom to unpark. The guard is
// held.
//
// No ghost is left: n is out of the list, the flags that it caused are gone,
// and if it was first, what it was in the way of happens: a wake-up that it had, or that is
// on its way to it, goes to the next one, and shared waiters behind an
// exclusive one join the shared holders.
func (s *Sync) cancel(n *node) *node {
	first := s.queue.head == n
	s.queue.remove(n)
	if !first {
		return nil
	}
	w := s.clear(handoff)
	if next := s.extend(); next != nil {
		return next
	}
	if w&woken != 0 {
		return s.rouse()
	}
	return nil
}

// clear clears flags, and all that speak of a queue if that is empty, and returns the
// new word. The guard is held.
func (s *Sync) clear(mask uint64) uint64 {
	if s.queue.len == 0 {
		mask = queued | woken | handoff
	}
	for {
		w := s.Word.Load()
		if w&mask == 0 {
			return w
		}
		if s.Word.CompareAndSwap(w, w&^mask) {
			return w &^ mask
		}
	}
}

// rouse tells the first waiter that it may compete, and returns it if it has to be
// unparked. The guard is held.
func (s *Sync) rouse() *node {
	if n := s.queue.head; n != nil && n.rouse() {
		n.wake = nil
		return n
	}
	return nil
}

// extend lets the shared waiters at the head of the queue in if the lock is
// held shared, and returns whom to unpark. The guard is held.
func (s *Sync) extend() *node {
	k, next := s.sharers()
	if k == 0 {
		return nil
	}
	for {
		w := s.Word.Load()
		if w&shared == 0 {
			return nil
		}
		to := (w + uint64(k)*one) &^ (queued | woken | handoff)
		if next != nil {
			to |= queued
		}
		if s.Word.CompareAndSwap(w, to) {
			return s.grant(k)
		}
	}
}

// sharers returns how many shared waiters are at the head of the queue, and the exclusive
// one behind them, if any. The guard is held.
func (s *Sync) sharers() (k int, next *node) {
	n := s.queue.head
	for ; n != nil && n.shared; n = n.next {
		k++
	}
	return k, n
}

// release frees a word that is held by the caller alone, or by more if it is shared, and
// hands it to whom the policy says. If it is shared by more, it clears the flags of mask with
// its hold. It returns whom the caller shall unpark. The guard is held.
func (s *Sync) release(policy Policy, mask uint64) *node {
	for {
		w := s.Word.Load()
		switch {
		case w&shared != 0 && w >= 2*one:
			if s.Word.CompareAndSwap(w, (w-one)&^mask) {
				return nil
			}
		case w&queued == 0:
			if s.Word.CompareAndSwap(w, 0) {
				return nil
			}
		case policy == FIFO || w&handoff != 0 || s.queue.head.shared:
			k, to := s.heirs(policy)
			if w == to || s.Word.CompareAndSwap(w, to) {
				return s.grant(k)
			}
		default:
			if s.Word.CompareAndSwap(w, queued|woken) {
				if w&woken == 0 {
					return s.rouse()
				}
				return nil
			}
		}
	}
}

// heirs returns how many waiters at the head of the queue get a lock that becomes free, and
// its word then. Under NonFair it owes the lock to the next one as well if that one
// has waited for too long already. The guard is held.
func (s *Sync) heirs(policy Policy) (k int, w uint64) {
	next := s.queue.head
	switch {
	case next == nil:
		return 0, 0
	case next.shared:
		k, next = s.sharers()
		w = uint64(k)*one | shared
	default:
		k, w = 1, next.value
		next = next.next
	}
	if next != nil {
		w |= queued
		if policy == NonFair && next.overdue() {
			w |= handoff
		}
	}
	return k, w
}

// crowd is how many waiters are too many for what each of them touches first, a good kilobyte, to be in the nearest cache when it is
// its turn. Then a hand-over has it fetched for the one behind. That takes 4 ns and saves the next hand-over some 15, and some 80 if
// another processor ran the goroutine before.
const crowd = 64

// grant takes the first k waiters out of the queue as holders, which the word says already,
// and returns those to unpark. The guard is held.
func (s *Sync) grant(k int) *node {
	var first, last *node
	for range k {
		n := s.queue.head
		s.queue.remove(n)
		if s.queue.len >= crowd {
			next := s.queue.head
			next.place.Fetch(next.frame)
		}
		if !n.sleeper() && n.state.Swap(granted) != asleep {
			continue
		}
		n.wake = nil
		if last == nil {
			first = n
		} else {
			last.wake = n
		}
		last = n
	}
	return first
}

// unpark unparks n and those behind it.
func unpark(n *node) {
	for n != nil {
		next := n.wake // once it is unparked, n is its user's again
		n.place.Unpark()
		n = next
	}
}

// A spin looks at the lock spinRounds times, spinPause pauses apart: some 200 ns in all, about
// one hand-over, so that spinning in vain at most doubles what waiting costs.
const (
	spinRounds = 4
	spinPause  = 2
)

// spins says that a holder can be running while another goroutine spins.
var spins = runtime.NumCPU() > 1

// spin tries for a short while to take a lock that is held for a short while. Under FIFO it
// gives up when anybody is in the queue: who spins has not arrived there, and overtakes nobody.
func (s *Sync) spin(p Party, policy Policy) bool {
	if !spins {
		return false
	}
	for range spinRounds {
		if policy == FIFO && s.Word.Load()&queued != 0 {
			return false
		}
		pause.Pause(spinPause)
		if w := s.Word.Load(); free(w) && s.Word.CompareAndSwap(w, w|p.value) {
			return true
		}
	}
	return false
}

// limit is what cuts a wait short: a context or a timer.
type limit struct {
	permit <-chan struct{}
	ctx    <-chan struct{}
	timer  *time.Timer
}

// after returns a limit that ends after d.
func after(d time.Duration) limit { return limit{timer: time.NewTimer(d)} }

// until returns a limit that ends with ctx.
func until(ctx context.Context) limit { return limit{ctx: ctx.Done()} }

// park parks n, and reports whether it got a permit before the limit ended. A nil limit
// never ends.
func (l *limit) park(n *node) bool {
	if l == nil {
		n.place.Park()
		return true
	}
	var timer <-chan time.Time
	if l.timer != nil {
		timer = l.timer.C
	}
	select {
	case <-l.permit:
		return true
	case <-l.ctx:
	case <-timer:
	}
	return false
}

func (l *limit) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
