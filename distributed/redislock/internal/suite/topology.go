package suite

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/redlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// The time without an answer after which a master is taken for dead.
const (
	prompt = 500 * time.Millisecond // in a test that kills its master
	calm   = time.Hour              // in others, however long a busy machine delays it
)

// startSentinel starts a sentinel that replaces master by a replica when it does not answer for the
// time down. The server must have so many replicas.
func startSentinel(tb testing.TB, master *Server, replicas int, down time.Duration) (addr string) {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port := testbed.Port(tb)
	host, masterPort, _ := net.SplitHostPort(master.Addr)
	dir := tb.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	require.NoError(tb, os.WriteFile(conf, []byte(strings.Join([]string{
		"port " + strconv.Itoa(port),
		"bind 127.0.0.1",
		"dir " + dir,
		"logfile " + filepath.Join(dir, "log"),
		"sentinel monitor it " + host + " " + masterPort + " 1",
		"sentinel down-after-milliseconds it " + fmt.Sprint(down.Milliseconds()),
		"sentinel failover-timeout it 5000",
		"sentinel parallel-syncs it 3",
		"",
	}, "\n")), 0o600))
	testbed.Start(tb, exec.Command(path, conf, "--sentinel"))
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c := redis.NewSentinelClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer c.Close()
	require.Eventually(tb, func() bool {
		known, err := c.Replicas(context.Background(), "it").Result()
		return err == nil && len(known) == replicas
	}, Hang, 20*time.Millisecond, "the sentinel knows the replicas")
	return addr
}

func LocksConformBehindASentinel(t *testing.T, on Driver) {
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	sentinel := startSentinel(t, master, 1, calm)
	open := func(tb testing.TB, opts ...redislock.Option) *redislock.Client {
		return on.sentinel(tb, sentinel, opts...)
	}
	conformOn(t, on, Connect(t, master.Addr), open)
	conformRWOn(t, on, Connect(t, master.Addr), open)
}

func AHolderKeepsItsLockWhenASentinelReplacesTheMasterOrIsToldOfItsLoss(t *testing.T, on Driver) {
	t.Parallel()
	master := StartMaster(t)
	replica := StartReplica(t, master.Addr)
	sentinel := startSentinel(t, master, 1, prompt)
	const d = 20 * time.Second // longer than the replacement takes
	c := on.sentinel(t, sentinel, Term(d), redlock.WithReplicas(1, time.Second))
	a := Someone()
	safe := c.FencedMutex("safe")
	h := Hold(t, safe, a)
	// The plain lock may have been replicated or not.
	plain := on.sentinel(t, sentinel, Term(d)).Mutex("plain")
	p := Hold(t, plain, a)
	waiter := on.sentinel(t, sentinel, Term(d)).FencedMutex("safe")
	got := make(chan error, 1)
	b := Someone()
	go func() { got <- waiter.LockContext(b) }()
	first, _ := h.Deadline()
	master.Kill()
	direct := Patient(t, replica.Addr)
	require.Eventually(t, func() bool {
		return strings.Contains(direct.Info(Background, "replication").Val(), "role:master")
	}, Hang, 20*time.Millisecond, "the sentinel makes the replica the master")
	require.Eventually(t, func() bool {
		deadline, _ := h.Deadline()
		return deadline.After(first)
	}, Hang, 20*time.Millisecond, "renewed, on the new master")
	require.NoError(t, h.Err())
	require.EqualValues(t, 1, direct.Exists(Background, "safe").Val())
	rival := on.Open(t, replica.Addr).Mutex("plain")
	if ok, _ := rival.TryLockContext(b); ok {
		<-p.Lost() // at the renewal at the latest
		require.ErrorIs(t, plain.UnlockContext(a), locks.ErrLost)
		require.NoError(t, rival.UnlockContext(b))
	} else if err := plain.UnlockContext(a); err != nil {
		require.ErrorIs(t, err, locks.ErrLost)
	}

	// The waiter's request may have failed with the master: then the waiter gets the error.
	// Otherwise the waiter goes on with the new master.
	select {
	case err := <-got:
		require.Error(t, err)
		go func() { got <- waiter.LockContext(b) }()
	default:
	}
	require.NoError(t, safe.UnlockContext(a))
	require.NoError(t, <-got)
	next, err := waiter.Hold(b)
	require.NoError(t, err)
	require.Greater(t, next.Token(), h.Token())
	require.NoError(t, waiter.UnlockContext(b))
}

