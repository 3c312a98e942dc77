package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
	"github.com/jucgo/locks/fair"
)

// vote is one try to acquire the lock, and the hold of a successful try.
//
//	open    requests may create the vote on servers   Acquire, and Renew with WithRestore
//	won     the same, and the lock is held            Acquire or Lookup, by a majority
//	ended   no request may create the vote any more   leave, or free; for good
//
// Several requests of one acquisition may be under way at once, because a request may be repeated.
// All requests count the same votes: a server that has the vote grants it again. So a request
// without a majority leaves the votes to the other requests, and only the last request under way
// deletes the votes. If the vote is won, requests to acquire delete nothing: a release, or a
// renewal that the majority denies, deletes the votes of a hold. A vote is won and ended under one
// mutex, so a majority that was counted while another request deleted votes does not win.
//
// A request that creates the vote on a server runs under the mutex of the server's seat, and checks
// ended first. Requests that delete the vote are sent after ended was set, under the same mutex. So
// the last request that is sent to each server is a deletion. A server reads the deletion last,
// unless the client of Redis has given up the answer to a creation, and has sent the deletion on
// another connection. Then a deletion that finds no vote is repeated.
type vote struct {
	name  string
	id    string // the holder's name on the servers
	lease time.Duration
	ended atomic.Bool // set under mu
	seats []seat

	mu      sync.Mutex
	asking  int           // requests to acquire that are under way
	won     bool          // a request has reported a majority
	tries   int           // the number of tries in a row, until now, in which no client had a majority
	until   time.Time     // when the vote has expired on all servers
	noted   int           // how many servers surely do not have the vote any more
	held    int           // how many of these servers had the vote
	awaited bool          // other clients may wait for the lock
	changed chan struct{} // closed and replaced when a server is noted
}

// seat is the known state of a vote on one server.
type seat struct {
	// Held while a request that creates or deletes the vote is under way. In a bubble of
	// testing/synctest, time would stand still while a goroutine waits for a sync.Mutex.
	mu    fair.Mutex
	dirty bool // the vote may be there
	late  bool // a creation was not answered, and may reach the server after a deletion
	asked bool // a deletion was sent before, and may have deleted the vote

	// Guarded by vote.mu.
	clearing   bool  // a goroutine deletes the vote
	gone       bool  // the server was noted
	why        error // the error of the last deletion, or nil
	stragglers stragglers
}

// join counts another request of the same acquisition, for which next was made, as a request of v.
// If v has ended, join gives next the tries of v instead, and returns false.
func (v *vote) join(next *vote) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.Load() {
		next.tries = v.tries
		return false
	}
	v.asking++
	if next.until.After(v.until) {
		v.until = next.until
	}
	return true
}

// win gives the votes to a hold. It returns false if v has ended.
func (v *vote) win() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended.Load() {
		return false
	}
	v.won = true
	return true
}

// leave ends a request. If no other request counts the votes of v, and no hold has them, leave ends
// v, and returns true.
func (v *vote) leave() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asking--
	if v.asking > 0 || v.won {
		return false
	}
	v.ended.Store(true)
	return true
}

func (v *vote) over(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return now.After(v.until)
}

// last notes that v may be on servers until then.
func (v *vote) last(until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if until.After(v.until) {
		v.until = until
	}
}

// begin returns the vote of an acquisition if that vote has not ended, or a new vote. It counts the
// request of the caller, which calls leave later.
func (m *majority) begin(name, acquisition string, d time.Duration) *vote {
	v := &vote{
		name:    name,
		lease:   d,
		seats:   make([]seat, len(m.nodes)),
		changed: make(chan struct{}),
		asking:  1,
		until:   time.Now().Add(d + driftOf(d) + m.patience(d)),
	}
	// A name in Redisson's form. The names of acquisitions themselves are not used on servers.
	client := acquisition
	if end := strings.LastIndexByte(acquisition, ':'); end >= 0 {
		client = acquisition[:end]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial = max(time.Now().UnixMicro(), m.serial+1)
	v.id = client + ":" + strconv.FormatInt(m.serial, 10)
	if before := m.votes[acquisition]; before != nil {
		if before.join(v) { // the request is repeated
			return before
		}
	}
	if len(m.votes) >= m.sweep { // there are votes of lost holds and abandoned acquisitions
		now := time.Now()
		for o, old := range m.votes {
			if old.over(now) {
				delete(m.votes, o)
			}
		}
		m.sweep = max(1024, 2*len(m.votes))
	}
	m.votes[acquisition] = v
	return v
}

func (m *majority) find(name, acquisition string) *vote {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.votes[acquisition]; v != nil && v.name == name {
		return v
	}
	return nil
}

func (m *majority) forget(acquisition string, v *vote) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.votes[acquisition] == v {
		delete(m.votes, acquisition)
	}
}

