package natslock_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// write is a write that the servers have acknowledged.
type write struct{ replaced, revision uint64 }

// Each acknowledged write replaces the revision that it names, and is replaced by a write that
// names it. So no two writes replace one revision, and none is lost.
func TestRacingWritesReplaceEachRevisionOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			servers := testbed.StartNATS(t, testbed.NATSCluster{Version: version, Servers: n})
			js := connect(t, strings.Join(addrs(servers), ","))
			bucket := create(t, js, n)
			var done atomic.Bool
			var mu sync.Mutex
			var acknowledged []write
			var wg sync.WaitGroup
			for i := range 8 {
				one := connectFor(t, "nats://"+servers[i%n].Addr(), brief)
				d, err := natslock.NewDocuments(background, one, bucket)
				require.NoError(t, err)
				wg.Go(func() {
					for n := 0; !done.Load(); n++ {
						_, version, err := d.Load(background, "it")
						if err != nil {
							continue
						}
						next, err := d.Swap(background, "it", []byte(fmt.Sprint(i, n)), version)
						if err != nil {
							continue
						}
						var w write
						w.replaced, _ = strconv.ParseUint(version, 10, 64)
						w.revision, _ = strconv.ParseUint(next, 10, 64)
						mu.Lock()
						acknowledged = append(acknowledged, w)
						mu.Unlock()
					}
				})
			}
			// progress waits for writes that begin from now on.
			progress := func() {
				mu.Lock()
				before := len(acknowledged)
				mu.Unlock()
				require.Eventually(t, func() bool {
					mu.Lock()
					defer mu.Unlock()
					return len(acknowledged) >= before+300
				}, long, 10*time.Millisecond)
			}
			progress()
			if n > 1 {
				leads := leader(t, js, bucket, servers)
				leads.Kill()
				progress()
				leads.Start()
				leads.Ready()
				leads = leader(t, js, bucket, servers)
				leads.Pause()
				progress()
				leads.Resume() // it may believe that it still leads
				progress()
			}
			done.Store(true)
			wg.Wait()
			slices.SortFunc(acknowledged, func(a, b write) int { return cmp.Compare(a.revision, b.revision) })
			var last write
			for _, w := range acknowledged {
				require.Less(t, w.replaced, w.revision)
				require.GreaterOrEqual(t, w.replaced, last.revision, "it did not replace the write before it, %v", last)
				last = w
			}
			t.Logf("%d writes", len(acknowledged))
		})
	}
}
