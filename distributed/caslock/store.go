package caslock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
)

// A request to the lock is a change of its document:
//
//	request   replaces a document           by one with
//	Acquire   without a holder, or whose    the acquisition as holder, and the next token
//	          holder's time is over
//	Renew     of the acquisition            another lease
//	Release   of the acquisition            no holder
//	Break     of any holder                 no holder
//	Lookup    that a write without an       no holder. Only if that write may still come: it had the
//	          answer should have replaced   right to replace the document

const (
	// longest is the longest lease in a document. With what is added it is no overflow.
	longest = 100 * 365 * 24 * time.Hour
	// drift is which part of a lease a waiter waits longer, because clocks have different speeds.
	drift = 100
	// attempts is how often a document is read and replaced while others replace it. One of them
	// has the lock after each. So a store which needs more attempts refuses every write.
	attempts = 10
	// renewers is how many renewals of one batch are under way at a time.
	renewers = 16
	// patience is the part of a lease after which a renewal in a batch gives up. The batch is sent
	// when two thirds of the lease are left. That is enough for three renewals one by one.
	patience = 5
)

// store is the [lease.Store] over Documents.
type store struct {
	documents Documents
	watcher   Watcher // the documents, or nil
	format    Format
	first     time.Duration // of the pauses between polls
	most      time.Duration
	identity  string
	jobs      adapter.Jobs // the watches, which end with life
	life      context.Context
	end       context.CancelFunc

	sights sights
	mu     sync.Mutex
	doubts map[string]string // by acquisition: what a write without an answer may replace
}

var (
	_ lease.Store     = (*store)(nil)
	_ lease.Breaker   = (*store)(nil)
	_ lease.Inspector = (*store)(nil)
)

// document is one version of the document of a lock. Without a version there is no document.
type document struct {
	Record
	version string
	since   time.Time // when this client saw the version first
}

// left returns for how long the holder may still rely on its lease.
func (d document) left() time.Duration {
	term := min(d.Lease, longest)
	return term + term/drift - lease.Now().Sub(d.since)
}

// free makes r that of a free lock.
func free(r *Record) { *r = Record{Token: r.Token} }

// load reads the document of the lock called name.
func (s *store) load(ctx context.Context, name string) (d document, err error) {
	data, version, err := s.documents.Load(ctx, name)
	if err != nil {
		return document{}, err
	}
	switch {
	case version == "" && len(data) > 0:
		return document{}, errNoVersion
	case len(data) > MaxData:
		return document{}, fmt.Errorf("%w: a document of more than %d bytes", locks.ErrForeign, MaxData)
	case version != "":
		if d.Record, err = s.format.Decode(data); err != nil {
			return document{}, fmt.Errorf("%w: %w", locks.ErrForeign, err)
		}
		if d.Holder != "" && d.Lease <= 0 {
			return document{}, fmt.Errorf("%w: a holder without a lease", locks.ErrForeign)
		}
	}
	return s.sights.saw(name, d.Record, version), nil
}

// unsent marks an error of a change: no write was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// These are errors of a store that breaks a promise of [Documents].
var (
	errNoVersion    = lease.Mark(errors.New("the store returned a document without a version"), lease.ErrRefused)
	errNoNewVersion = errors.New("the store returned no new version of a document that it has written")
	errStuck        = lease.Mark(errors.New("the store reports conflicts on a document that does not change"),
		lease.ErrRefused, lease.ErrUnavailable)
)

// errBusy is the error of a change if each time another client was faster.
var errBusy = fmt.Errorf("the document had another version %d times", attempts)

// change replaces the document of the lock called name by what f makes of it, and returns the new
// one. If f returns false, it returns the document as it is. It begins with a known document, if
// that is not nil, and reads it otherwise. If a write fails and may yet be carried out, it returns
// the document that the write should have replaced. After another error it returns no document.
func (s *store) change(ctx context.Context, name string, known *document, f func(r *Record, d document) bool,
) (d document, changed bool, err error) {
	written := ""  // by a write that found another version
	stuck := false // the last conflict was with a version that the document still has
	for range attempts {
		before := d.version
		if known != nil {
			d, known = *known, nil
		} else if d, err = s.load(ctx, name); err != nil {
			if written == "" {
				err = unsent{err}
			}
			return document{}, false, err
		} else if written != "" && d.Nonce == written {
			return d, true, nil // the store's library has sent it twice
		}
		stuck = written != "" && d.version == before
		next := d.Record
		if !f(&next, d) {
			return d, false, nil
		}
		next.Nonce, next.Written = rand.Text(), writtenAt(next, d)
		data, err := s.format.Encode(next)
		if err != nil {
			return document{}, false, lease.Mark(err, lease.ErrRefused)
		}
		version, err := s.documents.Swap(ctx, name, data, d.version)
		switch {
		case err == nil && (version == "" || version == d.version): // perhaps it answers another request
			return d, false, errNoNewVersion
		case err == nil:
			return s.sights.saw(name, next, version), true, nil
		case !errors.Is(err, ErrConflict):
			return d, false, err
		}
		s.sights.surprised(name)
		written = next.Nonce
	}
	if stuck {
		return document{}, false, errStuck
	}
	return document{}, false, lease.Mark(errBusy, lease.ErrRefused, lease.ErrUnavailable)
}

