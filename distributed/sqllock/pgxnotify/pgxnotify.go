// Package pgxnotify wakes the waiters of package sqllock by notifications of PostgreSQL,
// through pgx:
//
//	db, err := sql.Open("pgx", dsn)
//	...
//	table, err := sqllock.NewTable(db, sqllock.WithListener(pgxnotify.Listener(db)))
//
// The package is separate so that a program with another driver does not depend on pgx.
package pgxnotify

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Listener returns a listener that takes one connection of db's pool while it listens, and closes
// the connection afterwards. The driver of db must be pgx's stdlib, and each connection a session
// of the server.
func Listener(db *sql.DB) func(ctx context.Context, channel string, ready func(), notify func(payload string)) error {
	return func(ctx context.Context, channel string, ready func(), notify func(payload string)) error {
		conn, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		var failed error
		err = conn.Raw(func(c any) error {
			pc, ok := c.(*stdlib.Conn)
			if !ok {
				failed = fmt.Errorf("pgxnotify: a connection of type %T is not pgx's", c)
				return nil
			}
			failed = listen(ctx, pc.Conn(), channel, ready, notify)
			return driver.ErrBadConn // it listens, so it must not go back to the pool
		})
		if failed == nil && !errors.Is(err, driver.ErrBadConn) {
			failed = err
		}
		return failed
	}
}

func listen(ctx context.Context, c *pgx.Conn, channel string, ready func(), notify func(payload string)) error {
	if _, err := c.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	ready()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		notify(n.Payload)
	}
}
