package redislock

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
)

// Gate guards values on a Redis server against holders that have lost their lock and do not know it
// yet. A write carries the token of its hold. The Gate refuses the write if the Gate has seen a
// higher token. The check and the write are one script. See package fence for the reasons, and for
// values elsewhere.
//
// The highest token seen for a key is a string named locks_fence:{key}, which never expires. The
// tokens for one key must come from one lock, such as a [Client.FencedMutex], which may be on
// another server. Writes without a Gate are not refused. Readers need no Gate.
//
// A Gate is safe for concurrent use, and need not be closed. An operation costs one round trip.
type Gate struct{ p port }

// NewGate returns a Gate for values on the server or cluster that client is connected to. A
// [redis.Ring] is refused.
func NewGate(client redis.UniversalClient) (*Gate, error) {
	p, err := goredis.New(client)
	if err != nil {
		return nil, fmt.Errorf("redislock: %w", err)
	}
	return &Gate{p}, nil
}

// Set writes value under key, and replaces the old value. If a higher token than token was seen for
// key, Set writes nothing, and the error matches [fence.ErrStale]. With the token 0 it matches
// [fence.ErrNoToken]. Without an answer, it is unknown whether the value was written. The call may
// be repeated.
func (g *Gate) Set(ctx context.Context, key string, token uint64, value string) error {
	return g.admit(ctx, "Set", key, token, value)
}

// Check notes token as the highest token seen for key, without a write. If a higher token was seen,
// the error matches [fence.ErrStale]. After Check no earlier holder can write.
func (g *Gate) Check(ctx context.Context, key string, token uint64) error {
	return g.admit(ctx, "Check", key, token)
}

func (g *Gate) admit(ctx context.Context, op, key string, token uint64, value ...any) error {
	if err := g.check(ctx, op, key); err != nil {
		return err
	}
	if token == 0 {
		return gateError(op, key, fence.ErrNoToken)
	}
	args := append(newArgs(key, addPrefix("locks_fence", key), strconv.FormatUint(token, 10)), value...)
	seen, err := g.p.Eval(ctx, gateAdmit, 2, args)
	switch {
	case err != nil:
		return gateError(op, key, adapter.OfStore(ctx, err))
	case seen != nil:
		return gateError(op, key, fmt.Errorf("token %d after %v: %w", token, seen, fence.ErrStale))
	}
	return nil
}

func (g *Gate) check(ctx context.Context, op, key string) error {
	if ctx == nil {
		return gateError(op, key, locks.ErrNilContext)
	}
	if err := checkName(key, g.p.Cluster()); err != nil {
		return gateError(op, key[:min(len(key), 64)], err)
	}
	return nil
}

// gateError returns err with the operation that was attempted at a Gate.
func gateError(op, key string, err error) error {
	return fmt.Errorf("redislock: Gate.%s of %q: %w", op, key, err)
}
