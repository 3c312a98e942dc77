package lease

import (
	"slices"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The left column has the possible remains of a client in the store, and the right column their
// undoing:
//
//	a request is under way, its caller has gone     undo: waits for the answer, sweeps from grace on
//	a request without an answer                     sweep, late; nothing if Lookup settles it
//	a release without an answer, or refused         sweep
//	a hold extended after its loss, or perhaps      sweep
//	a hold renewed after its loss                   sweep
//	a hold lost by time, perhaps renewed then       sweep, once its owner unlocks it or the client closes
//	a hold lost by time, perhaps not shortened      the same
//	an earlier request without an answer, once the  sweep, late
//	hold of its acquisition is released or lost
//	a place in a queue                              leave; sweep if that is refused
//
// Everything here ends with an answer, and is bounded in time and in requests.

// grace is how long an undo waits for the answer after the caller has gone. Then the effect of
// the request is undone without an answer.
const grace = 50 * time.Millisecond

// undo undoes a request whose caller has gone. The local queue is busy until the answer, but not
// for longer than the grace. The next acquisition has another name, and so does not depend on
// this acquisition.
func (a *acquisition) undo(sent time.Time, answers <-chan answer) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case r := <-answers:
		a.undoAnswer(r)
		a.local.finish()
		a.local.drop()
		return
	case <-timer.C:
	}
	known := make(chan struct{})
	s := a.sweep(sent.Add(a.l.term()), known, !a.doubt.IsZero())
	a.local.finish()
	a.local.drop()
	r := <-answers
	a.undoAnswer(r) // before Close may see that the outcome is known
	close(known)
	a.c.releaser.settleRequest(s)
}

// undoAnswer undoes the effect that r shows, the answer to a request whose caller has gone.
func (a *acquisition) undoAnswer(r answer) {
	switch {
	case r.g != nil:
		a.c.releaser.release(r.g)
	case a.queue != nil:
		a.note(r.doubt)
		a.leave()
	}
}

// leave gives up the place in the queue, and the lock that a request without an answer has taken.
// It repeats the request of Leave until it is answered, but not for longer than the release
// timeout.
func (a *acquisition) leave() {
	stop := time.Now().Add(a.c.patience)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := a.queue.Leave(a.c.releaser.briefly(time.Now()), a.id)
		if err == nil || final(err) {
			break
		}
		if isRefusal(err) {
			// The store drops the place of an acquisition that does not ask any more. A session
			// keeps the place.
			a.c.releaser.sweep(&sweeping{id: a.id, queue: a.queue, until: a.c.now().Add(a.l.term())})
			break
		}
		if time.Now().Add(pause).After(stop) {
			a.c.releaser.abandon(a.id)
			break
		}
		if !adapter.Sleep(a.c.life, pause) {
			break
		}
	}
	if !a.doubt.IsZero() {
		a.sweep(a.doubt, nil, a.several)
	}
}

// sweep releases in the background the lock that a request without an answer takes, until the time
// of the request is over. If not nil, known is closed when the outcome is known. If several is
// true, another request is without an answer too.
func (a question) sweep(until time.Time, known <-chan struct{}, several bool) *sweeping {
	several = several && a.queue != nil // else each request has a name of its own
	s := &sweeping{
		id: a.id, queue: a.queue, until: until, late: true, ttl: a.l.term(), known: known, several: several,
	}
	a.c.releaser.sweep(s)
	return s
}

// latest is the longest time for which a sent request may be on its way. A system sends the
// remaining data of a closed connection for about as long.
const latest = 5 * time.Minute

// The pauses between the requests of a sweep double from firstSweep to a tenth of the sweep's time.
// The sweep's time is first the time in which a late request may come, and then the time for which
// the lock of that request may last. A sweep sends at most 20 requests, and one more for each
// doubling: 50 in a year.
const firstSweep = 5 * time.Millisecond

// sweeping is the task of a sweep. Until it is settled, the store may have a lock for its
// acquisition, and Close counts the acquisition:
//
//	a sweep is settled by                       if late           else
//	a release that finds the hold               unless several    yes
//	a release that finds no hold                from until on     yes
//	a release that finds no hold, Settled       unless known      yes
//	locks.ErrForeign, locks.ErrLost             yes               yes
//	the answer to its request, now undone       yes               -
//	the time                                    until + ttl       until
//	the time, and the request is under way      no                -
//
// At until, a [driver.Session] takes over what is not settled. The end of its session settles all:
// the adapter's Close knows of that.
type sweeping struct {
	id    driver.HoldID
	queue driver.Queue    // in which id may have a place, or nil
	until time.Time       // when the store's lease is over, or a late request cannot come any more
	late  bool            // a request that acquires or extends may be carried out later
	ttl   time.Duration   // for which that request takes the lock
	known <-chan struct{} // closed when the outcome of that request is known, or nil: it is not under way
	// several says that id may hold the lock without that request, or by another such request.
	// Then a release that finds the lock held does not settle the sweep.
	several bool
	closes  bool // Close releases id with the holds, guarded by releaser.mu
}

