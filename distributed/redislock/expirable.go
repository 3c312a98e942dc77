package redislock

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// The state of Redisson's RPermitExpirableSemaphore is, for the name n,
//
//	n               a string: how many permits are free
//	{n}:timeout     a sorted set: for each permit that is held an id of 16 bytes, with the end of
//	                its lease in ms since 1970
//	redisson_sc:{n} the channel; a message is how many permits are free
//
// Scripts that count permits first give back the permits whose time is over.
//
// Redisson takes random ids. An id of our acquisitions is the first 12 bytes of the SHA-256 of its
// name, and the number of the permit, from 0. So a script finds all permits of an acquisition.
// Their leases end at the same time. Redisson may collect only some of the lapsed permits, in the
// order of their bytes. So an acquisition has all its permits as long as it has the first permit.

const (
	freeChannel = "redisson_sc"
	endsSuffix  = "timeout"
)

// maxIDs is how many permits an acquisition may have. An acquisition of Redisson collects the same
// number of lapsed permits at a time. Other scripts of Redisson, such as availablePermits, collect
// all lapsed permits at once, and fail if these are more than about 8000. They work again after the
// next acquisition.
const maxIDs = 4000

// expirable is the [driver.Store] of these semaphores.
type expirable struct{ c *core }

var _ driver.Store = expirable{}

// baseOf returns the common beginning of the ids of an acquisition.
func baseOf(acquisition string) string {
	sum := sha256.Sum256([]byte(acquisition))
	return string(sum[:12])
}

func (s expirable) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	permits, _ := req.Weigh()
	if permits > maxIDs {
		err := fmt.Errorf("%d permits at once, at most %d are allowed", permits, maxIDs)
		return driver.Reply{}, redisport.Never(err)
	}
	return replyOf(s.c.count(ctx, expirableAcquire, true, req.Name, millis(req.TTL), baseOf(req.Acquisition), permits))
}

func (s expirable) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return s.c.lookup(ctx, req, expirableLookup, []any{addSuffix(req.Name, endsSuffix)}, baseOf(req.Acquisition))
}

func (s expirable) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	holds = slices.Clone(holds)
	for i, h := range holds {
		holds[i].Acquisition = baseOf(h.Acquisition)
	}
	ends := func(name string) string { return addSuffix(name, endsSuffix) }
	return s.c.renew(ctx, expirableRenew, holds, d, "", ends, nil)
}

func (s expirable) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	r, err := s.c.count(ctx, expirableRelease, true, id.Name, baseOf(id.Acquisition))
	return driver.Released{Held: r == int64(1), Awaited: true}, err
}

func (s expirable) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return s.c.watchFree(ctx, id.Name)
}

