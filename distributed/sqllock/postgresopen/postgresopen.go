// Package postgresopen registers postgres: and postgresql: with package open. Import it for its
// effect.
package postgresopen

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/internal/database"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

func init() {
	driver.Register(driver.Scheme{
		Name: "postgres", Form: "postgres://USER:PASSWORD@HOST:PORT/DATABASE", Port: "5432", Many: true,
		Kinds: database.Kinds,
		More:  slices.Concat(database.Parameters, []string{"listen"}, ofDriver),
		Open:  open,
	})
}

// execMode is the parameter of pgx that says how statements go to the server.
const execMode = "default_query_exec_mode"

// ofDriver are the parameters that go to the driver.
var ofDriver = []string{
	"application_name", "connect_timeout", "dbname", execMode, "description_cache_capacity", "host", "options",
	"passfile", "password", "port", "search_path", "sslcert", "sslkey", "sslmode", "sslpassword",
	"sslrootcert", "sslsni", "statement_cache_capacity", "target_session_attrs", "user",
}

func open(ctx context.Context, o *driver.Opening) error {
	listen, err := o.OneOf("listen", "true", "false")
	if err != nil {
		return err
	}
	modes := []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}
	if _, err := o.OneOf(execMode, modes...); err != nil { // the driver's error does not name it
		return err
	}
	query := make(url.Values)
	for _, name := range ofDriver {
		if value, ok := o.Params[name]; ok {
			query.Set(name, value)
		}
	}
	// A pooler may give each transaction another session, without our prepared statements. A URL
	// without notifications may lead to one. This mode prepares nothing.
	if listen == "false" && !query.Has(execMode) {
		query.Set(execMode, "exec")
	}
	// The holder of an advisory lock is known by this name.
	if o.Label != "" && !query.Has("application_name") {
		query.Set("application_name", o.Label)
	}
	raw := strings.ReplaceAll(query.Encode(), "+", "%20") // the driver takes a plus for itself, as libpq does
	place := url.URL{Scheme: "postgres", Host: strings.Join(o.Hosts, ","), Path: "/" + o.Path, RawQuery: raw}
	if o.User != "" || o.Password != "" {
		place.User = url.UserPassword(o.User, o.Password)
	}
	config, err := pgx.ParseConfig(place.String())
	if err != nil {
		// The error quotes the URL. The wrapped error is the cause.
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		return driver.Reason("the driver refuses a parameter: %w", o.Hide(err))
	}
	o.KeepUser(config.User)
	o.KeepPassword(config.Password)
	db := stdlib.OpenDB(*config)
	var opts []sqllock.Option
	if listen == "true" {
		opts = append(opts, sqllock.WithListener(pgxnotify.Listener(db)))
	}
	err = database.Open(ctx, o, db, func(err error) bool {
		var answer *pgconn.PgError
		return errors.As(err, &answer)
	}, opts...)
	if err == nil {
		err = checkSearchPath(ctx, o, db)
	}
	if err != nil && strings.Contains(err.Error(), "unsupported startup parameter") {
		err = fmt.Errorf("%w: a pooler does not pass it on. %s", err, schemaRemedy)
	}
	return err
}

const schemaRemedy = "Name the schema by table=SCHEMA.TABLE, such as table=app.sql_locks"

// inOptions finds a search path in the parameter options, in each way to write it.
var inOptions = regexp.MustCompile(`(?:^|\s)(?:-c\s*|--)search_path=((?:\\.|[^\s\\])+)`)

// checkSearchPath refuses a search path that the server did not get. A pooler may ignore the search
// path. Then the locks are in another table than the locks of a program without that pooler.
func checkSearchPath(ctx context.Context, o *driver.Opening, db *sql.DB) error {
	want := o.Params["search_path"]
	if found := inOptions.FindStringSubmatch(o.Params["options"]); want == "" && found != nil {
		want = strings.ReplaceAll(found[1], `\`, "")
	}
	if want == "" || strings.Contains(o.Params["table"], ".") {
		return nil
	}
	var is string
	if err := db.QueryRowContext(ctx, "SELECT current_setting('search_path')").Scan(&is); err != nil {
		var answer *pgconn.PgError
		return o.Failed(err, errors.As(err, &answer))
	}
	if plain := strings.NewReplacer(" ", "", `"`, ""); plain.Replace(is) != plain.Replace(want) {
		return fmt.Errorf("%w: the URL has the search path %q, and the server %q: a pooler ignores it. %s",
			sqllock.ErrUnsupportedTopology, want, is, schemaRemedy)
	}
	return nil
}