func WaitersAreWokenAfterPlannedFailovers(t *testing.T, on Driver) {
	t.Parallel()
	const failovers = 3
	master := StartMaster(t)
	for range failovers {
		StartReplica(t, master.Addr)
	}
	addr := startSentinel(t, master, failovers, calm)
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer sentinel.Close()
	const d = Lasting
	patient := redislock.WithFairWait(Lasting)
	c, other := on.sentinel(t, addr, Term(d), Rarely, patient), on.sentinel(t, addr, Term(d), Rarely, patient)
	of := func() string {
		at, err := sentinel.GetMasterAddrByName(Background, "it").Result()
		require.NoError(t, err)
		return net.JoinHostPort(at[0], at[1])
	}
	for i := range failovers {
		a, b := Someone(), Someone()
		holds := make(map[string]locks.Hold)
		got := make(map[string]chan error)
		old := of()
		direct := Patient(t, old)
		for kind, lock := range AnyKind {
			holds[kind] = Hold(t, lock(c, kind).(*lease.Mutex), a)
			done := make(chan error, 1)
			got[kind] = done
			go func() { done <- lock(other, kind).LockContext(b) }()
		}
		require.Eventually(t, func() bool { // the sentinel subscribes too
			return len(shared(direct.PubSubChannels(Background, "*{*").Val())) == len(got)
		}, Hang, 5*time.Millisecond)
		// The old master must not become a replica, which would end its connections.
		require.NoError(t, direct.Do(Background, "acl", "setuser", "default", "-replicaof", "-slaveof").Err())
		require.NoError(t, direct.Set(Background, "last", i, 0).Err())
		acked := direct.Do(Background, "wait", failovers-i, Hang.Milliseconds()).Val()
		require.EqualValues(t, failovers-i, acked, "the replicas have it all")
		require.Eventually(t, func() bool { return sentinel.Failover(Background, "it").Err() == nil }, Hang,
			20*time.Millisecond)
		require.Eventually(t, func() bool { return of() != old }, Hang, 5*time.Millisecond)
		direct = Patient(t, of())
		for kind, lock := range AnyKind {
			require.Eventually(t, func() bool {
				return holds[kind].Extend(Background, 2*d) == nil && direct.PTTL(Background, kind).Val() > d
			}, Hang, 5*time.Millisecond, "the new master has the request")
			require.NoError(t, lock(c, kind).UnlockContext(a))
		}
		for kind := range AnyKind {
			select {
			case err := <-got[kind]:
				require.NoError(t, err)
			case <-time.After(Hang):
				t.Fatalf("failover %d: the waiter of the %s lock is not woken", i, kind)
			}
		}
		for kind, lock := range AnyKind {
			require.NoError(t, lock(other, kind).UnlockContext(b))
		}
	}
}

// startMember starts a server of a cluster. The second port is for its bus: by default it is the
// first plus 10000, which may be too much.
func startMember(tb testing.TB, args ...string) *Server {
	tb.Helper()
	bus := strconv.Itoa(testbed.Port(tb))
	s := StartServer(tb, append([]string{"--cluster-enabled", "yes", "--cluster-port", bus,
		"--cluster-node-timeout", "2000",
		"--repl-diskless-sync-delay", "0"}, args...)...)
	s.bus = bus
	return s
}

// StartNodes runs a cluster of three masters. None of them is taken for dead because a busy machine
// delays it.
func StartNodes(tb testing.TB) []*Server {
	tb.Helper()
	nodes := startMortals(tb)
	for _, n := range nodes {
		timeout := fmt.Sprint(calm.Milliseconds())
		require.NoError(tb, Patient(tb, n.Addr).ConfigSet(Background, "cluster-node-timeout", timeout).Err())
	}
	return nodes
}

