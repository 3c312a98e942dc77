// Package sqlite registers sqlite: with package open. Import it for its effect.
package sqlite

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"github.com/jucgo/locks/distributed/open/internal/database"
	"github.com/jucgo/locks/distributed/open/internal/scheme"
)

func init() {
	scheme.Register(scheme.Scheme{
		Name: "sqlite", Form: "sqlite:FILE",
		Kinds: slices.DeleteFunc(slices.Clone(database.Kinds), func(kind string) bool { return kind == "advisory" }),
		More:  database.Parameters,
		Open:  open,
	})
}

func open(ctx context.Context, o *scheme.Opening) error {
	if o.Path == ":memory:" {
		return scheme.Reason("a database in memory excludes no other process. The store mem: does the same")
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
