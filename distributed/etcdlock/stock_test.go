package etcdlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// stock returns etcd's own mutex, in a session of its own.
func stock(tb testing.TB, addr, prefix string) *concurrency.Mutex {
	tb.Helper()
	s, err := concurrency.NewSession(connect(tb, addr), concurrency.WithTTL(10))
	require.NoError(tb, err)
	tb.Cleanup(func() { s.Close() })
	return concurrency.NewMutex(s, prefix)
}

func TestTheKeyIsThatOfEtcdsOwnMutex(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c := open(t, direct, etcdlock.WithPrefix("/locks/"))
	for want, l := range map[string]*lease.Mutex{
		"/locks/it/":            c.Mutex("it"),
		"/locks/50%25%2Fnight/": c.Mutex("50%/night"),
		"/my-lock//":            c.MutexLocker("/my-lock/"),
	} {
		a := adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		resp, err := direct.Get(background, want, clientv3.WithPrefix())
		require.NoError(t, err)
		require.Len(t, resp.Kvs, 1, want)
		kv := resp.Kvs[0]
		require.Equal(t, fmt.Sprintf("%s%x", want, kv.Lease), string(kv.Key))
		require.NotEmpty(t, kv.Value, "what an inspector reads")
		require.EqualValues(t, kv.CreateRevision, h.Token())
		ttl, err := direct.TimeToLive(background, clientv3.LeaseID(kv.Lease))
		require.NoError(t, err)
		require.EqualValues(t, 30, ttl.GrantedTTL)
		require.NoError(t, l.UnlockContext(a))
	}
	require.Equal(t, "/locks/50%25%2Fnight", c.Prefix("50%/night"))
	require.Empty(t, keys(t, direct, ""))
}

