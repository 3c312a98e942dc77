package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/ephemeral"
	"github.com/jucgo/locks/internal/test/testbed"
)

const uuid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-`

func TestNodesHaveCuratorsForm(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	c := open(t, s.Addr())
	for name, at := range map[string][2]string{
		"mutex": {"", "lock-"}, "semaphore": {"/leases", "lease-"}, "write": {"", "__WRIT__"},
	} {
		l, a := kinds[name].lock(c, "/"+name), adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		dir := "/" + name + at[0]
		nodes := direct.list(dir)
		require.Len(t, nodes, 1)
		require.Regexp(t, regexp.MustCompile("^"+uuid+at[1]+"0000000000$"), nodes[0])
		data, st, err := direct.Get(dir + "/" + nodes[0])
		require.NoError(t, err)
		require.NotZero(t, st.EphemeralOwner)
		require.EqualValues(t, st.Czxid, h.Token())
		require.NotNil(t, net.ParseIP(string(data)), "the address of the client: %q", data)
		_, st, err = direct.Get(dir)
		require.NoError(t, err)
		require.Zero(t, st.EphemeralOwner)
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestWaitersGetTheLockInNodeOrder(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	holder, a := open(t, s.Addr()).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	var order []int
	var wg sync.WaitGroup
	for i := range 10 {
		l, b := open(t, s.Addr()).Mutex("it"), adaptertest.Owner()
		wg.Go(func() {
			assert.NoError(t, l.LockContext(b))
			order = append(order, i)
			assert.NoError(t, l.UnlockContext(b))
		})
		direct.queued("/it", i+2)
	}
	require.NoError(t, holder.UnlockContext(a))
	wg.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order)
}

// count returns one of the figures that the server counts.
func count(t testing.TB, s *testbed.ZooKeeper, figure string) int {
	t.Helper()
	for line := range strings.Lines(s.Ask("mntr")) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "\t"); key == figure {
			n, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			return int(n)
		}
	}
	t.Fatal("the server does not count")
	return 0
}

// wakeUps returns how many watches a server has fired for deleted nodes.
func wakeUps(t testing.TB, s *testbed.ZooKeeper) int {
	t.Helper()
	return count(t, s, "zk_sum_node_deleted_watch_count")
}

func TestAFreeLockTakesTwoWritesAndReads(t *testing.T) {
	t.Parallel()
	s := testbed.StartZooKeeper(t)
	direct := connect(t, s.Addr())
	direct.directory("/it")
	l := open(t, s.Addr()).Mutex("it")
	adaptertest.Hold(t, l, background)
	require.NoError(t, l.UnlockContext(background))
	const n = 100
	writes, questions := count(t, s, "zk_cnt_updatelatency"), count(t, s, "zk_cnt_readlatency")
	for range n {
		require.NoError(t, l.LockContext(background))
		h, err := l.Hold(background)
		require.NoError(t, err)
		_, st, err := direct.Get("/it/" + direct.list("/it")[0]) // two questions
		require.NoError(t, err)
		require.EqualValues(t, st.Czxid, h.Token())
		require.NoError(t, l.UnlockContext(background))
	}
	require.Equal(t, 2*n, count(t, s, "zk_cnt_updatelatency")-writes, "create, delete")
	questions = count(t, s, "zk_cnt_readlatency") - questions - 2*n
	require.GreaterOrEqual(t, questions, 2*n, "exists, children")
	require.Less(t, questions, 2*n+n/2, "a few more for tokens, and to confirm the session")
}

// watchesOf returns how many watches a server has.
func watchesOf(s *testbed.ZooKeeper) (n int) {
	for line := range strings.Lines(s.Ask("wchs")) {
		fmt.Sscanf(line, "Total watches:%d", &n)
	}
	return n
}

func TestAReleaseWakesOneWaiterOfAHundred(t *testing.T) {
	t.Parallel()
	const n = 100
	for name, want := range map[string]int{"mutex": 1, "ephemeral": n} {
		t.Run(name, func(t *testing.T) {
			s := testbed.StartZooKeeper(t)
			direct := connect(t, s.Addr())
			holder, a := kinds[name].lock(open(t, s.Addr()), "/it"), adaptertest.Owner()
			adaptertest.Hold(t, holder, a)
			ctx, cancel := context.WithCancel(background)
			var wg sync.WaitGroup
			var got sync.Map
			for i := range n {
				l := kinds[name].lock(open(t, s.Addr()), "/it")
				wg.Go(func() {
					ctx := locks.WithOwner(ctx, locks.NewOwner())
					if l.LockContext(ctx) == nil {
						got.Store(i, true)
						<-ctx.Done()
						assert.NoError(t, l.UnlockContext(ctx))
					}
				})
			}
			eventually(t, "all wait", func() bool {
				return watchesOf(s) == watches[name](n)
			})
			before := wakeUps(t, s)
			require.NoError(t, holder.UnlockContext(a))
			// The holder watches its own node, to hear of its loss: one more.
			eventually(t, "the next one", func() bool {
				found := false
				got.Range(func(any, any) bool { found = true; return false })
				return found && wakeUps(t, s)-before >= want+1
			})
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, want+1, wakeUps(t, s)-before)
			t.Logf("%d waiters, %d woken by one release", n, wakeUps(t, s)-before-1)
			cancel()
			wg.Wait()
			eventually(t, "an empty lock", func() bool { return len(direct.list("/it")) == 0 })
		})
	}
}

// watches is how many watches n waiters and a holder have. Each client has one. The holder has
// one of its own node, and each waiter one of the node before, or of the single node.
var watches = map[string]func(n int) int{
	"mutex":     func(n int) int { return 1 + n + (n + 1) },
	"ephemeral": func(n int) int { return (n + 1) + (n + 1) },
}

func TestAWriterDowngradesAheadOfOtherWriters(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	rw, other := open(t, s.Addr()).RWMutex("it"), open(t, s.Addr()).RWMutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	require.NoError(t, write(rw).LockContext(a))
	got := make(chan error, 1)
	go func() { got <- write(other).LockContext(b) }()
	direct.queued("/it", 2)
	require.NoError(t, read(rw).LockContext(a))
	var reader string
	for _, n := range direct.list("/it") {
		if strings.Contains(n, "__READ__") {
			reader = n
		}
	}
	require.Regexp(t, regexp.MustCompile("^"+uuid+"__READ__0000000000$"), reader, "the number of the writer's node")
	require.NoError(t, write(rw).UnlockContext(a))
	select {
	case err := <-got:
		t.Fatalf("the writer has overtaken the reader: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	require.ErrorIs(t, write(rw).LockContext(a), locks.ErrUpgrade)
	_, err := write(rw).TryLockContext(a)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, read(rw).UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, read(other).LockContext(b))
	require.NoError(t, write(other).LockContext(b), "it has both")
	require.NoError(t, write(other).UnlockContext(b))
	require.NoError(t, read(other).UnlockContext(b))
	require.NoError(t, write(other).UnlockContext(b))
	require.Empty(t, direct.list("/it"))
}

func TestReadersEnterTogetherInQueueOrder(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	rw := func() *lease.RWMutex { return open(t, s.Addr()).RWMutex("it") }
	first, second, third := rw(), rw(), rw()
	a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()
	require.NoError(t, read(first).LockContext(a))
	require.NoError(t, read(second).LockContext(b), "readers share")
	wrote, have := make(chan error, 1), make(chan error, 1)
	go func() { wrote <- write(third).LockContext(c) }()
	direct.queued("/it", 3)
	late := adaptertest.Owner()
	go func() { have <- read(first).LockContext(late) }()
	direct.queued("/it", 4)
	ok, err := read(second).TryLockContext(adaptertest.Owner())
	require.NoError(t, err)
	require.False(t, ok, "not past a writer")
	require.NoError(t, read(first).UnlockContext(a))
	require.NoError(t, read(second).UnlockContext(b))
	require.NoError(t, <-wrote)
	require.Empty(t, have)
	require.NoError(t, write(third).UnlockContext(c))
	require.NoError(t, <-have)
	require.NoError(t, read(first).UnlockContext(late))
}

func TestARevocationAsksTheHolderToRelease(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	c, other := open(t, s.Addr()), open(t, s.Addr())
	asked := make(chan uint64, 8)
	l := c.Mutex("it", zklock.WithRevocation(func(token uint64) { asked <- token }))
	require.NoError(t, other.Revoke(background, "it"), "nobody holds it")
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	data, _, err := direct.Get("/it/" + direct.list("/it")[0])
	require.NoError(t, err)
	require.Empty(t, data)
	require.NoError(t, other.Revoke(background, "it"))
	require.Equal(t, h.Token(), <-asked)
	data, _, err = direct.Get("/it/" + direct.list("/it")[0])
	require.NoError(t, err)
	require.Equal(t, "__REVOKE__", string(data))
	require.NoError(t, h.Err(), "nothing is taken away")
	require.NoError(t, other.Revoke(background, "it"))
	direct.clear("/it")
	<-h.Lost() // the watch is set again after the revocation
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.Empty(t, asked, "asked once")

	// All readers, and not the writer behind them.
	rw := c.RWMutex("rw", zklock.WithRevocation(func(token uint64) { asked <- token }))
	b, w := adaptertest.Owner(), adaptertest.Owner()
	one, two := adaptertest.Hold(t, read(rw), a), adaptertest.Hold(t, read(rw), b)
	got := make(chan error, 1)
	go func() { got <- write(rw).LockContext(w) }()
	direct.queued("/rw", 3)
	require.NoError(t, other.Revoke(background, "rw"))
	require.ElementsMatch(t, []uint64{one.Token(), two.Token()}, []uint64{<-asked, <-asked})
	require.NoError(t, read(rw).UnlockContext(a))
	require.NoError(t, read(rw).UnlockContext(b))
	require.NoError(t, <-got)
	require.NoError(t, write(rw).UnlockContext(w))
	require.Empty(t, asked)
}

func TestARevocationSparesOtherKindsOfLocks(t *testing.T) {
	s := zklock.LendServer(t)
	c, other, a := open(t, s.Addr()), open(t, s.Addr()), adaptertest.Owner()
	for name, l := range map[string]*lease.Mutex{"s": c.SemaphoreMutex("s"), "e": ephemeral.New(c, "e")} {
		h := adaptertest.Hold(t, l, a)
		require.NoError(t, other.Revoke(background, name))
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestAHoldWithAFixedTTLEndsInTheServer(t *testing.T) {
	s := zklock.LendServer(t)
	a, b := adaptertest.Owner(), adaptertest.Owner()
	l := open(t, s.Addr()).Mutex("it", lease.WithFixedTTL(time.Second))
	rival := open(t, s.Addr()).Mutex("it")
	h := adaptertest.Hold(t, l, a)
	require.NoError(t, rival.LockContext(b), "long before the end of the session")
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestADeletedNodeIsALossAtOnce(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	for name, kind := range kinds {
		l, a := kind.lock(open(t, s.Addr()), "/"+name), adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		if name == "ephemeral" {
			require.NoError(t, direct.Delete("/"+name, -1))
		}
		direct.clear("/" + name + kind.dir)
		select {
		case <-h.Lost():
		case <-time.After(long / 3): // when the renewal comes
			t.Fatal("it did not hear of it")
		}
		require.ErrorIs(t, h.Err(), zk.ErrNoNode)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.NoError(t, l.LockContext(a))
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestAWaiterWhoseNodeIsDeletedQueuesAnew(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	holder, l := open(t, s.Addr()).Mutex("it"), open(t, s.Addr()).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	first := direct.list("/it")[0]
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	direct.queued("/it", 2)
	for _, n := range direct.list("/it") {
		if n != first {
			require.NoError(t, direct.Delete("/it/"+n, -1))
		}
	}
	direct.queued("/it", 2)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(b))
}

func TestUnknownNodesAreIgnoredAndLocksForeign(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	c := open(t, s.Addr())
	make := func(path string, flags int32) {
		_, err := direct.Create(path, []byte("data"), flags, zk.WorldACL(zk.PermAll))
		require.NoError(t, err, path)
	}
	for _, dir := range []string{
		"/it", "/it/!", "/it/lock-x", "/it/foo", "/s", "/s/leases", "/s/leases/other", "/rw", "/rw/foo",
	} {
		make(dir, 0)
	}
	a := adaptertest.Owner()
	rw := c.RWMutex("rw")
	for _, l := range []*lease.Mutex{c.Mutex("it"), c.SemaphoreMutex("s"), write(rw), read(rw)} {
		require.NoError(t, l.LockContext(a))
		require.NoError(t, l.UnlockContext(a))
	}
	make("/it/_c_x-__READ__0000000001", 0)
	make("/rw/lock-0000000001", 0)
	make("/node", zk.FlagEphemeral)
	for i, l := range []*lease.Mutex{c.Mutex("it"), write(rw), read(rw), c.Mutex("node"), ephemeral.New(c, "it")} {
		require.ErrorIs(t, l.LockContext(a), locks.ErrForeign, i)
		eventually(t, "the refusal of a try", func() bool { // false while the former attempt is being undone
			ok, err := l.TryLockContext(a)
			require.False(t, ok)
			return errors.Is(err, locks.ErrForeign)
		})
	}
	require.Len(t, direct.list("/it"), 4)
	require.Len(t, direct.list("/rw"), 2)
}

// Kazoo's names have 32 digits in front. Its class for both directions is in the README.
func TestAKazooNodeExcludesWithCuratorsNameOnly(t *testing.T) {
	s := zklock.LendServer(t)
	direct, l, a := connect(t, s.Addr()), open(t, s.Addr()).Mutex("it"), adaptertest.Owner()
	direct.directory("/it")
	for name, excludes := range map[string]bool{"__lock__": false, "-lock-": true} {
		flags := int32(zk.FlagEphemeral | zk.FlagSequence)
		node, err := direct.Create("/it/"+strings.Repeat("4a", 16)+name, nil, flags, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		ok, err := l.TryLockContext(a)
		require.NoError(t, err)
		require.Equal(t, !excludes, ok, name)
		require.NoError(t, direct.Delete(node, -1))
		if ok {
			require.NoError(t, l.UnlockContext(a))
		}
		require.NoError(t, l.LockContext(a), "it is free now")
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestNamesThatCannotBeAreRefused(t *testing.T) {
	s := zklock.LendServer(t)
	c := open(t, s.Addr())
	for _, name := range []string{
		"", "/", "//", "a//b", "a/", "..", "a/../b", "a/.", "zookeeper", "/zookeeper/quota",
		"a\x00", "a\n", "\xff", strings.Repeat("n", 1025),
	} {
		for _, kind := range kinds {
			l := kind.lock(c, name)
			require.Error(t, l.LockContext(background), "%q", name)
			_, err := l.TryLockContext(background)
			require.Error(t, err)
			require.ErrorIs(t, l.UnlockContext(background), locks.ErrNotHeld)
		}
		require.Error(t, c.Revoke(background, name))
	}
	long := strings.Repeat("n", 1023)
	ctx := adaptertest.Owner()
	held := adaptertest.Hold(t, c.Mutex(long), ctx)
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) { testbed.Refused(t, k.lock(c, long+"nn"), "1025 bytes") })
	}
	rw := c.RWMutex("a//b")
	testbed.Refused(t, rw.ReadLocker(), "empty part")
	testbed.Refused(t, rw.WriteLocker(), "empty part")
	require.Error(t, c.Mutex("/"+long+"nn").UnlockContext(ctx), "errors cut the name to that of a lock")
	require.NoError(t, held.Err())
	for _, name := range []string{"a", "/a", "ä/ö", "..a", "a b", strings.Repeat("n", 1024)} {
		require.NoError(t, c.Mutex(name).LockContext(background), "%q", name)
		same := c.Mutex("/" + strings.TrimPrefix(name, "/"))
		require.NoError(t, same.UnlockContext(background), "with a slash or without")
	}
	_, err := zklock.New(background, []string{s.Addr()}, zklock.WithNamespace("a//b"))
	require.Error(t, err)
	require.Equal(t, "/app/a", open(t, s.Addr(), zklock.WithNamespace("app")).Mutex("a").Name())
}

func TestASemaphoreLockRefusesItsHolder(t *testing.T) {
	s := zklock.LendServer(t)
	l, a := open(t, s.Addr()).SemaphoreMutex("it"), adaptertest.Owner()
	require.NoError(t, l.LockContext(a))
	require.ErrorIs(t, l.LockContext(a), locks.ErrDeadlock)
	ok, err := l.TryLockContext(a)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.UnlockContext(a))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
}

func TestMultiTakesLocksOfAllKinds(t *testing.T) {
	s := zklock.LendServer(t)
	one, two := open(t, s.Addr()), open(t, s.Addr())
	m := func(c *zklock.Client, flip bool) locks.TryLocker {
		ls := []locks.TryLocker{c.Mutex("a"), c.SemaphoreMutex("b"), write(c.RWMutex("c"))}
		if flip {
			ls[0], ls[2] = ls[2], ls[0]
		}
		return locks.Multi(ls...)
	}
	var wg sync.WaitGroup
	inside := 0
	for i, l := range []locks.TryLocker{m(one, false), m(two, true)} {
		for range 3 {
			wg.Go(func() {
				for range 10 {
					assert.NoError(t, locks.Do(background, l, func(context.Context) error {
						inside++
						assert.Equal(t, 1, inside, "client %d", i)
						inside--
						return nil
					}))
				}
			})
		}
	}
	wg.Wait()
}

func TestClientsExcludeEachOther(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			one, two := kind.lock(open(t, s.Addr()), "/"+name), kind.lock(open(t, s.Addr()), "/"+name)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			first := adaptertest.Hold(t, one, a)
			got := make(chan error, 1)
			go func() { got <- two.LockContext(b) }()
			if name == "ephemeral" {
				time.Sleep(100 * time.Millisecond)
			} else {
				direct.queued("/"+name+kind.dir, 2)
			}
			select {
			case err := <-got:
				t.Fatalf("granted: %v", err)
			case <-time.After(200 * time.Millisecond):
			}
			require.NoError(t, one.UnlockContext(a))
			require.NoError(t, <-got)
			second, err := two.Hold(b)
			require.NoError(t, err)
			require.Greater(t, second.Token(), first.Token())
			ok, err := one.TryLockContext(a)
			require.NoError(t, err)
			require.False(t, ok)
			require.NoError(t, two.UnlockContext(b))

			var inside atomic.Int32
			var wg sync.WaitGroup
			for range 4 {
				l, c := kind.lock(open(t, s.Addr()), "/"+name), adaptertest.Owner()
				wg.Go(func() {
					for range 15 {
						assert.NoError(t, l.LockContext(c))
						assert.EqualValues(t, 1, inside.Add(1))
						time.Sleep(5 * time.Millisecond) // long enough for a second holder to show
						inside.Add(-1)
						assert.NoError(t, l.UnlockContext(c))
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestSemaphoreWaitersOutliveTheirDeletedNodes(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	first, a := open(t, s.Addr()).SemaphoreMutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, first, a)
	known := direct.list("/it/leases")
	got := make(chan error, 2)
	for i := range 2 {
		l, o := open(t, s.Addr()).SemaphoreMutex("it"), adaptertest.Owner()
		go func() {
			err := l.LockContext(o)
			if err == nil {
				err = l.UnlockContext(o)
			}
			got <- err
		}()
		// It is the first in locks, and waits for the others' leases to go.
		eventually(t, "another lease", func() bool {
			return slices.ContainsFunc(direct.list("/it/leases"), func(n string) bool {
				return !slices.Contains(known, n)
			})
		})
		known = direct.list("/it/leases")
		if i == 0 {
			direct.clear("/it/locks")
		}
	}
	require.NoError(t, first.UnlockContext(a))
	for range 2 {
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(testbed.Hang):
			t.Fatal("they wait for each other")
		}
	}
}
