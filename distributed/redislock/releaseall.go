package redislock

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

var (
	_ driver.BatchReleaser = (*single)(nil)
	_ driver.BatchReleaser = (*fair)(nil)
	_ driver.BatchReleaser = expirable{}
)

// ReleaseAll releases the holds by one script for each slot.
func (s *single) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	return s.c.releaseAll(ctx, s.release, ids, func(m mode, id driver.HoldID) (keys, args []any) {
		n := s.names(id.Name)
		keys = []any{n.key, n.channel, n.list}
		if s.readersKey != nil {
			keys = append(keys, n.readersKey)
		}
		if s.readKey != nil {
			keys = append(keys, s.readKey(id.Name, id.Acquisition))
		}
		return keys, m.publish([]any{id.Acquisition + s.entrySuffix, s.c.counts()})
	})
}

// ReleaseAll releases the holds by one script for each slot.
func (s *fair) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	return s.c.releaseAll(ctx, fairRelease, ids, func(m mode, id driver.HoldID) (keys, args []any) {
		n := s.names(id.Name)
		return []any{n.name, n.list, n.times}, m.publish([]any{id.Acquisition, n.channel, s.c.counts()})
	})
}

// ReleaseAll gives the permits back by one script for each slot.
func (s expirable) ReleaseAll(ctx context.Context, ids []driver.HoldID) ([]bool, error) {
	return s.c.releaseAll(ctx, expirableRelease, ids, func(m mode, id driver.HoldID) (keys, args []any) {
		keys = []any{id.Name, addSuffix(id.Name, endsSuffix), addPrefix(freeChannel, id.Name)}
		return keys, m.publish([]any{baseOf(id.Acquisition)})
	})
}

// releaseAll runs release for all ids. request returns the keys and the arguments of each, whose
// numbers are the same for all. In a cluster there is a request for each slot, because all keys of
// a request must be in one slot.
func (c *core) releaseAll(ctx context.Context, release *script, ids []driver.HoldID,
	request func(mode, driver.HoldID) (keys, args []any)) ([]bool, error) {
	done := make([]bool, len(ids))
	m, err := c.mode(ctx)
	if err != nil {
		return done, err
	}
	batched := each(release)
	some := func(which []int) error {
		var keys, args []any
		for _, i := range which {
			k, a := request(m, ids[i])
			keys, args = append(keys, k...), append(args, a...)
		}
		request := append(make([]any, head, head+len(keys)+1+len(args)), keys...)
		request = append(append(request, len(which)), args...)
		r, err := c.p.Eval(ctx, batched, len(keys), request)
		if err != nil {
			return err
		}
		replies, ok := r.([]any)
		if !ok || len(replies) != len(which) {
			return replyError(r)
		}
		for k, i := range which {
			var refused error
			if failed, ok := replies[k].(string); ok && failed != "" {
				refused = redisport.Refused(failed, true, errors.New(failed))
			}
			if done[i] = refused == nil || errors.Is(refused, locks.ErrForeign); !done[i] {
				err = refused
			}
		}
		return err
	}
	return done, c.eachSlot(ids, func(which []int) error {
		err := some(which)
		if err == nil || len(which) == 1 || !errors.Is(err, redisport.ErrCluster) {
			return err
		}
		// A client of one server does not know that this server is part of a cluster.
		err = nil
		for _, i := range which {
			if failed := some([]int{i}); failed != nil {
				err = failed
			}
		}
		return err
	})
}

// eachOf has scripts, each of which runs another script many times.
var eachOf sync.Map // of *script to *script

// each returns a script that runs s for a number of requests, which is its first argument. The keys
// and the arguments of all requests follow each other. The reply is a list with an empty string or
// an error for each request. One lock of another type must not keep the others held.
func each(s *script) *script {
	if all, ok := eachOf.Load(s); ok {
		return all.(*script)
	}
	src := strings.Replace(eachSource, "SCRIPT", s.Src, 1)
	all, _ := eachOf.LoadOrStore(s, redisport.NewScript(src))
	return all.(*script)
}

const eachSource = `local function one(KEYS, ARGV)
SCRIPT
end
local n, replies = tonumber(ARGV[1]), {}
local keys, args = #KEYS / n, (#ARGV - 1) / n
for i = 0, n - 1 do
	local k, a = {}, {}
	for j = 1, keys do
		k[j] = KEYS[i * keys + j]
	end
	for j = 1, args do
		a[j] = ARGV[1 + i * args + j]
	end
	local ok, err = pcall(one, k, a)
	if type(err) == 'table' then
		err = err.err or 'failed'
	end
	replies[i + 1] = ok and '' or tostring(err)
end
return replies
`
