package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

var (
	_ driver.Breaker      = (*tableStore)(nil)
	_ driver.LossNotifier = (*tableStore)(nil)
)

// Break releases the lock for its present holder. If the lock changes hands meanwhile, Break looks
// again. The row and its token stay. On PostgreSQL Break notifies the holder, whether this client
// listens or not.
func (s *tableStore) Break(ctx context.Context, name string) (bool, error) {
	for {
		state, err := s.Inspect(ctx, name)
		if err != nil || len(state.Holders) == 0 {
			return false, err
		}
		title := "release"
		if s.c.dialect == Postgres {
			title = "break"
		}
		id := driver.HoldID{Name: name, Acquisition: state.Holders[0].Acquisition}
		n, err := s.c.countOn(ctx, title, id, s.c.names.channel)
		if err != nil || n > 0 {
			return n > 0, s.c.outcome(err)
		}
	}
}

// NotifyLoss keeps the engine's function for lost holds.
func (s *tableStore) NotifyLoss(lost func(id driver.HoldID, cause error)) { s.lost = lost }

var errForced = errors.New("freed by ForceUnlock")

// onNotice handles a notification. The notification of a Break has the names of the acquisition and
// of the lock. Any client may have sent it, so onNotice asks the database.
func (s *tableStore) onNotice(payload string) {
	var id driver.HoldID
	id.Acquisition, id.Name, _ = strings.Cut(payload, " ")
	if !strings.HasPrefix(id.Acquisition, s.client+":") {
		return
	}
	if r, err := s.Lookup(s.c.open, driver.Request{HoldID: id}); err == nil && !r.Held {
		s.lost(id, errForced)
	}
}

// pageOfNames is how many names one statement reads.
const pageOfNames = 1000

// Names returns the names of the held locks that match pattern, sorted by their bytes. The pattern
// has the syntax of [path.Match], and the empty pattern matches all names. A lock that nobody holds
// is left out, although its row stays. Names reads the table by pages until ctx ends.
func (t *Table) Names(ctx context.Context, pattern string) ([]string, error) {
	return adapter.Names(ctx, "sqllock: list names", pattern, func(add func(name string)) error {
		for last := ""; ; {
			page, err := collect(ctx, t.c, t.c.statements["names"], []any{last, pageOfNames},
				func(rows *sql.Rows) (name string, err error) {
					err = rows.Scan(&name)
					return name, err
				})
			switch {
			case err != nil && ctx.Err() != nil: // a driver may say that in its own way
				return ctx.Err()
			case err != nil:
				return t.c.outcome(err)
			}
			for _, last = range page {
				add(last)
			}
			if len(page) < pageOfNames {
				return nil
			}
		}
	})
}
