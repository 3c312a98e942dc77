package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncgoredis "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/onrueidis"
	"github.com/jucgo/locks/internal/test/testbed"
)

// startRedis returns the address of a redis-server that runs until the test ends.
func startRedis(tb testing.TB) string {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port := strconv.Itoa(testbed.Port(tb))
	testbed.Start(tb, exec.Command(path, "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", tb.TempDir()))
	addr := "127.0.0.1:" + port
	c := connectRedis(tb, addr)
	await(tb, "redis-server", func(ctx context.Context) error { return c.Ping(ctx).Err() })
	return addr
}

// connectRedis returns a client that is closed with the test.
func connectRedis(tb testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	tb.Cleanup(func() { c.Close() })
	return c
}

// openRedis returns a client of ours with connections of its own.
func openRedis(tb testing.TB, addr string, opts ...lease.Option) *redislock.Client {
	tb.Helper()
	c, err := redislock.New(connectRedis(tb, addr), redislock.WithLeaseOptions(opts...))
	must(tb, err)
	tb.Cleanup(func() { c.Close(background) })
	return c
}

// ping returns the probe of a server.
func ping(tb testing.TB, addr string) probe {
	c := connectRedis(tb, addr)
	return func(ctx context.Context) error { return c.Ping(ctx).Err() }
}

// term is the lease of locks that know no other than a fixed one.
const term = 30 * time.Second

