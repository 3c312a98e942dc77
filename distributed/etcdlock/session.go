package etcdlock

import (
	"context"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks/distributed/lease"
)

// session is one acquisition, from the first request to the last: a key and the etcd lease under it.
//
//	new       no key, or it is not known                create, give
//	waiting   a key, and older ones before it           the keeper keeps it alive; looks again when notified
//	holding   its key is the oldest                     the engine keeps it alive
//	ending    given back, but the answer is missing     nobody keeps it alive
//	dead      the lease is over, or the key is gone     for good
type session struct {
	st     *store
	name   string // of the lock
	owner  string
	key    string
	notify chan struct{}
	// master is the writer whose key this reader shares, or nil.
	master *session

	op sync.Mutex // held while the key is deleted, or changed

	mu    sync.Mutex
	ids   []clientv3.LeaseID // one of them is that of the key: several if it is not known which
	past  []clientv3.LeaseID // those that it had before
	ttl   time.Duration      // of its lease
	since time.Time          // when the last request was sent that began the time of the lease, and was answered
	rev   int64              // create revision of the key
	doubt bool               // a request to put or delete the key was not answered, and may be carried out yet
	mayBe bool               // there may be a key
	state state
	next  time.Time // when the keeper looks after it
	pred  string    // the key that this one waits for
	armed bool      // pred may be watched
	// The watches of pred and of its own key; nil if there is none.
	watchedPred, watchedOwn *watched
	// A writer's session has two holders, at most: the writer itself, until it has gone, and the same owner as a reader.
	reader *session
	gone   bool
}

// watched is a watch of a key. It is guarded by the session's mutex.
type watched struct {
	key  string
	stop func() // nil until it has begun
	over bool
}

type state int

const (
	fresh state = iota
	waiting
	holding
	ending
	dead
)

// begin makes a session for owner, with a lease for at least d: perhaps one to spare, if reuse is set. Its op is locked: who comes to
// end it waits until its key is put.
func (s *store) begin(ctx context.Context, name, owner string, d time.Duration, reuse bool) (*session, error) {
	id, ttl, since, err := s.c.grant(ctx, d, reuse)
	if err != nil {
		return nil, err
	}
	x := &session{
		st:     s,
		name:   name,
		owner:  owner,
		key:    name + "/" + s.kind.own + strconv.FormatInt(int64(id), 16),
		notify: make(chan struct{}, 1),
		ids:    []clientv3.LeaseID{id},
		ttl:    ttl,
		since:  since,
	}
	x.op.Lock()
	s.c.add(x)
	return x, nil
}

func (x *session) lease() clientv3.LeaseID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ids[0]
}

// end returns when the server may end the lease.
func (x *session) end() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.since.Add(x.ttl)
}

// term returns the time to live of the lease.
func (x *session) term() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ttl
}

// try is for how long one request is waited for, before it is sent again.
func (x *session) try() time.Duration { return attempt(x.term()) }

// sending says that a request to put the key is about to be sent.
func (x *session) sending() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mayBe = true
}

// doubted says that a request was not answered.
func (x *session) doubted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doubt = true
}

// answered says whether the last request to put the key did. If there was no other, there is no doubt.
func (x *session) answered(put bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mayBe = put || x.doubt
}

func (x *session) created(rev int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rev = rev
}

// held says that the session's key is the oldest, and returns the reply that tells it.
func (x *session) held(rev int64) lease.Reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == dead {
		return lease.Reply{}
	}
	x.rev = rev
	x.state = holding
	x.next = time.Now().Add(quiet)
	x.st.c.rouse(x.next)
	return lease.Reply{Held: true, Token: uint64(rev), Since: x.since}
}

// wait says that the session has a place in the queue, behind pred.
func (x *session) wait(pred string) {
	x.mu.Lock()
	x.pred = pred
	x.mu.Unlock()
	x.keepPlace()
}

// keepPlace has the keeper keep the session alive.
func (x *session) keepPlace() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == fresh {
		x.state = waiting
		x.next = x.since.Add(x.ttl / 3)
		x.st.c.rouse(x.next)
	}
}

func (x *session) isDead() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state == dead
}

// tell wakes the waiter.
func (x *session) tell() {
	select {
	case x.notify <- struct{}{}:
	default:
	}
}

// die says that the lease is over, or the key is gone, and tells whom it concerns.
func (x *session) die() {
	x.mu.Lock()
	was, reader := x.state, x.reader
	if was != ending {
		x.state = dead
	}
	x.mu.Unlock()
	x.tell()
	if was != holding {
		return
	}
	x.st.lost(lease.HoldID{Name: x.name, Acquisition: x.owner}, ErrSessionExpired)
	if reader != nil {
		reader.st.lost(lease.HoldID{Name: reader.name, Acquisition: reader.owner}, ErrSessionExpired)
	}
}

// renewed says that the lease counts from at on, at least.
func (x *session) renewed(at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.After(x.since) {
		x.since = at
	}
}

// arm allows the session to watch its predecessor, and disarm ends that.
func (x *session) arm() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.armed = true
}

func (x *session) disarm() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.armed = false
	x.endWatch(&x.watchedPred)
}

// endWatch ends a watch, if there is one. x.mu is held.
func (x *session) endWatch(w **watched) {
	if *w != nil {
		(*w).over = true
		if (*w).stop != nil {
			(*w).stop()
		}
		*w = nil
	}
}

// watchKey has the watch that place refers to begin, unless it has. on is called for what happens.
func (x *session) watchKey(ctx context.Context, place **watched, key string, on func(happening)) error {
	x.mu.Lock()
	if *place != nil {
		x.mu.Unlock()
		return nil
	}
	w := &watched{key: key}
	*place = w
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, x.try())
	defer cancel()
	stop, err := x.st.c.watch(ctx, key, func(h happening) {
		if h != changed {
			x.mu.Lock()
			w.over = true
			if *place == w {
				*place = nil
			}
			x.mu.Unlock()
		}
		on(h)
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case err != nil:
		if *place == w {
			*place = nil
		}
	case w.over:
		stop()
	default:
		w.stop = stop
	}
	return err
}

// watchPredecessor sees to it that the predecessor is watched, if anything may be, and reports whether it was not before.
func (x *session) watchPredecessor(ctx context.Context) (news bool, err error) {
	x.mu.Lock()
	pred := x.pred
	if !x.armed || x.watchedPred != nil && x.watchedPred.key == pred {
		x.mu.Unlock()
		return false, nil
	}
	x.endWatch(&x.watchedPred)
	x.mu.Unlock()
	err = x.watchKey(ctx, &x.watchedPred, pred, func(happening) { x.tell() })
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.armed { // meanwhile
		x.endWatch(&x.watchedPred)
	}
	return true, err
}

// watchOwn has the session learn at once that its key is gone.
func (x *session) watchOwn(ctx context.Context) error {
	err := x.watchKey(ctx, &x.watchedOwn, x.key, func(h happening) {
		switch h {
		case deleted:
			x.die()
		case broken: // the keeper begins another one
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.state == holding {
				x.next = time.Now().Add(quiet)
				x.st.c.rouse(x.next)
			}
		}
	})
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == ending || x.state == dead { // meanwhile
		x.endWatch(&x.watchedOwn)
	}
	return err
}

// finish ends everything that is done for the session here, but for what is to be done last: nobody keeps it alive any more.
func (x *session) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state != dead {
		x.state = ending
	}
	x.armed = false
	x.endWatch(&x.watchedPred)
	x.endWatch(&x.watchedOwn)
}
