package etcdlock

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// place is a key from its creation to its deletion: a place in the queue of a lock. A waiting
// acquisition that loses its place takes another place.
//
//	asked     there may be a key                  put -> waiting
//	waiting   a key, and older keys before it     oldest -> holding
//	holding   its key is the oldest               lost -> dead
//	ending    given up, but perhaps not deleted   deleted -> dead; deleted, in doubt -> burnt
//	burnt     deleted, but a late request may     session over -> dead
//	          put or delete the key
//	dead      no key, nor will there be           for good
//
// The place of a writer that holds the lock may also serve a reader of the same owner:
//
//	reader  gone   told   the writer               the reader     the key
//	nil     false  false  holds                    none           the writer's
//	set     false  false  holds                    holds          the writer's
//	set     true   false  release not answered     holds          either's
//	set     true   true   released                 holds          the reader's: others may read
//
// The end of the reader makes reader nil, or ends the place if the writer is gone.
type place struct {
	st     *store
	id     driver.HoldID
	key    string
	master *place        // the writer whose key this reader shares, or nil
	term   time.Duration // how long the hold was to last

	permits, size int64 // see driver.Request.Weigh

	op         sync.Mutex // held while the key is put, deleted, or changed
	unanswered bool       // a deletion has no answer; guarded by op
	deleted    bool       // a deletion has found the key, or a deletion without an answer may have; guarded by op

	// core.mu guards the fields below.
	session *session
	state   state
	sent    bool  // a request to put the key was sent
	doubt   bool  // a request to put or delete the key has no answer, and may be carried out yet
	rev     int64 // create revision of the key
	life    context.Context
	end     context.CancelFunc // of life, or nil if no watch has begun
	quiet   *time.Timer        // begins the watch of a holder's key
	watched bool               // its own key is watched
	pred    *watched           // the key before it, if that is watched
	news    bool               // its waiter was notified before it listened
	// The holders of a writer's place, see above.
	reader *place
	gone   bool // the writer's hold was released, or its release is under way
	told   bool // that was answered
}

func newPlace(s *store, req driver.Request) *place {
	p := &place{st: s, id: req.HoldID}
	p.permits, p.size = req.Weigh()
	return p
}

// watched is a key that is watched.
type watched struct {
	key string
	end context.CancelFunc
}

type state int

const (
	asked state = iota
	waiting
	holding
	ending
	burnt
	dead
)

// sending notes that a request to put the key is about to be sent. It returns an error if the
// place was given up, or its session is over.
func (p *place) sending() error {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	switch p.state {
	case asked:
		p.sent = true
		return nil
	case dead:
		return errExpired
	}
	return errLeft
}

// noteAnswer notes the answer to a request to put the key: whether the key is there, and its create
// revision.
func (p *place) noteAnswer(there bool, rev int64) {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	if p.sent = there || p.doubt; there {
		p.rev = rev
		p.state = max(p.state, waiting)
	}
}

// noteDoubt notes that a request to put or delete the key got no answer.
func (p *place) noteDoubt() {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	p.doubt = true
}

// grant notes that the key is the oldest, and returns the reply to a request for d. The reply's
// Since makes the hold end with the session.
func (p *place) grant(d time.Duration) (driver.Reply, error) {
	c := p.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.state >= ending:
		return driver.Reply{}, errExpired
	case p.gone:
		return driver.Reply{}, errReleased
	}
	p.state, p.term = holding, d
	p.unwatch()
	if !p.watched {
		p.quiet = time.AfterFunc(quiet, func() { c.jobs.Go(p.watch) })
	}
	return p.reply(d), nil
}

// reply says that p is held for d. c.mu is held.
func (p *place) reply(d time.Duration) driver.Reply {
	return driver.Reply{Held: true, Token: uint64(p.rev), Since: p.session.since.Add(p.st.c.lease - d)}
}

// among reports whether the key was read.
func (p *place) among(kvs []*mvccpb.KeyValue) bool {
	return len(kvs) == 1 && kvs[0].CreateRevision == p.rev
}

// holds reports whether p's acquisition holds. c.mu is held.
func (p *place) holds() bool {
	if p.master != nil {
		return p.master.state == holding && p.master.reader == p
	}
	return p.state == holding && !p.gone
}

// isHeld is holds for a caller without c.mu.
func (p *place) isHeld() bool {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	return p.holds()
}

