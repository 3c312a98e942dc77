package redislock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// The wake-up protocol of plain and fenced locks.
//
//	locks_waiting:{lock}            a list of our waiters, in order of arrival: the owners' names
//	locks_waiting:{lock}:<client>   the channel of one client, for its own waiters
//	redisson_lock__channel:{lock}   Redisson's channel, for all waiters
//
// A waiter that has subscribed to both channels puts its name on the list with its next request.
// A release of ours takes the first name off the list and publishes it on the channel of that
// name's client. If nobody hears it, that process is gone, and the release goes on with the next
// name. Then it publishes on Redisson's channel whether a waiter of ours was told.
//
//	channel      message   from                     Redisson's waiters    our waiters
//	one client   a name    a release of ours        do not hear it        the one of that name asks
//	Redisson's   00        the same                 one in each process   wait on, see below
//	Redisson's   0         Redisson; ours if the    one in each process   all ask
//	                       list is empty; a forced
//	                       unlock
//	Redisson's   1         an administrator         all                   all ask
//
// Redisson reads the numbers 0 and 1 and so takes 00 for 0. Its waiters do not know the list:
// each of its processes with a waiter asks after every release.
//
// The name is off the list when its waiter is told. A waiter that finds the lock taken again puts
// its name in front. A waiter that has given up takes its name off, and if it is not there any
// more, it was told, and tells the next one.
//
// # No wake-up is lost
//
// A waiter sleeps after a refusal by a request that was sent when both of its subscriptions were
// active. After that the lock becomes free
//
//   - by a release of ours that tells this waiter: it asks.
//   - by a release of ours that tells another waiter: that one asks, or has given up and tells
//     the next one, or cannot be reached. The last case is why 00 has a waiter ask that hears
//     nothing else for a while: a grace for each place that it has in the list.
//   - by Redisson's release, or a forced one: it hears 0 or 1 and asks.
//   - by the end of the lease: it asks then, since it was told the time to live.
//   - by anybody that tells nobody: it asks in turn, as [lease.WithPoll] says.
//
// If its connection for messages is lost, it asks when it has subscribed again. Nothing of that
// depends on the list, which is a hint: it may be lost, be of another type, or hold anything. It
// expires a minute after it was last of use.

// grace is how long the waiter at the head of the list waits for one that was told to take the
// lock, the second waits twice as long, and so on.
const grace = 100 * time.Millisecond

// What a release publishes: that one of the waiters may go on, in each process, or that all may;
// and the former where a waiter of ours has been told already.
const (
	wakeOne = "0"
	wakeAll = "1"
	told    = "00"
)

// How a waiter asks.
const (
	isNew  = "new"    // it is not in the list
	again  = "again"  // it may be in the list
	called = "called" // it was told, and so is not in the list
)

// waiter is one acquisition of this process that waits.
type waiter struct {
	owner string
	own   string // the channel of its client
	watch *watch

	mu     sync.Mutex
	placed bool        // it may be in the list
	called bool        // it was told, and has not asked since
	place  int         // in the list, about
	alarm  *time.Timer // when it asks although it was not told
}

// ask notes that the waiter asks now, and returns how.
func (w *waiter) ask() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet()
	how := isNew
	switch {
	case w.called:
		how = called
	case w.placed:
		how = again
	}
	w.called, w.placed = false, true
	return how
}

// quiet stops the alarm. w.mu is held.
func (w *waiter) quiet() {
	if w.alarm != nil {
		w.alarm.Stop()
	}
}

// hear takes note of a message, and reports whether it is a reason to ask now.
func (w *waiter) hear(channel, payload string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case channel == w.own:
		if payload != w.owner {
			return false
		}
		w.called = true
		w.quiet()
		return true
	case payload == wakeOne || payload == wakeAll:
		return true
	case payload != told || w.called:
		return false
	}
	w.place = max(w.place-1, 1)
	d := time.Duration(w.place)*grace + rand.N(grace/2)
	if w.alarm == nil {
		w.alarm = time.AfterFunc(d, w.watch.notify)
	} else {
		w.alarm.Reset(d)
	}
	return false
}

// end ends what the waiter has here.
func (w *waiter) end() {
	w.mu.Lock()
	w.quiet()
	w.mu.Unlock()
	w.watch.Close()
}

// waiting is the [lease.Store] of plain and fenced locks, whose waiters are woken one at a time.
type waiting struct {
	*single
	mu      sync.Mutex
	waiters map[string]*waiter // by owner
}

var (
	_ lease.Queue            = (*waiting)(nil)
	_ lease.ContentionProber = (*waiting)(nil)
)

func withWaiters(s *single) *waiting { return &waiting{single: s, waiters: make(map[string]*waiter)} }

func (s *waiting) find(owner string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiters[owner]
}

func (s *waiting) add(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters[w.owner] = w
}

// end ends the waiter of an owner, if there is one.
func (s *waiting) end(owner string) {
	s.mu.Lock()
	w := s.waiters[owner]
	delete(s.waiters, owner)
	s.mu.Unlock()
	if w != nil {
		w.end()
	}
}

// newWaiter returns a waiter that does not hear anything yet.
func (s *waiting) newWaiter(name, owner string) *waiter {
	w := &waiter{owner: owner, own: s.names(name).list + ":" + clientOf(owner)}
	// A message for a waiter that is gone: its name was on the list because of a request that was
	// late.
	stray := func(owner string) {
		s.c.hub.wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.c.hub.life, lease.DefaultReleaseTimeout)
			defer cancel()
			s.Leave(ctx, name, owner)
		})
	}
	w.watch = &watch{c: make(chan struct{}, 1), waiter: w, stray: stray}
	return w
}