// watchFree returns a watch that each message on the channel of a semaphore of Redisson notifies.
func (c *core) watchFree(ctx context.Context, name string) (*watch, error) {
	w := newWatch(hearAll)
	channels := []string{addPrefix(freeChannel, name)}
	if !c.p.Cluster() {
		channels = append(channels, c.own)
	}
	if err := c.attach(ctx, w, channels...); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// count runs a script of a semaphore of Redisson, with the keys of its free permits, of its ends
// if leased, and of its channel.
func (c *core) count(ctx context.Context, s *script, leased bool, name string, args ...any) (any, error) {
	m, err := c.mode(ctx)
	if err != nil {
		return nil, err
	}
	all := append(make([]any, head, head+8), name)
	if leased {
		all = append(all, addSuffix(name, endsSuffix))
	}
	all = append(all, addPrefix(freeChannel, name))
	keys := len(all) - head
	return c.p.Eval(ctx, s, keys, m.publish(append(all, args...)))
}

// number runs a script like count, for op. The reply is a number.
func (c *core) number(
	ctx context.Context, op string, s *script, leased bool, name string, args ...any) (n int64, err error) {
	if err = adapter.Check(ctx); err == nil {
		err = checkName(name, c.p.Cluster())
	}
	var r any
	if err == nil {
		r, err = c.count(ctx, s, leased, name, args...)
	}
	n, ok := r.(int64)
	switch {
	case err == nil && !ok:
		err = replyError(r)
	case err != nil && ctx != nil && ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", adapter.Ended(ctx), err)
	}
	if err != nil {
		return 0, semaphoreError(op, name, adapter.OfStore(ctx, err))
	}
	return n, nil
}

// maxNumber is the largest number of permits in Redisson, whose numbers have 32 bits.
const maxNumber = math.MaxInt32

// setSize runs a script like number, with a number of permits from low to maxNumber.
func (c *core) setSize(
	ctx context.Context, op string, s *script, leased bool, name string, low, n int64) (int64, error) {
	if n < low || n > maxNumber {
		err := fmt.Errorf("%d permits, it must be from %d to %d", n, low, maxNumber)
		return 0, semaphoreError(op, name, driver.Mark(err, fs.ErrInvalid))
	}
	return c.number(ctx, op, s, leased, name, n)
}

// semaphoreError returns the error of op on a semaphore of Redisson.
func semaphoreError(op, name string, err error) error {
	return fmt.Errorf("redislock: %s %.255q: %w", op, name, err)
}

// RedissonExpirableSemaphore is Redisson's RPermitExpirableSemaphore: processes in Go and in Java
// share its permits. The permits are in Redis. There are none before the first call of
// TrySetPermits or AddPermits. An acquisition of more permits than are free waits for more.
//
// Permits here are renewed as long as they are held. Redisson itself never renews. Our permits
// lapse by the clock of the server, and their holders are told of the loss before. Redisson frees
// lapsed permits by the clock of its own process. If Redisson's clock is ahead, others can have a
// permit before its holder knows of the loss. If Redisson's clock is ahead by two thirds of
// [WithTTL], Redisson frees permits that are renewed. Keep the clocks of all processes and of the
// server together.
//
// Never use two of these semaphores with the names q and {q}: they would share the set of held
// permits. If more than about 8000 permits lapse together, calls such as availablePermits fail in
// Java until a client acquires.
//
// Waiters are served in no order, and holds come without a token. After a release, each process
// with a waiter asks. An acquisition of n permits costs the server time in proportion to n, which
// is 4000 at most. The semaphore lacks Inspect, and ignores redlock.WithReplicas.
type RedissonExpirableSemaphore struct {
	s *lease.Semaphore
	c *core
}

var _ locks.Semaphore = (*RedissonExpirableSemaphore)(nil)

// RedissonExpirableSemaphore returns Redisson's RPermitExpirableSemaphore called name. Use
// [Client.Semaphore] instead if all processes are in Go.
func (c *Client) RedissonExpirableSemaphore(name string) *RedissonExpirableSemaphore {
	lc, opts := c.lockOptions(expiring, name, nil)
	return &RedissonExpirableSemaphore{lc.Semaphore(name, math.MaxInt64, opts...), c.core}
}

// Name returns the name of the semaphore.
func (s *RedissonExpirableSemaphore) Name() string { return s.s.Name() }

// AcquireContext acquires n permits, and waits for them until ctx ends. See
// [lease.Semaphore.AcquireContext].
func (s *RedissonExpirableSemaphore) AcquireContext(ctx context.Context, n int64) (locks.Permits, error) {
	return s.s.AcquireContext(ctx, n)
}

// TryAcquireContext acquires n permits if they are free. It waits for the server's answer until
// ctx ends.
func (s *RedissonExpirableSemaphore) TryAcquireContext(
	ctx context.Context, n int64,
) (p locks.Permits, ok bool, err error) {
	return s.s.TryAcquireContext(ctx, n)
}

// TrySetPermits makes the semaphore with n permits if the semaphore does not exist, and reports
// whether it has made it. The call is one request, which is not repeated: after an error without an
// answer the outcome is unknown. Redisson's numbers have 32 bits: less than 0 or more than 2^31-1
// is an error matching [fs.ErrInvalid].
func (s *RedissonExpirableSemaphore) TrySetPermits(ctx context.Context, n int64) (bool, error) {
	did, err := s.c.setSize(ctx, "TrySetPermits", semaphoreInit, false, s.Name(), 0, n)
	return did == 1, err
}

// AddPermits adds n permits, or takes them away if n is negative. The number of free permits may
// become negative until permits are released. The call is one request like TrySetPermits. A number
// of more than 31 bits is an error matching [fs.ErrInvalid].
func (s *RedissonExpirableSemaphore) AddPermits(ctx context.Context, n int64) error {
	_, err := s.c.setSize(ctx, "AddPermits", semaphoreAdd, false, s.Name(), -maxNumber, n)
	return err
}

// SetPermits sets how many permits there are, free and held. It refuses the numbers that
// TrySetPermits refuses.
func (s *RedissonExpirableSemaphore) SetPermits(ctx context.Context, n int64) error {
	_, err := s.c.setSize(ctx, "SetPermits", semaphoreResize, true, s.Name(), 0, n)
	return err
}

// AvailablePermits returns how many permits are free.
func (s *RedissonExpirableSemaphore) AvailablePermits(ctx context.Context) (int64, error) {
	return s.c.number(ctx, "AvailablePermits", expirableFree, true, s.Name())
}
