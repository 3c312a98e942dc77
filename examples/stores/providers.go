package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	_ "modernc.org/sqlite"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/sqllock"
	"github.com/jucgo/locks/distributed/sqllock/pgxnotify"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/named"
)

// store is where the locks are. Which one it is shows nowhere else in this program.
type store struct {
	locks.Provider
	// about says what it is, for people. There is no password in it.
	about string
	// spec is what another process has to give to open for the same locks, or "" if they are
	// those of this process.
	spec string
	// closers undo what was opened, the last one first. The first to run closes the Provider.
	closers []func(context.Context) error
}

// Close ends all holds, and what is under them. Only the first call does anything.
func (s *store) Close(ctx context.Context) error {
	var errs []error
	for len(s.closers) > 0 {
		last := len(s.closers) - 1
		errs = append(errs, s.closers[last](ctx))
		s.closers = s.closers[:last]
	}
	return errors.Join(errs...)
}

func (s *store) closeWith(f func(context.Context) error) { s.closers = append(s.closers, f) }

// provider is a [locks.Provider] of locks that another method than Locker returns.
type provider func(name string) locks.TryLocker

func (p provider) Locker(name string) locks.TryLocker { return p(name) }

// kinds has each kind of store: what follows its name in the flag, and how it is opened. An opener
// registers with s what has to be closed as soon as that exists. After an error all of it is
// closed.
var kinds = []struct {
	name   string
	form   string
	needed bool // whether something has to follow
	open   func(ctx context.Context, s *store, rest string) error
}{
	{"mem", "", false, openMemory},
	{"file", "DIRECTORY, or nothing for a temporary one", false, openFiles},
	{"sqlite", "FILE, or nothing for a temporary one", false, openSQLite},
	{"redis", "HOST:PORT or //USER:PASSWORD@HOST:PORT/DB, or nothing for a server inside this program",
		false, openRedis},
	{"postgres", "//USER:PASSWORD@HOST:PORT/DATABASE", true, openPostgres},
	{"mysql", "USER:PASSWORD@tcp(HOST:PORT)/DATABASE", true, openMySQL},
	{"zk", "HOST:PORT,...", true, openZooKeeper},
	{"etcd", "HOST:PORT,...", true, openEtcd},
}

// patience is for how long a server may take to answer for the first time.
const patience = 5 * time.Second

// open returns the store that spec names, such as "redis:localhost:6379". Errors have no more
// of spec in them than the kind and the address, for there may be a password in it.
func open(ctx context.Context, spec string) (*store, error) {
	name, rest, _ := strings.Cut(spec, ":")
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		if k.needed && rest == "" {
			return nil, fmt.Errorf("%s: needs a server: -store '%s:%s'", name, name, k.form)
		}
		s := &store{spec: spec}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := k.open(ctx, s, rest); err != nil {
			s.Close(context.WithoutCancel(ctx))
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return s, nil
	}
	if !regexp.MustCompile(`^[a-z0-9]{1,12}$`).MatchString(name) {
		name = "that" // whatever it is, it may be secret
	}
	return nil, fmt.Errorf("no store is called %q: there are %s", name, strings.Join(kindNames(), ", "))
}

func kindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name+":")
	}
	return names
}

func openMemory(_ context.Context, s *store, rest string) error {
	if rest != "" {
		return errors.New("nothing can follow: it is the memory of this process")
	}
	s.Provider, s.about, s.spec = named.New(named.WithPolicy(fair.FIFO)), "the memory of this process", ""
	return nil
}

func openFiles(_ context.Context, s *store, dir string) error {
	if dir == "" {
		var err error
		if dir, err = temporary(s); err != nil {
			return err
		}
		s.spec = "file:" + dir
	}
	files, err := filelock.New(dir, filelock.WithTokens())
	if err != nil {
		return err
	}
	s.closeWith(files.Close)
	s.Provider, s.about = files, "files in "+dir
	return nil
}

// temporary makes a directory that is removed with s.
func temporary(s *store) (string, error) {
	dir, err := os.MkdirTemp("", "locks-example")
	if err != nil {
		return "", err
	}
	s.closeWith(func(context.Context) error { return os.RemoveAll(dir) })
	return dir, nil
}

func openRedis(ctx context.Context, s *store, rest string) error {
	options := &redis.Options{Addr: rest}
	switch {
	case strings.HasPrefix(rest, "//"):
		var err error
		if options, err = redis.ParseURL("redis:" + rest); err != nil {
			return errors.New("the address cannot be understood: it has the form //USER:PASSWORD@HOST:PORT/DB")
		}
	case rest == "":
		addr, err := startRedis(s)
		if err != nil {
			return err
		}
		options.Addr, s.spec, s.about = addr, "redis:"+addr, "a small Redis server inside this program"
	default:
		if err := checkAddresses(rest); err != nil {
			return err
		}
	}
	if s.about == "" {
		s.about = "Redis at " + options.Addr
	}
	redis.SetLogger(silent{})
	// One attempt to connect, as a wrong address is to be told at once. The lock asks again by
	// itself.
	options.DialTimeout, options.DialerRetries, options.ContextTimeoutEnabled = patience, 1, true
	conn := redis.NewClient(options)
	s.closeWith(func(context.Context) error { return conn.Close() })
	if err := conn.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("no answer from %s: %w", options.Addr, err)
	}
	client, err := redislock.New(conn)
	if err != nil {
		return err
	}
	s.closeWith(client.Close)
	// The plain lock has no fencing token, the fenced one does.
	s.Provider = provider(func(name string) locks.TryLocker { return client.FencedMutex("locks-example:" + name) })
	return nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// startRedis runs a server until s is closed. Its keys do not age by themselves, so that they
