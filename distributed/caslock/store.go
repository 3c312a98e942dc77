package caslock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/joined"
)

// A request to the lock is a change of its document:
//
//	request   replaces a document           by one with
//	Acquire   with room for the permits,    the acquisition as holder, and the next token
//	          without the holders whose
//	          time is over
//	Renew     of the acquisition            another lease
//	Release   of the acquisition            one holder less, and its name
//	Break     of any holders                no holder
//	Lookup    that a write without an       no holder whose time is over. Only if that
//	          answer should have replaced   write may still come: now it finds another version
//
// A write gives the whole document, and may come late. A late write never restores a hold that
// has ended: it replaces only the version that its client has read, and versions never come
// again. So while the write may still come, the document lists the holders that the client has
// read. The write makes only these changes to them:
//
//   - It removes holders whose time is over, and their time stays over.
//   - It prolongs a hold that is in the document. If the client has lost the hold, others wait
//     for a lease more. If the client has released the hold, the write finds another version.
//   - It adds a requested hold. If the client gave up the request, Lookup has replaced the
//     version.

const (
	// longest is the longest lease in a document. The additions to a lease do not overflow.
	longest = 100 * 365 * 24 * time.Hour
	// drift is which part of a lease a waiter waits longer, because clocks have different speeds.
	drift = 100
	// attempts is how often a document is read and replaced while other clients replace it. After
	// each attempt another client has the lock, so a store which needs more attempts refuses
	// every write.
	attempts = 10
	// sharedAttempts replaces attempts for a semaphore, whose document all holders replace.
	sharedAttempts = 40
	// reserve is how many bytes acquisitions leave free in a document, since renewals make it
	// longer.
	reserve = MaxData / 8
	// renewers is how many renewals of one batch are under way at a time.
	renewers = 16
	// renewalShare is the part of a lease after which a renewal in a batch gives up. The batch is
	// sent when two thirds of the lease are left. That is enough for three renewals one by one.
	renewalShare = 5
)

// store is the [driver.Store] over Documents.
type store struct {
	documents Documents
	watcher   Watcher // the documents, or nil
	codec     codec
	shared    bool   // the documents are documents of semaphores
	suffix    string // of the names of documents
	attempts  int
	first     time.Duration // of the pauses between polls
	most      time.Duration
	identity  string
	jobs      adapter.Jobs // the watches, which end with life
	life      context.Context
	end       context.CancelFunc

	sights  sights
	mu      sync.Mutex
	doubts  map[string]string // by acquisition: what a write without an answer may replace
	batches map[string]*batch // by name, of releases
}

var (
	_ driver.Store     = (*store)(nil)
	_ driver.Breaker   = (*store)(nil)
	_ driver.Inspector = (*store)(nil)
)

// semaphoreSuffix ends the names of the documents of semaphores.
const semaphoreSuffix = ".semaphore"

// newStore returns the store of locks.
func newStore(d Documents, o options) *store {
	s := &store{
		documents: d, codec: lockCodec{o.format}, attempts: attempts, first: o.first, most: o.most,
		doubts: make(map[string]string), batches: make(map[string]*batch), sights: sights{least: manySights},
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.watcher, _ = d.(Watcher)
	return s
}

// newSemaphores returns the store of semaphores.
func newSemaphores(d Documents, o options) *store {
	s := newStore(d, o)
	s.codec, s.suffix, s.attempts = semaphoreCodec{}, semaphoreSuffix, sharedAttempts
	s.shared, s.sights.shared = true, true
	return s
}

// checkName returns why no lock can be called name, or nil.
func (s *store) checkName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	if n, ok := s.documents.(NameChecker); ok {
		return n.CheckName(name + s.suffix)
	}
	return nil
}

// document is one version of the document of a lock. The version is empty if the store has no
// document.
type document struct {
	roster
	version string
}

