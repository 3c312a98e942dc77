package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// call sends a request when there is a connection, and waits for the answer until ctx ends or the
// session is over. The ZooKeeper client does not support contexts, so the request runs in a
// goroutine. The goroutine ends with its connection, or with the next connection. A late answer is
// dropped.
func call[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (T, error) {
	v, _, err := send(ctx, s, request)
	return v, err
}

// lead sends a request that the leader must answer, such as a write. So its answer shows that the
// session was alive when the request was sent.
func lead[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (T, error) {
	v, sent, err := send(ctx, s, request)
	s.noteConfirmation(sent, err)
	return v, err
}

// noteConfirmation notes when a request was sent, if err says that the leader has answered it.
func (s *session) noteConfirmation(sent time.Time, err error) {
	if inDoubt(err) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent.After(s.confirmed) {
		s.confirmed = sent
	}
}

func send[T any](ctx context.Context, s *session, request func(*zk.Conn) (T, error)) (v T, sent time.Time, err error) {
	if err := s.await(ctx); err != nil {
		return v, sent, err
	}
	sent = driver.Now()
	v, err = begin(s, request).await(ctx)
	return v, sent, err
}

// pending is a request that was sent.
type pending[T any] struct {
	s       *session
	answers chan answer[T]
}

type answer[T any] struct {
	v   T
	err error
}

// begin sends a request and does not wait for its answer.
func begin[T any](s *session, request func(*zk.Conn) (T, error)) pending[T] {
	p := pending[T]{s, make(chan answer[T], 1)}
	go func() {
		v, err := request(s.conn)
		p.answers <- answer[T]{v, err}
	}()
	return p
}

// await returns the answer, or an error when ctx ends or the session is over.
func (p pending[T]) await(ctx context.Context) (v T, err error) {
	select {
	case a := <-p.answers:
		if errors.Is(a.err, zk.ErrConnectionClosed) {
			a.err = fmt.Errorf("%w: %w", errNotConnected, a.err)
		}
		return a.v, a.err
	case <-p.s.dead:
		return v, zk.ErrSessionExpired
	case <-ctx.Done():
		return v, p.s.noAnswerError(ctx)
	}
}

// noAnswerError returns the error of a request without an answer at the end of its ctx.
func (s *session) noAnswerError(ctx context.Context) error {
	if !s.connected() {
		return s.c.notConnected(ctx)
	}
	return errNoAnswer
}

// stat is the state of a node.
type stat struct {
	data []byte
	zk.Stat
}

// create creates a node and returns its path.
func (s *session) create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	return lead(ctx, s, s.creation(path, data, flags))
}

func (s *session) creation(path string, data []byte, flags int32) func(*zk.Conn) (string, error) {
	return func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, s.c.acl) }
}

func (s *session) children(ctx context.Context, dir string) ([]string, error) {
	return call(ctx, s, childrenOf(dir))
}

func childrenOf(dir string) func(*zk.Conn) ([]string, error) {
	return func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(dir)
		return names, err
	}
}

func (s *session) get(ctx context.Context, path string) (stat, error) {
	return call(ctx, s, stateOf(path))
}

func stateOf(path string) func(*zk.Conn) (stat, error) {
	return func(c *zk.Conn) (stat, error) {
		data, st, err := c.Get(path)
		if err != nil {
			return stat{}, err
		}
		return stat{data, *st}, nil
	}
}

// delete deletes a node. Once the request is sent, it ends with its connection at the latest, and
// not with ctx.
func (s *session) delete(ctx context.Context, path string) error {
	if err := s.await(ctx); err != nil {
		return err
	}
	sent := driver.Now()
	err := s.conn.Delete(path, -1)
	s.noteConfirmation(sent, err)
	return err
}

func (s *session) set(ctx context.Context, path string, data []byte) error {
	_, err := lead(ctx, s, func(c *zk.Conn) (struct{}, error) {
		_, err := c.Set(path, data, -1)
		return struct{}{}, err
	})
	return err
}

// sync makes the server catch up with the leader.
func (s *session) sync(ctx context.Context, path string) error {
	_, err := lead(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	return err
}

// syncOnce is sync for callers that need it at about the same time. They share one request. No
// caller shares a request that was sent before.
func (s *session) syncOnce(ctx context.Context) error {
	_, err := s.synced.Do(ctx)
	if inDoubt(err) && ctx.Err() != nil {
		return s.noAnswerError(ctx)
	}
	return err
}

// getWatched is get. The listener at path hears of the next change, unless again is set: then an
// event was reported meanwhile, and the listener may miss the next event.
func (s *session) getWatched(ctx context.Context, path string) (st stat, again bool, err error) {
	again, err = s.watches.ask(target{path, false}, func() error {
		st, err = s.get(ctx, path)
		return err
	}, func() error {
		st, err = call(ctx, s, func(c *zk.Conn) (stat, error) {
			data, st, _, err := c.GetW(path)
			if err != nil {
				return stat{}, err
			}
			return stat{data, *st}, nil
		})
		return err
	})
	return st, again, err
}

// childrenWatched is to children what getWatched is to get.
func (s *session) childrenWatched(ctx context.Context, dir string) (names []string, again bool, err error) {
	again, err = s.watches.ask(target{dir, true}, func() error {
		names, err = s.children(ctx, dir)
		return err
	}, func() error {
		names, err = call(ctx, s, func(c *zk.Conn) ([]string, error) {
			names, _, _, err := c.ChildrenW(dir)
			return names, err
		})
		return err
	})
	return names, again, err
}

// pause waits for d, or until ctx ends or over is closed.
func pause(ctx context.Context, over <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-ctx.Done():
	}
}