var compareDelete = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end
return 0`)

// rawRedis is SET with NX and PX, and a script that deletes what is its own. A waiter asks
// each millisecond.
var rawRedis = impl{name: "raw-1ms", open: func(tb testing.TB, addr, name string) contender {
	c := connectRedis(tb, addr)
	value := fresh()
	return contender{
		lock: func(ctx context.Context) error {
			for {
				ok, err := c.SetNX(ctx, name, value, term).Result()
				if ok || err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		},
		unlock: func(ctx context.Context) error { return compareDelete.Run(ctx, c, []string{name}, value).Err() },
	}
}}

// ours returns a kind of our locks.
func ours(name string, lock func(c *redislock.Client, name string) locks.TryLocker) impl {
	return impl{name: name, open: func(tb testing.TB, addr, name string) contender {
		return of(lock(openRedis(tb, addr), name))
	}}
}

var (
	oursPlain  = ours("redislock", (*redislock.Client).Locker)
	oursFenced = ours("redislock-fenced", func(c *redislock.Client, name string) locks.TryLocker {
		return c.FencedMutex(name)
	})
	oursSimple = ours("redislock-simple", func(c *redislock.Client, name string) locks.TryLocker {
		return c.SimpleMutex(name)
	})
	oursFair = ours("redislock-fair", func(c *redislock.Client, name string) locks.TryLocker {
		return c.FairMutex(name)
	})
	oursWrite = ours("redislock-write", func(c *redislock.Client, name string) locks.TryLocker {
		return c.RWMutex(name).WriteLocker()
	})

	oursOnRueidis = impl{name: "redislock-rueidis", open: func(tb testing.TB, addr, name string) contender {
		return of(openRueidis(tb, addr).Mutex(name))
	}}

	rueidisLock = impl{name: "rueidislock", sticks: true, open: func(tb testing.TB, addr, name string) contender {
		return rueidisContender(rueidisLocker(tb, addr), name)
	}}
)

// openRueidis returns a client of ours over rueidis, with connections of its own.
func openRueidis(tb testing.TB, addr string, opts ...lease.Option) *redislock.Client {
	tb.Helper()
	conn, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	must(tb, err)
	tb.Cleanup(conn.Close)
	c, err := onrueidis.New(conn, redislock.WithLeaseOptions(opts...))
	must(tb, err)
	tb.Cleanup(func() { c.Close(background) })
	return c
}

// rueidisLocker returns a locker with connections of its own, and one key for a lock. Its waiters
// do not ask again if a message does not come: they have no timer.
func rueidisLocker(tb testing.TB, addr string) rueidislock.Locker {
	tb.Helper()
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyMajority:  1,
	})
	must(tb, err)
	tb.Cleanup(l.Close)
	return l
}

func rueidisContender(l rueidislock.Locker, name string) contender {
	var release context.CancelFunc
	return contender{
		lock: func(ctx context.Context) (err error) {
			_, release, err = l.WithContext(ctx, name)
			return err
		},
		unlock: func(context.Context) error {
			release()
			return nil
		},
	}
}

// redsyncLock returns redsync's mutex on one server, which asks again after the time retry, or
// after what it has for that.
func redsyncLock(name string, retry time.Duration) impl {
	return impl{name: name, open: func(tb testing.TB, addr, name string) contender {
		return redsyncContender(connectRedis(tb, addr), name, retry)
	}}
}

func redsyncContender(c *redis.Client, name string, retry time.Duration) contender {
	opts := []redsync.Option{redsync.WithExpiry(term), redsync.WithTries(1 << 30)}
	if retry > 0 {
		opts = append(opts, redsync.WithRetryDelay(retry))
	}
	m := redsync.New(redsyncgoredis.NewPool(c)).NewMutex(name, opts...)
	return contender{lock: m.LockContext, unlock: func(ctx context.Context) error {
		if ok, err := m.UnlockContext(ctx); !ok || err != nil {
			return errors.Join(errors.New("not unlocked"), err)
		}
		return nil
	}}
}

// bsmLock returns bsm/redislock's lock, which asks again after the time retry.
func bsmLock(name string, retry time.Duration) impl {
	return impl{name: name, open: func(tb testing.TB, addr, name string) contender {
		return bsmContender(connectRedis(tb, addr), name, retry)
	}}
}

func bsmContender(c *redis.Client, name string, retry time.Duration) contender {
	locker := bsm.New(c)
	opts := &bsm.Options{RetryStrategy: bsm.LinearBackoff(retry)}
	var held *bsm.Lock
	return contender{
		lock: func(ctx context.Context) (err error) {
			held, err = locker.Obtain(ctx, name, term, opts)
			return err
		},
		unlock: func(ctx context.Context) error { return held.Release(ctx) },
	}
}

const often, seldom = time.Millisecond, 100 * time.Millisecond

// BenchmarkRedisUncontended is a lock and an unlock that nobody else wants, compared with PING. It
// also reports the commands and the processor time that the server needs for both.
func BenchmarkRedisUncontended(b *testing.B) {
	addr := startRedis(b)
	p, admin := ping(b, addr), connectRedis(b, addr)
	b.Run("PING", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, p(background))
		}
	})
	for _, k := range []impl{
		rawRedis, oursPlain, oursOnRueidis, oursFenced, oursSimple, oursFair, oursWrite,
		redsyncLock("redsync", 0), bsmLock("bsm-redislock", seldom), rueidisLock,
	} {
		b.Run(strings.TrimSuffix(k.name, "-1ms"), func(b *testing.B) {
			c := k.open(b, addr, fresh())
			uncontended(b, c, "PING", p)
			burden(b, admin, c)
		})
	}
}

// burden reports what pairs of lock and unlock of c cost the server, each.
func burden(b *testing.B, admin *redis.Client, c contender) {
	n := max(min(b.N, 4096), 1)
	ran, used := commands(b, admin, all), serverTime(b, admin)
	for range n {
		must(b, c.lock(background))
		must(b, c.unlock(background))
	}
	b.ReportMetric(float64(serverTime(b, admin)-used)/float64(n), "server-ns/op")
	b.ReportMetric(float64(commands(b, admin, all)-ran)/float64(n), "commands/op")
}

// BenchmarkRedisKeys has 64 goroutines of one process, with one client, take 1,000 locks in turns.
// Two of them hardly ever want the same one.
func BenchmarkRedisKeys(b *testing.B) {
	addr := startRedis(b)
	admin := connectRedis(b, addr)
	for _, k := range keyKinds {
		b.Run(k.name, func(b *testing.B) { k.keys(b, addr, admin, 64, 1000) })
	}
}

// keyKind is a kind of client that has locks by name.
type keyKind struct {
	name string
	open func(tb testing.TB, addr string) func(name string) contender
}

var keyKinds = []keyKind{
	{"redislock", func(tb testing.TB, addr string) func(name string) contender {
		c := openRedis(tb, addr)
		return func(name string) contender { return plainly(c.Mutex(name)) }
	}},
	{"redislock-rueidis", func(tb testing.TB, addr string) func(name string) contender {
		c := openRueidis(tb, addr)
		return func(name string) contender { return plainly(c.Mutex(name)) }
	}},
	{"bsm-redislock", func(tb testing.TB, addr string) func(name string) contender {
		c := connectRedis(tb, addr)
		return func(name string) contender { return bsmContender(c, name, often) }
	}},
	{"rueidislock", func(tb testing.TB, addr string) func(name string) contender {
		l := rueidisLocker(tb, addr)
		return func(name string) contender { return rueidisContender(l, name) }
	}},
}

// keys lets goroutines take and release b.N locks in all, of so many names.
func (k keyKind) keys(b *testing.B, addr string, admin *redis.Client, goroutines, names int) {
	lock := k.open(b, addr)
	prefix := fresh() + "-"
	errs := make([]error, goroutines)
	var begun atomic.Int64
	var wg sync.WaitGroup
	used := serverTime(b, admin)
	b.ReportAllocs()
	b.ResetTimer()
	for g := range goroutines {
		wg.Go(func() {
			for n := begun.Add(1); errs[g] == nil && n <= int64(b.N); n = begun.Add(1) {
				c := lock(prefix + strconv.Itoa(int(n)%names))
				if errs[g] = c.lock(background); errs[g] == nil {
					errs[g] = c.unlock(background)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	must(b, errors.Join(errs...))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acquisitions/s")
	b.ReportMetric(float64(serverTime(b, admin)-used)/float64(b.N), "server-ns/op")
}

// BenchmarkRedisPing is the cost of a round trip: over and over, and after a pause as long as a
// hold in [BenchmarkRedisHandover], when the processors have gone to sleep. No hand-over can do
// with less than the latter.
func BenchmarkRedisPing(b *testing.B) {
	p := ping(b, startRedis(b))
	for name, rest := range map[string]time.Duration{"busy": 0, "rested": 5 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for range b.N {
				pause(rest)
				began := time.Now()
				must(b, p(background))
				took = append(took, time.Since(began))
			}
			b.ReportMetric(float64(quantile(took, 0.5)), "p50-ns")
			b.ReportMetric(float64(quantile(took, 0.99)), "p99-ns")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkRedisReentry is a lock and an unlock by the holder. The peers' locks cannot be taken
// again by theirs.
func BenchmarkRedisReentry(b *testing.B) {
	l := openRedis(b, startRedis(b)).Mutex("it")
	must(b, l.LockContext(background))
	pairs(b, l)
	must(b, l.UnlockContext(background))
}

// BenchmarkRedisCohort has 8 and 64 goroutines of one process, with one client, want one lock all
// the time. Locks of peers that poll go to one goroutine over and over meanwhile: see the share.
// It also reports the commands of an acquisition, by the count of the server.
func BenchmarkRedisCohort(b *testing.B) {
	addr := startRedis(b)
	admin := connectRedis(b, addr)
	for _, k := range []struct {
		name string
		open func(tb testing.TB, name string) func() contender
	}{
		{"redislock", func(tb testing.TB, name string) func() contender {
			l := openRedis(tb, addr).Mutex(name)
			return func() contender { return plainly(l) }
		}},
		{"redislock-rueidis", func(tb testing.TB, name string) func() contender {
			l := openRueidis(tb, addr).Mutex(name)
			return func() contender { return plainly(l) }
		}},
		{"redislock-no-cohort", func(tb testing.TB, name string) func() contender {
			l := openRedis(tb, addr, lease.WithMaxLocalHandoffs(0)).Mutex(name)
			return func() contender { return plainly(l) }
		}},
		{"redsync", func(tb testing.TB, name string) func() contender {
			c := connectRedis(tb, addr)
			return func() contender { return redsyncContender(c, name, 0) }
		}},
		{"bsm-redislock-1ms", func(tb testing.TB, name string) func() contender {
			c := connectRedis(tb, addr)
			return func() contender { return bsmContender(c, name, often) }
		}},
		{"rueidislock", func(tb testing.TB, name string) func() contender {
			l := rueidisLocker(tb, addr)
			return func() contender { return rueidisContender(l, name) }
		}},
	} {
		for _, n := range []int{8, 64} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", k.name, n), func(b *testing.B) {
				next := k.open(b, fresh())
				cs := make([]contender, n)
				for i := range cs {
					cs[i] = next()
				}
				before := commands(b, admin, all)
				hot(b, cs)
				b.ReportMetric(float64(commands(b, admin, all)-before)/float64(b.N), "commands/op")
			})
		}
	}
}

// commands returns how often the server has carried out those commands that are asked for, also
// inside of scripts.
func commands(tb testing.TB, c *redis.Client, counts func(name string) bool) (n int) {
	tb.Helper()
	text, err := c.Info(background, "commandstats").Result()
	must(tb, err)
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if ok && counts(name) {
			count, _, _ := strings.Cut(rest, ",")
			calls, err := strconv.Atoi(count)
			must(tb, err)
			n += calls
		}
	}
	return n
}

// all counts all commands but the benchmark's own.
func all(name string) bool { return name != "info" && name != "ping" }

// scripts counts the commands that run a script, and not the commands in the script.
func scripts(name string) bool { return name == "eval" || name == "evalsha" }

// BenchmarkRedisHandover is the time from the call of a release to the next holder, who is
// another client. It also reports the commands that the server carries out for one acquisition.
func BenchmarkRedisHandover(b *testing.B) {
	addr := startRedis(b)
	admin := connectRedis(b, addr)
	handover(b, []impl{
		oursPlain, oursOnRueidis, oursFenced, oursFair, rawRedis,
		redsyncLock("redsync", 0), redsyncLock("redsync-1ms", often),
		bsmLock("bsm-redislock-100ms", seldom), bsmLock("bsm-redislock-1ms", often), rueidisLock,
	}, addr, "PING", ping(b, addr), func(b *testing.B) func() {
		before := commands(b, admin, all)
		return func() { b.ReportMetric(float64(commands(b, admin, all)-before)/float64(b.N), "commands/op") }
	})
}

// BenchmarkRedisCrowd has many clients contend for one lock. It reports the commands that the
// server carries out for one acquisition, and acquisitions per second.
func BenchmarkRedisCrowd(b *testing.B) {
	addr := startRedis(b)
	admin := connectRedis(b, addr)
	for _, k := range []impl{oursPlain, oursFenced, oursSimple, oursWrite, oursFair} {
		for _, clients := range []int{8, 64} {
			b.Run(fmt.Sprintf("%s/clients=%d", k.name, clients), func(b *testing.B) {
				cs := k.several(b, addr, clients)
				before := commands(b, admin, all)
				b.ResetTimer()
				out, err := crowded.run(cs, b.N)
				b.StopTimer()
				must(b, err)
				b.ReportMetric(float64(commands(b, admin, all)-before)/float64(b.N), "commands/op")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acquisitions/s")
				out.report(b, "", 0)
			})
		}
	}
}

// hold takes n locks, it0 and so on, as the owner of ctx.
func hold(ctx context.Context, c *redislock.Client, n int) error {
	const workers = 16
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = c.Mutex(fmt.Sprint("it", i)).LockContext(ctx)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// serverTime returns how much processor time the server has used.
func serverTime(tb testing.TB, c *redis.Client) (d time.Duration) {
	tb.Helper()
	text, err := c.Info(background, "cpu").Result()
	must(tb, err)
	for line := range strings.Lines(text) {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				must(tb, err)
				d += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return d
}

// upkeep is the cost of keeping holds.
type upkeep struct {
	client, server float64 // in percent of a processor
	scripts        float64 // each ten seconds
}

// keep holds n locks for the time d.
func keep(tb testing.TB, n int, d time.Duration, opts ...lease.Option) upkeep {
	tb.Helper()
	addr := startRedis(tb)
	admin := connectRedis(tb, addr)
	c := openRedis(tb, addr, opts...)
	owner := locks.WithOwner(background, locks.NewOwner())
	must(tb, hold(owner, c, n))
	time.Sleep(100 * time.Millisecond) // what comes of the acquisitions is over
	server, client, before, began := serverTime(tb, admin), processTime(), commands(tb, admin, scripts), time.Now()
	time.Sleep(d)
	took := time.Since(began)
	u := upkeep{
		client:  100 * float64(processTime()-client) / float64(took),
		server:  100 * float64(serverTime(tb, admin)-server) / float64(took),
		scripts: float64(commands(tb, admin, scripts)-before) / took.Seconds() * 10,
	}
	for i := range n {
		h, err := c.Mutex(fmt.Sprint("it", i)).Hold(owner)
		must(tb, err)
		must(tb, h.Err())
	}
	admin.FlushAll(background) // to close soon
	return u
}

// BenchmarkRedisHeld is the upkeep of 10,000 locks with the default lease, which are renewed each
// ten seconds: over two such times, whatever b.N is.
func BenchmarkRedisHeld(b *testing.B) {
	u := keep(b, 10_000, 20*time.Second)
	b.ReportMetric(u.client, "%core")
	b.ReportMetric(u.server, "%core-server")
	b.ReportMetric(u.scripts, "scripts/10s")
	b.ReportMetric(0, "ns/op")
}

// wait has n waiters on each of some locks, and returns how many connections and channels there
// are for subscriptions.
func wait(tb testing.TB, locked, each int) (connections, channels int) {
	tb.Helper()
	addr := startRedis(tb)
	admin := connectRedis(tb, addr)
	holder, c := openRedis(tb, addr), openRedis(tb, addr)
	must(tb, hold(locks.WithOwner(background, locks.NewOwner()), holder, locked))
	ctx, cancel := context.WithCancel(background)
	var wg sync.WaitGroup
	for i := range locked * each {
		wg.Go(func() {
			c.Mutex(fmt.Sprint("it", i%locked)).LockContext(locks.WithOwner(ctx, locks.NewOwner()))
		})
	}
	await(tb, "subscriptions", func(ctx context.Context) error {
		list, err := admin.PubSubChannels(ctx, "*").Result()
		if channels = len(list); err == nil && channels < locked {
			err = fmt.Errorf("%d subscriptions for %d locks", channels, locked)
		}
		return err
	})
	list, err := admin.Do(background, "client", "list", "type", "pubsub").Text()
	must(tb, err)
	cancel()
	wg.Wait()
	admin.FlushAll(background) // to close soon
	return strings.Count(list, "\n"), channels
}

// BenchmarkRedisWaiting is the subscriptions of 10,000 waiters on 1,000 locks.
func BenchmarkRedisWaiting(b *testing.B) {
	connections, channels := wait(b, 1000, 10)
	b.ReportMetric(float64(connections), "connections")
	b.ReportMetric(float64(channels), "channels")
	b.ReportMetric(0, "ns/op")
}