// startMortals runs a cluster of three masters. A master without an answer is soon taken for dead.
func startMortals(tb testing.TB) []*Server {
	tb.Helper()
	nodes := make([]*Server, 3)
	const slots = 16384
	for i := range nodes {
		nodes[i] = startMember(tb)
		c := Patient(tb, nodes[i].Addr)
		require.NoError(tb, c.ClusterAddSlotsRange(Background, slots*i/3, slots*(i+1)/3-1).Err())
		require.NoError(tb, c.Do(Background, "cluster", "set-config-epoch", i+1).Err())
	}
	for _, n := range nodes[1:] {
		meet(tb, n, nodes[0])
	}
	healthy(tb, nodes, 3)
	return nodes
}

// meet has n join the cluster of other.
func meet(tb testing.TB, n, other *Server) {
	tb.Helper()
	host, port, _ := net.SplitHostPort(other.Addr)
	require.NoError(tb, Patient(tb, n.Addr).Do(Background, "cluster", "meet", host, port, other.bus).Err())
}

// healthy waits until each of nodes finds that all is well, and knows so many.
func healthy(tb testing.TB, nodes []*Server, count int) {
	tb.Helper()
	for _, n := range nodes {
		c := Patient(tb, n.Addr)
		require.Eventually(tb, func() bool {
			info := c.ClusterInfo(Background).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info,
				fmt.Sprintf("cluster_known_nodes:%d\r", count)) &&
				strings.Count(c.ClusterNodes(Background).Val(), "handshake") == 0
		}, Hang, 20*time.Millisecond)
	}
}

// masterEverywhere waits until each of nodes finds that all is well, and that home is a master of
// some slots. A client asks any of them for its way.
func masterEverywhere(tb testing.TB, nodes []*Server, home *Server) {
	tb.Helper()
	for _, n := range nodes {
		c := Patient(tb, n.Addr)
		require.Eventually(tb, func() bool {
			if !strings.Contains(c.ClusterInfo(Background).Val(), "cluster_state:ok") {
				return false
			}
			for line := range strings.Lines(c.ClusterNodes(Background).Val()) {
				// id, address, flags, master, two times, epoch, state of the link, slots
				if f := strings.Fields(line); len(f) > 8 && strings.HasPrefix(f[1], home.Addr+"@") {
					return strings.Contains(f[2], "master")
				}
			}
			return false
		}, Hang, 20*time.Millisecond)
	}
}

// Cluster returns a client of the cluster of the servers at addrs.
func Cluster(tb testing.TB, addrs []string) *redis.ClusterClient {
	tb.Helper()
	c := redis.NewClusterClient(ClusterOptions(addrs))
	tb.Cleanup(func() { c.Close() })
	return c
}

// ClusterOptions returns the options of a client of the cluster of the servers at addrs.
func ClusterOptions(addrs []string) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: addrs, DisableIdentity: true, DialTimeout: reply, ReadTimeout: reply,
		ContextTimeoutEnabled:      true,
		ClusterStateReloadInterval: time.Hour, // so that nothing is found out by chance
	}
}

func LocksConformOnACluster(t *testing.T, on Driver) {
	nodes := StartNodes(t)
	open := func(tb testing.TB, opts ...redislock.Option) *redislock.Client { return on.across(tb, nodes, opts...) }
	conformOn(t, on, Cluster(t, addrs(nodes)), open)
	conformRWOn(t, on, Cluster(t, addrs(nodes)), open)
}

// everyKind are all kinds of locks with one holder.
var everyKind = map[string]func(c *redislock.Client, name string) *lease.Mutex{
	"plain":  func(c *redislock.Client, name string) *lease.Mutex { return c.Mutex(name) },
	"fenced": func(c *redislock.Client, name string) *lease.Mutex { return c.FencedMutex(name) },
	"simple": func(c *redislock.Client, name string) *lease.Mutex { return c.SimpleMutex(name) },
	"fair":   func(c *redislock.Client, name string) *lease.Mutex { return c.FairMutex(name) },
	"write": func(c *redislock.Client, name string) *lease.Mutex {
		return c.RWMutex(name).WriteMutex()
	},
}