// isGone reports whether the writer p was released, or its release is under way.
func (p *place) isGone() bool {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	return p.gone
}

// ours returns the place whose key p's acquisition uses. A reader under a writer uses the
// writer's place.
func (p *place) ours() *place {
	if p.master != nil {
		return p.master
	}
	return p
}

// is reports whether p is in one of the states from first to last.
func (p *place) is(first, last state) bool {
	p.st.c.mu.Lock()
	defer p.st.c.mu.Unlock()
	return first <= p.state && p.state <= last
}

// die notes that the key is gone, or that the session is over. It notifies the waiter or the
// holders.
func (p *place) die() {
	c := p.st.c
	c.mu.Lock()
	was, reader := p.state, p.reader
	p.leave()
	switch {
	case was < ending:
		p.settle()
	case p.session.life.Err() != nil: // else a deletion may be under way
		p.settle()
		c.forget(p) // the engine may have given that up
	}
	if was < holding {
		p.notify()
	}
	c.mu.Unlock()
	if was != holding {
		return
	}
	p.st.lost(p.id, ErrSessionExpired)
	if reader != nil {
		reader.st.lost(reader.id, ErrSessionExpired)
	}
}

// notify makes the waiter ask again. c.mu is held.
func (p *place) notify() {
	w, listens := p.st.c.watches[p.id.Acquisition]
	p.news = !listens
	w.Ring()
}

// leave ends all that is done here for p, except for the deletion of its key. c.mu is held.
func (p *place) leave() {
	p.state = max(p.state, ending)
	if p.quiet != nil {
		p.quiet.Stop()
	}
	p.unwatch()
	if p.end != nil {
		p.end()
	}
}

// settle notes that the key of p, which was left, is not there. If a late request may still put
// or delete the key, no other place may use it. c.mu is held.
func (p *place) settle() {
	if p.doubt && p.session.life.Err() == nil {
		p.state = burnt
		p.session.retire()
		return
	}
	p.state = dead
	if p.session.places[p.key] == p { // another place may have the key since an earlier call
		delete(p.session.places, p.key)
	}
}

// alive returns the context of the watches. c.mu is held.
func (p *place) alive() context.Context {
	if p.end == nil {
		p.life, p.end = context.WithCancel(p.st.c.life)
		if p.state >= ending {
			p.end()
		}
	}
	return p.life
}

// watch makes the place learn at once that its key is gone. If the watch fails, the next renewal
// finds out.
func (p *place) watch() {
	c := p.st.c
	c.mu.Lock()
	life, rev, watched := p.alive(), p.rev, p.watched
	p.watched = true
	c.mu.Unlock()
	if watched {
		return
	}
	unwatched := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.watched = false
	}
	ctx, cancel := context.WithTimeout(life, c.try())
	defer cancel()
	err := c.watch(ctx, life, p.key, func(e *clientv3.Event) (last bool) {
		switch {
		case e == nil: // the watch has ended
			unwatched()
			time.AfterFunc(quiet, func() { c.jobs.Go(p.watch) })
		case e.Type == mvccpb.Event_DELETE && e.Kv.ModRevision > rev:
			p.die()
			return true
		}
		return false // a member that lags behind may report events from before the key
	})
	if err != nil {
		unwatched()
	}
}

// watchBefore makes sure that the key before p's is watched, and reports whether a new watch
// began. For a semaphore it watches all keys, and key is their prefix.
func (p *place) watchBefore(ctx context.Context, key string) (begun bool, err error) {
	c := p.st.c
	c.mu.Lock()
	if p.pred != nil && p.pred.key == key {
		c.mu.Unlock()
		return false, nil
	}
	p.unwatch()
	life, end := context.WithCancel(p.alive())
	w := &watched{key, end}
	p.pred = w
	c.mu.Unlock()
	over := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if p.pred == w {
			p.unwatch()
		}
	}
	var all []clientv3.OpOption
	if p.st.kind == counting {
		all = []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithFilterPut()}
	}
	err = c.watch(ctx, life, key, func(e *clientv3.Event) (last bool) {
		if last = e == nil || e.Type == mvccpb.Event_DELETE && all == nil; last {
			over()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		p.notify()
		return last
	}, all...)
	if err != nil {
		over()
	}
	return true, err
}

// unwatch ends the watch of the key before p's. c.mu is held.
func (p *place) unwatch() {
	if p.pred != nil {
		p.pred.end()
		p.pred = nil
	}
}
