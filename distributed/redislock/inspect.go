package redislock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// [lease.Mutex.Inspect] needs one more key in Redis than Redisson has:
//
//	locks_client:<client>   the identity of a client's process; it expires after a minute or two
//	                        without use, or after twice the longest hold
//
// The holder's name in Redis begins with the client. So locks need no further request, and Redisson
// finds nothing new in its own keys.

// self is the part of a store that describes its client.
type self struct {
	client, identity string
	lost             func(driver.HoldID, error) // notifies package lease; nil for package redlock
	listens          atomic.Bool                // for forced unlocks
}

// Identify is part of [driver.Inspector].
func (s *self) Identify(client, identity string) { s.client, s.identity = client, identity }

// lookup is the method Lookup of a store.
type lookup func(context.Context, driver.Request) (driver.Reply, error)

// announce writes the identity of the client to Redis, and makes the client hear of forced unlocks.
func (s *self) announce(ctx context.Context, c *core, ask lookup, ttl time.Duration) error {
	if s.lost != nil && s.listens.CompareAndSwap(false, true) {
		if err := s.listen(ctx, c, ask); err != nil {
			s.listens.Store(false)
			return err
		}
	}
	return c.p.Set(ctx, clientKey(s.client), s.identity, ttl)
}

const clientPrefix = "locks_client:"

func clientKey(client string) string { return clientPrefix + client }

// inspect runs a script that describes a lock, and asks for the identities of its holders and
// waiters.
func (c *core) inspect(ctx context.Context, s *script, keys int, args ...any) (driver.State, error) {
	r, err := c.p.Eval(ctx, s, keys, append(make([]any, head), args...))
	if err != nil {
		return driver.State{}, err
	}
	state, err := stateOf(r)
	if err == nil {
		err = c.identify(ctx, state.Holders, state.Waiters)
	}
	return state, err
}

// stateOf reads the reply of hash_inspect.
func stateOf(r any) (s driver.State, err error) {
	list, ok := r.([]any)
	if !ok || len(list) != 5 {
		return s, replyError(r)
	}
	shared, ok1 := list[0].(int64)
	counter, ok2 := list[1].(string)
	holders, ok3 := list[2].([]any)
	waiters, ok4 := list[3].([]any)
	waiting, ok5 := list[4].(int64)
	if !(ok1 && ok2 && ok3 && ok4 && ok5) || len(holders)%2 != 0 {
		return s, replyError(r)
	}
	token, _ := strconv.ParseUint(counter, 10, 64) // anything else is no token
	s.Shared, s.Waiting = shared == 1, int(waiting)
	for pair := range slices.Chunk(holders, 2) {
		name, ok1 := pair[0].(string)
		ttl, ok2 := pair[1].(int64)
		if !ok1 || !ok2 {
			return s, replyError(r)
		}
		h := driver.Claim{Acquisition: strings.TrimSuffix(name, writerSuffix)}
		h.Token, h.Left = token, time.Duration(max(ttl, 0))*time.Millisecond
		s.Holders = append(s.Holders, h)
	}
	for _, w := range waiters {
		name, ok := w.(string)
		if !ok {
			return s, replyError(r)
		}
		s.Waiters = append(s.Waiters, driver.Claim{Acquisition: strings.TrimSuffix(name, writerSuffix)})
	}
	return s, nil
}

// identify adds the identities of clients to claims. Claims of other libraries come without an
// identity. A user without the permission to read identities finds none.
func (c *core) identify(ctx context.Context, all ...[]driver.Claim) error {
	texts := make(map[string]string) // by key
	each := func(f func(claim *driver.Claim, key string)) {
		for _, claims := range all {
			for i := range claims {
				if client, _, ok := strings.Cut(claims[i].Acquisition, ":"); ok && len(client) == 36 {
					f(&claims[i], clientKey(client))
				}
			}
		}
	}
	var keys []any
	each(func(_ *driver.Claim, key string) { texts[key] = "" })
	for key := range texts {
		keys = append(keys, key)
	}
	for _, keys := range bySlot(c, keys, func(key any) string { return key.(string) }) {
		r, err := c.p.Eval(ctx, identities, len(keys), append(make([]any, head), keys...))
		if errors.Is(err, driver.ErrRefused) {
			continue
		} else if err != nil {
			return err
		}
		list, ok := r.([]any)
		if !ok || len(list) != len(keys) {
			return replyError(r)
		}
		for i, key := range keys {
			texts[key.(string)], _ = list[i].(string)
		}
	}
	each(func(claim *driver.Claim, key string) { claim.Identity = texts[key] })
	return nil
}

func (s *single) Inspect(ctx context.Context, name string) (driver.State, error) {
	args := []any{s.key(name), addPrefix(s.list, name)}
	switch {
	case s.token != "":
		return s.c.inspect(ctx, s.inspect, 3, append(args, addPrefix(s.token, name))...)
	case s.readersKey != nil:
		args = append(args, s.readersKey(name))
	}
	state, err := s.c.inspect(ctx, s.inspect, 2, args...)
	if s.weighs {
		weigh(state.Holders)
		weigh(state.Waiters)
	}
	return state, err
}

func (s *single) Announce(ctx context.Context, ttl time.Duration) error {
	return s.announce(ctx, s.c, s.Lookup, ttl)
}

func (s *fair) Inspect(ctx context.Context, name string) (driver.State, error) {
	return s.c.inspect(ctx, hashInspect, 2, name, addPrefix("redisson_lock_queue", name))
}

func (s *fair) Announce(ctx context.Context, ttl time.Duration) error {
	return s.announce(ctx, s.c, s.Lookup, ttl)
}
