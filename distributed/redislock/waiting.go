package redislock

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// This is the wake-up protocol of all locks but fair locks. Its keys and channels are, for plain
// and fenced locks,
//
//	locks_waiting:{lock}            the list of our waiters, in order of arrival
//	locks_waiting:{lock}:<client>   the channel of one client, for its own waiters
//	redisson_lock__channel:{lock}   Redisson's channel, for all waiters
//
// and locks_waiting_simple and locks_simple_channel for simple locks, which Redisson does not have,
// and locks_waiting_rw and redisson_rwlock for both halves of a read-write lock. Semaphores have
// locks_waiting_permits and locks_permits_channel.
//
// A waiter is one acquisition of a process. Its name is in the list. A release of ours wakes the
// first waiter in the list: it removes the waiter and publishes its name on its client's channel.
// If nobody subscribes to the channel, the waiter's process has ended, and the release goes on to
// the next waiter. The woken waiter does not hold the lock. It requests the lock, and another
// process may be faster.
//
//	channel      message   published by                Redisson's waiters   our waiters
//	client's     a name    a release of ours           do not hear it       that one requests
//	Redisson's   00        the same, after the above   one of each process  they wait on, see below
//	Redisson's   0         Redisson, or a forced       one of each process  all subscribers request
//	                       unlock; a release of ours
//	                       if the list is empty
//	Redisson's   1         an administrator            all                  all subscribers request
//
// Redisson's clients read the message as a number, so that 00 is 0 to them. Redisson's clients do
// not know the list: after every release each of their processes with a waiter requests the lock.
//
// A release of a read-write lock wakes the waiters in front of the list that can enter together.
// These are one writer, or the readers up to the next writer. A writer's name in the list ends with
// :write. A writer that goes on as a reader wakes all readers in the list. A writer publishes 1,
// and 01 if waiters of ours were woken: all waiters of Redisson request.
//
// A release of permits of a semaphore wakes all waiters whose permits are free, and passes over the
// others. In the list, the permits of a waiter and the size of its semaphore follow its name. The
// free permits may suffice for none of the first hundred waiters while more waiters follow. Then
// the release removes the hundred from the list, because they may be dead.
//
// # States of a waiter
//
//	state      in list   subscribed to     next event, and what follows
//	deaf       no        none              its client's channel is confirmed: it requests, queued
//	queued     yes       client's          its name: woken
//	                                       a holder of Redisson, or its time is over: listening
//	listening  yes       client's and      its name: woken
//	                     Redisson's        0 or 1: it requests, listening
//	                                       00, and then not its name for its time: the same
//	woken      no        as before         it requests: it has the lock, or is first in the list
//
// The time of a waiter is 100 ms for each place in the list up to its own, and up to 50 ms more. A
// waiter that becomes listening subscribes first, and then requests.
//
// In each state a waiter also requests
//
//   - when its connection for messages has been replaced,
//   - when the time to live in the last refusal is over,
//   - after the poll interval ([lease.WithPoll]).
//
// A waiter that gives up removes its name from the list. If its name is not there, the waiter was
// woken, and wakes the next waiter. If readers hold the lock by then, it wakes all readers in the
// list.
//
// Most waiters of a busy lock are woken before their time is over. Such waiters never subscribe to
// Redisson's channel, so a release costs two messages, however many processes wait.
//
// # No wake-up is lost
//
// A waiter that sleeps was refused by a request that the server received when the waiter's
// subscriptions were active. Later the lock becomes free
//
//   - by a release of ours that wakes this waiter: it requests.
//   - by a release of ours that wakes another waiter: the woken waiter requests, and its own
//     release continues the chain. If the woken waiter gives up, it wakes the next waiter. If it
//     cannot be reached, the waiters behind it request when their times are over: queued waiters in
//     any case, listening waiters because of 00.
//   - by Redisson's release or a forced unlock: the listening waiters request. A queued waiter
//     was refused by a holder of ours, and requests when its time is over.
//   - by the end of the lease: all request then, because the refusal named the time to live. A
//     release of one of several readers may shorten the time to live without a message: then the
//     next rule applies.
//   - without any message, such as by DEL: all request after the poll interval.
//
// A reader in the list was refused by a writer. The reader can enter when the writer's release
// leaves the lock to readers, or frees the lock. In the former case the release wakes the reader.
// In the latter case the release wakes the head of the list: this reader, or a writer before it,
// whose own release wakes further waiters. A reader that is not in the list may be faster than that
// writer. Then the readers in the list could enter, but sleep until the last reader's release, or
// until their times are over.
//
// None of these rules depends on the list. The list is a hint: it may be lost, be of another type,
// or contain anything. It expires a minute after its last use.

// waitingList is the prefix of the names of the lists of waiters, and of their clients' channels.
const waitingList = "locks_waiting"

// grace is how long a waiter leaves the lock to each waiter before it, and to the holder.
const grace = 100 * time.Millisecond