func TestEtcdsMutexAndOursExcludeAndWakeMutually(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr))
	locks := map[string]*lease.Mutex{
		"it": c.Mutex("it"), c.Prefix("a/b"): c.Mutex("a/b"),
		"/my-lock/": c.MutexLocker("/my-lock/"),
	}
	for prefix, l := range locks {
		m, a := stock(t, s.addr, prefix), adaptertest.Owner()

		adaptertest.Hold(t, l, a)
		require.ErrorIs(t, m.TryLock(background), concurrency.ErrLocked)
		got := make(chan error, 1)
		go func() { got <- m.Lock(background) }()
		queued(t, direct, prefix+"/", 2)
		select {
		case err := <-got:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, adaptertest.Result(t, got))

		require.False(t, adaptertest.Try(t, l, a))
		require.Len(t, keys(t, direct, prefix+"/"), 1, "a try leaves nothing")
		got2 := adaptertest.Start(l, a)
		queued(t, direct, prefix+"/", 2)
		select {
		case err := <-got2:
			t.Fatalf("it did not wait: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		require.NoError(t, m.Unlock(background))
		require.NoError(t, adaptertest.Result(t, got2))
		require.NoError(t, l.UnlockContext(a))
		require.Empty(t, keys(t, direct, prefix+"/"))
	}
}

func TestEtcdsMutexAndOursShareAQueue(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	holder, a := open(t, connect(t, s.addr)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	order := make(chan int, 6)
	var wg sync.WaitGroup
	for i := range 6 {
		if i%2 == 0 {
			m := stock(t, s.addr, "it")
			wg.Go(func() {
				assert.NoError(t, m.Lock(background))
				order <- i
				assert.NoError(t, m.Unlock(background))
			})
		} else {
			l, b := open(t, connect(t, s.addr)).Mutex("it"), adaptertest.Owner()
			wg.Go(func() {
				assert.NoError(t, l.LockContext(b))
				order <- i
				assert.NoError(t, l.UnlockContext(b))
			})
		}
		queued(t, direct, "it/", i+2)
	}
	require.NoError(t, holder.UnlockContext(a))
	for i := range 6 {
		require.Equal(t, i, <-order)
	}
	wg.Wait()
	require.Empty(t, keys(t, direct, "it/"))
}

func TestEtcdsMutexAndOursExcludeMutuallyUnderStress(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	var inside, wrong, ours, theirs atomic.Int32
	ctx, cancel := context.WithTimeout(background, 3*time.Second)
	defer cancel()
	section := func(n *atomic.Int32) {
		if inside.Add(1) != 1 {
			wrong.Add(1)
		}
		time.Sleep(time.Duration(n.Add(1)%3) * time.Millisecond)
		inside.Add(-1)
	}
	var wg sync.WaitGroup
	for range 2 {
		c := open(t, connect(t, s.addr), etcdlock.WithLeaseOptions(lease.WithMaxLocalHandoffs(2)))
		for i := range 2 {
			l, a := c.Mutex("it"), adaptertest.Owner()
			wg.Go(func() {
				for ctx.Err() == nil {
					owned := locks.WithOwner(ctx, locks.CurrentOwner(a))
					if i == 0 && !adaptertest.Try(t, l, a) || i == 1 && l.LockContext(owned) != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					section(&ours)
					assert.NoError(t, l.UnlockContext(a))
				}
			})
		}
		m := stock(t, s.addr, "it")
		wg.Go(func() {
			for ctx.Err() == nil {
				if assert.NoError(t, m.Lock(background)) { // it may leave its key when its ctx ends
					section(&theirs)
					assert.NoError(t, m.Unlock(background))
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, wrong.Load(), "two were inside at once")
	require.Greater(t, ours.Load(), int32(5))
	require.Greater(t, theirs.Load(), int32(5))
	queued(t, connect(t, s.addr), "it/", 0)
}

func TestNamesThatBeginAlikeAreOtherLocks(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	conn := connect(t, s.addr)
	c := open(t, conn)
	all := []string{
		"a", "a/b", "a/", "/", "//", "a/b/c", "a%2Fb", "a%", "a%rw", "%", "\x00", "\xff", "a\xff",
		strings.Repeat("/", 4096),
	}
	owner := adaptertest.Owner()
	for _, name := range all {
		require.True(t, adaptertest.Try(t, c.Mutex(name), owner), "%q", name)
		require.True(t, adaptertest.Try(t, c.RWMutex(name).WriteLocker(), owner), "%q", name)
		require.False(t, adaptertest.Try(t, c.Mutex(name), adaptertest.Owner()))
	}
	other := open(t, conn, etcdlock.WithPrefix("p/"))
	require.True(t, adaptertest.Try(t, other.Mutex("a"), owner))
	require.NoError(t, other.Mutex("a").UnlockContext(owner))
	for _, name := range all {
		require.NoError(t, c.Mutex(name).UnlockContext(owner))
		require.NoError(t, c.RWMutex(name).WriteLocker().UnlockContext(owner))
	}
	resp, err := conn.Get(background, "\x00", clientv3.WithFromKey())
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
}

func TestWrongNamesLeasesAndClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	conn := connect(t, s.addr)
	c := open(t, conn)
	for _, l := range []*lease.Mutex{
		c.Mutex(""), c.Mutex(strings.Repeat("x", 4097)), c.MutexLocker(""), c.Mutex("it", lease.WithFixedTTL(0)),
		c.Mutex("it", lease.WithFixedTTL(-time.Second)), c.Mutex("it", lease.WithFixedTTL(time.Microsecond)),
		c.RWMutex("").ReadMutex(), c.RWMutex("").WriteMutex(),
	} {
		ok, err := l.TryLockContext(background)
		require.False(t, ok)
		require.Error(t, err)
		require.Error(t, l.LockContext(background))
		require.ErrorIs(t, l.UnlockContext(background), locks.ErrNotHeld)
	}
	require.Empty(t, keys(t, conn, ""))

	_, err := etcdlock.New(nil)
	require.Error(t, err)
	_, err = etcdlock.New(conn, etcdlock.WithTTL(-1))
	require.Error(t, err)
	_, err = etcdlock.New(conn, etcdlock.WithPrefix(strings.Repeat("x", 4097)))
	require.Error(t, err)
}

func TestAKeyWithoutLeaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	conn := connect(t, s.addr)
	c := open(t, conn)
	for _, l := range []*lease.Mutex{
		c.Mutex("it"), c.RWMutex("rw").ReadMutex(), c.RWMutex("rw").WriteMutex(),
	} {
		key := map[string]string{"it": "it/config", "rw%rw": "rw%rw/write/config"}[l.Name()]
		_, err := conn.Put(background, key, "data")
		require.NoError(t, err)
		ok, err := l.TryLockContext(adaptertest.Owner())
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrForeign)
		require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
		queued(t, conn, l.Name()+"/", 1)
		resp, err := conn.Get(background, key)
		require.NoError(t, err)
		require.Equal(t, "data", string(resp.Kvs[0].Value))
	}
}