// clientOf returns the part of an owner's name that all owners of a client have.
func clientOf(owner string) string { return owner[:strings.LastIndexByte(owner, ':')] }

// counts is the argument of scripts that says whether the server counts all that hear a message.
func (c *core) counts() any {
	if c.p.Cluster() {
		return ""
	}
	return "1"
}

// listen returns a waiter that hears of the lock without a request, since subscriptions of an
// earlier one last. Or nil.
func (s *waiting) listen(ctx context.Context, name, owner string) *waiter {
	channel := s.names(name).channel
	if active, _ := s.c.hub.subscribed(channel); active == 0 {
		return nil
	}
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil
	}
	w := s.newWaiter(name, owner)
	if !s.c.hub.listen(w.watch, m, channel, w.own) {
		return nil
	}
	s.add(w)
	return w
}

// Enqueue gives owner a place in the list if it hears messages already. Before that it asks like
// a try: a release would take a waiter that does not hear it for dead.
func (s *waiting) Enqueue(ctx context.Context, name, owner string, d time.Duration) (lease.Reply, error) {
	w := s.find(owner)
	first := w == nil
	if first {
		if w = s.listen(ctx, name, owner); w == nil {
			return s.Acquire(ctx, name, owner, d)
		}
	}
	how := w.ask()
	n, q := s.names(name), newRequest(owner, d)
	q.args = append(q.args, &n.name, &n.list)
	if s.token != "" {
		q.args = append(q.args, &n.token)
	}
	keys := len(q.args) - head
	q.args = append(q.args, &q.millis, &q.owner, how)
	r, err := s.c.p.Eval(ctx, waitAcquire, keys, q.args)
	q.done(err)
	if list, ok := r.([]any); ok && len(list) == 2 {
		place, _ := list[1].(int64)
		w.mu.Lock()
		w.place = int(place)
		w.mu.Unlock()
		r = list[:1]
	}
	reply, err := granted(r, err)
	switch {
	case err == nil && reply.Held:
		if first || !isProvisional(ctx) { // else it may wait on
			s.end(owner)
		}
	case first && nothingDone(err):
		s.end(owner)
	default:
		reply.Listening = true
	}
	return reply, err
}

// nothingDone reports whether err says that a request has surely not been carried out.
func nothingDone(err error) bool {
	return errors.Is(err, lease.ErrRefused) || errors.Is(err, locks.ErrForeign)
}

func (s *waiting) Leave(ctx context.Context, name, owner string) error {
	s.end(owner)
	m, err := s.c.mode(ctx)
	if err != nil {
		return err
	}
	n := s.names(name)
	args := []any{head - 1: nil, n.name, n.channel, n.list, owner, s.c.counts()}
	_, err = s.c.p.Eval(ctx, waitLeave, 3, m.publish(args))
	return err
}

func (s *waiting) Lookup(ctx context.Context, name, owner string) (lease.Reply, error) {
	r, err := s.single.Lookup(ctx, name, owner)
	if r.Held {
		s.end(owner)
	}
	return r, err
}

func (s *waiting) Watch(ctx context.Context, name, owner string) (lease.Watch, error) {
	if w := s.find(owner); w != nil {
		return w.watch, nil
	}
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, err
	}
	w := s.newWaiter(name, owner)
	active, err := s.c.hub.watchWith(ctx, w.watch, m, s.names(name).channel, w.own)
	if err != nil {
		return nil, err
	}
	if active {
		w.watch.drain() // of the confirmations: the caller asks anyway
	}
	s.add(w)
	return w.watch, nil
}

// releaseAndWake is Release for locks with a list of waiters.
func (s *single) releaseAndWake(ctx context.Context, m mode, name, owner string) (lease.Released, error) {
	n, q := s.names(name), newRequest(owner, 0)
	q.args = m.publish(append(q.args, &n.name, &n.channel, &n.list, &q.owner, s.c.counts()))
	r, err := s.c.p.Eval(ctx, waitRelease, 3, q.args)
	q.done(err)
	if r == int64(-1) {
		return lease.Released{Held: true, Awaited: true}, err
	}
	return s.c.released(r, err, n.channel)
}

// awaited reports whether there is a waiter for the lock, except one at a gate of this process:
// that one has the lock by now. A waiter without a subscription is not seen. A process that
// waited a moment ago counts. In a cluster no server knows the subscribers of all.
func (c *core) awaited(ctx context.Context, n *names) (bool, error) {
	if c.p.Cluster() || c.pubsub == Sharded || c.pubsub == Both {
		return true, nil
	}
	own, watched := c.hub.subscribed(n.channel)
	if watched { // by a lock of another kind
		return true, nil
	}
	args := []any{head - 1: nil, n.name}
	if n.list != "" {
		args = append(args, n.list)
	}
	keys := len(args) - head
	r, err := c.p.Eval(ctx, awaited, keys, append(args, n.channel))
	if err != nil {
		return false, err
	}
	heard, ok := r.(int64)
	if !ok {
		return false, unexpected(r)
	}
	return heard < 0 || heard > own, nil
}

var _ lease.ContentionProber = (*single)(nil)

func (s *single) Contended(ctx context.Context, name string) (bool, error) {
	return s.c.awaited(ctx, s.names(name))
}
