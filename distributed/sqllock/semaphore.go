package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The permits of an acquisition are a row of a table: the name of the semaphore; the owner; how
// many permits; a token; the end of the lease. Another table has a row for each name, with the last
// token. One statement reads the token and the permits of a name. If there is room, a second
// statement adds 1 to the token, if the token is still the same, and gives permits to the row. If
// the token has changed, another acquisition came between, and the acquisition begins anew. So no
// client can make others wait by stopping halfway.
//
//	PostgreSQL   both are one statement, which adds the row
//	MySQL        a row without permits is there before, since one statement can update two
//	             tables. If its client dies, it is deleted with the next leases that are over
//	SQLite       a transaction that writes is alone
//
// A lease that seems to be over may have been renewed by a statement that is not committed yet. So
// an acquisition first deletes such rows. The deletion waits for the renewal, and then leaves the
// row. All rows that are left count.
//
// Releases and renewals change single rows, and wait for no other.

// permitStore is the [driver.Store] of the semaphores of a [Table].
type permitStore struct {
	*tableStore
	start startCheck
}

var (
	_ driver.Store     = (*permitStore)(nil)
	_ driver.Breaker   = (*permitStore)(nil)
	_ driver.Inspector = (*permitStore)(nil)
	_ driver.Announcer = (*permitStore)(nil)
)

func newPermitStore(c *core) *permitStore {
	s := &permitStore{tableStore: &tableStore{c: c, holds: c.names.permits}, start: startCheck{c: c}}
	if c.dialect == MySQL {
		s.start.check = func(ctx context.Context) error { return c.request(ctx, s.checkEngines) }
	}
	return s
}

// checkEngines returns an error unless the tables have transactions, and statements read only
// committed data. At READ UNCOMMITTED a statement may find a new token without the permits that
// were taken with it.
func (s *permitStore) checkEngines(ctx context.Context) error {
	var name, level string
	switch err := s.c.statements["reads uncommitted"].query(ctx, s.c.db, nil, &name, &level); {
	case err == nil:
		return errMode(name, "at least READ-COMMITTED", level)
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	for _, table := range []string{s.c.names.permits, s.c.names.semaphores} {
		if err := s.start.checkEngine(ctx, table, false); err != nil {
			return err
		}
	}
	return nil
}

// permitsTaken is the answer of a statement about a semaphore.
type permitsTaken struct {
	seen     time.Time // by [driver.Now], when the statement was sent
	all      int64     // of all acquisitions
	living   int64     // the permits whose lease is not over
	next     int64     // for how many microseconds the first lease of those lasts
	token    int64     // the last token
	own      int64     // the token of the asker, or 0
	ownLasts int64     // for how many microseconds its lease lasts
}

// Acquire gives the permits if they are free.
func (s *permitStore) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := s.c.fit(ctx, req.Name); err != nil {
		return driver.Reply{}, err
	}
	if err := s.start.fit(ctx); err != nil {
		return driver.Reply{}, err
	}
	ask := s.transact
	switch s.c.dialect {
	case Postgres:
		ask = s.ask
	case MySQL:
		ask = s.askTwice
	}
	reply, err := ask(ctx, req)
	switch {
	case s.c.inTheWay(err) && (s.c.dialect == SQLite || !errors.Is(err, ErrTimeout)):
		return s.inTheWay(ctx, req, err)
	case err != nil: // after ErrTimeout, the last statement may yet be carried out
		return driver.Reply{}, s.c.outcome(err)
	}
	return reply, nil
}

// errOvertaken makes a request begin anew: another acquisition was faster.
var errOvertaken = driver.Mark(errors.New("another client has acquired permits"), errTaken)

