package etcdlock_test

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

// behindEachProxy runs test behind the proxy of each version of etcd. The empty one is Debian's.
func behindEachProxy(t *testing.T, test func(t *testing.T, version string)) {
	for _, version := range []string{"", "3.5", "3.6"} {
		t.Run(cmp.Or(version, "installed"), func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

// behindProxy returns clients of one server of a version: n behind etcd's own proxy, and one
// without it.
func behindProxy(t *testing.T, version string, n int) (clients []*etcdlock.Client, direct *etcdlock.Client) {
	t.Helper()
	opts := term(6 * short)
	s := startCluster(t, version, 1)[0]
	proxy := testbed.StartEtcdProxy(t, version, s.addr)
	for range n {
		clients = append(clients, open(t, connect(t, proxy), opts))
	}
	return clients, open(t, connect(t, s.addr), opts)
}

func TestAHoldBehindEtcdsProxyOutlivesItsLease(t *testing.T) {
	t.Parallel()
	behindEachProxy(t, func(t *testing.T, version string) {
		clients, direct := behindProxy(t, version, 1)
		l, a := clients[0].Mutex("it"), adaptertest.Owner()
		h := adaptertest.Hold(t, l, a)
		time.Sleep(15 * short)
		require.NoError(t, h.Err())
		ok, err := direct.Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAWaiterBehindEtcdsProxyOutlivesItsLease(t *testing.T) {
	t.Parallel()
	behindEachProxy(t, func(t *testing.T, version string) {
		clients, direct := behindProxy(t, version, 1)
		holder, l := direct.Mutex("it"), clients[0].Mutex("it")
		a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()
		adaptertest.Hold(t, holder, a)
		first := adaptertest.Start(l, b)
		require.Eventually(t, func() bool {
			info, err := direct.Mutex("it").Inspect(background)
			return err == nil && len(info.Waiters) == 1
		}, long, 10*time.Millisecond)
		time.Sleep(15 * short)
		second := adaptertest.Start(holder, c) // behind the waiter, which has kept its place
		time.Sleep(short)
		require.NoError(t, holder.UnlockContext(a))
		require.NoError(t, adaptertest.Result(t, first))
		require.NoError(t, l.UnlockContext(b))
		require.NoError(t, adaptertest.Result(t, second))
		require.NoError(t, holder.UnlockContext(c))
	})
}

func TestManyHoldsBehindEtcdsProxyOutliveTheirLease(t *testing.T) {
	t.Parallel()
	behindEachProxy(t, func(t *testing.T, version string) {
		clients, _ := behindProxy(t, version, 1)
		a := adaptertest.Owner()
		var holds []locks.Hold
		for i := range 200 { // more than one batch of renewals
			holds = append(holds, adaptertest.Hold(t, clients[0].Mutex(fmt.Sprint("it", i)), a))
		}
		time.Sleep(15 * short)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
	})
}
