package zklock_test

import (
	"context"
	"math/rand/v2"
	"slices"
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
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// line is a lock called "it" that a client holds while other clients wait, one after another.
type line struct {
	t      *testing.T
	s      *testbed.ZooKeeper
	direct admin
	holder *lease.Mutex
	owner  context.Context
	nodes  []string // their paths, in the order of the queue
}

func newLine(t *testing.T) *line {
	t.Parallel()
	s := zklock.LendServer(t)
	l := &line{t: t, s: s, direct: connect(t, s.Addr()), holder: open(t, s.Addr()).Mutex("it"), owner: adaptertest.Owner()}
	adaptertest.Hold(t, l.holder, l.owner)
	l.nodes = []string{"/it/" + l.direct.list("/it")[0]}
	return l
}

// wait has ctx's owner wait for a lock called "it". It returns when the waiter watches the node
// before its own.
func (l *line) wait(lock *lease.Mutex, ctx context.Context) (got chan error) {
	l.t.Helper()
	got = make(chan error, 1)
	go func() { got <- lock.LockContext(ctx) }()
	l.direct.queued("/it", len(l.nodes)+1)
	for _, n := range l.direct.list("/it") {
		if path := "/it/" + n; !slices.Contains(l.nodes, path) {
			l.nodes = append(l.nodes, path)
		}
	}
	watchers := 1 // the waiter
	if len(l.nodes) == 2 {
		watchers = 2 // and the holder
	}
	l.direct.watched(l.s, l.nodes[len(l.nodes)-2], watchers)
	return got
}

// holds checks that lock is held by the only node in its directory, and releases it.
func (l *line) holds(lock *lease.Mutex, ctx context.Context) {
	l.t.Helper()
	h, err := lock.Hold(ctx)
	require.NoError(l.t, err)
	names := l.direct.list("/it")
	require.Len(l.t, names, 1)
	_, st, err := l.direct.Get("/it/" + names[0])
	require.NoError(l.t, err)
	require.EqualValues(l.t, st.Czxid, h.Token())
	require.NoError(l.t, h.Err())
	require.NoError(l.t, lock.UnlockContext(ctx))
}

func stillWaits(t *testing.T, got chan error) {
	t.Helper()
	select {
	case err := <-got:
		t.Fatalf("granted: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
}

func TestAWaiterBehindALeaverAwaitsTheHolder(t *testing.T) {
	l := newLine(t)
	second, third, b := open(t, l.s.Addr()).Mutex("it"), open(t, l.s.Addr()).Mutex("it"), adaptertest.Owner()
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	left := l.wait(second, ctx)
	got := l.wait(third, b)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	l.direct.watched(l.s, l.nodes[0], 3) // the third watches it now; no watch is taken back
	stillWaits(t, got)
	require.NoError(t, l.holder.UnlockContext(l.owner))
	require.NoError(t, <-got)
	l.holds(third, b)
}

func TestAWaiterWithoutItsNodeQueuesAnew(t *testing.T) {
	for name, during := range map[string]func(p *leasetest.Proxy, f func()){
		"while connected": func(p *leasetest.Proxy, f func()) { f() },
		"while not connected": func(p *leasetest.Proxy, f func()) {
			p.Refuse()
			f()
			p.Heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			p := leasetest.NewProxy(t, l.s.Addr())
			next, a := open(t, p.Addr()).Mutex("it"), adaptertest.Owner()
			got := l.wait(next, a)
			during(p, func() {
				_, err := l.direct.Multi(&zk.DeleteRequest{Path: l.nodes[1], Version: -1},
					&zk.DeleteRequest{Path: l.nodes[0], Version: -1})
				require.NoError(t, err)
			})
			require.NoError(t, <-got)
			l.holds(next, a)
		})
	}
}

func TestAWaiterLearnsOfARevokedNodesEnd(t *testing.T) {
	l := newLine(t)
	next, a := open(t, l.s.Addr()).Mutex("it"), adaptertest.Owner()
	got := l.wait(next, a)
	// The watch reports the change, and so not the deletion.
	_, err := l.direct.Multi(
		&zk.SetDataRequest{Path: l.nodes[1], Data: []byte("__REVOKE__"), Version: -1},
		&zk.DeleteRequest{Path: l.nodes[1], Version: -1},
		&zk.DeleteRequest{Path: l.nodes[0], Version: -1},
	)
	require.NoError(t, err)
	require.NoError(t, <-got)
	l.holds(next, a)
}

// Waiters come, leave, lose their nodes or their connections, and are revoked, in any order.
func TestOneHolderAtATimeWhateverWaitersDo(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	const clients = 6
	var (
		holders, grants atomic.Int32
		wg              sync.WaitGroup
		stop            = make(chan struct{})
	)
	for i := range clients {
		p := leasetest.NewProxy(t, s.Addr())
		l := open(t, p.Addr()).Mutex("it")
		direct := connect(t, s.Addr())
		r := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithCancel(adaptertest.Owner())
				switch r.IntN(12) {
				case 0:
					time.AfterFunc(time.Duration(r.IntN(20))*time.Millisecond, p.Reset)
				case 1, 2, 3:
					time.AfterFunc(time.Duration(r.IntN(20))*time.Millisecond, cancel)
				}
				err := l.LockContext(ctx)
				if err != nil {
					cancel()
					assert.ErrorIs(t, err, context.Canceled)
					continue
				}
				assert.EqualValues(t, 1, holders.Add(1))
				grants.Add(1)
				h, err := l.Hold(ctx)
				assert.NoError(t, err)
				disturb(t, direct, r, h.Token())
				time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
				assert.NoError(t, h.Err())
				holders.Add(-1)
				assert.NoError(t, l.UnlockContext(ctx))
				cancel()
			}
		})
	}
	for done := int32(0); done < 400 && !t.Failed(); done = grants.Load() { // on a busy machine each takes long
		eventually(t, "a turn", func() bool { return t.Failed() || grants.Load() > done })
	}
	close(stop)
	wg.Wait()
	connect(t, s.Addr()).queued("/it", 0)
}