// over returns until when the store may have the lock for s.
func (s *sweeping) over() time.Time {
	if s.late {
		return s.until.Add(s.ttl)
	}
	return s.until
}

// sweep releases what s.id holds, or comes to hold because of a late request, in the background,
// until s is settled. A refusal settles nothing: the store may refuse the login, or a permission,
// for a moment only.
//
// Close ends a sweep for a late request after one more answer. A release without an answer is
// repeated until Close ends. Close sends the releases of all earlier sweeps in batches with the
// releases of the holds, see takeOver.
//
// A request that a network delivers after s.until, or after the time latest, leaves the lock held
// for one more lease. If the store is a [driver.Session], the lock is held for as long as the
// session lasts.
func (r *releaser) sweep(s *sweeping) {
	began := r.now()
	last, over := s.until, s.over()
	if s.late && last.Sub(began) > latest {
		last = began.Add(latest)
	}
	if r.session != nil {
		over = last
	}
	r.note(s)
	if r.life.Err() != nil { // no request is sent any more
		return
	}
	r.background(func() {
		end := last
		for pause := firstSweep; ; pause = min(2*pause, max(end.Sub(began)/10, firstSweep)) {
			closing, wake := r.open.Err() != nil, r.open.Done()
			if closing && r.isTakenOver(s) {
				return
			}
			if closing {
				wake = r.life.Done()
			}
			settled, err := r.undone(s)
			if closing && err != nil && r.life.Err() == nil {
				r.noteFailure(err)
			}
			now := r.now()
			switch {
			case settled && s.known != nil:
				r.settleFound(s)
				return
			case settled:
				r.settle(s)
				return
			case err == nil && !now.Before(last), !now.Before(over):
				if err != nil {
					r.abandon(s.id)
				}
				if s.known == nil { // else undo settles s
					r.settle(s)
				}
				return
			case err == nil && closing:
				return
			case !now.Before(last):
				end = over
			}
			timer := time.NewTimer(min(pause, end.Sub(now)))
			select {
			case <-timer.C:
				continue
			case <-s.known:
				timer.Stop()
				return
			case <-wake:
				timer.Stop()
			}
			if closing {
				return
			}
			pause = firstSweep // Close waits for this sweep
		}
	})
}

// note notes that the store may have a lock for s.
func (r *releaser) note(s *sweeping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettled[s.id] = append(r.unsettled[s.id], s)
}

// takeOver leaves to Close all sweeps that an answered release settles. There may be as many as
// holds: an outage leaves one for each unlock.
func (r *releaser) takeOver() (all []*sweeping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sweeps := range r.unsettled {
		for _, s := range sweeps {
			if !s.late && s.queue == nil {
				s.closes = true
				all = append(all, s)
			}
		}
	}
	return all
}

// isTakenOver reports whether Close carries out s.
func (r *releaser) isTakenOver(s *sweeping) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return s.closes
}

// settle notes that the store has no lock for s.
func (r *releaser) settle(s *sweeping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleLocked(s)
}

// settleLocked is settle with r.mu held. It reports whether s was unsettled.
func (r *releaser) settleLocked(s *sweeping) bool {
	all := r.unsettled[s.id]
	i := slices.Index(all, s)
	if i < 0 {
		return false
	}
	if all = slices.Delete(all, i, i+1); len(all) > 0 {
		r.unsettled[s.id] = all
	} else {
		delete(r.unsettled, s.id)
	}
	return true
}

// settleFound notes that a release has found the lock that the request of s has taken. Then nothing
// is left of the acquisition, whatever the answer to that request is.
func (r *releaser) settleFound(s *sweeping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unsettled, s.id)
}

// settleRequest notes that the request of s, which was under way, is answered and undone. An answer
// may have begun another sweep. If s is settled already, a release has found the lock before: see
// settleFound.
func (r *releaser) settleRequest(s *sweeping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settleLocked(s) {
		delete(r.unsettled, s.id)
	}
}

// noteFailure notes why Close does not know the outcome of a sweep.
func (r *releaser) noteFailure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// undone sends the requests of s once, and reports whether nothing is left to undo. err says why
// the store may keep the lock or the place.
func (r *releaser) undone(s *sweeping) (settled bool, err error) {
	if s.queue != nil {
		err = s.queue.Leave(r.briefly(time.Now()), s.id)
	}
	answer, failed := r.store.Release(r.briefly(time.Now()), s.id)
	switch {
	case failed != nil:
		return final(failed), failed
	case answer.Held && !s.several:
		return true, nil // an acquisition that holds the lock has no place in a queue
	case err != nil && !final(err):
		return false, err
	}
	return !s.late || answer.Settled && s.known == nil, nil
}

// abandon leaves the lock or the place that id may have to a [driver.Session], which would keep
// either for good.
func (r *releaser) abandon(id driver.HoldID) {
	if r.session != nil {
		r.session.Lost(id)
	}
}
