package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Inspectors of a [Table] read its tables. One more table has the identities of clients. The names
// of owners begin with the ids of their clients. Locks work without that table too. For an
// [Advisory], the server tells which session has the lock.

var (
	_ driver.Inspector = (*tableStore)(nil)
	_ driver.Announcer = (*tableStore)(nil)
	_ driver.Inspector = queueStore{}
	_ driver.Inspector = (*sessionStore)(nil)
)

// Identify is part of [driver.Inspector].
func (s *tableStore) Identify(client, identity string) { s.client, s.identity = client, identity }

// Announce is part of [driver.Announcer]. It also removes the identities of clients that have
// ended. Announce first waits for the check of the database, since the check must not meet other
// requests of this client.
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

func (s *tableStore) Inspect(ctx context.Context, name string) (driver.State, error) {
	return s.holders(ctx, "inspect", name, func(h *driver.Claim) []any { return []any{&h.Acquisition, &h.Token} })
}

// holders returns the holds that a statement shows. dest returns where the columns of a hold go,
// except the last column, which is for how long the hold lasts.
func (s *tableStore) holders(ctx context.Context, title, name string, dest func(h *driver.Claim) []any) (
	state driver.State, err error) {
	state.Waiting = -1
	show := s.c.statements[title]
	state.Holders, err = collect(ctx, s.c, show, []any{name}, func(rows *sql.Rows) (h driver.Claim, err error) {
		var left int64
		err = rows.Scan(append(dest(&h), &left)...)
		h.Left = max(time.Duration(left)*time.Microsecond, 0)
		return h, err
	})
	if err != nil {
		return driver.State{}, s.c.outcome(err)
	}
	return state, s.identify(ctx, state.Holders[:min(len(state.Holders), maxAsked)])
}

func (s queueStore) Inspect(ctx context.Context, name string) (driver.State, error) {
	state, err := s.tableStore.Inspect(ctx, name)
	if err != nil {
		return state, err
	}
	inspect := s.c.statements["inspect queue"]
	state.Waiters, err = collect(ctx, s.c, inspect, []any{name}, func(rows *sql.Rows) (w driver.Claim, err error) {
		err = rows.Scan(&w.Acquisition)
		return w, err
	})
	if err != nil {
		return driver.State{}, s.c.outcome(err)
	}
	state.Waiting = len(state.Waiters)
	return state, s.identify(ctx, state.Waiters[:min(len(state.Waiters), maxAsked)])
}

// maxAsked is how many waiters are asked for their processes. The others have their names only.
const maxAsked = 64

// identify adds the identities of clients to claims.
func (s *tableStore) identify(ctx context.Context, claims []driver.Claim) error {
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

// collect returns the result of scan for each row that a statement selects.
func collect[T any](
	ctx context.Context, c *core, s *statement, args []any, scan func(rows *sql.Rows) (T, error)) (all []T, err error) {
	err = c.request(ctx, func(ctx context.Context) error {
		all = nil // of an earlier attempt
		rows, err := c.db.QueryContext(ctx, s.text, s.args(args)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			one, err := scan(rows)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return rows.Err()
	})
	return all, err
}

// Identify is part of [driver.Inspector]. A session lacks room for an identity.
func (s *sessionStore) Identify(string, string) {}

func (s *sessionStore) Inspect(ctx context.Context, name string) (driver.State, error) {
	s.mu.Lock()
	for id := range s.held {
		if id.Name == name {
			s.mu.Unlock()
			return driver.State{Holders: []driver.Claim{{Acquisition: id.Acquisition}}, Waiting: -1}, nil
		}
	}
	s.mu.Unlock()
	holders, err := s.sessions(ctx, name)
	if err != nil {
		err = s.c.outcome(err)
	}
	return driver.State{Holders: holders, Waiting: -1}, err
}

// sessions returns the holders of a lock that no session of this client has. The server tells the
// number of the session, the name of the program, and the address of its host.
func (s *sessionStore) sessions(ctx context.Context, name string) ([]driver.Claim, error) {
	inspect := s.c.statements["inspect advisory"]
	return collect(ctx, s.c, inspect, []any{s.key(name)}, func(rows *sql.Rows) (h driver.Claim, err error) {
		var number int64
		err = rows.Scan(&number, &h.Label, &h.Host)
		if host, _, err := net.SplitHostPort(h.Host); err == nil {
			h.Host = host
		}
		return h, err
	})
}
