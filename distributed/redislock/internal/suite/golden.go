package suite

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/redisson"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// Listen returns all messages so far of channels that have word in their names.
func Listen(t *testing.T, c *redis.Client, word string) (heard func() []string) {
	ps := c.PSubscribe(Background, "*"+word+"*")
	_, err := ps.Receive(Background)
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

// LocksLeaveInRedisWhatRedissonDoes plays what the real Redisson was found to leave, in the
// module distributed/interop/redisson.
func LocksLeaveInRedisWhatRedissonDoes(t *testing.T, on Driver) {
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for i, trace := range redisson.Traces {
			if slices.ContainsFunc(trace.Parties(), func(name string) bool { return strings.HasPrefix(name, "J") }) {
				continue // Redisson itself plays a part
			}
			name := fmt.Sprintf("it%03d", i)
			t.Run(trace.Name, func(t *testing.T) {
				t.Parallel() // most of it is waiting for the end of a subscription
				trace.Play(t, redisson.Stage{
					Name: name,
					Do: func(args ...any) any {
						r, err := direct.Do(Background, args...).Result()
						if err != redis.Nil {
							require.NoError(t, err)
						}
						return r
					},
					Heard: Listen(t, direct, name),
					Join: func(string) redisson.Party {
						c := on.Open(t, addr, Term(lease.DefaultLease), redislock.WithFairWait(5*time.Minute))
						return redisson.Ours(func(kind, name string) locks.TryLocker { return lockOf(c, kind, name) })
					},
				})
			})
		}
	})
}

func lockOf(c *redislock.Client, kind, name string) locks.TryLocker {
	switch kind {
	case "plain":
		return c.Mutex(name)
	case "fair":
		return c.FairMutex(name)
	case "fenced":
		return c.FencedMutex(name)
	case "read":
		return c.RWMutex(name).ReadLocker()
	case "write":
		return c.RWMutex(name).WriteLocker()
	}
	panic(kind)
}