func LocksOfAllKindsAndNamesWorkOnAllServersOfACluster(t *testing.T, on Driver) {
	t.Parallel()
	nodes := StartNodes(t)
	// No waiter polls: each relies on the message.
	for how, pubsub := range map[string]redislock.PubSub{"auto": redislock.Auto, "both": redislock.Both} {
		c := on.across(t, nodes, Rarely, redislock.WithPubSub(pubsub), redislock.WithFairWait(Lasting))
		d := on.across(t, nodes, Rarely, redislock.WithPubSub(pubsub), redislock.WithFairWait(Lasting))
		for kind, lock := range everyKind {
			for _, name := range []string{"it", "some other", "{tag}it", "a{b}c", "x:{3}", "{y}"} {
				name = kind + name
				l, m := lock(c, name), lock(d, name)
				a, b := Someone(), Someone()
				h := Hold(t, l, a)
				ok, err := m.TryLockContext(b)
				require.NoError(t, err)
				require.False(t, ok)
				got := make(chan error, 1)
				go func() { got <- m.LockContext(b) }()
				channels := func(list func(c *redis.Client) []string) (n int) {
					for _, s := range nodes {
						for _, channel := range list(Patient(t, s.Addr)) {
							if strings.Contains(channel, name) {
								n++
							}
						}
					}
					return n
				}
				sharded := ShardSubscriptions
				require.Eventually(t, func() bool {
					return len(got) == 0 && channels(sharded) == 1 && channels(Subscriptions) == btoi(how == "both")
				}, Hang, 10*time.Millisecond, "%s %s %s", how, kind, name)
				require.NoError(t, l.UnlockContext(a))
				select {
				case err := <-got:
					require.NoError(t, err)
				case <-time.After(Hang):
					t.Fatalf("%s %s %q: not told of the release", how, kind, name)
				}
				require.ErrorIs(t, h.Err(), locks.ErrNotHeld)
				require.NoError(t, m.UnlockContext(b))
			}
			ok, err := lock(c, "half{").TryLockContext(Someone())
			require.Error(t, err)
			require.False(t, ok)
		}
	}
}

func AClustersReadersShareALock(t *testing.T, on Driver) {
	t.Parallel()
	nodes := StartNodes(t)
	c, d := on.across(t, nodes), on.across(t, nodes)
	a, b := Someone(), Someone()
	for _, name := range []string{"it", "other", "a{b}c"} {
		l, m := c.RWMutex(name), d.RWMutex(name)
		require.NoError(t, l.ReadLocker().LockContext(a))
		require.NoError(t, m.ReadLocker().LockContext(b))
		ok, err := d.RWMutex(name).WriteLocker().TryLockContext(Someone())
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, l.ReadLocker().UnlockContext(a))
		require.NoError(t, m.ReadLocker().UnlockContext(b))
		require.NoError(t, l.WriteLocker().LockContext(a))
		require.NoError(t, l.WriteLocker().UnlockContext(a))
	}
}

func LocksOfAClusterSurviveAServerWhoseReplicaTakesItsPlace(t *testing.T, on Driver) {
	t.Parallel()
	nodes := startMortals(t)
	replica := startMember(t)
	meet(t, replica, nodes[0])
	all := append([]*Server{replica}, nodes...)
	healthy(t, all, 4)
	// The server of the lock.
	const name = "it"
	cluster := Cluster(t, addrs(nodes))
	home, err := cluster.MasterForKey(Background, name)
	require.NoError(t, err)
	var master *Server
	for _, n := range nodes {
		if n.Addr == home.Options().Addr {
			master = n
		}
	}
	id := Patient(t, master.Addr).Do(Background, "cluster", "myid").Val()
	require.Eventually(t, func() bool {
		return Patient(t, replica.Addr).Do(Background, "cluster", "replicate", id).Err() == nil
	}, Hang, 50*time.Millisecond)
	Linked(t, replica)

	const d = 40 * time.Second
	acked := redlock.WithReplicas(1, time.Second)
	l := on.across(t, nodes, Term(d), acked).FencedMutex(name)
	a := Someone()
	h := Hold(t, l, a)
	require.NoError(t, h.Err())
	direct := Patient(t, replica.Addr)
	require.EqualValues(t, 2, direct.ClusterCountKeysInSlot(Background,
		int(direct.ClusterKeySlot(Background, name).Val())).Val(),
		"the lock and its counter are there")
	master.Kill()
	require.Eventually(t, func() bool {
		return strings.Contains(Patient(t, replica.Addr).Info(Background, "replication").Val(), "role:master")
	}, Hang, 50*time.Millisecond)
	living := slices.DeleteFunc(slices.Clone(all), func(n *Server) bool { return n == master })
	masterEverywhere(t, living, replica)
	rival := on.across(t, all, Term(d)).FencedMutex(name)
	b := Someone()
	require.Eventually(t, func() bool {
		ok, err := rival.TryLockContext(b)
		return err == nil && !ok
	}, Hang, 50*time.Millisecond)
	require.NoError(t, h.Err())
	require.Eventually(t, func() bool { return h.Extend(a, d) == nil }, Hang, 50*time.Millisecond,
		"the first request that fails has the client look for the new server")
	require.NoError(t, h.Err())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, rival.LockContext(b)) })
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, l.UnlockContext(a))
	wg.Wait()
	next, err := rival.Hold(b)
	require.NoError(t, err)
	require.Greater(t, next.Token(), h.Token())
	require.NoError(t, rival.UnlockContext(b))
}

