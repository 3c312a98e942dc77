package syncq

import "github.com/jucgo/locks/internal/park"

// Waiter is a wait that a layer above the engine keeps. Package shares keeps one for a goroutine of
// an explicit owner, and package condition for a lock without a Sync. Locks that select by
// themselves keep a Waiter too: see Begin, which has rules of its own.
//
// The goroutine that waits makes the Waiter. It calls Acquire, or Enqueue and then the methods that
// await, each once. Its last call is End, Await, or Abandon: no method may be called after that.
// Until then other goroutines may call Granted and Dismiss.
type Waiter struct {
	c *Cond // that the waiter waits for, if it does
	n *node
	l *park.Limit
}

// NewWaiter returns a wait of p for an exclusive or a shared hold. It ends with l.
func (s *Sync) NewWaiter(p Party, isShared bool, l *park.Limit) Waiter {
	return Waiter{n: s.newNode(p, isShared), l: l}
}

// NewWaiter returns a wait of p for a signal of c, and for an exclusive hold after the signal. The
// limit l ends the wait for the signal only.
func (c *Cond) NewWaiter(p Party, l *park.Limit) Waiter {
	return Waiter{c: c, n: c.s.newNode(p, false), l: l}
}

// Begin is the first half of a limited Acquire, for a caller with a select of its own. A goroutine
// that wakes pays for each frame that it returns through. While waits is true, the caller calls
// Woken after a permit, or Leave when its limit has ended. At last it calls Finish, and nothing
// else. If waits is false at once, Finish is the only call.
func Begin(s *Sync, p Party) (w Waiter, waits bool) {
	if s.TryLock(p) || s.TryLockUnread(p) || p.policy == NonFair && s.queue.policy() == NonFair && s.Spin(p) {
		return w, false
	}
	w.n = s.newNode(p, false)
	w.n.limited = true
	w.n.place.Open()
	waits, _ = w.n.enqueue()
	return w, waits
}

// Permits delivers a permit when the wait may be over.
func (w Waiter) Permits() <-chan struct{} { return w.n.place.Permits() }

// Woken reports whether a waiter must go on waiting after a permit.
func (w Waiter) Woken() (waits bool) { return w.n.policy == NonFair && !w.n.compete() }

// Leave ends a wait whose limit has ended. The waiter may have got the lock before.
func (w Waiter) Leave() { w.n.leave() }

// Finish ends the use of the Waiter, and returns the outcome of its Acquire.
func (w Waiter) Finish() Outcome {
	switch n := w.n; {
	case n == nil:
		return Acquired
	case n.state < granted:
		return n.end(Ended)
	default:
		return n.end(Acquired)
	}
}

// Acquire waits for the lock. The outcome is Acquired, also after Dismiss, or Ended.
func (w Waiter) Acquire() Outcome { return w.n.wait(w.l) }

// Enqueue puts the waiter in the queue of its condition. With release it ends the exclusive hold in
// the same step.
func (w Waiter) Enqueue(release bool) {
	w.l.Open(&w.n.place)
	next := keep
	if release {
		next = drop
	}
	if guard := w.c.enqueue(w.n, next); guard != nil {
		guard.Unlock()
	}
}

// AwaitSignal waits until a signal or the limit has taken the waiter out of its condition's queue.
// It reports in signalled whether a signal did, and in queued whether AwaitLock must follow.
func (w Waiter) AwaitSignal() (signalled, queued bool) { return w.c.awaitSignal(w.n, w.l, nil) }

// AwaitLock waits until the waiter has the lock or is dismissed.
func (w Waiter) AwaitLock() { w.n.awaitLock() }

// Await is AwaitSignal, AwaitLock, and End. It reports whether a signal ended the wait.
func (w Waiter) Await() (signalled bool) {
	signalled, queued := w.AwaitSignal()
	if queued {
		w.AwaitLock()
	}
	w.End()
	return signalled
}

// End ends the use of the Waiter.
func (w Waiter) End() { w.n.recycle() }

// Granted reports whether a release has made the waiter a holder. The waiter may still have to
// run.
func (w Waiter) Granted() bool {
	w.n.s.guard.Lock()
	defer w.n.s.guard.Unlock()
	return w.n.state == granted
}

// Dismiss ends the wait for the lock of a waiter whose owner holds the lock. The waiter leaves the
// queue and returns, or does not join it. Dismiss reports false, and does nothing, if the waiter
// waits for a signal, has the lock, or is dismissed already.
func (w Waiter) Dismiss() bool { return w.n.dismiss() }

// Abandon ends the wait of a caller that has not released the lock behind the condition after all.
// If the caller was signalled meanwhile, the signal goes to the next waiter of the condition. The
// waiters that were signalled before wait for a lock that the caller may still have.
func (w Waiter) Abandon() {
	s, n := w.n.s, w.n
	s.guard.Lock()
	var wake *node
	signalled, unparked, holds := n.in != &w.c.queue, n.state != waiting, n.state == granted
	switch n.in {
	case &w.c.queue:
		w.c.remove(n)
	case &s.queue:
		wake = n.cancel()
	}
	s.guard.Unlock()
	unpark(wake)
	if unparked {
		n.place.Park()
	}
	if signalled {
		w.c.Signal()
	}
	if holds {
		s.Unlock()
	}
	w.End()
}
