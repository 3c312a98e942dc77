package suite

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// LocksPassTheKitOnRedis runs the kit on locks of these kinds of [AnyKind] on one server, or of all
// kinds if kinds is empty.
func LocksPassTheKitOnRedis(t *testing.T, on Driver, kinds ...string) {
	t.Parallel()
	addr := []string{Addr(t)}
	on.prove(t, Way{Addrs: addr}, addr, kinds)
}

// LocksPassTheKitBehindASentinel runs the kit on the locks of a master with a replica.
func LocksPassTheKitBehindASentinel(t *testing.T, on Driver, kinds ...string) {
	t.Parallel()
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	sentinel := startSentinel(t, master, 1, calm)
	on.prove(t, Way{Addrs: []string{sentinel}, Sentinel: true}, []string{master.Addr}, kinds)
}

// LocksThatReplicasAcknowledgePassTheKit runs the kit on locks whose acquisitions a replica must
// acknowledge.
func LocksThatReplicasAcknowledgePassTheKit(t *testing.T, on Driver, kinds ...string) {
	t.Parallel()
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	on.prove(t, Way{Addrs: []string{master.Addr}}, []string{master.Addr}, kinds, replicated(2*time.Second))
}

// LocksPassTheKitOnACluster runs the kit on the locks of three masters.
func LocksPassTheKitOnACluster(t *testing.T, on Driver, kinds ...string) {
	t.Parallel()
	nodes := addrs(StartNodes(t))
	on.prove(t, Way{Addrs: nodes, Cluster: true}, nodes, kinds)
}

// RedlockPassesTheKit runs the kit on locks of five independent masters.
func RedlockPassesTheKit(t *testing.T, on Driver) {
	t.Parallel()
	var masters []string
	for range 5 {
		masters = append(masters, StartServer(t).Addr)
	}
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var to []Way
			for _, addr := range masters {
				to = append(to, Way{Addrs: []string{addr}, Reply: kitReply, Dial: link.DialContext})
			}
			m := on.Redlock(tb, to, redislock.WithLeaseOptions(opts...), redlock.WithNodeTimeout(3*time.Second))
			closed(tb, m)
			return m
		},
		TTL:         6 * time.Second, // an acquisition has to take less than half of it
		SpuriousTry: true,
		Parallel:    4,
		Timeout:     time.Minute,
		Limit:       20 * time.Second, // no order, and random pauses after split votes
		Rest:        restOf(t, masters, len(masters)/2),
	})
}

// kitReply is how long the kit's clients wait for a reply: the kit cuts them off.
const kitReply = 5 * time.Second

// fairWait is how long a dead waiter of a fair lock on a cluster blocks others when the lock is
// free.
const fairWait = 3 * time.Second

// prove runs the kit on locks of some kinds, whose keys are on the servers at masters.
func (on Driver) prove(t *testing.T, to Way, masters, kinds []string, more ...redislock.Option) {
	left := rest(t, masters)
	if len(kinds) == 0 {
		kinds = slices.Sorted(maps.Keys(AnyKind))
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg := leasetest.Config{
				Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
					to := to
					to.Reply, to.Dial = kitReply, link.DialContext
					c := on.Client(tb, to, append(more[:len(more):len(more)],
						redislock.WithLeaseOptions(opts...), redislock.WithFairWait(fairWait))...)
					closed(tb, c)
					return provider{c, kind}
				},
				FIFO: kind == "fair",
				// The kinds and topologies run at the same time.
				Parallel: 4,
				Rest:     left,
			}
			if kind == "write" {
				cfg.Read = func(p locks.Provider, name string) locks.TryLocker {
					return p.(provider).RWMutex(name).ReadLocker()
				}
			}
			leasetest.TestStore(t, cfg)
		})
	}
}

// provider gives the locks of a kind.
type provider struct {
	*redislock.Client
	kind string
}

func (p provider) Locker(name string) locks.TryLocker { return AnyKind[p.kind](p.Client, name) }

// closed closes c with tb. A dead client cannot release what it holds, and is not waited for.
func closed(tb testing.TB, c interface{ Close(context.Context) error }) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(Background, 2*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
}

// rest reports the keys of a lock that the servers at masters still keep. The keys of a dead client
// end with their time to live.
func rest(t *testing.T, masters []string) func(tb testing.TB, name string) {
	return restOf(t, masters, 0)
}

// restOf is rest for several servers. A few servers may keep a vote for the rest of its lease,
// since they could not be reached when the vote was given back.
func restOf(t *testing.T, masters []string, few int) func(tb testing.TB, name string) {
	var direct []*redis.Client
	for _, addr := range masters {
		direct = append(direct, Connect(t, addr))
	}
	keys := func(name string) (keys []string) {
		for _, c := range direct {
			for _, key := range c.Keys(Background, "*"+name+"*").Val() {
				hint := strings.HasPrefix(key, "locks_waiting") || strings.HasPrefix(key, "redisson_lock_")
				switch {
				case strings.HasPrefix(key, "redisson_lock_token:"):
				case hint && c.PTTL(Background, key).Val() > 0:
				default:
					keys = append(keys, key)
				}
			}
		}
		return keys
	}
	return func(tb testing.TB, name string) {
		left := keys(name)
		for began := time.Now(); len(left) > 0; left = keys(name) {
			limit := Hang
			if len(left) <= few {
				limit += time.Minute
			}
			if time.Since(began) > limit {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if len(left) > 0 {
			tb.Errorf("keys are left of %s: %v", name, left)
		}
	}
}
