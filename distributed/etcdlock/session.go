package etcdlock

import (
	"context"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks/distributed/lease"
)

// session is a key and the etcd lease under it, from the first request to the last. An
// acquisition has one session. If that ends while the acquisition waits, it has another one.
//
//	fresh     no key, or it is not known                create, give
//	waiting   a key, and older ones before it           the keeper keeps it alive
//	holding   its key is the oldest                     the engine keeps it alive
//	ending    given back, but the answer is missing     nobody keeps it alive
//	dead      the lease has ended, the key is gone,     for good
//	          or both were given back
type session struct {
	st          *store
	name        string // of the lock
	acquisition string
	key         string
	master      *session // the writer whose key this reader shares, or nil

	op sync.Mutex // held while the key is deleted, or changed

	mu    sync.Mutex
	ids   []clientv3.LeaseID // one of them is that of the key: several if it is not known which
	past  []clientv3.LeaseID // those that it had before
	ttl   time.Duration      // of its lease
	since time.Time          // when the last answered request was sent that began the lease's time, by lease.Now
	rev   int64              // create revision of the key
	doubt bool               // a request to put or delete the key has no answer, and may be carried out yet
	mayBe bool               // there may be a key
	state state
	next  time.Time // when the keeper looks at it
	pred  string    // the key that this one waits for
	// notify is the channel of the acquisition's watch, or nil if it has none: then pred is not
	// watched.
	notify chan struct{}
	// The watches of pred and of its own key, or nil.
	watchedPred, watchedOwn *watched
	// A writer's session has at most two holders: the writer, until gone is set, and the same
	// owner as a reader.
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

// begin makes a session for acquisition, with a lease for at least d, or a spare one if reuse is
// set. Its op is locked: a goroutine that ends it waits until its key is put.
func (s *store) begin(ctx context.Context, name, acquisition string, d time.Duration, reuse bool) (*session, error) {
	id, ttl, since, err := s.c.grant(ctx, d, reuse)
	if err != nil {
		return nil, err
	}
	x := &session{
		st:          s,
		name:        name,
		acquisition: acquisition,
		key:         name + "/" + s.kind.own + strconv.FormatInt(int64(id), 16),
		ids:         []clientv3.LeaseID{id},
		ttl:         ttl,
		since:       since,
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

// end returns when the server may end the lease, by lease.Now.
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

// try is how long one request may take before it is sent again.
func (x *session) try() time.Duration { return attempt(x.term()) }

// sending says that a request to put the key is about to be sent.
func (x *session) sending() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mayBe = true
}

// doubted says that a request has no answer.
func (x *session) doubted() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.doubt = true
}

// answered says whether the last request has put the key. If there was no other one, there is no
// doubt.
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

// held says that the session's key is the oldest, and returns the reply that says so.
func (x *session) held(rev int64) lease.Reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state == dead {
		return lease.Reply{}
	}
	x.rev = rev
	x.state = holding
	x.next = lease.Now().Add(quiet)
	x.st.c.wakeKeeper(x.next)
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
		x.st.c.wakeKeeper(x.next)
	}
}

func (x *session) isDead() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state == dead
}

// wakeWaiter notifies the waiter, if it watches.
func (x *session) wakeWaiter() {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case x.notify <- struct{}{}:
	default: // a nil channel too
	}
}

// die says that the lease has ended, or the key is gone, and notifies the waiter or the holders.
func (x *session) die() {
	x.mu.Lock()
	was, reader := x.state, x.reader
	if was != ending {
		x.state = dead
	}
	x.mu.Unlock()
	x.wakeWaiter()
	if was != holding {
		return
	}
	x.st.lost(lease.HoldID{Name: x.name, Acquisition: x.acquisition}, ErrSessionExpired)
	if reader != nil {
		reader.st.lost(lease.HoldID{Name: reader.name, Acquisition: reader.acquisition}, ErrSessionExpired)
	}
}

// renewed says that the lease counts from at on, or later.
func (x *session) renewed(at time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at.After(x.since) {
		x.since = at
	}
}

// arm makes the session notify, and allows it to watch its predecessor. disarm ends that.
func (x *session) arm(notify chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notify = notify
}

func (x *session) isArmed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.notify != nil
}

func (x *session) disarm() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notify = nil
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

// watchKey begins the watch that place refers to, unless it has begun. on is called for each
// event.
func (x *session) watchKey(ctx context.Context, place **watched, key string, on func(event)) error {
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
	stop, err := x.st.c.watch(ctx, key, func(h event) {
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

// watchPredecessor makes sure that the predecessor is watched, if the session is armed, and
// reports whether it was not watched before.
func (x *session) watchPredecessor(ctx context.Context) (news bool, err error) {
	x.mu.Lock()
	pred := x.pred
	if x.notify == nil || x.watchedPred != nil && x.watchedPred.key == pred {
		x.mu.Unlock()
		return false, nil
	}
	x.endWatch(&x.watchedPred)
	x.mu.Unlock()
	err = x.watchKey(ctx, &x.watchedPred, pred, func(event) { x.wakeWaiter() })
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.notify == nil { // meanwhile
		x.endWatch(&x.watchedPred)
	}
	return true, err
}

// watchOwn makes the session learn at once that its key is gone.
func (x *session) watchOwn(ctx context.Context) error {
	err := x.watchKey(ctx, &x.watchedOwn, x.key, func(h event) {
		switch h {
		case deleted:
			x.die()
		case broken: // the keeper begins another one
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.state == holding {
				x.next = lease.Now().Add(quiet)
				x.st.c.wakeKeeper(x.next)
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

// given says that the key is gone and the lease given back, so that both may be another session's.
func (x *session) given() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state, x.doubt = dead, false
}

// finish ends everything that is done for the session here, except for its last request. Nobody
// keeps it alive any more.
func (x *session) finish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.state != dead {
		x.state = ending
	}
	x.notify = nil
	x.endWatch(&x.watchedPred)
	x.endWatch(&x.watchedOwn)
}
