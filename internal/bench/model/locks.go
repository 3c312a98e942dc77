package model

import "slices"

// lock is a lock of the simulation. The goroutine goes on with then.
type lock interface {
	acquire(t *task, then func())
	release(t *task, then func())
	exclusive() bool
}

// waiter is a goroutine in a queue.
type waiter struct {
	t      *task
	then   func()
	since  float64
	losses int
	spins  bool
}

// queue is the part that the locks have in common.
type queue struct {
	m        *machine
	word     line
	held     bool
	waiters  []*waiter
	spinners []*waiter // they have not joined the waiters yet
}

// ask acquires the lock if it is free. If not, t looks at it for a while before it joins the queue.
func (q *queue) ask(t *task, then, join func()) {
	q.m.touch(t, &q.word, func() {
		switch {
		case !q.held:
			q.held = true
			then()
		case len(q.m.procs) == 1:
			join()
		default:
			w := &waiter{t: t, then: then, spins: true}
			q.spinners = append(q.spinners, w)
			q.m.after(q.m.Spin, func() {
				if w.spins {
					q.stop(w)
					q.arrive(t, then, join)
				}
			})
		}
	})
}

func (q *queue) stop(w *waiter) {
	w.spins = false
	q.spinners = slices.DeleteFunc(q.spinners, func(s *waiter) bool { return s == w })
}

// arrive is ask without looking for long.
func (q *queue) arrive(t *task, then, join func()) {
	q.m.touch(t, &q.word, func() {
		if q.held {
			join()
			return
		}
		q.held = true
		then()
	})
}

// free frees the lock. All that look at it see that, and the first to do so has it.
func (q *queue) free(join func(w *waiter)) {
	q.held = false
	for _, w := range slices.Clone(q.spinners) {
		q.stop(w)
		q.arrive(w.t, w.then, func() { join(w) })
	}
}

func (q *queue) exclusive() bool { return true }

func (q *queue) pop() *waiter {
	w := q.waiters[0]
	q.waiters = q.waiters[1:]
	return w
}

// fifo is fair.Mutex: a release hands the lock to the longest waiter, and makes it runnable. Nobody
// spins.
type fifo struct{ queue }

func (l *fifo) acquire(t *task, then func()) { l.arrive(t, then, func() { l.join(t, then) }) }

func (l *fifo) join(t *task, then func()) {
	l.waiters = append(l.waiters, &waiter{t: t})
	l.m.park(t, then)
}

func (l *fifo) release(t *task, then func()) {
	l.m.touch(t, &l.word, func() {
		if len(l.waiters) == 0 {
			l.held = false
			then()
			return
		}
		l.m.ready(t, l.pop().t)
		l.m.compute(t, l.m.Wake, then)
	})
}

// barging is fair.BargingMutex: a release frees the lock and wakes the first waiter, which must
// compete. One that has lost 16 times, or has waited for 1 ms when it loses, is handed the lock.
type barging struct {
	queue
	awake, reserved bool
}

func (l *barging) acquire(t *task, then func()) { l.ask(t, then, func() { l.join(t, then) }) }

func (l *barging) join(t *task, then func()) {
	w := &waiter{t: t, then: then, since: l.m.now}
	l.waiters = append(l.waiters, w)
	l.m.park(t, func() { l.compete(w) })
}

// compete has the steps of the first waiter after it was woken.
func (l *barging) compete(w *waiter) {
	l.m.touch(w.t, &l.word, func() {
		l.awake = false
		switch {
		case l.reserved: // the release has handed the lock over
			l.reserved = false
		case l.held:
			w.losses++
			l.m.park(w.t, func() { l.compete(w) })
			return
		}
		l.held = true
		l.pop()
		w.then()
	})
}

func (l *barging) release(t *task, then func()) {
	l.m.touch(t, &l.word, func() {
		if len(l.waiters) == 0 || l.awake {
			l.free(func(w *waiter) { l.join(w.t, w.then) })
			then()
			return
		}
		w := l.waiters[0]
		l.reserved = w.losses >= 16 || w.losses > 0 && l.m.now-w.since >= 1e6
		if l.awake = true; !l.reserved {
			l.free(func(w *waiter) { l.join(w.t, w.then) })
		}
		l.m.ready(t, w.t)
		l.m.compute(t, l.m.Wake, then)
	})
}

// mcs is spin.MCS: as fifo, but the first waiter spins on a line of its own for a while before it
// parks, unless there is one processor. The others park at once.
type mcs struct{ queue }

func (l *mcs) acquire(t *task, then func()) {
	l.m.touch(t, &l.word, func() {
		if !l.held {
			l.held = true
			then()
			return
		}
		w := &waiter{t: t, then: then, spins: len(l.waiters) == 0 && len(l.m.procs) > 1}
		l.waiters = append(l.waiters, w)
		if !w.spins {
			l.m.park(t, then)
			return
		}
		l.m.after(l.m.Spin, func() {
			if w.spins {
				w.spins = false
				l.m.park(t, then)
			}
		})
	})
}

func (l *mcs) release(t *task, then func()) {
	if len(l.waiters) == 0 {
		l.m.touch(t, &l.word, func() {
			if len(l.waiters) == 0 {
				l.held = false
				then()
				return
			}
			l.handOff(t, then)
		})
		return
	}
	l.handOff(t, then)
}

// handOff hands the lock off to the first waiter.
func (l *mcs) handOff(t *task, then func()) {
	w := l.pop()
	if w.spins {
		w.spins = false
		l.m.after(l.m.Transfer, w.then) // until it sees the change of its line
		l.m.compute(t, l.m.Transfer, then)
		return
	}
	l.m.ready(t, w.t)
	l.m.compute(t, l.m.Wake, then)
}

// counter is the read side of sync.RWMutex and fair.RWMutex while nobody writes: each reader
// changes one word that all share, twice.
type counter struct {
	m    *machine
	word line
}

func (l *counter) acquire(t *task, then func()) { l.m.touch(t, &l.word, then) }
func (l *counter) release(t *task, then func()) { l.m.touch(t, &l.word, then) }
func (l *counter) exclusive() bool              { return false }

// table is the read side of rwlock.RWMutex while nobody writes: each reader changes a line that is
// its own as long as it stays on its processor.
type table struct {
	m     *machine
	slots map[*task]*line
}

func (l *table) acquire(t *task, then func()) {
	if l.slots[t] == nil {
		l.slots[t] = new(line)
	}
	l.m.touch(t, l.slots[t], then)
}

func (l *table) release(t *task, then func()) { l.m.touch(t, l.slots[t], then) }
func (l *table) exclusive() bool              { return false }
