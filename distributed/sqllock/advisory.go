package sqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// keyOf is the key of a name in PostgreSQL: the first 8 bytes of the SHA-256 of "sqllock:" and the name, big endian.
func keyOf(name string) int64 {
	sum := sha256.Sum256([]byte("sqllock:" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

const (
	namedPrefix = "sqllock:"
	maxNamed    = 64 // bytes, of MySQL; MariaDB has more
)

// namedOf is what a name is to GET_LOCK: itself, if it is short and has nothing but small ASCII letters, digits and signs, since servers
// take no notice of case; else "sqllock:" and the first 24 bytes of its SHA-256 in hexadecimal.
func namedOf(name string) string {
	plain := len(name) <= maxNamed && !strings.HasPrefix(name, namedPrefix)
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || 'A' <= c && c <= 'Z' {
			plain = false
		}
	}
	if plain {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return namedPrefix + hex.EncodeToString(sum[:24])
}

// postgresAdvisory takes pg_try_advisory_lock.
type postgresAdvisory struct {
	key              func(name string) int64
	release, channel string
}

func (k *postgresAdvisory) take(ctx context.Context, conn *sql.Conn, name string) (held bool, id int64, clean bool, err error) {
	if err := conn.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&id); err != nil {
		return false, 0, false, err
	}
	// The lock is not asked for if another session answers now: it would stay locked there.
	var pid int64
	var got sql.NullBool
	err = conn.QueryRowContext(ctx, `SELECT pg_backend_pid(), CASE WHEN pg_backend_pid() = $2 THEN pg_try_advisory_lock($1) END`,
		k.key(name), id).Scan(&pid, &got)
	switch {
	case err != nil:
		return false, 0, false, err
	case !got.Valid:
		return false, 0, true, fmt.Errorf("%w: backends %d and %d", ErrUnsupportedTopology, id, pid)
	}
	if !got.Bool {
		return false, 0, true, nil
	}
	return true, id, true, nil
}

func (k *postgresAdvisory) alive(ctx context.Context, conn *sql.Conn, name string, id int64) error {
	var pid int64
	var has bool
	key := k.key(name)
	err := conn.QueryRowContext(ctx, `
SELECT pg_backend_pid(), EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted
	AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND CAST(classid AS bigint) = $1 AND CAST(objid AS bigint) = $2 AND objsubid = 1 AND mode = 'ExclusiveLock')`,
		int64(uint64(key)>>32), int64(uint32(key))).Scan(&pid, &has)
	switch {
	case err != nil:
		return err
	case pid != id:
		return fmt.Errorf("%w: backends %d and %d", ErrUnsupportedTopology, id, pid)
	case !has:
		return errGone
	}
	return nil
}

func (k *postgresAdvisory) free(ctx context.Context, conn *sql.Conn, name string, id int64) (had bool, err error) {
	args := []any{k.key(name)}
	if k.channel != "" {
		args = append(args, k.channel, name)
	}
	var rest sql.NullString
	err = conn.QueryRowContext(ctx, k.release, args...).Scan(&had, &rest)
	return had, err
}

// mysqlAdvisory takes GET_LOCK.
type mysqlAdvisory struct{}

func (mysqlAdvisory) take(ctx context.Context, conn *sql.Conn, name string) (held bool, id int64, clean bool, err error) {
	name = namedOf(name)
	var user sql.NullInt64
	if err := conn.QueryRowContext(ctx, `SELECT CONNECTION_ID(), IS_USED_LOCK(?)`, name).Scan(&id, &user); err != nil {
		return false, 0, false, err
	}
	if user.Valid {
		if user.Int64 == id {
			// Somebody left it locked on a connection of the pool. It would seem to be ours.
			return false, 0, false, fmt.Errorf("sqllock: a connection of the pool has the lock already: %w", locks.ErrForeign)
		}
		return false, user.Int64, true, nil
	}
	var got sql.NullInt64
	var now int64
	err = conn.QueryRowContext(ctx, `SELECT CONNECTION_ID(), IF(CONNECTION_ID() = ?, GET_LOCK(?, 0), -1)`, id, name).Scan(&now, &got)
	switch {
	case err != nil:
		return false, 0, false, err
	case got.Int64 < 0:
		return false, 0, true, fmt.Errorf("%w: connections %d and %d", ErrUnsupportedTopology, id, now)
	}
	if got.Int64 != 1 { // somebody was quicker
		return false, 0, true, nil
	}
	return true, id, true, nil
}

func (mysqlAdvisory) alive(ctx context.Context, conn *sql.Conn, name string, id int64) error {
	var now int64
	var user sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT CONNECTION_ID(), IS_USED_LOCK(?)`, namedOf(name)).Scan(&now, &user)
	switch {
	case err != nil:
		return err
	case now != id:
		return fmt.Errorf("%w: connections %d and %d", ErrUnsupportedTopology, id, now)
	case user.Int64 != id:
		return errGone
	}
	return nil
}

func (mysqlAdvisory) free(ctx context.Context, conn *sql.Conn, name string, id int64) (bool, error) {
	var had sql.NullInt64
	err := conn.QueryRowContext(ctx, `SELECT RELEASE_LOCK(?)`, namedOf(name)).Scan(&had)
	return had.Int64 == 1, err
}

// Advisory has the locks that a server offers to applications, and that are bound to a session: pg_advisory_lock of PostgreSQL, with
// a key of 64 bits made from the name, and GET_LOCK of MySQL and MariaDB. No table is needed, and the locks of a process that dies are
// free at once. They have no fencing token. It is a [locks.Provider]. It is safe for concurrent use; [Advisory.Close] ends it.
//
// A holder pins a connection of the pool until it unlocks. A waiter pins none: it asks again after a pause, or on a
// notification, see [WithBackoff] and [WithListener]. Each has its own connection, so a pool needs more of them than
// there are locks held.
//
// In PostgreSQL the locks are those of the database that db is connected to, in MySQL those of the whole server. The key in PostgreSQL is
// the first 8 bytes of the SHA-256 of "sqllock:" and the name: that two names have the same, and so exclude each
// other, is as likely as guessing a number of 64 bits. See [WithKey].
type Advisory struct{ sessionLocks }

// sessionLocks is what [Advisory] and [Row] have in common.
type sessionLocks struct {
	c     *core
	store *sessionStore
	lc    *lease.Client
}

var _ locks.Provider = (*Advisory)(nil)

// NewAdvisory returns an Advisory in db. In PostgreSQL its first acquisition uses two connections of the pool, to find out whether
// each is a session of its own; it is refused with [ErrUnsupportedTopology] if not. It never closes db, and has to be closed before db is. SQLite has no such locks: [ErrUnsupported].
func NewAdvisory(db *sql.DB, opts ...Option) (*Advisory, error) {
	c, err := newCore(db, opts)
	if err != nil {
		return nil, err
	}
	var kind sessionKind
	switch c.dialect {
	case Postgres:
		p := &postgresAdvisory{key: c.key, release: `SELECT pg_advisory_unlock($1), ''`}
		if c.listen != nil {
			p.release, p.channel = `SELECT pg_advisory_unlock($1), CAST(pg_notify($2, $3) AS text)`, c.names.channel
		}
		kind = p
		c.start.check = c.checkSessions
	case MySQL:
		kind = mysqlAdvisory{}
	default:
		return nil, fmt.Errorf("sqllock: Advisory on %v: %w", c.dialect, ErrUnsupported)
	}
	s, err := newSessionLocks(c, kind, c.lease)
	if err != nil {
		return nil, err
	}
	return &Advisory{s}, nil
}

func newSessionLocks(c *core, kind sessionKind, opts []lease.Option) (s sessionLocks, err error) {
	s.c, s.store = c, newSessionStore(c, kind)
	if s.lc, err = lease.New(s.store, opts...); err != nil {
		return s, err
	}
	if c.listen != nil {
		c.hub = newHub(c)
	}
	return s, nil
}

// Locker returns the lock called name. It is a [*Lock].
func (s *sessionLocks) Locker(name string) locks.TryLocker { return s.Lock(name) }

// Lock returns the lock called name.
func (s *sessionLocks) Lock(name string, opts ...lease.MutexOption) *Lock {
	return newLock(s.lc, name, opts)
}

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see [lease.Client.Close]. A connection that was pinned goes back
// to the pool, or is closed.
func (s *sessionLocks) Close(ctx context.Context) error {
	err := s.c.close(ctx, s.lc)
	s.store.close()
	s.c.jobs.Wait()
	return err
}
