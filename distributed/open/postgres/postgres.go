// Package postgres registers postgres: and postgresql: with package open. Import it for its effect.
package postgres

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/jucgo/locks/distributed/open/internal/database"
	"github.com/jucgo/locks/distributed/open/internal/scheme"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

func init() {
	scheme.Register(scheme.Scheme{
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

func open(ctx context.Context, o *scheme.Opening) error {
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
	// A pooler may give each transaction another session, which has no prepared statement of ours.
	// A URL without notifications may lead to one. This mode prepares nothing.
	if listen == "false" && !query.Has(execMode) {
		query.Set(execMode, "exec")
	}
	// The holder of an advisory lock is known by this name.
	if o.Label != "" && !query.Has("application_name") {
		query.Set("application_name", o.Label)
	}
	place := url.URL{Scheme: "postgres", Host: strings.Join(o.Hosts, ","), Path: "/" + o.Path, RawQuery: query.Encode()}
	if o.User != "" || o.Password != "" {
		place.User = url.UserPassword(o.User, o.Password)
	}
	config, err := pgx.ParseConfig(place.String())
	if err != nil {
		// The error quotes the URL. What it wraps is the cause.
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		return scheme.Reason("the driver refuses a parameter: %w", o.Hide(err))
	}
	o.KeepUser(config.User)
	o.KeepPassword(config.Password)
	db := stdlib.OpenDB(*config)
	var opts []sqllock.Option
	if listen == "true" {
		opts = append(opts, sqllock.WithListener(pgxnotify.Listener(db)))
	}
	return database.Open(ctx, o, db, func(err error) bool {
		var answer *pgconn.PgError
		return errors.As(err, &answer)
	}, opts...)
}
