package etcdlock

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The state of a read-write lock: the keys of readers, <lock>/read/..., and of writers,
// <lock>/write/.... A writer waits for the newest older key of either kind, and a reader for the
// newest older key of a writer. So readers and writers have their turn in order of arrival, and
// readers that arrive together read together.
//
// A writer that becomes a reader keeps its key and its place, and writes "read" into the key.
// Readers do not wait for such a key any more. Writers do.

var (
	reading = &kind{own: "read/", rivals: "write/"}
	// A writer may have become a reader, so its hold cannot be handed off to the next local
	// writer.
	writing = &kind{own: "write/", rivals: "", alone: true}
)

// downgraded is the first line of the value of the key of a writer that has become a reader. The
// usual lines follow.
const downgraded = "read\n"

func isDowngraded(value []byte) bool { return strings.HasPrefix(string(value), downgraded) }

// RWMutex returns the read-write lock called name. Its readers and writers have their turn in
// order of arrival, among all processes. The RWMutex is independent of the [Client.Mutex] of the
// same name.
//
// While a former writer holds the read half, TryLockContext of other readers returns false. Their
// LockContext does not wait.
func (c *Client) RWMutex(name string, opts ...lease.MutexOption) *lease.RWMutex {
	prefix := c.Prefix(name) + "%rw" // which is in no other lock's name
	return lease.NewRWMutex(
		c.mutex(reading, name, prefix, append([]lease.MutexOption{lease.WithShared()}, opts...)),
		c.mutex(writing, name, prefix, opts),
	)
}

// readUnder also makes a reader of the writer that holds the lock and asks to read. The reader
// may ask again, also when the writer has gone.
func (s *store) readUnder(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if s.c.find(req.Name, req.Acquisition) != nil {
		if r, err := s.lookup(ctx, req); r.Held || err != nil {
			return r, err
		}
	}
	m := s.c.find(req.Name, req.Writer)
	if m == nil {
		err := fmt.Errorf("by a former writer: %w", locks.ErrLost)
		return driver.Reply{}, driver.Mark(err, driver.ErrRefused)
	}
	m.op.Lock()
	defer m.op.Unlock()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	switch {
	case s.c.finished(req.Acquisition):
		return driver.Reply{}, errLeft
	case m.state != holding || m.gone:
		return driver.Reply{}, errReleased
	}
	if m.reader != nil { // its hold was lost: an owner has one
		s.c.forget(m.reader)
	}
	m.reader = &place{st: s, id: req.HoldID, master: m, term: req.TTL}
	s.c.places[req.Acquisition] = m.reader
	return m.reply(req.TTL), nil
}

// part ends the reader y of a writer's place, and the place if the writer has gone.
func (s *store) part(ctx context.Context, y *place) (driver.Released, error) {
	m := y.master
	m.op.Lock()
	defer m.op.Unlock()
	s.c.mu.Lock()
	present := m.reader == y // not so after a late release, if the writer reads again
	gone, held := m.gone && present, present && m.state == holding
	if gone {
		m.leave()
	} else if present {
		m.reader = nil
	}
	s.c.mu.Unlock()
	if gone {
		var err error
		if held, err = s.c.remove(ctx, m); err != nil {
			return driver.Released{}, err
		}
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.forget(y)
	return driver.Released{Held: held}, nil
}

// errReleased is the error of a request by, or under, a writer that has released the lock.
var errReleased = driver.Mark(fmt.Errorf("write lock released meanwhile: %w", locks.ErrNotHeld), driver.ErrRefused)

// partWriter ends the hold of the writer p. If its owner goes on to read, the key stays.
func (s *store) partWriter(ctx context.Context, p *place) (driver.Released, error) {
	p.op.Lock()
	defer p.op.Unlock()
	s.c.mu.Lock()
	told, reader := p.told, p.reader
	if reader == nil || p.state != holding {
		reader = nil
		p.leave()
	} else {
		p.gone = true
	}
	s.c.mu.Unlock()
	if told {
		return driver.Released{}, nil
	}
	if reader == nil {
		held, err := s.c.remove(ctx, p)
		return driver.Released{Held: held}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.try())
	defer cancel()
	resp, err := s.c.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(p.key), "=", p.rev)).
		Then(clientv3.OpPut(p.key, downgraded+s.value(reader.id.Acquisition), clientv3.WithIgnoreLease())).
		Commit()
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	p.told = err == nil // else the request is repeated, or the reader's end deletes the key
	if err != nil {
		return driver.Released{}, storeError(err)
	}
	return driver.Released{Held: resp.Succeeded}, nil
}
