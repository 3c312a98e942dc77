package redlock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// ReleaseAll frees the locks of all ids by one script on each server. It returns when a majority of
// the servers has freed each of them. It frees the other servers in the background.
func (m *majority) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	votes := make([]*vote, len(ids)) // nil if the lock was released before
	var limit time.Duration
	for k, id := range ids {
		if v := m.find(id.Name, id.Acquisition); v != nil {
			v.forgetFailures()
			votes[k] = v
			limit = max(limit, m.patience(v.lease))
		}
	}
	for i := range m.nodes {
		var claimed []*vote
		for _, v := range votes {
			if v != nil && v.claim(i) {
				claimed = append(claimed, v)
			}
		}
		if len(claimed) > 0 && !m.jobs.Go(func() { m.clearAll(i, claimed, limit) }) {
			for _, v := range claimed {
				v.disclaim(i)
			}
		}
	}
	done := make([]bool, len(ids))
	var err error
	stop := time.Now().Add(limit)
	for k, v := range votes {
		if v == nil {
			done[k] = true
			continue
		}
		v.await(ctx, time.Until(stop), func() bool {
			return v.noted >= m.quorum || v.failures() > len(m.nodes)-m.quorum
		})
		v.mu.Lock()
		if done[k] = v.noted >= m.quorum; !done[k] {
			err = v.failure(m.quorum)
		}
		v.mu.Unlock()
		if done[k] {
			m.forget(ids[k].Acquisition, v)
		}
	}
	return done, err
}

// claim ends v, and reports whether the caller shall delete v on server i.
func (v *vote) claim(i int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended.Store(true)
	s := &v.seats[i]
	if s.clearing || s.gone {
		return false
	}
	s.clearing = true
	return true
}

// disclaim ends the claim of v on server i.
func (v *vote) disclaim(i int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seats[i].clearing = false
}

// clearAll deletes the claimed votes on server i. clearAll repeats its request until the server has
// answered, for the release timeout at most. Each request may take the time limit. If the creation
// of a vote was not answered, clearAll leaves that vote to clear.
func (m *majority) clearAll(i int, votes []*vote, limit time.Duration) {
	var left []*vote // votes whose seats on server i are locked
	for _, v := range votes {
		s := &v.seats[i]
		s.mu.Lock()
		switch {
		case s.late:
			s.mu.Unlock()
			if !m.jobs.Go(func() { m.clear(i, v, true) }) {
				v.disclaim(i)
			}
		case !s.dirty:
			v.unlockGone(i)
		default:
			left = append(left, v)
		}
	}
	stop := time.Now().Add(lease.DefaultReleaseTimeout)
	for pause := 5 * time.Millisecond; len(left) > 0; pause = min(2*pause, 250*time.Millisecond) {
		ids := make([]driver.HoldID, len(left))
		for k, v := range left {
			ids[k] = driver.HoldID{Name: v.name, Acquisition: v.id}
		}
		ctx, cancel := context.WithTimeout(m.life, limit)
		done, err := m.nodes[i].ReleaseAll(ctx, ids)
		cancel()
		var rest []*vote
		for k, v := range left {
			if k < len(done) && done[k] {
				v.unlockGone(i)
			} else {
				v.seats[i].asked = true
				v.fail(&v.seats[i], cmp.Or(err, errUnanswered))
				rest = append(rest, v)
			}
		}
		left = rest
		if len(left) > 0 && (time.Now().Add(pause).After(stop) || !adapter.Sleep(m.life, pause)) {
			break
		}
	}
	for _, v := range left {
		v.seats[i].mu.Unlock()
		v.disclaim(i)
	}
}

var errUnanswered = errors.New("no answer for this lock")

// unlockGone notes that server i no longer has v, and unlocks v's seat for server i.
func (v *vote) unlockGone(i int) {
	v.note(&v.seats[i], driver.Released{})
	v.seats[i].mu.Unlock()
}
