// Package listing finds the locks of package redislock by the keys that they leave on their
// servers.
package listing

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// Query says which locks [Names] finds.
type Query struct {
	// Prefix is the text with which the keys begin. The names lack it.
	Prefix string
	// Pattern is a pattern of [path.Match] for the names. The empty pattern matches all.
	Pattern string
	// Simple finds locks that are strings, in place of locks that are hashes. They need a Prefix:
	// without one, each string that expires would be a lock.
	Simple bool
}

// Names returns the names of the held locks, sorted. It reads the keys of each server, step by
// step.
func Names(ctx context.Context, p redisport.Port, q Query) (names []string, err error) {
	if _, err := path.Match(q.Pattern, ""); err != nil {
		return nil, err
	}
	if q.Simple && q.Prefix == "" {
		return nil, fmt.Errorf("%w: without a prefix, a simple lock looks like any string", errors.ErrUnsupported)
	}
	var mu sync.Mutex
	err = p.Servers(ctx, func(ctx context.Context, s redisport.Server) error {
		found, err := q.on(ctx, s)
		mu.Lock()
		defer mu.Unlock()
		names = append(names, found...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// step is how many keys a server looks at for one request.
const step = 500

// on returns the names of the locks on one server.
func (q Query) on(ctx context.Context, s redisport.Server) (names []string, err error) {
	kind := "hash"
	if q.Simple {
		kind = "string"
	}
	for cursor := "0"; ; {
		if ctx.Err() != nil { // not every client heeds it
			return nil, adapter.Ended(ctx)
		}
		replies, err := s.Read(ctx, []any{"SCAN", cursor, "MATCH", q.glob(), "COUNT", step, "TYPE", kind})
		if err != nil {
			return nil, err
		}
		var keys []string
		if cursor, keys, err = parseScan(replies[0]); err != nil {
			return nil, err
		}
		keys = slices.DeleteFunc(keys, func(key string) bool {
			name, ok := strings.CutPrefix(key, q.Prefix)
			matched, _ := path.Match(q.Pattern, name)
			return !ok || !matched && q.Pattern != ""
		})
		if keys, err = q.locks(ctx, s, keys); err != nil {
			return nil, err
		}
		for _, key := range keys {
			names = append(names, strings.TrimPrefix(key, q.Prefix))
		}
		if cursor == "0" {
			return names, nil
		}
	}
}

// parseScan reads the reply of SCAN.
func parseScan(reply any) (cursor string, keys []string, err error) {
	if err, ok := reply.(error); ok {
		return "", nil, err
	}
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return "", nil, fmt.Errorf("unexpected reply %T to SCAN", reply)
	}
	cursor, ok = pair[0].(string)
	list, isList := pair[1].([]any)
	if !ok || !isList {
		return "", nil, fmt.Errorf("unexpected reply %T, %T to SCAN", pair[0], pair[1])
	}
	for _, key := range list {
		if text, ok := key.(string); ok {
			keys = append(keys, text)
		}
	}
	return cursor, keys, nil
}

// glob returns a pattern of Redis for the keys. They begin with the prefix, and with the characters
// of the pattern before the first character with another meaning.
func (q Query) glob() string {
	begin := q.Pattern
	if i := strings.IndexAny(begin, `*?[\`); i >= 0 {
		begin = begin[:i]
	}
	return escaper.Replace(q.Prefix+begin) + "*"
}

// escaper makes a text stand for itself in a pattern of Redis.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// holder is the only field of the hash that is a lock: a UUID, and the number of a thread or of an
// acquisition.
var holder = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)

// locks returns the keys that look like locks: they have a time to live, and, but for simple locks,
// one field. A hash with more fields may be large, so its fields are not read. A key that has
// another type by now has an error for its reply.
func (q Query) locks(ctx context.Context, s redisport.Server, keys []string) ([]string, error) {
	times, err := read(ctx, s, "PTTL", keys)
	if err != nil {
		return nil, err
	}
	keys = selectKeys(keys, times, func(reply any) bool { left, ok := reply.(int64); return ok && left > 0 })
	if q.Simple {
		return keys, nil
	}
	sizes, err := read(ctx, s, "HLEN", keys)
	if err != nil {
		return nil, err
	}
	keys = selectKeys(keys, sizes, func(reply any) bool { return reply == int64(1) })
	fields, err := read(ctx, s, "HKEYS", keys)
	if err != nil {
		return nil, err
	}
	return selectKeys(keys, fields, func(reply any) bool {
		list, ok := reply.([]any)
		if !ok || len(list) != 1 {
			return false
		}
		field, ok := list[0].(string)
		return ok && holder.MatchString(field)
	}), nil
}

// read sends a command for each of keys.
func read(ctx context.Context, s redisport.Server, command string, keys []string) ([]any, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	requests := make([][]any, len(keys))
	for i, key := range keys {
		requests[i] = []any{command, key}
	}
	return s.Read(ctx, requests...)
}

// selectKeys returns the keys whose reply is right.
func selectKeys(keys []string, replies []any, right func(reply any) bool) (found []string) {
	for i, key := range keys {
		if right(replies[i]) {
			found = append(found, key)
		}
	}
	return found
}
