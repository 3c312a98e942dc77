package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"path"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

var _ lease.Breaker = (*tableStore)(nil)

// Break releases the lock for its present holder. If the lock changes hands meanwhile, it looks
// again. The row stays, and with it the token.
func (s *tableStore) Break(ctx context.Context, name string) (bool, error) {
	for {
		state, err := s.Inspect(ctx, name)
		if err != nil || len(state.Holders) == 0 {
			return false, err
		}
		released, err := s.Release(ctx, name, state.Holders[0].Acquisition)
		if err != nil || released.Held {
			return released.Held, s.c.outcome(err)
		}
	}
}

// pageOfNames is how many names one statement reads.
const pageOfNames = 1000

// Names returns the names of the held locks that match pattern, sorted by their bytes. The pattern
// is one of [path.Match], and an empty one matches all names. A lock that nobody holds is left out,
// although its row stays. Names reads the table by pages until ctx ends.
func (t *Table) Names(ctx context.Context, pattern string) ([]string, error) {
	if ctx == nil {
		return nil, fmt.Errorf("sqllock: list names: %w", locks.ErrNilContext)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("sqllock: list names: %w", err)
	}
	var names []string
	last, query := "", t.c.statement("names")
	for {
		var page []string
		err := t.c.request(ctx, func(ctx context.Context) error {
			page = page[:0]
			return t.c.each(ctx, query, []any{last, pageOfNames}, func(rows *sql.Rows) error {
				var name string
				err := rows.Scan(&name)
				page = append(page, name)
				return err
			})
		})
		if err != nil {
			if ctx.Err() != nil { // a driver may say that in its own way
				return nil, fmt.Errorf("sqllock: list names: %w", ctx.Err())
			}
			return nil, fmt.Errorf("sqllock: list names: %w", t.c.outcome(err))
		}
		for _, name := range page {
			if matched, _ := path.Match(pattern, name); matched || pattern == "" {
				names = append(names, name)
			}
		}
		if len(page) < pageOfNames {
			return names, nil
		}
		last = page[len(page)-1]
	}
}
