package redislock

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
)

// Gate guards values on a Redis server against holders that do not know yet that they have lost
// their lock: a write carries the token of its hold, and is refused if a higher one was seen. The
// check and the write are one script. See package fence for what that is good for, and for values
// elsewhere.
//
// The highest token seen for a key is a string beside it, named locks_fence:{key}, that never
// expires. The tokens for one key have to come from one lock, such as [Client.FencedMutex], which
// need not be on the same server. Whoever writes without a Gate is not refused, and readers need
// none.
//
// It is safe for concurrent use, has nothing to close, and costs one round trip an operation.
type Gate struct{ p port }

// NewGate returns a Gate for what is on the server, or the cluster, that client has. A
// [redis.Ring] is refused.
func NewGate(client redis.UniversalClient) (*Gate, error) {
	p, err := newGoRedis(client)
	if err != nil {
		return nil, err
	}
	return &Gate{p}, nil
}

// Set writes value under key, whatever was there, unless a higher token than token was seen for
// it: the error matches [fence.ErrStale] then, and nothing is done. With the token 0 it matches
// [fence.ErrNoToken]. If there is no answer, the value may have been written or not; the same
// call may be made again.
func (g *Gate) Set(ctx context.Context, key string, token uint64, value string) error {
	return g.admit(ctx, "Set", key, token, value)
}

// Check notes token as the highest one seen for key, or returns an error matching
// [fence.ErrStale]. Nothing is written. It is for a new holder that wants to be sure that none
// before it writes from then on.
func (g *Gate) Check(ctx context.Context, key string, token uint64) error {
	return g.admit(ctx, "Check", key, token)
}

func (g *Gate) admit(ctx context.Context, op, key string, token uint64, value ...any) error {
	if err := g.check(ctx, op, key); err != nil {
		return err
	}
	if token == 0 {
		return fmt.Errorf("redislock: Gate.%s of %q: %w", op, key, fence.ErrNoToken)
	}
	args := append([]any{head - 1: nil, key, prefixed("locks_fence", key), strconv.FormatUint(token, 10)}, value...)
	seen, err := g.p.Eval(ctx, gateAdmit, 2, args)
	switch {
	case err != nil:
		return fmt.Errorf("redislock: Gate.%s of %q: %w", op, key, err)
	case seen != nil:
		return fmt.Errorf("redislock: Gate.%s of %q with token %d after %v: %w", op, key, token, seen, fence.ErrStale)
	}
	return nil
}

// Highest returns the highest token seen for key, 0 if none was.
func (g *Gate) Highest(ctx context.Context, key string) (uint64, error) {
	if err := g.check(ctx, "Highest", key); err != nil {
		return 0, err
	}
	seen, err := g.p.Eval(ctx, gateHighest, 1, []any{head - 1: nil, prefixed("locks_fence", key)})
	if err != nil || seen == nil {
		if err != nil {
			err = fmt.Errorf("redislock: Gate.Highest of %q: %w", key, err)
		}
		return 0, err
	}
	text, ok := seen.(string)
	if !ok {
		return 0, unexpected(seen)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("redislock: Gate.Highest of %q: %w: %w", key, locks.ErrForeign, err)
	}
	return n, nil
}

func (g *Gate) check(ctx context.Context, op, key string) error {
	if ctx == nil {
		return fmt.Errorf("redislock: Gate.%s of %q: %w", op, key, locks.ErrNilContext)
	}
	return checkName(key, g.p.Cluster())
}
