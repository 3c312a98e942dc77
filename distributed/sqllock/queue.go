package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// The queue of a lock is the rows of its name in a table: the waiting owners by ascending id,
// each with the time when it counts as dead. A request that changes the queue locks the row
// of the lock first. Ids are therefore given in the order in which requests lock the row:
//
//	row of the lock   queue            asker          becomes
//	held              any              not in it      last in it
//	held              any              in it          unchanged, but alive for longer
//	held by asker     any              any            holder: the answer to its grant was lost
//	free, over        dead first       any            the dead owners are passed over
//	free, over        empty            any            holder
//	free, over        asker first      in it          holder, and leaves it
//	free, over        another first    any            as if it were held
//
// On PostgreSQL a request is one statement. The statement reads the row of the lock after it has
// locked the row, so two requests never both find the lock free. The statement reads the queue as
// it was when the statement began. So requests that run at the same time may overtake each other,
// and a request that arrives twice at the same time may leave a place behind. The release removes
// that place. In other databases a request is a transaction, which reads the queue after it has
// locked the row.
//
// With a listener a release notifies all clients that it is the turn of the first waiter. The
// others ask after a pause, unless they hear of another release by then. So the others go on even
// if the first waiter has just left.
//
// A release, an acquisition without queueing and a renewal are one statement each.

// queueStore is the [driver.Store] of a [Table] with a queue.
type queueStore struct{ *tableStore }

var _ driver.Queue = queueStore{}

// queueTx is a transaction about a lock's queue, in MySQL and SQLite.
type queueTx struct {
	queueStore
	ctx  context.Context
	tx   *sql.Tx
	stay time.Duration
}

func (t queueTx) exec(title string, args ...any) (int64, error) {
	return t.c.statements[title].exec(t.ctx, t.tx, args...)
}

func (t queueTx) query(title string, args []any, dest ...any) error {
	return t.c.statements[title].query(t.ctx, t.tx, args, dest...)
}

// stay returns how long a waiter for a hold of d keeps its place without asking again.
func (s queueStore) stay(d time.Duration) time.Duration {
	if s.c.wait != 0 {
		return s.c.wait
	}
	return min(max(d, time.Second), DefaultQueueWait) // a request may take a second on a busy machine
}

// Enqueue lets a waiter ask again in time to keep its place, also if the lock is free or held for
// longer. If this client listens, it begins the waiter's watch before it asks, so that the waiter
// need not ask again because of the watch.
func (s queueStore) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	stay := s.stay(req.TTL)
	listening := s.c.hears.Load()
	if listening {
		s.c.watch(req.HoldID)
	}
	reply, err := s.enter(ctx, req, stay)
	switch {
	case !listening:
	case err != nil || reply.Held:
		s.endWatch(req.HoldID)
	default:
		reply.Listening = true
	}
	if reply.Wait <= 0 || reply.Wait > stay/3 {
		reply.Wait = stay / 3
	}
	return reply, err
}

func (s queueStore) enter(ctx context.Context, req driver.Request, stay time.Duration) (driver.Reply, error) {
	if err := s.c.fit(ctx, req.Name); err != nil {
		return driver.Reply{}, err
	}
	var reply driver.Reply
	var err error
	if s.c.dialect == Postgres {
		reply, err = s.ask(ctx, req, stay)
	} else {
		reply, err = s.transact(ctx, req, stay)
	}
	switch {
	case err == nil:
		s.c.listenOn()
		return reply, nil
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, req, err) // not in the queue yet, if this was the first time
	}
	return driver.Reply{}, s.c.outcome(err)
}

// ask carries out the table above in one statement. If only a waiter that may be dead is in the
// way, the asker asks again when that waiter's place ends.
func (s queueStore) ask(ctx context.Context, req driver.Request, stay time.Duration) (driver.Reply, error) {
	args := []any{req.Name, req.Acquisition, micros(req.TTL), micros(stay)}
	for {
		var taken bool
		var next int64
		row := rowOfLock{seen: driver.Now()}
		err := s.c.queryOnce(ctx, s.c.statements["ask"], args, &taken, &row.left, &row.token, &row.owner, &next)
		switch {
		case errors.Is(err, sql.ErrNoRows): // the lock has no row yet
			if _, err = s.c.exec(ctx, s.c.statements["make lock"], req.Name); err != nil {
				return driver.Reply{}, err
			}
			continue
		case err != nil:
			return driver.Reply{}, err
		case taken:
			return driver.Reply{Held: true, Token: uint64(row.token)}, nil
		case row.left <= 0:
			return driver.Reply{Wait: time.Duration(next) * time.Microsecond}, nil
		}
		return s.replyHeld(req, row), nil
	}
}

