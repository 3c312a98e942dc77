package dynamolock_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestLocksPassTheKitOnKumo(t *testing.T) { prove(t, startKumo(t), 0) }

func TestLocksPassTheKitOnMoto(t *testing.T) { prove(t, startMoto(t), 20*time.Second) }

// prove runs the kit on the locks of a server. The limit is for a wait, which takes longer on a
// slow server.
func prove(t *testing.T, addr string, limit time.Duration) {
	t.Parallel()
	direct := dial(t, addr)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			return open(tb, dialBy(tb, addr, link.DialContext), dynamolock.WithLeaseOptions(opts...))
		},
		Foreign: func(tb testing.TB, name string) {
			put(tb, direct, name, map[string]string{"camera": "a photograph"})
		},
		Limit: limit,
		Rest: func(tb testing.TB, name string) {
			data, ok := attribute(read(tb, direct, name), "lock")
			if ok && strings.HasPrefix(data, `{"caslock"`) {
				r, err := caslock.JSON.Decode([]byte(data))
				require.NoError(tb, err)
				assert.NotZero(tb, r.Token)
			}
		},
	})
}

func TestSemaphoresPassTheKit(t *testing.T) {
	addr := startKumo(t)
	direct := dial(t, addr)
	adaptertest.TestSemaphores(t, adaptertest.Semaphores{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
			return open(tb, dialBy(tb, addr, link.DialContext), dynamolock.WithLeaseOptions(opts...))
		},
		Get: func(tb testing.TB, key string) string {
			data, _ := attribute(read(tb, direct, key), "lock")
			return data
		},
		Put: func(tb testing.TB, key, data string) { put(tb, direct, key, map[string]string{"camera": data}) },
	})
}

// races has eight writers replace one version at once, many times.
func races(t *testing.T, addr string, rounds int) {
	var writers [8]caslock.Documents
	for i := range writers {
		d, err := dynamolock.NewDocuments(dial(t, addr), table)
		require.NoError(t, err)
		writers[i] = d
	}
	name, version := "", ""
	for round := range rounds {
		if round%10 == 0 || version == "" { // a race of creations
			name, version = unused(), ""
		}
		var won [len(writers)]string
		var unknown atomic.Bool // of one whose answer was lost
		var wg sync.WaitGroup
		for i, d := range writers {
			wg.Go(func() {
				var err error
				won[i], err = d.Swap(t.Context(), name, []byte("data"), version)
				if err != nil && !errors.Is(err, caslock.ErrConflict) {
					unknown.Store(true)
				}
			})
		}
		wg.Wait()
		winners := slices.DeleteFunc(won[:], func(v string) bool { return v == "" })
		require.LessOrEqual(t, len(winners), 1, "several writers have replaced version %q", version)
		if unknown.Load() {
			version = ""
			continue
		}
		require.Len(t, winners, 1, "nobody has replaced version %q", version)
		version = winners[0]
	}
}

func TestOneOfEightWritersWins(t *testing.T) {
	t.Parallel()
	for server, rounds := range map[string]int{"kumo": 1000, "moto": 200} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			races(t, servers[server](t), rounds)
		})
	}
}
