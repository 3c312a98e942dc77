package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// What inspectors know of a [Table] is in its tables. One more table has the identities of clients,
// whose ids the owners begin with. A database without that table is as good for locks. Of an
// [Advisory], the server tells which session has the lock.

var (
	_ lease.Inspector = (*tableStore)(nil)
	_ lease.Announcer = (*tableStore)(nil)
	_ lease.Inspector = (*queueStore)(nil)
	_ lease.Inspector = (*sessionStore)(nil)
)

// self is what a store tells of its client.
type self struct {
	client, identity string
	untold           atomic.Bool // there is no table for that
}

// Identify is part of [lease.Inspector].
func (s *self) Identify(client, identity string) { s.client, s.identity = client, identity }

// Announce is part of [lease.Announcer]. It also removes the identities of clients that have ended.
// It waits for the check of the database, which must not meet other requests of this client.
func (s *tableStore) Announce(ctx context.Context, ttl time.Duration) error {
	if s.untold.Load() {
		return nil
	}
	if err := s.c.start.fit(ctx); err != nil {
		return err
	}
	_, err := s.c.exec(ctx, s.c.statements["announce"], s.client, s.identity, micros(ttl))
	if err == nil {
		_, err = s.c.exec(ctx, s.c.statements["forget"])
	} else if s.c.dialect.classify(err) == missing {
		s.untold.Store(true)
		return nil
	}
	return err
}

func (s *tableStore) Inspect(ctx context.Context, name string) (lease.State, error) {
	state := lease.State{Waiting: -1}
	err := s.c.each(ctx, s.c.statements["inspect"], []any{name}, func(rows *sql.Rows) error {
		var h lease.Claim
		var token, left int64
		if err := rows.Scan(&h.Acquisition, &token, &left); err != nil {
			return err
		}
		h.Token, h.Left = uint64(token), max(time.Duration(left)*time.Microsecond, 0)
		state.Holders = append(state.Holders, h)
		return nil
	})
	if err != nil {
		return lease.State{}, s.c.outcome(err)
	}
	return state, s.identify(ctx, state.Holders)
}

func (s *queueStore) Inspect(ctx context.Context, name string) (lease.State, error) {
	state, err := s.tableStore.Inspect(ctx, name)
	if err != nil {
		return state, err
	}
	err = s.c.each(ctx, s.c.statements["inspect queue"], []any{name}, func(rows *sql.Rows) error {
		var w lease.Claim
		err := rows.Scan(&w.Acquisition)
		state.Waiters = append(state.Waiters, w)
		return err
	})
	if err != nil {
		return lease.State{}, s.c.outcome(err)
	}
	state.Waiting = len(state.Waiters)
	return state, s.identify(ctx, state.Waiters[:min(len(state.Waiters), maxAsked)])
}

// maxAsked is how many waiters are asked for their processes. The others have their names only.
const maxAsked = 64

// identify adds the identities of clients to claims.
func (s *tableStore) identify(ctx context.Context, claims []lease.Claim) error {
	known := make(map[string]string)
	for i := range claims {
		client, _, _ := strings.Cut(claims[i].Acquisition, ":")
		identity, ok := known[client]
		if !ok {
			switch err := s.c.query(ctx, s.c.statements["identity"], []any{client}, &identity); {
			case err != nil && s.c.dialect.classify(err) == missing:
				return nil
			case err != nil && !errors.Is(err, sql.ErrNoRows):
				return s.c.outcome(err)
			}
			known[client] = identity
		}
		claims[i].Identity = identity
	}
	return nil
}

// each calls f for each row that a statement selects.
func (c *core) each(ctx context.Context, s *statement, args []any, f func(rows *sql.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	rows, err := c.db.QueryContext(ctx, s.text, s.args(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Identify is part of [lease.Inspector]. A session has no room for an identity.
func (s *sessionStore) Identify(string, string) {}

func (s *sessionStore) Inspect(ctx context.Context, name string) (lease.State, error) {
	s.mu.Lock()
	for id := range s.held {
		if id.Name == name {
			s.mu.Unlock()
			return lease.State{Holders: []lease.Claim{{Acquisition: id.Acquisition}}, Waiting: -1}, nil
		}
	}
	s.mu.Unlock()
	state, err := s.sessions(ctx, name)
	state.Waiting = -1
	if err != nil {
		err = s.c.outcome(err)
	}
	return state, err
}

// sessions returns the state of a lock that no session of this client has. The server tells the
// number of the session, the name of the program, and the address of its host.
func (s *sessionStore) sessions(ctx context.Context, name string) (state lease.State, err error) {
	args := []any{s.key(name)}
	err = s.c.each(ctx, s.c.statements["inspect advisory"], args, func(rows *sql.Rows) error {
		var number int64
		var program, address string
		if err := rows.Scan(&number, &program, &address); err != nil {
			return err
		}
		if host, _, err := net.SplitHostPort(address); err == nil {
			address = host
		}
		state.Holders = append(state.Holders, lease.Claim{Party: locks.Party{Label: program, Host: address}})
		return nil
	})
	return state, err
}

// Inspect describes the lock to people and for monitoring. See [lease.Mutex.Inspect] for what the
// answer says, and when it is old.
//
// A [Table] answers by one statement, and one more for each process in the answer. With [WithQueue]
// all waiters are known, in order of arrival. Without it those of this client are known.
//
// An [Advisory] answers by one statement. The label of a holder is the application_name of its
// session, and the host its address. MySQL and MariaDB show sessions of other users only with the
// privilege PROCESS. Waiters are those of this client.
func (l *Mutex) Inspect(ctx context.Context) (locks.Info, error) { return l.m.Inspect(ctx) }
