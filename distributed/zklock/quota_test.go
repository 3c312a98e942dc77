package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

// limit makes a server allow n nodes below a directory, which exists.
func (a admin) limit(dir string, n int) {
	a.tb.Helper()
	quota := "/zookeeper/quota" + dir
	limits := fmt.Appendf(nil, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%d", n)
	if _, err := a.Set(quota+"/zookeeper_limits", limits, -1); err != zk.ErrNoNode {
		require.NoError(a.tb, err)
		return
	}
	a.directory(quota)
	for path, data := range map[string][]byte{"/zookeeper_limits": limits, "/zookeeper_stats": []byte("count=0,bytes=0")} {
		_, err := a.Create(quota+path, data, 0, zk.WorldACL(zk.PermAll))
		require.NoError(a.tb, err)
	}
}

// An ensemble can enforce quotas since version 3.7. A request that exceeds a quota is refused until
// nodes are deleted, or the quota is raised.
func TestHoldsAndWaitersOutlastAUsedUpQuota(t *testing.T) {
	t.Parallel()
	s := testbed.StartZooKeeper(t, "enforceQuota=true")
	direct := connect(t, s.Addr())
	direct.directory("/app")
	c, rival := open(t, s.Addr()), open(t, s.Addr())
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, c.Mutex("/app/it"), a)
	waiter := make(chan error, 1)
	go func() { waiter <- rival.Mutex("/app/it").LockContext(b) }()
	direct.queued("/app/it", 2)
	direct.limit("/app", 1)
	_, err := direct.Create("/app/more", nil, 0, zk.WorldACL(zk.PermAll))
	require.ErrorContains(t, err, "-125", "the quota is used up")

	first := make(chan error, 1)
	go func() { first <- c.Mutex("/app/other").LockContext(b) }()
	_, err = c.Mutex("/app/third").TryLockContext(b)
	require.ErrorIs(t, err, lease.ErrUnavailable)
	require.ErrorIs(t, err, lease.ErrRefused)
	stillWaits(t, first)
	require.NoError(t, h.Extend(a, time.Second))
	require.NoError(t, c.Mutex("/app/it").UnlockContext(a), "a release deletes")
	require.NoError(t, <-waiter)
	stillWaits(t, first)
	direct.limit("/app", 100)
	require.NoError(t, <-first)
	require.NoError(t, rival.Mutex("/app/it").UnlockContext(b))
	require.NoError(t, c.Mutex("/app/other").UnlockContext(b))
}

// A server can refuse requests that have waited for their turn for too long. On a busy machine it
// refuses some without a load too.
func TestHoldsAndWaitersOutlastAThrottlingServer(t *testing.T) {
	t.Parallel()
	s := testbed.StartZooKeeper(t, "request_throttle_max_requests=1", "request_throttle_stall_time=100",
		"throttled_op_wait_time=40")
	direct := connect(t, s.Addr())
	c, rival := open(t, s.Addr()), open(t, s.Addr())
	a, b := adaptertest.Owner(), adaptertest.Owner()
	// A client repeats a refused release.
	unlock := func(l *lease.Mutex, owner context.Context) {
		if err := l.UnlockContext(owner); err != nil {
			assert.ErrorIs(t, err, lease.ErrUnavailable)
		}
	}
	adaptertest.Hold(t, c.Mutex("it"), a)
	h := adaptertest.Hold(t, c.Mutex("kept"), a)
	waiter := make(chan error, 1)
	go func() { waiter <- rival.Mutex("it").LockContext(b) }()
	eventually(t, "a waiter", func() bool {
		names, _, err := direct.Children("/it")
		return err == nil && len(names) == 2
	})

	stop := make(chan struct{})
	var load sync.WaitGroup
	for _, conn := range []admin{connect(t, s.Addr()), connect(t, s.Addr()), connect(t, s.Addr())} {
		for range 300 { // so many requests are in the server at a time
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						conn.Set("/zookeeper/config", nil, -1) // which nobody may
					}
				}
			})
		}
	}
	eventually(t, "a refusal", func() bool {
		ok, err := c.Mutex("try").TryLockContext(b)
		if ok {
			unlock(c.Mutex("try"), b)
		}
		return err != nil && strings.Contains(err.Error(), "-127") && errors.Is(err, lease.ErrUnavailable)
	})
	first := make(chan error, 1)
	go func() { first <- c.Mutex("other").LockContext(b) }()
	released := make(chan struct{})
	go func() {
		defer close(released)
		unlock(c.Mutex("it"), a)
	}()
	time.Sleep(500 * time.Millisecond)
	require.NoError(t, h.Err())
	close(stop)
	load.Wait()
	<-released
	require.NoError(t, <-waiter)
	require.NoError(t, <-first)
	require.NoError(t, h.Err())
	unlock(rival.Mutex("it"), b)
	unlock(c.Mutex("other"), b)
	unlock(c.Mutex("kept"), a)
}