// The messages of a release on Redisson's channel.
const (
	wakeOne = "0" // one waiter of each process requests
	wakeAll = "1" // all waiters request

	// Like wakeOne and wakeAll, but a waiter of ours was woken: other waiters of ours wait on.
	woken, wokenAll = "00", "01"
)

// How a waiter requests.
const (
	asNew   = "new"   // it is not in the list
	asAgain = "again" // it may be in the list
	asWoken = "woken" // it was woken, and so is not in the list
)

// waiter is one acquisition of this process that waits. It is the acquisition's [driver.Watch].
type waiter struct {
	all         *waiting
	acquisition string
	entry       string // its name in the list
	own         string // the channel of its client
	watch       *watch

	mu         sync.Mutex
	watched    bool        // package lease has it as a Watch, and closes it
	placed     bool        // it may be in the list
	woken      bool        // it was woken, and has not requested since
	listen     bool        // it has to subscribe to Redisson's channel before its next request
	subscribed bool        // it has done so
	place      int         // in the list, about
	alarm      *time.Timer // when it requests, after 00
}

// subscribes reports whether the waiter subscribes to Redisson's channel before its next request.
func (w *waiter) subscribes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.placed && !w.woken {
		w.listen = true // it requests because its time is over, or because of another reason to doubt
	}
	return w.listen && !w.subscribed
}

// next notes that the waiter requests now, and returns how.
func (w *waiter) next() (how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet()
	how = asNew
	if w.woken {
		how = asWoken
	} else if w.placed {
		how = asAgain
	}
	w.woken, w.placed = false, true
	return how
}

// onRefusal notes a refusal. It returns how long the waiter sleeps if it hears nothing. 0 means
// that the waiter sleeps for the time to live in the refusal.
func (w *waiter) onRefusal(place int, byRedisson bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.place = max(place, 1)
	switch {
	case w.listen:
		return 0
	case byRedisson:
		w.listen = true
		w.watch.Ring()
	}
	return w.patience()
}

// patience returns the waiter's time. w.mu is held.
func (w *waiter) patience() time.Duration {
	return time.Duration(w.place)*grace + rand.N(grace/2)
}

// quiet stops the alarm. w.mu is held.
func (w *waiter) quiet() {
	if w.alarm != nil {
		w.alarm.Stop()
	}
}

// isOf reports whether a name in the list belongs to the waiter called entry. In the list of a
// semaphore, numbers follow the name.
func isOf(name, entry string) bool {
	rest, ok := strings.CutPrefix(name, entry)
	return ok && (rest == "" || rest[0] == ':')
}

// hear takes note of a message, and reports whether the waiter requests because of it.
func (w *waiter) hear(channel, payload string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case channel == w.own:
		if !isOf(payload, w.entry) {
			return false
		}
		w.woken = true
		w.quiet()
		return true
	case payload == wakeOne || payload == wakeAll:
		return true
	case payload != woken && payload != wokenAll || w.woken:
		return false
	}
	w.place = max(w.place-1, 1)
	if d := w.patience(); w.alarm == nil {
		w.alarm = time.AfterFunc(d, w.watch.Ring)
	} else {
		w.alarm.Reset(d)
	}
	return false
}

// C is part of [driver.Watch].
func (w *waiter) C() <-chan struct{} { return w.watch.Bell }

// Close ends the waiter with its alarm and subscriptions.
func (w *waiter) Close() {
	w.all.mu.Lock()
	if w.all.waiters[w.acquisition] == w {
		delete(w.all.waiters, w.acquisition)
	}
	w.all.mu.Unlock()
	w.mu.Lock()
	w.quiet()
	w.mu.Unlock()
	w.watch.Close()
}

// onGrant ends a waiter that has the lock, unless package lease uses the waiter as a Watch. In
// this case package lease closes the Watch at the end of the acquisition, which may release the
// lock and wait on.
func (w *waiter) onGrant() {
	w.mu.Lock()
	watched := w.watched
	w.mu.Unlock()
	if !watched {
		w.Close()
	}
}

// waiting is the [driver.Store] of locks whose waiters are woken one at a time: all but fair locks.
type waiting struct {
	*single
	mu      sync.Mutex
	waiters map[string]*waiter // by acquisition
}

var (
	_ redisport.Store         = (*waiting)(nil)
	_ driver.ContentionProber = (*waiting)(nil)
)

func withWaiters(s *single) *waiting { return &waiting{single: s, waiters: make(map[string]*waiter)} }

// find returns the waiter of an acquisition, or nil.
func (s *waiting) find(acquisition string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters[acquisition]
}

func (s *waiting) add(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[w.acquisition] = w
}

