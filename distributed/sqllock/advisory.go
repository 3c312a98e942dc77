package sqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// keyOf is the key of a name in PostgreSQL: the first 8 bytes of the SHA-256 of "sqllock:" and
// the name, big endian.
func keyOf(name string) int64 {
	sum := sha256.Sum256([]byte("sqllock:" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

const (
	namedPrefix = "sqllock:"
	maxNamed    = 64 // bytes, of MySQL; MariaDB allows more
)

// namedKey is the key of a name in MySQL: the name itself if it is short and has only small
// ASCII letters, digits and signs, since servers ignore case. Any other name is "sqllock:" and
// the first 24 bytes of its SHA-256 in hexadecimal.
func namedKey(name string) string {
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

// key is the key of a name in the server.
func (s *sessionStore) key(name string) any {
	if s.c.dialect == MySQL {
		return namedKey(name)
	}
	return s.c.key(name)
}

// taking is the outcome of an attempt to take a lock.
type taking struct {
	held   bool
	own    int64 // the server's name of the session
	holder int64 // the name of the session that has the lock, or 0 if the server does not tell
	clean  bool  // the lock is not held, and the connection is as before
}

// take takes the lock if it is free. It asks the session that has answered on this connection
// before. If another session answers, or if no session has answered before, take first asks for the
// session.
func (s *sessionStore) take(ctx context.Context, conn *sql.Conn, name string) (taking, error) {
	connection := identityOf(conn)
	if own := s.known.get(connection); own != 0 {
		t, now, err := s.takeIn(ctx, conn, name, own)
		if err != nil || now == own {
			return t, err
		}
	}
	var own int64
	if err := s.c.statements["session"].query(ctx, conn, nil, &own); err != nil {
		return taking{}, err
	}
	t, now, err := s.takeIn(ctx, conn, name, own)
	switch {
	case err != nil:
		return t, err
	case now != own:
		s.known.set(connection, 0)
		return t, sessionsError(own, now)
	}
	s.known.set(connection, own)
	return t, nil
}

// takeIn takes the lock if it is free and the session own answers, and returns the session that has
// answered. Another session is not asked for the lock: the lock would stay locked there.
func (s *sessionStore) takeIn(ctx context.Context, conn *sql.Conn, name string, own int64) (t taking, now int64, err error) {
	t.own = own
	var holder, got sql.NullInt64 // the holder if the server tells
	if err := s.c.statements["take"].query(ctx, conn, []any{s.key(name), own}, &now, &holder, &got); err != nil {
		return t, now, err
	}
	if holder.Valid && holder.Int64 == own && now == own {
		// The program left the lock held on a connection of the pool. Our acquisition would seem to
		// succeed.
		return t, now, fmt.Errorf("a connection of the pool has the lock already: %w", locks.ErrForeign)
	}
	t.held, t.holder = got.Int64 > 0, holder.Int64
	t.clean = !t.held
	return t, now, nil
}

// knownSessions has the session that has answered last on each connection. A connection that the
// pool has closed stays in the map, so knownSessions forgets all connections now and then.
type knownSessions struct {
	mu  sync.Mutex
	ids map[any]int64 // by [identityOf]
}

// mostKnown is how many connections knownSessions remembers.
const mostKnown = 256

// identityOf returns the driver's pointer to the connection, or nil if the driver has none.
func identityOf(conn *sql.Conn) (identity any) {
	conn.Raw(func(c any) error {
		if reflect.TypeOf(c).Kind() == reflect.Pointer {
			identity = c
		}
		return nil
	})
	return identity
}

// get returns the session of a connection, or 0.
func (k *knownSessions) get(connection any) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[connection]
}

// set notes the session of a connection. 0 stands for none.
func (k *knownSessions) set(connection any, id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil || len(k.ids) >= mostKnown {
		k.ids = make(map[any]int64)
	}
	delete(k.ids, connection)
	if connection != nil && id != 0 {
		k.ids[connection] = id
	}
}

// alive returns an error unless the session still has the lock.
func (s *sessionStore) alive(ctx context.Context, conn *sql.Conn, name string, id int64) error {
	var now int64
	var holder sql.NullInt64
	err := s.c.statements["taken"].query(ctx, conn, []any{s.key(name)}, &now, &holder)
	switch {
	case err != nil:
		return err
	case now != id:
		return sessionsError(id, now)
	case holder.Int64 != id:
		return errGone
	}
	return nil
}

// free gives the lock back, and reports whether the session had it.
func (s *sessionStore) free(ctx context.Context, conn *sql.Conn, name string) (bool, error) {
	title := "give back"
	if s.c.listen != nil {
		title = "give back and notify"
	}
	var had sql.NullInt64
	var nothing sql.NullString
	err := s.c.statements[title].query(ctx, conn, []any{s.key(name), s.c.names.channel, name}, &had, &nothing)
	return had.Int64 == 1, err
}

// Advisory has the locks that a server offers to applications and binds to a session:
// pg_advisory_lock of PostgreSQL, with a 64-bit key made from the name, and GET_LOCK of MariaDB and
// MySQL. An Advisory needs no table, and the locks of a dead process are free at once. Its holds
// come without a fencing token. An Advisory is a [locks.Provider]. It is safe for concurrent use;
// [Advisory.Close] ends it.
//
// A holder pins a connection of the pool until it unlocks. A waiter pins no connection: it asks
// again after a pause or on a notification, see [WithBackoff] and [WithListener]. A pool therefore
// needs more connections than locks are held. With [WithBlockingWait] a waiter pins a connection
// too.
//
// In PostgreSQL the locks belong to the database that db is connected to, in MySQL to the whole
// server. The key in PostgreSQL is the first 8 bytes of the SHA-256 of "sqllock:" and the name. Two
// names with the same key exclude each other, which is as likely as guessing a 64-bit number. See
// [WithKey].
type Advisory struct {
	c     *core
	store *sessionStore
	lc    *lease.Client
}

var _ locks.Provider = (*Advisory)(nil)

// NewAdvisory returns an Advisory in db. It never closes db, and must be closed before db is.
// SQLite lacks such locks: there the error matches [ErrUnsupported].
//
// In PostgreSQL the first acquisition checks that each connection is a session of its own. The
// check takes two connections of the pool and 48 round trips. If not, the error matches
// [ErrUnsupportedTopology]. A pool of one connection is not checked.
func NewAdvisory(db *sql.DB, opts ...Option) (*Advisory, error) {
	c, err := newCore(db, append([]Option{func(o *options) { o.sessions = true }}, opts...))
	if err != nil {
		return nil, err
	}
	switch c.dialect {
	case SQLite:
		return nil, fmt.Errorf("sqllock: Advisory on %v: %w", c.dialect, ErrUnsupported)
	case Postgres:
		c.start.check = c.start.checkSessions
	}
	a := &Advisory{c: c, store: newSessionStore(c)}
	var store driver.Store = a.store
	if c.blocks {
		store = blockingStore{a.store}
	}
	a.lc, err = c.client(store, c.lease)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Locker returns the lock called name. It is a [*lease.Mutex].
func (a *Advisory) Locker(name string) locks.TryLocker { return a.Mutex(name) }

// Mutex returns the lock called name.
func (a *Advisory) Mutex(name string, opts ...lease.MutexOption) *lease.Mutex {
	return newMutex(a.lc, name, opts)
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]; see
// [lease.Client.Close]. It sends a request on the connection of each hold, 16 at a time. Pinned
// connections go back to the pool, or are closed. Close waits for them until ctx ends.
func (a *Advisory) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	err := a.c.close(ctx, a.lc.Close)
	a.store.close(ctx)
	return err
}