// ask is an acquisition in PostgreSQL.
func (s *permitStore) ask(ctx context.Context, req driver.Request) (reply driver.Reply, err error) {
	permits, size := req.Weigh()
	args := []any{req.Name, req.Acquisition, micros(req.TTL), permits, size}
	err = s.c.request(ctx, func(ctx context.Context) error {
		var taken int64
		t := permitsTaken{seen: driver.Now()}
		err := s.c.queryOnce(ctx, s.c.statements["ask permits"], args,
			&taken, &t.living, &t.next, &t.token, &t.own, &t.ownLasts)
		switch {
		case errors.Is(err, sql.ErrNoRows): // the semaphore has no row yet
			if _, err = s.c.statements["make semaphore"].exec(ctx, s.c.db, req.Name); err == nil {
				err = errOvertaken
			}
			return err
		case err != nil:
			return err
		case taken > 0:
			reply = driver.Reply{Held: true, Token: uint64(taken)}
			return nil
		case t.own == 0 && t.living <= size-permits:
			return errOvertaken
		}
		reply = s.refusal(req, t)
		return nil
	})
	return reply, err
}

// askTwice is an acquisition in MySQL. If it was overtaken and then refused, it deletes its row.
func (s *permitStore) askTwice(ctx context.Context, req driver.Request) (reply driver.Reply, err error) {
	overtaken := false
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		reply, err = s.decide(ctx, s.c.db, req)
		overtaken = overtaken || err != nil
		return err
	})
	if !reply.Held && overtaken && (err == nil || s.c.inTheWay(err) && !errors.Is(err, ErrTimeout)) {
		_, err = s.c.exec(ctx, s.c.statements["unprepare permits"], req.Name, req.Acquisition)
	}
	return reply, err
}

// transact is an acquisition in SQLite.
func (s *permitStore) transact(ctx context.Context, req driver.Request) (reply driver.Reply, err error) {
	permits, size := req.Weigh()
	// A read, which locks nothing, is enough for most waiters that ask again.
	var t permitsTaken
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		t, err = s.count(ctx, s.c.db, req)
		return err
	})
	if err != nil || t.own > 0 || t.living > size-permits {
		return s.refusal(req, t), err
	}
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		tx, err := s.c.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		// A transaction that begins with reading cannot always go on to write.
		if _, err = s.c.statements["make semaphore"].exec(ctx, tx, req.Name); err != nil {
			return err
		}
		if reply, err = s.decide(ctx, tx, req); err != nil {
			return err
		}
		return s.c.dialect.commit(tx)
	})
	return reply, err
}

// count reads the permits of a semaphore.
func (s *permitStore) count(ctx context.Context, on database, req driver.Request) (t permitsTaken, err error) {
	t.seen = driver.Now()
	err = s.c.statements["permits"].query(ctx, on, []any{req.Name, req.Acquisition},
		&t.all, &t.living, &t.next, &t.token, &t.own, &t.ownLasts)
	return t, err
}

// decide gives the permits in MySQL, or in a transaction of SQLite, if they are free.
func (s *permitStore) decide(ctx context.Context, on database, req driver.Request) (driver.Reply, error) {
	permits, size := req.Weigh()
	exec := func(title string, args ...any) (int64, error) { return s.c.statements[title].exec(ctx, on, args...) }
	t, err := s.count(ctx, on, req)
	if err != nil || t.own > 0 || t.living > size-permits {
		return s.refusal(req, t), err
	}
	if t.living < t.all {
		if _, err = exec("lapse", req.Name); err == nil {
			t, err = s.count(ctx, on, req)
		}
	}
	before := "prepare permits"
	switch {
	case err != nil:
		return driver.Reply{}, err
	case t.all > size-permits:
		return driver.Reply{}, errOvertaken
	case t.token < 0:
		if _, err := exec("make semaphore", req.Name); err != nil {
			return driver.Reply{}, err
		}
		t.token = 0
	}
	if s.c.dialect == SQLite {
		before = "raise token"
	}
	if _, err := exec(before, req.Name, req.Acquisition); err != nil {
		return driver.Reply{}, err
	}
	next := t.token + 1
	n, err := exec("take permits", req.Name, req.Acquisition, micros(req.TTL), permits, next)
	if err == nil && n == 0 {
		err = errOvertaken
	}
	return driver.Reply{Held: err == nil, Token: uint64(next)}, err
}