// writtenAt returns the time for the document next, which replaces d. It is the time of the wall
// clock, but for a renewal a second after the last write at least, see [Record].
func writtenAt(next Record, d document) time.Time {
	now := time.Now().Round(0) // without the monotonic clock, which goes on when the other one is set back
	if least := d.Written.Add(time.Second); next.Holder != "" && next.Holder == d.Holder && now.Before(least) {
		return least
	}
	return now
}

// Acquire takes the lock if it is free, or if its holder has not renewed it for its lease.
func (s *store) Acquire(ctx context.Context, req lease.Request) (lease.Reply, error) {
	var wait time.Duration
	d, held, err := s.change(ctx, req.Name, s.sights.free(req.Name), func(r *Record, d document) bool {
		if r.Holder != req.Acquisition { // else a request that came before has it
			if wait = d.left(); r.Holder != "" && wait > 0 {
				return false
			}
			free(r)
			r.Token++
			r.Since = time.Now()
		}
		r.Holder, r.Identity, r.Lease = req.Acquisition, s.identity, min(req.TTL, longest)
		return true
	})
	switch {
	case errors.Is(err, errBusy): // others have had the lock meanwhile
		return lease.Reply{Listening: true}, nil
	case err != nil:
		return lease.Reply{}, s.acquireError(req.Acquisition, d, err)
	case !held: // polls miss nothing, whenever they begin, and a watch tells once when it is on
		return lease.Reply{Wait: wait, Listening: true}, nil
	}
	return lease.Reply{Held: true, Token: d.Token}, nil
}

// acquireError returns the error of an Acquire. It remembers what its write should have replaced.
func (s *store) acquireError(acquisition string, d document, err error) error {
	var u unsent
	switch {
	case errors.Is(err, locks.ErrForeign):
		return err
	case errors.As(err, &u) && errors.Is(err, lease.ErrUnavailable):
		return lease.Mark(u.error, lease.ErrRefused)
	case errors.As(err, &u) && !errors.Is(err, lease.ErrRefused):
		return lease.Mark(u.error, lease.ErrRefused, lease.ErrUnavailable, lease.ErrUnreachable)
	case !errors.Is(err, lease.ErrRefused):
		s.mu.Lock()
		s.doubts[acquisition] = d.version
		s.mu.Unlock()
	}
	return err
}

// Lookup finds out what became of the write of an Acquire. If it may still come, Lookup replaces
// the document that it would replace.
func (s *store) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	s.mu.Lock()
	doubted, known := s.doubts[req.Acquisition]
	delete(s.doubts, req.Acquisition)
	s.mu.Unlock()
	d, _, err := s.change(ctx, req.Name, nil, func(r *Record, d document) bool {
		if !known || d.Holder == req.Acquisition || d.version != doubted {
			return false
		}
		free(r)
		return true
	})
	switch {
	case err != nil:
		return lease.Reply{}, err
	case d.Holder == req.Acquisition:
		return lease.Reply{Held: true, Token: d.Token}, nil
	}
	return lease.Reply{Settled: known}, nil
}

// Renew replaces the document of each hold. It reports on all of them when the last request has
// ended. So each request of several ends early: one that hangs costs no other hold.
func (s *store) Renew(ctx context.Context, holds []lease.HoldID, ttl time.Duration) ([]bool, error) {
	renewed, errs := make([]bool, len(holds)), make([]error, len(holds))
	var wg sync.WaitGroup
	room := make(chan struct{}, renewers)
	for i, id := range holds {
		wg.Go(func() {
			room <- struct{}{} // there is room when ctx ends at the latest, since all requests end with it
			defer func() { <-room }()
			ctx, cancel := ctx, func() {}
			if len(holds) > 1 {
				ctx, cancel = context.WithTimeout(ctx, ttl/patience)
			}
			defer cancel()
			renewed[i], errs[i] = s.changeHold(ctx, id, func(r *Record) { r.Lease = min(ttl, longest) })
		})
	}
	wg.Wait()
	return renewed, errors.Join(errs...)
}

// changeHold changes the document if id holds the lock, and reports whether it does.
func (s *store) changeHold(ctx context.Context, id lease.HoldID, f func(r *Record)) (bool, error) {
	_, held, err := s.change(ctx, id.Name, s.sights.of(id), func(r *Record, _ document) bool {
		if r.Holder != id.Acquisition {
			return false
		}
		f(r)
		return true
	})
	return held, err
}

// Release frees the lock. Its document stays, and with it the token.
func (s *store) Release(ctx context.Context, id lease.HoldID) (lease.Released, error) {
	held, err := s.changeHold(ctx, id, free)
	return lease.Released{Held: held, Awaited: true}, err
}

// Break frees the lock for any holder.
func (s *store) Break(ctx context.Context, name string) (bool, error) {
	_, broken, err := s.change(ctx, name, nil, func(r *Record, _ document) bool {
		held := r.Holder != ""
		free(r)
		return held
	})
	return broken, err
}

// Identify is part of [lease.Inspector].
func (s *store) Identify(_, identity string) { s.identity = identity }

// Inspect reads the document.
func (s *store) Inspect(ctx context.Context, name string) (lease.State, error) {
	d, err := s.load(ctx, name)
	state := lease.State{Waiting: -1}
	if err != nil || d.Holder == "" {
		return state, err
	}
	holder := lease.Claim{Acquisition: d.Holder, Identity: d.Identity}
	holder.Since, holder.Token, holder.Left = d.Since, d.Token, max(d.left(), 0)
	state.Holders = []lease.Claim{holder}
	return state, nil
}