// are made to.
func startRedis(s *store) (addr string, err error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return "", err
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case now := <-tick.C:
				server.FastForward(now.Sub(last))
				last = now
			case <-stop:
				return
			}
		}
	}()
	s.closeWith(func(context.Context) error {
		close(stop)
		<-stopped
		server.Close()
		return nil
	})
	return server.Addr(), nil
}

// table is what the tables of the SQL databases are called. They are left there: another
// process may be using them.
const table = "locks_example"

func openSQLite(ctx context.Context, s *store, file string) error {
	if file == "" {
		dir, err := temporary(s)
		if err != nil {
			return err
		}
		file = filepath.Join(dir, "locks.db")
		s.spec = "sqlite:" + file
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	// A URI, in which a path on Windows begins with a slash too.
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	path = (&url.URL{Path: path}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return err
	}
	s.about = "SQLite in " + file
	return openTable(ctx, s, db, file)
}

func openPostgres(ctx context.Context, s *store, rest string) error {
	dsn := rest
	switch {
	case strings.HasPrefix(rest, "//"):
		dsn = "postgres:" + rest
	case !strings.Contains(rest, "="): // of words such as host=localhost, or with a scheme of its own
		if !strings.HasPrefix(rest, "postgres://") && !strings.HasPrefix(rest, "postgresql://") {
			return errors.New("the address cannot be understood: it has the form //USER:PASSWORD@HOST:PORT/DATABASE")
		}
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // it may quote the password
		return errors.New("the address cannot be understood: it has the form //USER:PASSWORD@HOST:PORT/DATABASE")
	}
	db := stdlib.OpenDB(*config)
	addr := net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	s.about = "PostgreSQL at " + addr
	// A notification wakes the waiters.
	return openTable(ctx, s, db, addr, sqllock.WithListener(pgxnotify.Listener(db)))
}

func openMySQL(ctx context.Context, s *store, dsn string) error {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return errors.New("the address cannot be understood: it has the form USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
	}
	config.Logger = &mysql.NopLogger{} // what it has to say is in the errors
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return errors.New("the address cannot be used")
	}
	s.about = "MySQL or MariaDB at " + config.Addr
	return openTable(ctx, s, sql.OpenDB(connector), config.Addr)
}

// openTable has the locks in a table of db, which it makes if it is not there, and closes db
// with s.
func openTable(ctx context.Context, s *store, db *sql.DB, addr string, opts ...sqllock.Option) error {
	s.closeWith(func(context.Context) error { return db.Close() })
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("no access to %s: %w", addr, err)
	}
	client, err := sqllock.NewTable(db, append(opts, sqllock.WithTable(table))...)
	if err != nil {
		return err
	}
	s.closeWith(client.Close)
	if err := client.CreateSchema(ctx); err != nil {
		return err
	}
	s.Provider, s.about = client, s.about+", tables "+table+"*"
	return nil
}

func openZooKeeper(ctx context.Context, s *store, addrs string) error {
	if err := checkAddresses(addrs); err != nil {
		return err
	}
	client, err := zklock.New(ctx, strings.Split(addrs, ","), zklock.WithNamespace("locks-example"))
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", addrs, err)
	}
	s.closeWith(client.Close)
	s.Provider, s.about = client, "ZooKeeper at "+addrs
	return nil
}

func openEtcd(ctx context.Context, s *store, addrs string) error {
	if err := checkAddresses(addrs); err != nil {
		return err
	}
	conn, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(addrs, ","),
		DialTimeout: patience,
		// Keep-alive notices a connection that has silently died.
		DialKeepAliveTime: patience, DialKeepAliveTimeout: patience,
		Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	s.closeWith(func(context.Context) error { return conn.Close() })
	// The connection is made when it is used.
	if _, err := conn.Get(ctx, "locks-example"); err != nil {
		return fmt.Errorf("no answer from %s: %w", addrs, err)
	}
	client, err := etcdlock.New(conn, etcdlock.WithPrefix("locks-example/"))
	if err != nil {
		return err
	}
	s.closeWith(client.Close)
	s.Provider, s.about = client, "etcd at "+addrs
	return nil
}

// checkAddresses refuses what is no list of addresses, without telling it: it may be one of
// another store, with a password.
func checkAddresses(list string) error {
	for _, addr := range strings.Split(list, ",") {
		host, port, err := net.SplitHostPort(addr)
		if err != nil || port == "" || strings.ContainsAny(host, "@/ ") {
			return errors.New("the address cannot be understood: it has the form HOST:PORT")
		}
	}
	return nil
}