// load reads the document of the lock called name.
func (s *store) load(ctx context.Context, name string) (d document, err error) {
	data, version, err := s.documents.Load(ctx, name+s.suffix)
	if err != nil {
		return document{}, err
	}
	switch {
	case version == "" && len(data) > 0:
		return document{}, errNoVersion
	case len(data) > MaxData:
		return document{}, fmt.Errorf("%w: a document of more than %d bytes", locks.ErrForeign, MaxData)
	case version != "":
		if d.roster, err = s.codec.decode(data); err != nil {
			return document{}, fmt.Errorf("%w: %w", locks.ErrForeign, err)
		}
		for _, h := range d.holders {
			if h.lease <= 0 {
				return document{}, fmt.Errorf("%w: a holder without a lease", locks.ErrForeign)
			}
		}
	}
	return s.sights.saw(name, d.roster, version), nil
}

// unsent marks an error of a change: no write was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// These are errors of a store that breaks a promise of [Documents].
var (
	errNoVersion    = driver.Mark(errors.New("the store returned a document without a version"), driver.ErrRefused)
	errNoNewVersion = errors.New("the store returned no new version of a document that it has written")
	errStuck        = driver.Mark(errors.New("the store reports conflicts on a document that does not change"),
		driver.ErrRefused, driver.ErrUnavailable)
)

// errBusy is the error of a change if each time another client was faster.
var errBusy = errors.New("the document had another version at each attempt")

// change lets f change the roster of the lock called name, writes it, and returns the new
// document. If f returns false, change returns the document as it is. It begins with the document
// known, or reads the document if known is nil. If a write fails and may yet be carried out,
// change returns the document that the write should have replaced.
//
// Each attempt reads, changes and writes the document. Its outcome decides what follows:
//
//	outcome of an attempt                      change
//	the first read fails                       returns the error as unsent
//	the document has the nonce of a conflict   returns the document: the store's library, or a
//	                                           proxy, has sent the write twice
//	f returns false                            returns the document as it is
//	the write finds another version            tries again, up to s.attempts times
//	the write succeeds, or fails otherwise     returns the new document, or the error
func (s *store) change(ctx context.Context, name string, known *document, f func(r *roster, d document) bool,
) (d document, changed bool, err error) {
	var conflict struct{ nonce, replaces string } // of the last write, which found another version
	stuck := false                                // the document still has the version that the write names
	for attempt := range s.attempts {
		began := driver.Now()
		if known != nil {
			d, known = *known, nil
		} else if d, err = s.load(ctx, name); err != nil {
			if conflict.nonce == "" {
				err = unsent{err}
			}
			return document{}, false, err
		}
		if conflict.nonce != "" {
			if d.nonce == conflict.nonce {
				return d, true, nil
			}
			stuck = d.version == conflict.replaces
		}
		next := d.roster
		next.holders = slices.Clone(d.holders)
		if !f(&next, d) {
			return d, false, nil
		}
		next.nonce, next.written = rand.Text(), s.timeOfWrite(next, d)
		written, err := s.replace(ctx, name, d, next)
		if !errors.Is(err, ErrConflict) {
			return written, err == nil, err
		}
		s.sights.noteSurprise(name)
		conflict.nonce, conflict.replaces = next.nonce, d.version
		if s.shared { // holders that collide go apart
			took := min(driver.Now().Sub(began), time.Second) // without a pause of the machine
			adapter.Sleep(ctx, mathrand.N(time.Duration(min(attempt+1, 8))*took+1))
		}
	}
	if stuck {
		return document{}, false, errStuck
	}
	return document{}, false, driver.Mark(errBusy, driver.ErrRefused, driver.ErrUnavailable)
}

// replace writes the roster next in place of the document d, and returns the new document. With an
// error it returns d.
func (s *store) replace(ctx context.Context, name string, d document, next roster) (document, error) {
	data, err := s.codec.encode(next)
	room := MaxData
	if s.shared && next.token != d.token {
		room -= reserve
	}
	if err == nil && len(data) > room {
		err = fmt.Errorf("no room: the document of %d holders would have %d bytes, at most %d are allowed",
			len(next.holders), len(data), room)
	}
	if err != nil {
		return d, driver.Mark(err, driver.ErrRefused)
	}
	version, err := s.documents.Swap(ctx, name+s.suffix, data, d.version)
	switch {
	case err != nil:
		return d, err
	case version == "" || version == d.version: // perhaps it answers another request
		return d, errNoNewVersion
	}
	return s.sights.saw(name, next, version), nil
}

