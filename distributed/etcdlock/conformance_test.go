package etcdlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

// open returns a client of c that is closed with the test.
func open(tb testing.TB, c *clientv3.Client, opts ...etcdlock.Option) *etcdlock.Client {
	tb.Helper()
	patient := etcdlock.WithLeaseOptions(adaptertest.Patient)
	ec, err := etcdlock.New(c, append([]etcdlock.Option{patient}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, ec.Close(context.Background())) })
	return ec
}

func term(d time.Duration) etcdlock.Option { return etcdlock.WithTTL(d) }

var names atomic.Int64

// unused returns a name that no other lock has.
func unused() string { return fmt.Sprint("it", names.Add(1)) }

// conform runs the conformance suite on the lock that get returns, and on others of its kind.
func conform(t *testing.T, rounds int, get func(c *etcdlock.Client, name string) (l, exclusive locks.TryLocker),
	opts ...etcdlock.Option) {
	s := lendServer(t)
	direct := connect(t, s.addr)
	_, err := direct.Get(context.Background(), "connects") // before the suite counts goroutines
	require.NoError(t, err)
	exclusive := make(map[locks.TryLocker]locks.TryLocker)
	prefixes := make(map[locks.TryLocker]string)
	cfg := lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			all := append([]etcdlock.Option{term(testbed.ConformanceLease(tb))}, opts...)
			c, name := open(tb, connect(tb, s.addr), all...), unused()
			l, x := get(c, name)
			prefixes[l], prefixes[x] = name, name
			if x != l {
				exclusive[l] = x
			}
			return l
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		SpuriousTry: true, // while another attempt fails
		Lose: func(l locks.TryLocker) {
			_, err := direct.Delete(context.Background(), prefixes[l], clientv3.WithPrefix())
			require.NoError(t, err)
		},
		Rounds:     rounds,
		Goroutines: 4,
		Settle:     20 * time.Millisecond,
		Timeout:    testbed.Hang,
	}
	if l, x := get(open(t, direct), unused()); l != x {
		cfg.Exclusive = func(l locks.TryLocker) locks.TryLocker { return exclusive[l] }
	} else {
		cfg.FIFO = true
		cfg.Waiting = func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() }
	}
	lockstest.TestTryLocker(t, cfg)
}

func TestLocksConform(t *testing.T) {
	for name, opts := range map[string][]etcdlock.Option{
		"cohort": {etcdlock.WithLeaseOptions(lease.WithMaxLocalHandoffs(64))}, "no cohort": nil,
	} {
		t.Run(name, func(t *testing.T) {
			conform(t, 40, func(c *etcdlock.Client, name string) (l, exclusive locks.TryLocker) {
				l = c.Mutex(name)
				return l, l
			}, opts...)
		})
	}
}

func TestWriteLocksConform(t *testing.T) {
	conform(t, 40, func(c *etcdlock.Client, name string) (l, exclusive locks.TryLocker) {
		l = c.RWMutex(name).WriteLocker()
		return l, l
	})
}

func TestReadLocksConform(t *testing.T) {
	conform(t, 40, func(c *etcdlock.Client, name string) (l, exclusive locks.TryLocker) {
		rw := c.RWMutex(name)
		return rw.ReadLocker(), rw.WriteLocker()
	})
}