// Nodes come and go in the directory while locks are taken that nobody else wants.
func TestATokenIsTheCzxidBesideOtherNodes(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	l, direct, other := open(t, s.Addr()).Mutex("it"), connect(t, s.Addr()), connect(t, s.Addr())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if path, err := other.Create("/it/other-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err == nil {
				other.Delete(path, -1)
			}
		}
	})
	for range 500 {
		adaptertest.Hold(t, l, background)
		h, err := l.Hold(background)
		require.NoError(t, err)
		names := slices.DeleteFunc(direct.list("/it"), func(n string) bool { return strings.HasPrefix(n, "other-") })
		require.Len(t, names, 1)
		_, st, err := direct.Get("/it/" + names[0])
		require.NoError(t, err)
		require.EqualValues(t, st.Czxid, h.Token())
		require.NoError(t, l.UnlockContext(background))
	}
}

// disturb checks that the first node belongs to the hold with this token, and does something to
// a waiter's node.
func disturb(t *testing.T, direct admin, r *rand.Rand, token uint64) {
	names := direct.list("/it")
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	if assert.NotEmpty(t, names) {
		_, st, err := direct.Get("/it/" + names[0])
		if assert.NoError(t, err) {
			assert.EqualValues(t, st.Czxid, token)
		}
	}
	if len(names) < 2 {
		return
	}
	path := "/it/" + names[1+r.IntN(len(names)-1)]
	switch r.IntN(6) {
	case 0:
		direct.Delete(path, -1)
	case 1:
		direct.Set(path, []byte("__REVOKE__"), -1)
	case 2:
		direct.Multi(&zk.SetDataRequest{Path: path, Data: []byte("__REVOKE__"), Version: -1},
			&zk.DeleteRequest{Path: path, Version: -1})
	}
}

func TestAReaderThatWroteExcludesTheNextWriter(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	rw, next := open(t, s.Addr()).RWMutex("it"), write(open(t, s.Addr()).RWMutex("it"))
	a, b := adaptertest.Owner(), adaptertest.Owner()
	require.NoError(t, write(rw).LockContext(a))
	got := make(chan error, 1)
	go func() { got <- next.LockContext(b) }()
	direct.queued("/it", 2)
	// One of each client, the writer's of its own node, and the waiter's of that.
	eventually(t, "its watches", func() bool { return watchesOf(s) >= 4 })
	require.NoError(t, read(rw).LockContext(a))
	require.NoError(t, write(rw).UnlockContext(a))
	stillWaits(t, got)
	require.NoError(t, read(rw).UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, next.UnlockContext(b))
}

func TestAReleaseNeverFreesAnotherOwnersLock(t *testing.T) {
	s := zklock.LendServer(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := connect(t, s.Addr())
			l, rival := kind.lock(open(t, s.Addr()), "/"+name), kind.lock(open(t, s.Addr()), "/"+name)
			nodes := func() int {
				if name != "ephemeral" {
					return len(direct.list("/" + name + kind.dir))
				}
				there, _, err := direct.Exists("/" + name)
				require.NoError(t, err)
				if there {
					return 1
				}
				return 0
			}
			elsewhere := func(ctx context.Context) error { // in another goroutine
				done := make(chan error)
				go func() { done <- l.UnlockContext(ctx) }()
				return <-done
			}
			a, b, mine := adaptertest.Owner(), adaptertest.Owner(), as(locks.CurrentOwner(background))

			require.NoError(t, l.LockContext(background))
			require.ErrorIs(t, elsewhere(background), locks.ErrNotHeld, "another goroutine")
			require.ErrorIs(t, elsewhere(a), locks.ErrNotHeld, "another owner")
			require.ErrorIs(t, rival.UnlockContext(mine), locks.ErrNotHeld, "another client")
			require.Equal(t, 1, nodes())
			require.NoError(t, l.UnlockContext(background))
			require.ErrorIs(t, l.UnlockContext(background), locks.ErrNotHeld, "twice")
			require.Zero(t, nodes())

			require.NoError(t, l.LockContext(a))
			holds := 1
			if kind.reentrant {
				require.NoError(t, l.LockContext(a))
				ok, err := l.TryLockContext(a)
				require.NoError(t, err)
				require.True(t, ok)
				holds = 3
			} else {
				require.ErrorIs(t, l.LockContext(a), locks.ErrDeadlock)
			}
			require.Equal(t, 1, nodes(), "one for all holds")
			for i := range holds {
				ok, err := rival.TryLockContext(b)
				require.NoError(t, err)
				require.False(t, ok, "after %d of %d releases", i, holds)
				require.NoError(t, elsewhere(a), "the owner's, in whatever goroutine")
			}
			require.Zero(t, nodes())
			require.NoError(t, rival.LockContext(b))
			require.ErrorIs(t, elsewhere(a), locks.ErrNotHeld, "once too often")
			require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld, "the rival's owner, but another client")
			require.Equal(t, 1, nodes(), "the rival's")
			h, err := rival.Hold(b)
			require.NoError(t, err)
			require.NoError(t, h.Err())
			require.NoError(t, rival.UnlockContext(b))
			require.Zero(t, nodes())
		})
	}
}