// timeOfWrite returns the time for the document next, which replaces d. It is the time of the wall
// clock, but for a lock's renewal a second after the last write at least, see [Record].
func (s *store) timeOfWrite(next roster, d document) time.Time {
	now := time.Now().Round(0) // without the monotonic clock, which goes on when the wall clock is set back
	renewed := !s.shared && len(next.holders) > 0 && d.index(next.holders[0].acquisition) >= 0
	if least := d.written.Add(time.Second); renewed && now.Before(least) {
		return least
	}
	return now
}

// Acquire takes the permits if they are free, or if their holders have not renewed them for their
// leases.
func (s *store) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	permits, size := req.Weigh()
	var wait time.Duration
	var token uint64
	began := driver.Now()
	d, held, err := s.change(ctx, req.Name, s.sights.free(req.Name), func(r *roster, _ document) bool {
		i := r.index(req.Acquisition)
		wait = 0 // what an earlier attempt has set is over
		switch {
		case i >= 0: // a request that came before has them
			r.holders[i].renewals++
		case driver.Now().Sub(began) > req.TTL/3: // the lease, which counts from began, would be short
			return false
		default:
			var taken int64
			if taken, wait = r.expire(); taken > size-permits {
				return false
			}
			r.token++
			i = len(r.holders)
			r.holders = append(r.holders, holder{
				acquisition: req.Acquisition, permits: permits, token: r.token, since: time.Now(),
			})
		}
		h := &r.holders[i]
		h.identity, h.lease = s.identity, min(req.TTL, longest)
		token = h.token
		return true
	})
	switch {
	case errors.Is(err, errBusy): // others have had the lock meanwhile
		return driver.Reply{Listening: true}, nil
	case err != nil:
		return driver.Reply{}, s.acquireError(req.Acquisition, d, err)
	case !held: // polls miss nothing, whenever they begin, and a watch tells once when it is on
		return driver.Reply{Wait: wait, Listening: true}, nil
	}
	return driver.Reply{Held: true, Token: token}, nil
}

// acquireError returns the error of an Acquire. It remembers the version that the write should
// have replaced.
func (s *store) acquireError(acquisition string, d document, err error) error {
	var u unsent
	switch {
	case errors.Is(err, locks.ErrForeign):
		return err
	case errors.As(err, &u) && errors.Is(err, driver.ErrUnavailable):
		return driver.Mark(u.error, driver.ErrRefused)
	case errors.As(err, &u) && !errors.Is(err, driver.ErrRefused):
		return driver.Mark(u.error, driver.ErrRefused, driver.ErrUnavailable, driver.ErrUnreachable)
	case !errors.Is(err, driver.ErrRefused):
		s.mu.Lock()
		s.doubts[acquisition] = d.version
		s.mu.Unlock()
	}
	return err
}

// Lookup finds out whether the write of an Acquire was carried out. If the write may still come,
// Lookup replaces the document that the write would replace.
func (s *store) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	doubted, known := s.doubtOf(req.HoldID)
	d, err := s.settle(ctx, req.HoldID, doubted, known)
	if err != nil {
		return driver.Reply{}, err
	}
	if i := d.index(req.Acquisition); i >= 0 {
		return driver.Reply{Held: true, Token: d.holders[i].token}, nil
	}
	return driver.Reply{Settled: known}, nil
}

// doubtOf returns the version that a write of id replaces if the write may still come.
func (s *store) doubtOf(id driver.HoldID) (version string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, known = s.doubts[id.Acquisition]
	return version, known
}

// settle returns the document of a lock. If known is true, a write of id may still come, and
// replaces the version doubted only. For the document that settle returns, this write comes too
// late, or the document shows that the store has carried out the write.
func (s *store) settle(ctx context.Context, id driver.HoldID, doubted string, known bool) (document, error) {
	d, _, err := s.change(ctx, id.Name, nil, func(r *roster, d document) bool {
		if !known || r.index(id.Acquisition) >= 0 || d.version != doubted {
			return false
		}
		r.expire()
		return true
	})
	if err == nil && known {
		s.mu.Lock()
		delete(s.doubts, id.Acquisition)
		s.mu.Unlock()
	}
	return d, err
}

