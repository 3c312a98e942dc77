package etcdlock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ReleaseTwice acquires the lock called name, releases it, and acquires it again with the same
// key. It then completes another release of the first acquisition, which had begun at the same
// time as the first release. It reports whether the keys were the same, and whether the second
// acquisition held the lock until its own release.
func ReleaseTwice(ctx context.Context, client *clientv3.Client, name string) (same, held bool, err error) {
	c := newCore(client)
	defer c.close(ctx)
	s := &store{c: c, kind: plain}
	if _, err = s.Acquire(ctx, name, "first", time.Minute); err != nil {
		return false, false, err
	}
	x := c.find("first")
	if _, err = s.Release(ctx, name, "first"); err != nil {
		return false, false, err
	}
	if _, err = s.Acquire(ctx, name, "second", time.Minute); err != nil {
		return false, false, err
	}
	same = c.find("second").key == x.key
	if _, err = c.giveBack(ctx, x); err != nil {
		return same, false, err
	}
	r, err := s.Release(ctx, name, "second")
	return same, r.Held, err
}
