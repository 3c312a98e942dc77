package redisson

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

var background = context.Background()

// stage is a server with a Java process.
type stage struct {
	version string
	addr    string
	direct  *redis.Client
	java    *agent
}

var stages atomic.Int64

// fresh returns what no other test has, for names of locks and of threads.
func fresh() string { return fmt.Sprintf("it%03d", stages.Add(1)) }

// startRedis runs redis-server until the test ends.
func startRedis(tb testing.TB, args ...string) (addr string, direct *redis.Client) {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port := testbed.Port(tb)
	dir := tb.TempDir()
	testbed.Start(tb, exec.Command(path, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"),
	}, args...)...))
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	direct = connect(tb, addr)
	require.Eventually(tb, func() bool { return direct.Ping(background).Err() == nil }, patience, 5*time.Millisecond)
	return addr, direct
}

func connect(tb testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: addr, DialTimeout: patience, ReadTimeout: patience, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	tb.Cleanup(func() { c.Close() })
	return c
}

// open returns a client of our locks that relies on being told, because it hardly ever asks by
// itself.
func open(tb testing.TB, conn redis.UniversalClient, term time.Duration, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	c, err := redislock.New(conn, append([]redislock.Option{
		redislock.WithTTL(term), redislock.WithLeaseOptions(lease.WithPoll(time.Minute), adaptertest.Patient),
		redislock.WithFairWait(5 * time.Minute),
	}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, c) })
	return c
}

func (s *stage) open(tb testing.TB, term time.Duration, opts ...redislock.Option) *redislock.Client {
	return open(tb, connect(tb, s.addr), term, opts...)
}

// long is a lease that no test waits for.
const long = 30 * time.Second

func lockOf(c *redislock.Client, kind, name string) *lease.Mutex {
	switch kind {
	case "plain":
		return c.Mutex(name)
	case "fair":
		return c.FairMutex(name)
	case "fenced":
		return c.FencedMutex(name)
	case "read":
		return c.RWMutex(name).ReadMutex()
	case "write":
		return c.RWMutex(name).WriteMutex()
	}
	panic(kind)
}

func someone() context.Context { return locks.WithOwner(background, locks.NewOwner()) }

// start acquires l, and reports the outcome.
func start(l locks.Locker, ctx context.Context) <-chan error {
	c := make(chan error, 1)
	go func() { c <- l.LockContext(ctx) }()
	return c
}

func hold(tb testing.TB, l *lease.Mutex, ctx context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, soon(tb, start(l, ctx)))
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

func try(tb testing.TB, l locks.TryLocker, ctx context.Context) bool {
	tb.Helper()
	ok, err := l.TryLockContext(ctx)
	require.NoError(tb, err)
	return ok
}

// awaited waits until n channels of Redisson's for the lock called name have a subscriber.
func awaited(tb testing.TB, direct *redis.Client, name string, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		return len(direct.PubSubChannels(background,
			"redisson_*"+name+"*").Val()) == n
	},
		patience, time.Millisecond)
}

// situation is one test with both sides.
type situation struct {
	name string
	f    func(t *testing.T, s *stage)
}

// perform runs situations with a version of Redisson. They share a server and a Java process. Those
// that wait for the ends of leases run at the same time, after the others.
func perform(t *testing.T, version string, situations []situation) {
	addr, direct := startRedis(t)
	s := &stage{version, addr, direct, startAgent(t, version, "single", addr, long)}
	t.Cleanup(func() { // when the last of them has ended
		assert.Eventually(t, func() bool {
			for _, key := range direct.Keys(background, "*").Val() {
				if !strings.HasPrefix(key, "redisson_lock_token:") && !strings.HasPrefix(key, "locks_client:") {
					return false
				}
			}
			return true
		}, patience, 10*time.Millisecond, "something is left besides tokens and what clients tell of themselves")
	})
	for _, each := range situations {
		t.Run(strings.ReplaceAll(each.name, " ", "_"), func(t *testing.T) { each.f(t, s) })
	}
}