// Renew replaces the document of each name. It returns when the last request has ended. If there
// are several requests, each ends early: a request that hangs costs the holds of no other name.
func (s *store) Renew(ctx context.Context, holds []driver.HoldID, ttl time.Duration) ([]bool, error) {
	byName := make(map[string][]int) // indexes of holds
	for i, id := range holds {
		byName[id.Name] = append(byName[id.Name], i)
	}
	renewed := make([]bool, len(holds))
	errs := make(chan error, len(byName))
	room := make(chan struct{}, renewers)
	for _, indexes := range byName {
		go func() {
			room <- struct{}{} // there is room when ctx ends at the latest, since all requests end with it
			defer func() { <-room }()
			ctx, cancel := ctx, func() {}
			if len(byName) > 1 {
				ctx, cancel = context.WithTimeout(ctx, ttl/renewalShare)
			}
			defer cancel()
			of := make([]driver.HoldID, len(indexes))
			for n, i := range indexes {
				of[n] = holds[i]
			}
			held, err := s.changeHolds(ctx, of, func(r *roster, i int) {
				r.holders[i].lease = min(ttl, longest)
				r.holders[i].renewals++
			}, false)
			for n, i := range indexes {
				renewed[i] = held[n]
			}
			errs <- err
		}()
	}
	var err error
	for range byName {
		err = joined.Errors(err, <-errs)
	}
	return renewed, err
}

// changeHolds changes the entries of holds, which have one name. It reports which holds are in
// the document. For a release, it also reports holds whose release the document remembers after a
// conflict: the write was carried out, and a library or proxy has sent it twice.
func (s *store) changeHolds(
	ctx context.Context, holds []driver.HoldID, f func(r *roster, i int), release bool) ([]bool, error) {
	held, written := make([]bool, len(holds)), make([]bool, len(holds))
	_, _, err := s.change(ctx, holds[0].Name, s.sights.of(holds[0]), func(r *roster, d document) (found bool) {
		for n, id := range holds {
			i := r.index(id.Acquisition)
			if held[n] = i >= 0; held[n] {
				f(r, i)
				found, written[n] = true, true
			} else if release && written[n] {
				held[n] = slices.Contains(d.lastReleased, id.Acquisition)
			}
		}
		return found
	})
	if err != nil {
		clear(held)
	}
	if errors.Is(err, classes.ErrGone) {
		return held, nil
	}
	return held, err
}

// Release gives the permits back. The document and the token stay. A write in doubt that has not
// come is settled as in Lookup.
func (s *store) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if doubted, known := s.doubtOf(id); known {
		switch d, err := s.settle(ctx, id, doubted, known); {
		case err == nil && d.index(id.Acquisition) < 0:
			return driver.Released{Settled: true}, nil
		case err != nil && !errors.Is(err, classes.ErrGone):
			return driver.Released{}, err
		}
	}
	if s.shared {
		held, err := s.releaseTogether(ctx, id)
		return driver.Released{Held: held, Awaited: true}, err
	}
	held, err := s.releaseHolds(ctx, []driver.HoldID{id})
	return driver.Released{Held: held[0], Awaited: true}, err
}

func (s *store) releaseHolds(ctx context.Context, holds []driver.HoldID) ([]bool, error) {
	return s.changeHolds(ctx, holds, (*roster).release, true)
}

// Break gives back the permits of all holders.
func (s *store) Break(ctx context.Context, name string) (bool, error) {
	_, broken, err := s.change(ctx, name, nil, func(r *roster, _ document) bool {
		held := len(r.holders) > 0
		r.holders = nil
		return held
	})
	return broken, err
}

// Identify is part of [driver.Inspector].
func (s *store) Identify(_, identity string) { s.identity = identity }

// Inspect reads the document.
func (s *store) Inspect(ctx context.Context, name string) (driver.State, error) {
	d, err := s.load(ctx, name)
	state := driver.State{Waiting: -1}
	if err != nil {
		return state, err
	}
	for _, h := range d.holders {
		claim := driver.Claim{Acquisition: h.acquisition, Identity: h.identity}
		claim.Since, claim.Token, claim.Left = h.since, h.token, max(h.timeLeft(), 0)
		if s.shared {
			claim.Permits = h.permits
		}
		state.Holders = append(state.Holders, claim)
	}
	return state, nil
}
