package consullock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// session is a session with Consul, which all holds of a client belong to. The first hold begins
// the session. Each renewal of holds renews it. A session without holds is not renewed: it ends by
// itself, or the next acquisition renews it. When the session is over, the next acquisition begins
// another.
type session struct {
	id    string
	life  context.Context // ends with the session
	end   context.CancelFunc
	since time.Time // when the last answered request to begin or renew it was sent, by driver.Now; guarded by store.mu
}

// enter returns the session for an acquisition. If there is no session, enter begins a session. If
// half of the session's time is over, enter renews the session.
//
// If all of its time is over, enter begins another session. A leader that was stopped for so long
// may answer a renewal before it knows of the next leader, while the next leader counts the
// session's time.
//
// Other acquisitions wait meanwhile. So requests do not carry the values of ctx: a context of the
// program may run code of the program that waits for one of these acquisitions.
func (s *store) enter(ctx context.Context) (*session, error) {
	ctx = adapter.Detach(ctx, context.Background())
	select {
	case s.entering <- struct{}{}:
		defer func() { <-s.entering }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	se := s.session
	var age time.Duration
	if se != nil {
		age = driver.Now().Sub(se.since)
	}
	s.mu.Unlock()
	switch {
	case se == nil:
	case age < s.ttl/2:
		return se, nil
	case age >= s.ttl:
		s.die(se)
	default:
		sent := driver.Now()
		alive, err := s.keep(ctx, se)
		if err != nil {
			return nil, err
		}
		if alive {
			s.prolong(se, sent)
			return se, nil
		}
	}
	return s.begin(ctx)
}

// begin begins a session.
//
// The session has no health checks. By default it would have the health check of the agent's node,
// and end as soon as the servers consider the agent dead. The holders would not be told in time.
func (s *store) begin(ctx context.Context) (*session, error) {
	var out struct{ ID string }
	sent := driver.Now()
	err := s.write(ctx, "/v1/session/create", map[string]any{ // CreateNoChecks has no delay of 0
		"Name":       "locks " + s.identity,
		"TTL":        s.ttl.String(),
		"LockDelay":  fmt.Sprintf("%dms", s.delay.Milliseconds()),
		"Behavior":   api.SessionBehaviorRelease,
		"NodeChecks": []string{},
	}, &out)
	var answer api.StatusError
	if errors.As(err, &answer) && strings.Contains(answer.Body, "Invalid Session TTL") {
		err = driver.Mark(fmt.Errorf("the servers refuse a TTL of %v, see their session_ttl_min: %w", s.ttl, answer),
			driver.ErrRefused)
	}
	if err != nil {
		return nil, fmt.Errorf("no session: %w", err)
	}
	se := &session{id: out.ID, since: sent}
	se.life, se.end = context.WithCancel(s.life)
	s.mu.Lock()
	s.session = se
	s.mu.Unlock()
	s.jobs.Go(func() { s.watchSession(se) })
	return se, nil
}

// keep renews se, and reports whether se is still there.
func (s *store) keep(ctx context.Context, se *session) (alive bool, err error) {
	err = s.write(ctx, "/v1/session/renew/"+se.id, nil, nil)
	var answer api.StatusError
	if errors.As(err, &answer) && answer.Code == http.StatusNotFound {
		s.die(se)
		return false, nil
	}
	return err == nil, err
}

// kept is a renewed session, or nil if the session is over, and when the request was sent.
type kept struct {
	session *session
	sent    time.Time
}

// keepPresent renews the present session.
func (s *store) keepPresent() (k kept, err error) {
	s.mu.Lock()
	se := s.session
	s.mu.Unlock()
	if se == nil {
		return kept{}, nil
	}
	sent := driver.Now()
	alive, err := s.keep(s.life, se)
	if !alive {
		return kept{}, err
	}
	return kept{se, sent}, nil
}

// prolong notes that the time of se counts from at, or later.
func (s *store) prolong(se *session, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(se.since) {
		se.since = at
	}
}

// die notes that se and its holds are over.
func (s *store) die(se *session) {
	se.end()
	var lost []driver.HoldID
	s.mu.Lock()
	if s.session == se {
		s.session = nil
	}
	for id, h := range s.holds {
		if h.session == se {
			delete(s.holds, id)
			lost = append(lost, id)
		}
	}
	s.mu.Unlock()
	for _, id := range lost {
		s.lost(id, ErrSessionExpired)
	}
}

// watchSession learns of the end of se at once.
func (s *store) watchSession(se *session) {
	index := uint64(0)
	for se.life.Err() == nil {
		var entry *api.SessionEntry
		err := s.await(se.life, &index, func(q *api.QueryOptions) (meta *api.QueryMeta, err error) {
			entry, meta, err = s.client.Session().Info(se.id, q)
			return meta, err
		})
		if err == nil && entry == nil {
			s.die(se)
		}
	}
}

// finish ends the session on the server.
func (s *store) finish(ctx context.Context) {
	s.mu.Lock()
	se := s.session
	s.mu.Unlock()
	if se == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = s.write(ctx, "/v1/session/destroy/"+se.id, nil, nil) // after an error the session ends by itself
}