// refusal is the reply to an acquisition that adds no row. An earlier request of the acquisition
// may have the permits, if the answer was lost. If not, refusal tells the local waiters of the last
// acquisition.
func (s *permitStore) refusal(req driver.Request, t permitsTaken) driver.Reply {
	if lasts := time.Duration(t.ownLasts) * time.Microsecond; t.own > 0 && lasts > 0 {
		return driver.Reply{Held: true, Token: uint64(t.own), Since: t.seen.Add(lasts - req.TTL)}
	}
	s.c.onRefusal(topicOf(req.Name), t.token)
	return driver.Reply{Wait: max(time.Duration(t.next)*time.Microsecond, 0)}
}

// topicOf is the payload of notifications for a semaphore, in place of the name of a lock.
func topicOf(name string) string { return "permits " + name }

// Release deletes the row.
func (s *permitStore) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	title := "release permits"
	if s.c.listen != nil {
		title = "release permits and notify"
	}
	n, err := s.c.count(ctx, title, id)
	if err == nil && n == 0 && s.c.dialect == MySQL {
		_, err = s.c.exec(ctx, s.c.statements["unprepare permits"], id.Name, id.Acquisition)
	}
	return driver.Released{Held: n > 0, Awaited: true}, s.c.outcome(err)
}

// Watch is the Watch of a Table, for the semaphore.
func (s *permitStore) Watch(_ context.Context, id driver.HoldID) (driver.Watch, error) {
	id.Name = topicOf(id.Name)
	return s.c.watch(id), nil
}

// Break deletes the rows of all holders. They find out at their next renewal.
func (s *permitStore) Break(ctx context.Context, name string) (bool, error) {
	state, err := s.Inspect(ctx, name)
	broken := false
	for _, h := range state.Holders {
		var r driver.Released
		if r, err = s.Release(ctx, driver.HoldID{Name: name, Acquisition: h.Acquisition}); err != nil {
			return broken, s.c.outcome(err)
		}
		broken = broken || r.Held
	}
	return broken, err
}

// Inspect reads the rows of the holders.
func (s *permitStore) Inspect(ctx context.Context, name string) (driver.State, error) {
	return s.holders(ctx, "inspect permits", name, func(h *driver.Claim) []any {
		return []any{&h.Acquisition, &h.Permits, &h.Token}
	})
}

// Semaphore returns the semaphore called name, of size permits, whose permits are renewed like
// holds. The permits of an acquisition are a row of a table, with the end of their lease by the
// clock of the database. A lock of the same name is independent.
//
// Processes are not served in order, not even with [WithQueue]. Small acquisitions can pass an
// acquisition of many permits for as long as they keep coming. Tokens increase from acquisition to
// acquisition.
//
// In PostgreSQL an acquisition takes one statement. In MySQL and MariaDB it takes three statements,
// or one if the permits are not free. In SQLite it takes a transaction, or a read. Of several
// clients that acquire permits at once, one succeeds, and the others begin anew. A release and a
// renewal of all permits of this client are one statement each. A release wakes all waiters that
// listen, see [WithListener]. Others poll, see [WithBackoff].
//
// If a process dies, its permits return when its lease is over. A row stays for each name that was
// ever used. CreateSchema adds the two tables to an earlier layout. Without them the methods return
// [ErrNoTable].
func (t *Table) Semaphore(name string, size int64) *lease.Semaphore {
	refusal := checkName(name)
	lc, err := t.clients.Client(t.permits.tableStore, func() (*lease.Client, error) {
		return t.c.client(t.permits, t.c.lease)
	})
	if err != nil {
		lc, refusal = t.lc, err
	}
	return lc.Semaphore(name, size, driver.WithRefusal(refusal))
}
