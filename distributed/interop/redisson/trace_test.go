package redisson

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/redisson"
)

// listen returns all messages so far of channels that have name in theirs.
func listen(t *testing.T, c *redis.Client, name string) (heard func() []string) {
	ps := c.PSubscribe(background, "*"+name+"*")
	_, err := ps.Receive(background)
	require.NoError(t, err)
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	wg.Go(func() {
		for m := range ps.Channel() {
			mu.Lock()
			all = append(all, m.Channel+" "+m.Payload)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		ps.Close()
		wg.Wait()
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// play plays trace with the lock called name. cast says of each party that does not say so by its
// name whether it is Redisson.
func (s *stage) play(t *testing.T, trace redisson.Trace, cast map[string]bool, name string) {
	trace.Play(t, redisson.Stage{
		Name: name,
		Do: func(args ...any) any {
			r, err := s.direct.Do(background, args...).Result()
			if err != redis.Nil {
				require.NoError(t, err)
			}
			return r
		},
		Heard: listen(t, s.direct, name),
		// A message 1 wakes the sleeping threads of Redisson, but not a thread that is about to
		// sleep.
		Asleep: func(party string) bool {
			return !cast[party] && party[0] != 'J' || s.java.asleep(t, name+party)
		},
		Join: func(party string) redisson.Party {
			if cast[party] || party[0] == 'J' {
				return func(op, kind, name string) string {
					switch op {
					case "lock":
						return <-s.java.start(name+party, op, kind, name, -1)
					case "try":
						return <-s.java.start(name+party, op, kind, name, 0, -1)
					}
					return <-s.java.start(name+party, op, kind, name)
				}
			}
			c := s.open(t, long)
			return redisson.Ours(func(kind, name string) locks.TryLocker { return lockOf(c, kind, name) })
		},
	})
}

// casts returns all ways to make each party Redisson or ours, except parties whose names say which
// they are.
func casts(parties []string) []map[string]bool {
	all := []map[string]bool{{}}
	for _, party := range parties {
		if party[0] == 'J' || party[0] == 'G' {
			continue
		}
		for _, cast := range all {
			more := maps.Clone(cast)
			more[party] = true
			all = append(all, more)
		}
	}
	return all
}

// traces has every trace played with every distribution of the parts.
func traces(t *testing.T, s *stage) {
	for _, trace := range redisson.Traces {
		for _, cast := range casts(trace.Parties()) {
			ours, theirs := "", ""
			for _, party := range trace.Parties() {
				if cast[party] || party[0] == 'J' {
					theirs += party
				} else {
					ours += party
				}
			}
			t.Run(fmt.Sprintf("%s, Go %s, Java %s", trace.Name, ours, theirs), func(t *testing.T) {
				t.Parallel() // most of it is waiting for the end of a subscription of ours
				s.play(t, trace, cast, fresh())
			})
		}
	}
}

// command is a line of MONITOR.
var (
	command = regexp.MustCompile(`\[\d+ lua\] "(\w+)" "((?:[^"\\]|\\.)*)"`)
	uuid    = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+`)
)

// scriptsWriteTheSameKeys compares what the scripts of either side write to when they play all
// the parts of a trace.
func scriptsWriteTheSameKeys(t *testing.T, s *stage) {
	t.Parallel()
	writes := []string{"set", "getset", "incr", "hset", "hsetnx", "hincrby", "hdel", "del", "pexpire", "publish",
		"rpush", "lpush", "lpop", "lrem", "zadd", "zincrby", "zrem", "persist"}
	reads := []string{"exists", "hexists", "get", "hget", "hmget", "hkeys", "hlen", "hgetall", "pttl", "lindex",
		"lpos", "lrange", "zrange", "zscore", "time", "pubsub", "hscan", "llen"}
	for _, trace := range redisson.Traces {
		parties := trace.Parties()
		if slices.ContainsFunc(parties, func(p string) bool { return p[0] == 'J' || p[0] == 'G' }) {
			continue
		}
		all := make(map[string]bool)
		for _, p := range parties {
			all[p] = true
		}
		var written [2][]string
		for i, cast := range []map[string]bool{{}, all} {
			conn, err := net.Dial("tcp", s.addr)
			require.NoError(t, err)
			_, err = conn.Write([]byte("MONITOR\r\n"))
			require.NoError(t, err)
			lines := bufio.NewScanner(conn)
			require.True(t, lines.Scan())
			name := fresh()
			s.play(t, trace, cast, name)
			end := fresh()
			s.direct.Echo(background, end)
			keys := make(map[string]bool)
			for lines.Scan() && !strings.Contains(lines.Text(), end) {
				c := command.FindStringSubmatch(lines.Text())
				if c == nil || !strings.Contains(lines.Text(), name) { // others play beside it
					continue
				}
				op := strings.ToLower(c[1])
				require.True(t, slices.Contains(writes, op) || slices.Contains(reads, op), lines.Text())
				own := strings.HasPrefix(c[2], "redisson_unlock_latch:{") || strings.HasPrefix(c[2],
					"locks_") // of one side
				if slices.Contains(writes, op) && !own {
					keys[regexp.MustCompile(`it\d+`).ReplaceAllString(uuid.ReplaceAllString(c[2], "OWNER"),
						"it")] = true
				}
			}
			conn.Close()
			written[i] = slices.Sorted(maps.Keys(keys))
		}
		require.Equal(t, written[1], written[0], trace.Name)
		require.NotEmpty(t, written[0])
	}
}
