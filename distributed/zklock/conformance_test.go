package zklock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/ephemeral"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

// kinds are the kinds of exclusive locks. dir is where the holder's node is.
var kinds = map[string]struct {
	lock      func(c *zklock.Client, name string) *lease.Mutex
	dir       string
	reentrant bool
}{
	"mutex":     {func(c *zklock.Client, name string) *lease.Mutex { return c.Mutex(name) }, "", true},
	"semaphore": {(*zklock.Client).SemaphoreMutex, "/leases", false},
	"ephemeral": {ephemeral.New, "", true},
	"write":     {func(c *zklock.Client, name string) *lease.Mutex { return write(c.RWMutex(name)) }, "", true},
}

var names atomic.Int64

func conformance(server *testbed.ZooKeeper) lockstest.Config {
	return lockstest.Config{
		Owned:       true,
		Leased:      true,
		SpuriousTry: true, // another local attempt may be failing
		Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Rounds:      20,
		Settle:      10 * time.Millisecond,
		Timeout:     testbed.Hang,
	}
}

func TestLocksConform(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			cfg := conformance(s)
			cfg.Reentrant = kind.reentrant
			cfg.FIFO = true
			cfg.New = func(tb testing.TB) locks.TryLocker {
				return kind.lock(open(tb, s.Addr()), fmt.Sprintf("/conform/%d", names.Add(1)))
			}
			cfg.Lose = func(l locks.TryLocker) {
				path := l.(*lease.Mutex).Name()
				direct.clear(path + kind.dir)
				if name == "ephemeral" {
					direct.Delete(path, -1)
				}
			}
			lockstest.TestTryLocker(t, cfg)
		})
	}
}

func TestReadLocksConform(t *testing.T) {
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	writers := make(map[locks.TryLocker]*lease.Mutex)
	cfg := conformance(s)
	cfg.Reentrant = true
	cfg.Waiting = nil // readers do not queue locally
	cfg.New = func(tb testing.TB) locks.TryLocker {
		rw := open(tb, s.Addr()).RWMutex(fmt.Sprintf("/conform/%d", names.Add(1)))
		writers[read(rw)] = write(rw)
		return read(rw)
	}
	cfg.Exclusive = func(l locks.TryLocker) locks.TryLocker { return writers[l] }
	cfg.Lose = func(l locks.TryLocker) { direct.clear(l.(*lease.Mutex).Name()) }
	lockstest.TestTryLocker(t, cfg)
}
