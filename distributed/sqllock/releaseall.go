package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jucgo/locks/distributed/lease/driver"
)

var (
	_ driver.BatchReleaser = (*tableStore)(nil)
	_ driver.BatchReleaser = (*permitStore)(nil)
	_ driver.BatchReleaser = queueStore{}
)

// ReleaseAll frees the locks by one statement.
func (s *tableStore) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	return s.c.releaseAll(ctx, "release all", ids)
}

// ReleaseAll gives the permits back by one statement.
func (s *permitStore) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	return s.c.releaseAll(ctx, "release all permits", ids)
}

// ReleaseAll frees the locks by one statement. In PostgreSQL it wakes the first waiter of each
// lock.
func (s queueStore) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	title := "release all"
	if s.c.dialect == Postgres {
		title = "release all in order"
	}
	return s.c.releaseAll(ctx, title, ids)
}

// releaseAll carries out the statement of this title for ids. If there is a listener, releaseAll
// uses the variant that also notifies.
func (c *core) releaseAll(ctx context.Context, title string, ids []driver.HoldID) ([]bool, error) {
	var args []any
	if c.listen != nil { // PostgreSQL
		title += " and notify"
		args = append(args, c.names.channel)
	}
	which, args := whichOf(ids, args)
	s := c.statement(title, "{which}", which)
	var err error
	if c.listen != nil {
		var freed int64
		var nothing sql.NullString
		err = c.query(ctx, s, args, &freed, &nothing)
	} else {
		_, err = c.exec(ctx, s, args...)
	}
	done := make([]bool, len(ids))
	if err != nil {
		return done, c.outcome(err)
	}
	for i := range done {
		done[i] = true
	}
	return done, nil
}

// whichOf returns the condition for the rows of ids, and args with its arguments.
func whichOf(ids []driver.HoldID, args []any) (condition string, all []any) {
	var which strings.Builder
	for i, id := range ids {
		if i > 0 {
			which.WriteString(" OR ")
		}
		fmt.Fprintf(&which, "name = $%d AND owner = $%d", len(args)+1, len(args)+2)
		args = append(args, id.Name, id.Acquisition)
	}
	return which.String(), args
}
