package leasetest

import (
	"slices"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
	"github.com/jucgo/locks/internal/test/effort"
)

// resetting are configurations for stores in memory that restart without their last changes, or
// whose clocks jump.
var resetting = map[string]func(s *fakestore.Server, cfg *Config){
	"forgets":     func(s *fakestore.Server, cfg *Config) { cfg.Forget = s.Storing(3 * time.Second) },
	"clock jumps": func(s *fakestore.Server, cfg *Config) { cfg.SetClock = s.SetClock },
	"both": func(s *fakestore.Server, cfg *Config) {
		cfg.Forget, cfg.SetClock = s.Storing(time.Second), s.SetClock
	},
}

// resetSeeds are the seeds of lives that have found something.
var resetSeeds = map[string][]uint64{
	"forgets/watched": {13917571397258169267}, // a hold that was forgotten was handed off in its process
	"both/watched":    {18108831822799458118}, // renewals after a restart did not count
	"both/permits":    {2232403979794659572},  // a hold came back with its earlier token
	"leaders/tied":    {15720413190965565337}, // a later hold had the token of a lost one
	"leaders/full":    {10510892579615636153}, // the same, and it had waited when the earlier one was lost
}

// serviceSeeds are the seeds of services that have found something. A seed is another life without
// the flag -leasetest.service, so they are lived with it only.
var serviceSeeds = map[string][]uint64{
	"forgets/tied":        {9159547788973150833}, // see TestAHolderIsToldOfItsOwnLossOnly
	"clock jumps/permits": {2053440852100735318}, // see TestARefusalTellsTheEndOfTheHoldsThatAreLeft
}

// resets simulates stores of a kind whose servers break promises.
func resets(t *testing.T, how string, kind fakestore.Kind) {
	t.Helper()
	name := how + "/" + string(kind)
	seeds := resetSeeds[name]
	if *service {
		seeds = slices.Concat(seeds, serviceSeeds[name])
	}
	Simulate(t, World{
		For: effort.Part(3 * time.Minute), Seeds: seeds,
		Open: func(testing.TB) Config { return reset(how, kind) },
	})
}

func reset(how string, kind fakestore.Kind) Config {
	s := fakestore.NewServer("")
	cfg := dialing(s, kind, nil)
	cfg.exact = true
	if kind == fakestore.Permits {
		cfg.Semaphore = Semaphores
	}
	resetting[how](s, &cfg)
	return cfg
}

func TestLivesOfStoresThatBreakPromises(t *testing.T) {
	t.Parallel()
	for how := range resetting {
		for _, kind := range []fakestore.Kind{
			fakestore.Polled, fakestore.Watched, fakestore.Queued, fakestore.Tied, fakestore.Full, fakestore.Permits,
		} {
			t.Run(how+"/"+string(kind), func(t *testing.T) { resets(t, how, kind) })
		}
	}
}

func TestLivesOfLeadersByStoresThatBreakPromises(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakestore.Kind{fakestore.Polled, fakestore.Watched, fakestore.Full, fakestore.Tied} {
		t.Run(string(kind), func(t *testing.T) {
			Simulate(t, World{
				For: effort.Part(time.Minute), Seeds: resetSeeds["leaders/"+string(kind)],
				Open: func(tb testing.TB) Config { return electing(tb, reset("both", kind)) },
			})
		})
	}
}

func TestLivesOfMultisOverStoresThatBreakPromises(t *testing.T) {
	t.Parallel()
	for how, members := range multiNames {
		for _, kind := range []fakestore.Kind{fakestore.Watched, fakestore.Queued, fakestore.Full} {
			t.Run(how+"/"+string(kind), func(t *testing.T) {
				Simulate(t, World{
					Servers: 2, For: effort.Part(time.Minute), Seeds: resetSeeds["multis/"+how+"/"+string(kind)],
					Open: func(testing.TB) Config {
						servers := [2]*fakestore.Server{fakestore.NewServer(""), fakestore.NewServer("")}
						cfg := multis(servers, kind, members)
						var both [2]Config
						for i, s := range servers {
							resetting["both"](s, &both[i])
						}
						next := 0
						one := func() Config { // one server after the other
							next++
							return both[next%2]
						}
						cfg.Forget = func() { one().Forget() }
						cfg.SetClock = func(by time.Duration) { one().SetClock(by) }
						return cfg
					},
				})
			})
		}
	}
}
