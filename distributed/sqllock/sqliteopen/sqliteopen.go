// Package sqliteopen registers sqlite: with package open. Import it for its effect.
package sqliteopen

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/sqllock/internal/database"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "sqlite", Form: "sqlite:FILE",
		Kinds: slices.DeleteFunc(slices.Clone(database.Kinds), func(k string) bool { return k == "advisory" }),
		More:  database.Parameters,
		Open:  open,
	})
}

func open(ctx context.Context, o *driver.Opening) error {
	if o.Path == ":memory:" {
		return driver.Reason("a database in memory excludes no other process. The store mem: does the same")
	}
	path, err := o.Local()
	if err != nil {
		return err
	}
	// A URI, in which a path on Windows begins with a slash too.
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	path = (&url.URL{Path: path}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	return database.Open(ctx, o, db, func(error) bool { return false })
}
