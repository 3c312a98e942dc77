package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TenThousandWaitersHaveOneConnection(t *testing.T, on Driver) {
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	const names, each = 1000, 10
	holder, c := on.Open(t, s.Addr), on.Open(t, s.Addr) // all ask at once
	a := Someone()
	for i := range names {
		require.NoError(t, holder.Mutex(fmt.Sprint("it", i)).LockContext(a))
	}
	got := make(chan error, names*each)
	for i := range names * each {
		go func() {
			l, b := c.Mutex(fmt.Sprint("it", i%names)), Someone()
			err := l.LockContext(b)
			if err == nil {
				err = l.UnlockContext(b)
			}
			got <- err
		}()
	}
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == names }, Hang,
		20*time.Millisecond)
	list, err := direct.Do(Background, "client", "list", "type", "pubsub").Text()
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(list, "\n"), "one of the waiters, and one of the holder")
	require.NoError(t, direct.ClientKillByFilter(Background, "TYPE", "pubsub").Err())
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == names }, Hang,
		20*time.Millisecond, "again")
	for i := range names {
		require.NoError(t, holder.Mutex(fmt.Sprint("it", i)).UnlockContext(a))
	}
	for range names * each {
		require.NoError(t, <-got)
	}
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 0 }, Hang, 20*time.Millisecond)
}
