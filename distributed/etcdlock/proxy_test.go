package etcdlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// behindProxy returns clients of one server: n behind etcd's own proxy, and one without it.
func behindProxy(t *testing.T, n int, opts ...etcdlock.Option) (clients []*etcdlock.Client, direct *etcdlock.Client) {
	t.Helper()
	s := startServer(t)
	proxy := testbed.StartEtcdProxy(t, "", s.addr)
	for range n {
		clients = append(clients, open(t, connect(t, proxy), opts...))
	}
	return clients, open(t, connect(t, s.addr), opts...)
}

func TestAHoldBehindEtcdsProxyOutlivesItsLease(t *testing.T) {
	t.Parallel()
	clients, direct := behindProxy(t, 1, term(6*short))
	l, a := clients[0].Mutex("it"), someone()
	h := hold(t, l, a)
	time.Sleep(15 * short)
	require.NoError(t, h.Err())
	ok, err := direct.Mutex("it").TryLockContext(someone())
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.UnlockContext(a))
}

func TestAWaiterBehindEtcdsProxyOutlivesItsLease(t *testing.T) {
	t.Parallel()
	clients, direct := behindProxy(t, 1, term(6*short))
	holder, l := direct.Mutex("it"), clients[0].Mutex("it")
	a, b, c := someone(), someone(), someone()
	hold(t, holder, a)
	first := start(l, b)
	require.Eventually(t, func() bool {
		info, err := direct.Mutex("it").Inspect(background)
		return err == nil && len(info.Waiters) == 1
	}, long, 10*time.Millisecond)
	time.Sleep(15 * short)
	second := start(holder, c) // behind the waiter, which has kept its place
	time.Sleep(short)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, result(t, first))
	require.NoError(t, l.UnlockContext(b))
	require.NoError(t, result(t, second))
	require.NoError(t, holder.UnlockContext(c))
}

func TestManyHoldsBehindEtcdsProxyOutliveTheirLease(t *testing.T) {
	t.Parallel()
	clients, _ := behindProxy(t, 1, term(6*short))
	a := someone()
	var holds []locks.Hold
	for i := range 200 { // more than one batch of renewals
		holds = append(holds, hold(t, clients[0].Mutex(fmt.Sprint("it", i)), a))
	}
	time.Sleep(15 * short)
	for _, h := range holds {
		require.NoError(t, h.Err())
	}
}