// newWaiter returns a waiter without subscriptions.
func (s *waiting) newWaiter(name, acquisition string) *waiter {
	w := &waiter{all: s, acquisition: acquisition, entry: acquisition + s.entrySuffix, own: s.names(name).own}
	// A message for a waiter that has ended: a late request had put its name on the list.
	stray := func(entry string) {
		s.c.hub.wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.c.hub.life, lease.DefaultReleaseTimeout)
			defer cancel()
			s.unlist(ctx, name, entry)
		})
	}
	w.watch = newWatch(w.hear)
	w.watch.waiting = &clientFeed{channel: w.own, stray: stray}
	return w
}

// counts is the argument of scripts that says whether the server counts all subscribers.
func (c *core) counts() any {
	if c.p.Cluster() {
		return ""
	}
	return "1"
}

// resume returns a waiter that hears its client's channel without a request, because the
// subscription of an earlier waiter is active. Otherwise it returns nil.
func (s *waiting) resume(ctx context.Context, name, acquisition string) *waiter {
	if active, _ := s.c.hub.subscribed(s.names(name).own); active == 0 {
		return nil
	}
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil
	}
	w := s.newWaiter(name, acquisition)
	if !s.c.hub.listen(w.watch, m, w.own) {
		w.Close()
		return nil
	}
	s.add(w)
	return w
}

// subscribe subscribes a waiter to Redisson's channel. If it fails, the next request tries again.
func (s *waiting) subscribe(ctx context.Context, name string, w *waiter) {
	err := s.c.attach(ctx, w.watch, s.names(name).channel)
	w.mu.Lock()
	w.subscribed = err == nil
	w.mu.Unlock()
}

// Enqueue gives the acquisition a place in the list if it already hears its client's channel.
// Otherwise Enqueue requests like a try, because a release treats a waiter without a subscription
// as dead.
func (s *waiting) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	w := s.find(req.Acquisition)
	first := w == nil
	if first {
		if w = s.resume(ctx, req.Name, req.Acquisition); w == nil {
			return s.Acquire(ctx, req)
		}
	}
	if w.subscribes() {
		s.subscribe(ctx, req.Name, w)
	}
	r, err := s.ask(ctx, req, s.enqueue, w.next())
	var limit time.Duration
	if list, ok := r.([]any); ok && len(list) == 3 {
		place, _ := list[1].(int64)
		limit = w.onRefusal(int(place), list[2] == int64(1))
		r = list[:1]
	}
	reply, err := replyOf(r, err)
	switch {
	case err == nil && reply.Held:
		w.onGrant()
		return reply, nil
	case first && redisport.NothingDone(err):
		w.Close()
		return reply, err
	}
	if limit > 0 && (reply.Wait == 0 || limit < reply.Wait) {
		reply.Wait = limit
	}
	reply.Listening = true
	return reply, err
}

func (s *waiting) Leave(ctx context.Context, id driver.HoldID) error {
	if w := s.find(id.Acquisition); w != nil {
		w.Close()
	}
	return s.unlist(ctx, id.Name, id.Acquisition+s.entrySuffix)
}

// unlist removes a name from the list. If the name is not there, unlist wakes other waiters in its
// place.
func (s *waiting) unlist(ctx context.Context, name, entry string) error {
	m, err := s.c.mode(ctx)
	if err != nil {
		return err
	}
	n := s.names(name)
	args := newArgs(n.key, n.channel, n.list, entry, s.c.counts())
	_, err = s.c.p.Eval(ctx, s.leave, 3, m.publish(args))
	return err
}

func (s *waiting) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r, err := s.single.Lookup(ctx, req)
	if w := s.find(req.Acquisition); r.Held && w != nil {
		w.onGrant()
	}
	return r, err
}

func (s *waiting) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	if w := s.find(id.Acquisition); w != nil {
		w.mu.Lock()
		w.watched = true
		w.mu.Unlock()
		return w, nil
	}
	w := s.newWaiter(id.Name, id.Acquisition)
	w.watched = true
	if err := s.c.attach(ctx, w.watch, w.own); err != nil {
		w.Close()
		return nil, err
	}
	s.add(w)
	return w, nil
}

// awaited reports whether another process may have a waiter for the lock. Waiters of this process
// and waiters without a subscription do not count. A process that waited a moment ago counts. In a
// cluster no server knows all subscribers.
func (c *core) awaited(ctx context.Context, n *names) (bool, error) {
	if c.p.Cluster() || c.pubsub == Sharded || c.pubsub == Both {
		return true, nil
	}
	own, watched := c.hub.subscribed(n.channel)
	if watched { // by a lock of another kind
		return true, nil
	}
	r, err := c.p.Eval(ctx, awaited, 2, newArgs(n.key, n.list, n.channel))
	if err != nil {
		return false, err
	}
	heard, ok := r.(int64)
	if !ok {
		return false, replyError(r)
	}
	return heard < 0 || heard > own, nil
}

var _ driver.ContentionProber = (*single)(nil)

func (s *single) Contended(ctx context.Context, name string) (bool, error) {
	return s.c.awaited(ctx, s.names(name))
}
