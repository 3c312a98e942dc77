package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// The queue of a lock is the rows of its name in a table: the waiting owners by ascending id,
// each with the time when it counts as dead. A transaction that changes the queue locks the row
// of the lock first. Ids are therefore given in the order of the commits, and no two waiters
// both find themselves the first:
//
//	row of the lock   queue            asker          becomes
//	held              any              not in it      last in it, unless it is the holder
//	held              any              in it          what it was, alive for longer
//	free, over        dead ones first  any            they are removed, and it is looked at again
//	free, over        empty            any            holder
//	free, over        asker first      in it          holder, and leaves it
//	free, over        another first    any            as if it were held
//
// A release, an acquisition without queueing and a renewal change the row of the lock only,
// each in one statement.

// queueStore is the [lease.Store] of a [Table] with a queue.
type queueStore struct{ *tableStore }

var _ lease.Queue = queueStore{}

// queueTx is a transaction about a lock's queue.
type queueTx struct {
	queueStore
	ctx   context.Context
	tx    *sql.Tx
	place time.Duration
}

func (t queueTx) exec(title string, args ...any) (int64, error) {
	return t.c.statements[title].exec(t.ctx, t.tx, args...)
}

func (t queueTx) query(title string, args []any, dest ...any) error {
	return t.c.statements[title].query(t.ctx, t.tx, args, dest...)
}

// place returns how long a waiter for a hold of d keeps its place without asking again.
func (s queueStore) place(d time.Duration) time.Duration {
	if s.c.wait != 0 {
		return s.c.wait
	}
	return min(max(d, time.Second), DefaultQueueWait) // a request may take a second on a busy machine
}

// Enqueue lets a waiter ask again in time to keep its place, also if the lock is free or held for
// longer.
func (s queueStore) Enqueue(ctx context.Context, req lease.Request) (lease.Reply, error) {
	place := s.place(req.TTL)
	reply, err := s.enter(ctx, req, place)
	if reply.Wait <= 0 || reply.Wait > place/3 {
		reply.Wait = place / 3
	}
	return reply, err
}

func (s queueStore) enter(ctx context.Context, req lease.Request, place time.Duration) (lease.Reply, error) {
	if err := s.c.start.fit(ctx); err != nil {
		return lease.Reply{}, err
	}
	// A read, which locks nothing, is enough for most waiters that ask again.
	var left, before int64
	args := []any{req.Name, req.Acquisition, micros(place / 2)}
	err := s.c.query(ctx, s.c.statements["standing"], args, &left, &before)
	if err == nil && (left > 0 || before > 0) {
		return lease.Reply{Wait: time.Duration(left) * time.Microsecond}, nil
	}
	var reply lease.Reply
	err = s.c.request(ctx, func(ctx context.Context) (err error) {
		tx, err := s.c.db.BeginTx(ctx, s.c.dialect.current())
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if reply, err = (queueTx{s, ctx, tx, place}).ask(req); err != nil {
			return err
		}
		return s.c.dialect.commit(tx)
	})
	switch {
	case err == nil:
		s.c.listenOn()
		return reply, nil
	case s.c.inTheWay(err):
		return s.inTheWay(ctx, req, err) // not in the queue yet, if this was the first time
	}
	return lease.Reply{}, s.c.outcome(err)
}

// ask does what the table above says. It locks the row of the lock. If the lock is free and the
// asker is next, it grants the lock. If not, it enqueues the asker or extends its place.
func (t queueTx) ask(req lease.Request) (lease.Reply, error) {
	left, owner, err := t.lockRow(req.Name)
	switch {
	case err != nil:
		return lease.Reply{}, err
	case left > 0 && owner == req.Acquisition: // a place of this late request would outlast the hold
		return lease.Reply{Wait: time.Duration(left) * time.Microsecond}, nil
	case left <= 0:
		switch next, err := t.isNext(req.Name, req.Acquisition); {
		case err != nil:
			return lease.Reply{}, err
		case next:
			if _, err := t.exec("grant", req.Name, req.Acquisition, micros(req.TTL)); err != nil {
				return lease.Reply{}, err
			}
			var token int64
			err := t.query("granted", []any{req.Name}, &token)
			return lease.Reply{Held: err == nil, Token: uint64(token)}, err
		}
	}
	n, err := t.exec("stay", req.Name, req.Acquisition, micros(t.place))
	if err == nil && n == 0 {
		_, err = t.exec("enqueue", req.Name, req.Acquisition, micros(t.place))
	}
	return lease.Reply{Wait: time.Duration(left) * time.Microsecond}, err
}

// lockRow locks the row of the lock, and returns for how many microseconds the lock is not
// free, and its last holder.
func (t queueTx) lockRow(name string) (left int64, owner string, err error) {
	err = sql.ErrNoRows
	if t.c.dialect != SQLite {
		err = t.query("lock", []any{name}, &left, &owner)
	}
	if errors.Is(err, sql.ErrNoRows) {
		// In SQLite this comes first in any case: a transaction that begins with reading cannot
		// always go on to write.
		if _, err = t.exec("make lock", name); err == nil {
			err = t.query("lock", []any{name}, &left, &owner)
		}
	}
	return left, owner, err
}

// isNext reports whether the queue is empty but for dead waiters, or the asker is the first
// that is alive. It removes the dead ones, and the asker as well.
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

// Leave gives the place up.
func (s queueStore) Leave(ctx context.Context, id lease.HoldID) error {
	_, err := s.c.notifying(ctx, "leave", id.Name, id.Acquisition)
	return err
}
