package onrueidis_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// reads returns how often a server has read requests.
func reads(t *testing.T, addr string) (n int) {
	t.Helper()
	const name = "total_reads_processed:"
	for line := range strings.Lines(suite.Connect(t, addr).Info(context.Background(), "stats").Val()) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, err := fmt.Sscan(rest, &n)
			require.NoError(t, err)
		}
	}
	return n
}

func TestManyGoroutinesRequestsAreSentTogether(t *testing.T) {
	t.Parallel()
	s := suite.StartServer(t)
	c := open(t, single(t, s.Addr))
	const turns = 100
	goroutines := 32 * runtime.GOMAXPROCS(0) // many for each lane
	before := reads(t, s.Addr)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			a := suite.Someone()
			for i := range turns {
				l := c.Mutex(fmt.Sprint(g, ":", i))
				if !assert.NoError(t, l.LockContext(a)) || !assert.NoError(t, l.UnlockContext(a)) {
					return
				}
			}
		})
	}
	wg.Wait()
	// It is about 0.2. Alone, each acquisition and each release is read by itself.
	each := float64(reads(t, s.Addr)-before) / float64(goroutines*turns)
	require.Less(t, each, 1.0, "reads of an acquisition with its release")
}