// free ends v, and deletes it on all servers that may have it. Each server is asked until it has
// answered, for the release timeout at most. After a creation without an answer, the server is
// asked until it has deleted the vote, for the same time. With tell the server publishes the
// release. free may be called again.
func (m *majority) free(v *vote, tell bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	for i := range v.seats {
		if s := &v.seats[i]; !s.clearing && !s.gone {
			s.clearing = m.jobs.Go(func() { m.clear(i, v, tell) })
		}
	}
}

func (m *majority) clear(i int, v *vote, tell bool) {
	s := &v.seats[i]
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		s.clearing = false
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dirty {
		v.note(s, driver.Released{})
		return
	}
	node := m.nodes[i]
	stop := time.Now().Add(lease.DefaultReleaseTimeout)
	noted := false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		ctx, cancel := context.WithTimeout(m.life, m.patience(v.lease))
		var r driver.Released
		var err error
		if tell {
			r, err = node.Release(ctx, driver.HoldID{Name: v.name, Acquisition: v.id})
		} else {
			var reply any
			reply, err = node.port.Eval(ctx, voteRelease, 1, redisport.NewArgs(v.name, v.id))
			r.Held = reply == int64(1)
		}
		cancel()
		if errors.Is(err, locks.ErrForeign) { // the server has something else instead
			err = nil
		}
		if err != nil {
			v.fail(s, err)
		} else {
			s.late = s.late && !r.Held
			if !noted {
				r.Held = r.Held || s.asked // an earlier request may have deleted the vote
				v.note(s, r)
				noted = true
			}
		}
		if noted && !s.late {
			return
		}
		s.asked = true
		if time.Now().Add(pause).After(stop) {
			return
		}
		if !adapter.Sleep(m.life, pause) {
			return
		}
	}
}

// note notes that a server no longer has v.
func (v *vote) note(s *seat, r driver.Released) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.gone = true
	v.noted++
	if r.Held {
		v.held++
	}
	v.awaited = v.awaited || r.Awaited
	close(v.changed)
	v.changed = make(chan struct{})
}

// fail notes that a server has not deleted v, because of err.
func (v *vote) fail(s *seat, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s.why = err
	close(v.changed)
	v.changed = make(chan struct{})
}

// forgetFailures begins another release of v.
func (v *vote) forgetFailures() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.seats {
		v.seats[i].why = nil
	}
}

// failures returns how many servers have failed to delete v, and not deleted it later. The caller
// holds v.mu.
func (v *vote) failures() (n int) {
	for i := range v.seats {
		if s := &v.seats[i]; !s.gone && s.why != nil {
			n++
		}
	}
	return n
}

// failure returns why no majority has deleted v. The error matches [driver.ErrRefused] if so many
// servers have refused the deletion that no majority can delete v. The caller holds v.mu.
func (v *vote) failure(quorum int) error {
	var errs []error
	n, refused := len(v.seats), 0
	for i := range v.seats {
		if s := &v.seats[i]; !s.gone && s.why != nil {
			errs = append(errs, fmt.Errorf("server %d: %w", i, s.why))
			if errors.Is(s.why, driver.ErrRefused) {
				refused++
			}
		}
	}
	if silent := n - v.noted - len(errs); silent > 0 {
		errs = append(errs, fmt.Errorf("%d servers have not answered", silent))
	}
	err := fmt.Errorf("%d of %d servers answered to the release: %w", v.noted, n, adapter.Join(errs...))
	if refused <= n-quorum {
		return doubtful{err}
	}
	return err
}

// await waits until ready returns true, until limit is over, or until ctx ends. It calls ready with
// v.mu held.
func (v *vote) await(ctx context.Context, limit time.Duration, ready func() bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		v.mu.Lock()
		done, changed := ready(), v.changed
		v.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
