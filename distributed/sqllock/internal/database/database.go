// Package database opens the locks of package sqllock for the stores of package open.
package database

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/sqllock"
)

// Kinds are the kinds of lock in a database.
var Kinds = []string{"table", "queue", "advisory"}

// Parameters are the parameters of all databases.
var Parameters = slices.Concat(driver.Leased(), []string{"create", "table"})

// provider has the methods that the mechanisms of package sqllock share.
type provider interface {
	locks.Provider
	Close(ctx context.Context) error
}

// Open makes the locks in db, which it closes with the store. answered reports whether an error
// is the server's answer.
func Open(ctx context.Context, o *driver.Opening, db *sql.DB, answered func(error) bool, opts ...sqllock.Option) error {
	o.OnClose(func(context.Context) error { return db.Close() })
	opts = append(opts, sqllock.WithLeaseOptions(o.Lease...))
	if table, ok := o.Params["table"]; ok {
		opts = append(opts, sqllock.WithTable(table))
	}
	create, err := o.OneOf("create", "true", "false")
	if err != nil {
		return err
	}
	var p provider
	switch o.Kind() {
	case "table":
		p, err = sqllock.NewTable(db, opts...)
	case "queue":
		p, err = sqllock.NewTable(db, append(opts, sqllock.WithQueue(0))...)
	case "advisory":
		p, err = sqllock.NewAdvisory(db, opts...)
	}
	if err = o.Serve(p, err); err != nil {
		return err
	}
	if err := untilFree(ctx, db.PingContext); err != nil {
		return o.Failed(err, answered(err))
	}
	if t, ok := p.(interface {
		CreateSchema(ctx context.Context) error
	}); ok && create == "true" {
		if err := untilFree(ctx, t.CreateSchema); err != nil {
			return o.Failed(err, answered(err))
		}
	}
	return nil
}

// untilFree calls f until SQLite no longer says that other processes use the file, or until ctx
// ends. SQLite itself waits for a limited time, and does not wait at all for a change of the
// journal. The first connections to a new file change the journal.
func untilFree(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		var coded interface{ Code() int } // sqlite.Error
		const busy = 5                    // SQLITE_BUSY, in the lower byte
		if err == nil || !errors.As(err, &coded) || coded.Code()&0xff != busy || !adapter.Sleep(ctx, 20*time.Millisecond) {
			return err
		}
	}
}
