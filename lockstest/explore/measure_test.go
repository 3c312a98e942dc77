//go:build lockexplore

package explore

import (
	"flag"
	"testing"
	"time"

	"github.com/jucgo/locks/fair"
)

// The measurement of docs/guides/finding-mistakes.md:
//
//	go test -tags lockexplore -run TenOperations -v -measure ./lockstest/explore
var measure = flag.Bool("measure", false, "measure 10,000 schedules")

func TestFourGoroutinesWithTenOperationsAreSearched(t *testing.T) {
	n := 20
	if *measure {
		n = 10_000
	}
	began := time.Now()
	r := correct(t, func(x *X) {
		var locks [4]fair.Mutex
		for i := range 4 {
			x.Go("works", func() {
				for k := range 5 { // ten operations
					m := &locks[(i+k)%len(locks)]
					m.Lock()
					m.Unlock()
				}
			})
		}
	}, Schedules(n), Within(time.Hour))
	t.Logf("%d schedules of four goroutines with ten operations each took %v", r.schedules, time.Since(began))
}
