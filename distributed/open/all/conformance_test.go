package all_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

// The adapters check their locks themselves. This checks what the connections are made of here.
func TestLocksOfAStoreConform(t *testing.T) {
	for _, p := range places {
		if !slices.Contains([]string{"mem", "file", "sqlite", "redis"}, p.name) {
			continue
		}
		at := p.start(t)
		for kind := range strings.FieldsSeq(p.kinds) {
			t.Run(p.name+" "+kind, func(t *testing.T) {
				type store struct {
					*open.Client
					name string
				}
				stores := make(map[locks.TryLocker]store)
				config := lockstest.Config{
					New: func(tb testing.TB) locks.TryLocker {
						s := store{
							opened(tb, at+"&kind="+kind, open.WithTTL(testbed.ConformanceLease(tb))),
							fmt.Sprintf("%s %d", kind, len(stores)),
						}
						l := s.Locker(s.name)
						stores[l] = s
						return l
					},
					Reentrant:   true,
					Leased:      p.name != "mem",
					FIFO:        p.name != "mem" || kind == "fair",
					SpuriousTry: p.name != "mem",
					Waiting: func(l locks.TryLocker) int {
						return l.(interface{ QueueLength() int }).QueueLength()
					},
					Rounds:  12,
					Settle:  5 * time.Millisecond,
					Timeout: testbed.Hang,
				}
				if slices.Contains(strings.Fields(p.forced), kind) {
					config.Lose = func(l locks.TryLocker) {
						s := stores[l]
						if freed, err := s.ForceUnlock(context.Background(), s.name); err != nil || !freed {
							panic(fmt.Sprint(freed, err))
						}
					}
				}
				lockstest.TestTryLocker(t, config)
			})
		}
	}
}
