package zzcheck

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/bench"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/spin"
)

func ctxsw() string {
	b, _ := os.ReadFile("/proc/stat")
	return strings.SplitN(string(b), "\n", 2)[0]
}

func TestMaxWait(t *testing.T) {
	for range 2 {
		for _, k := range []struct {
			n string
			f func() sync.Locker
		}{{"fair", func() sync.Locker { return new(fair.Mutex) }}, {"ticket", func() sync.Locker { return new(spin.Ticket) }}, {"sync", func() sync.Locker { return new(sync.Mutex) }}} {
			var maxs []string
			over := 0
			for range 8 {
				r, err := bench.Contend(context.Background(), k.f(), bench.Contest{Goroutines: 64, For: 400 * time.Millisecond, Inside: 300, Outside: 300, Sample: 1})
				if err != nil {
					t.Fatal(err)
				}
				maxs = append(maxs, r.Waits.Max().Round(10*time.Microsecond).String())
				if r.Waits.Max() > 5*time.Millisecond {
					over++
				}
				if k.n == "fair" {
					fmt.Print("  q999 ", r.Waits.Quantile(0.999), " q9999 ", r.Waits.Quantile(0.9999), " perop ", int(r.PerOp()), "\n")
				}
			}
			t.Log(k.n, over, maxs)
		}
	}
	t.Log(ctxsw())
}
