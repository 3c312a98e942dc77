package redislock

import "context"

// force runs a script that frees the lock.
func (c *core) force(ctx context.Context, s *script, name, channel, beside string, payload any) (bool, error) {
	m, err := c.mode(ctx)
	if err != nil {
		return false, err
	}
	args := []any{head - 1: nil, name, channel, beside, "", payload}
	r, err := c.p.Eval(ctx, s, 3, m.publish(args))
	return r == int64(1), err
}