func WaitersInSeveralSlotsOfAServerAreToldAlsoAfterTheirSubscriptionsWereCut(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	direct := Connect(t, s.Addr)
	holder, c := on.across(t, []*Server{s}), on.across(t, []*Server{s}, Rarely, redislock.WithFairWait(Lasting))
	const n = 20
	a := Someone()
	got := make(chan error, n)
	for i := range n {
		name := fmt.Sprint("it", i)
		Hold(t, holder.Mutex(name), a)
		go func() {
			b := Someone()
			err := c.Mutex(name).LockContext(b)
			if err == nil {
				err = c.Mutex(name).UnlockContext(b)
			}
			got <- err
		}()
	}
	heard := func() bool { return len(ShardSubscriptions(direct)) == n }
	require.Eventually(t, heard, Hang, 5*time.Millisecond)
	require.NoError(t, direct.ClientKillByFilter(Background, "TYPE", "pubsub").Err())
	require.Eventually(t, heard, Hang, 5*time.Millisecond, "subscribed again")
	began := time.Now()
	for i := range n {
		require.NoError(t, holder.Mutex(fmt.Sprint("it", i)).UnlockContext(a))
	}
	for range n {
		require.NoError(t, <-got)
	}
	require.Less(t, time.Since(began), Hang, "woken")
}

// tap is a connection that notes itself when a subscription to a sharded channel is sent over it.
type tap struct {
	net.Conn
	last *atomic.Pointer[tap]
}

func (c *tap) Write(b []byte) (int, error) {
	if strings.Contains(strings.ToLower(string(b)), "ssubscribe") {
		c.last.Store(c)
	}
	return c.Conn.Write(b)
}

func AWaiterHearsAgainAfterAClusterHasForgottenItsSubscriptions(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	direct := Connect(t, s.Addr)
	p := leasetest.NewProxy(t, s.Addr)
	var subscribes atomic.Pointer[tap]
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", p.Addr())
		return &tap{c, &subscribes}, err
	}
	holder, a := on.across(t, []*Server{s}).RWMutex("it").WriteMutex(), Someone()
	Hold(t, holder, a)
	way := Way{Addrs: []string{s.Addr}, Cluster: true, Reply: reply, Dial: dial}
	l, b := on.client(t, way, Rarely).RWMutex("it").WriteMutex(), Someone()
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(ShardSubscriptions(direct)) == 1 }, Hang, 5*time.Millisecond,
		"the waiter hears the lock's channel too")
	// The server ends all subscriptions. The client does not know, and the connection goes on.
	p.Swallow(func(reply []byte) bool { return strings.Contains(string(reply), "sunsubscribe") })
	_, err := subscribes.Load().Conn.Write([]byte("*1\r\n$12\r\nSUNSUBSCRIBE\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return Commands(t, direct, "sunsubscribe") == 1 }, Hang, time.Millisecond)
	require.NoError(t, holder.UnlockContext(a))
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(Hang):
		t.Fatal("it is not woken")
	}
	require.NoError(t, l.UnlockContext(b))
}
