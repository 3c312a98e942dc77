package open

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver of sqlite:

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
)

// ofPostgres are the parameters that go to the driver.
var ofPostgres = []string{
	"application_name", "connect_timeout", "dbname", "host", "options", "passfile", "password", "port",
	"search_path", "sslcert", "sslkey", "sslmode", "sslpassword", "sslrootcert", "sslsni",
	"target_session_attrs", "user",
}

func openSQLite(ctx context.Context, o *opening) error {
	path, err := filepath.Abs(o.path)
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
	return openSQL(ctx, o, db, func(error) bool { return false })
}

func openPostgres(ctx context.Context, o *opening) error {
	query := make(url.Values)
	for _, name := range ofPostgres {
		if value, ok := o.params[name]; ok {
			query.Set(name, value)
		}
	}
	// The holder of a row lock or an advisory lock is known by this name.
	if o.label != "" && !query.Has("application_name") {
		query.Set("application_name", o.label)
	}
	place := url.URL{Scheme: "postgres", Host: strings.Join(o.hosts, ","), Path: "/" + o.path, RawQuery: query.Encode()}
	if o.user != "" || o.password != "" {
		place.User = url.UserPassword(o.user, o.password)
	}
	config, err := pgx.ParseConfig(place.String())
	if err != nil {
		// The error quotes the URL. What it wraps is the cause.
		if cause := errors.Unwrap(err); cause != nil {
			err = cause
		}
		return reason("the driver refuses a parameter: %w", o.hide(err))
	}
	o.keepSecret(config.User, config.Password)
	listen, err := o.oneOf("listen", "true", "false")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	var opts []sqllock.Option
	if listen == "true" {
		opts = append(opts, sqllock.WithListener(pgxnotify.Listener(db)))
	}
	return openSQL(ctx, o, db, func(err error) bool {
		var answer *pgconn.PgError
		return errors.As(err, &answer)
	}, opts...)
}

func openMySQL(ctx context.Context, o *opening) error {
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = o.user, o.password, o.path
	config.Net, config.Addr, config.Timeout = "tcp", o.hosts[0], dialTimeout
	config.Logger = &mysql.NopLogger{} // what it has to say is in the errors
	if socket, ok := o.params["socket"]; ok {
		config.Net, config.Addr = "unix", socket
	}
	mode, err := o.oneOf("tls", "false", "true", "skip-verify", "preferred")
	if err != nil {
		return err
	}
	if config.TLS, err = o.tlsConfig(mode != "false"); err != nil {
		return err
	}
	if config.TLS != nil {
		config.TLS.ServerName, _, _ = net.SplitHostPort(o.hosts[0])
		config.TLS.InsecureSkipVerify = mode != "true" // as the driver does
		config.AllowFallbackToPlaintext = mode == "preferred"
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return reason("the driver refuses a parameter: %w", o.hide(err))
	}
	return openSQL(ctx, o, sql.OpenDB(connector), func(err error) bool {
		var answer *mysql.MySQLError
		return errors.As(err, &answer)
	})
}

// provider is what the mechanisms of package sqllock have in common.
type provider interface {
	locks.Provider
	Close(ctx context.Context) error
}

// openSQL makes the locks in db, which it closes with the store. answered reports whether an error
// is the server's answer.
func openSQL(ctx context.Context, o *opening, db *sql.DB, answered func(error) bool, opts ...sqllock.Option) error {
	o.closeLast(func(context.Context) error { return db.Close() })
	if o.ttl > 0 {
		opts = append(opts, sqllock.WithTTL(o.ttl))
	}
	if o.label != "" {
		opts = append(opts, sqllock.WithLabel(o.label))
	}
	opts = append(opts, sqllock.WithLeaseOptions(o.lease...))
	if table, ok := o.params["table"]; ok {
		opts = append(opts, sqllock.WithTable(table))
	}
	create, err := o.oneOf("create", "true", "false")
	if err != nil {
		return err
	}
	var p provider
	switch o.kind() {
	case "table":
		p, err = sqllock.NewTable(db, opts...)
	case "queue":
		p, err = sqllock.NewTable(db, append(opts, sqllock.WithQueue(0))...)
	case "row":
		p, err = sqllock.NewRow(db, opts...)
	case "advisory":
		p, err = sqllock.NewAdvisory(db, opts...)
	}
	if err != nil {
		return reason("%w", err)
	}
	o.closeLast(p.Close)
	failed := func(err error) error {
		if answered(err) {
			return o.hide(err)
		}
		return o.unreachable(err)
	}
	if err := db.PingContext(ctx); err != nil {
		return failed(err)
	}
	if t, ok := p.(interface {
		CreateSchema(ctx context.Context) error
	}); ok && create == "true" {
		if err := t.CreateSchema(ctx); err != nil {
			return failed(err)
		}
	}
	o.locker = p.Locker
	if t, ok := p.(*sqllock.Table); ok {
		o.names = t.Names
	}
	return nil
}