// transact carries out the table above in a transaction.
func (s queueStore) transact(ctx context.Context, req driver.Request, stay time.Duration) (
	reply driver.Reply, err error) {
	// A read, which locks nothing, is enough for most waiters that ask again.
	var left, before int64
	args := []any{req.Name, req.Acquisition, micros(stay / 2)}
	err = s.c.query(ctx, s.c.statements["standing"], args, &left, &before)
	if err == nil && (left > 0 || before > 0) {
		return driver.Reply{Wait: time.Duration(left) * time.Microsecond}, nil
	}
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		tx, err := s.c.db.BeginTx(ctx, s.c.dialect.current())
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if reply, err = (queueTx{s, ctx, tx, stay}).ask(req); err != nil {
			return err
		}
		return s.c.dialect.commit(tx)
	})
	return reply, err
}

// ask carries out the table above. It locks the row of the lock. If the lock is free and the
// asker is next, it grants the lock. If not, it enqueues the asker or extends its place.
func (t queueTx) ask(req driver.Request) (driver.Reply, error) {
	row, err := t.lockRow(req.Name)
	switch {
	case err != nil:
		return driver.Reply{}, err
	case row.left > 0 && row.owner == req.Acquisition: // a place of this request would outlast the hold
		return t.replyHeld(req, row), nil
	case row.left <= 0:
		switch next, err := t.isNext(req.Name, req.Acquisition); {
		case err != nil:
			return driver.Reply{}, err
		case next:
			if _, err := t.exec("grant", req.Name, req.Acquisition, micros(req.TTL)); err != nil {
				return driver.Reply{}, err
			}
			var token int64
			err := t.query("granted", []any{req.Name}, &token)
			return driver.Reply{Held: err == nil, Token: uint64(token)}, err
		}
	}
	n, err := t.exec("stay", req.Name, req.Acquisition, micros(t.stay))
	if err == nil && n == 0 {
		_, err = t.exec("enqueue", req.Name, req.Acquisition, micros(t.stay))
	}
	return driver.Reply{Wait: row.wait()}, err
}

// lockRow locks the row of the lock.
func (t queueTx) lockRow(name string) (row rowOfLock, err error) {
	row.seen = driver.Now()
	dest := []any{&row.left, &row.token, &row.owner}
	err = sql.ErrNoRows
	if t.c.dialect != SQLite {
		err = t.query("lock", []any{name}, dest...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		// In SQLite this comes first in any case: a transaction that begins with reading cannot
		// always go on to write.
		if _, err = t.exec("make lock", name); err == nil {
			err = t.query("lock", []any{name}, dest...)
		}
	}
	return row, err
}

// isNext reports whether the queue is empty but for dead waiters, or the asker is the first that is
// alive. It removes the dead waiters, and the asker as well.
func (t queueTx) isNext(name, acquisition string) (bool, error) {
	for {
		var id, dead int64
		var head string
		err := t.query("first", []any{name}, &id, &head, &dead)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return true, nil
		case err != nil:
			return false, err
		case head != acquisition && dead == 0:
			return false, nil
		}
		if _, err := t.exec("remove", id); err != nil || head == acquisition {
			return err == nil, err
		}
	}
}

// Release is the Release of a Table, except that on PostgreSQL it notifies the first waiter.
func (s queueStore) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if s.c.dialect != Postgres {
		return s.tableStore.Release(ctx, id)
	}
	n, err := s.c.count(ctx, "release in order", id)
	return driver.Released{Held: n > 0, Awaited: true}, s.c.outcome(err)
}

// endWatch ends the watch of an acquisition, if there is one.
func (s queueStore) endWatch(id driver.HoldID) {
	if w := s.c.waiters.of(id); w != nil {
		w.Close()
	}
}

// Leave gives the place up.
func (s queueStore) Leave(ctx context.Context, id driver.HoldID) error {
	s.endWatch(id) // the engine may not have asked for the watch
	title := "leave"
	if s.c.dialect == Postgres {
		title = "leave in order"
	}
	_, err := s.c.count(ctx, title, id)
	return s.c.outcome(err)
}
