package leasetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
	"github.com/jucgo/locks/internal/test/effort"
)

// direct is a configuration for a store in memory whose requests take no time there.
func direct(tb testing.TB, flaw fakestore.Flaw, kind fakestore.Kind) Config {
	tb.Helper()
	s := fakestore.NewServer(flaw)
	cfg := dialing(s, kind, nil)
	cfg.exact = true
	if kind == fakestore.Permits {
		cfg.Semaphore = Semaphores
	}
	return cfg
}

// halved is direct for read-write locks.
func halved(tb testing.TB, flaw fakestore.Flaw, _ fakestore.Kind) Config {
	tb.Helper()
	cfg := shared(tb, flaw, "")
	cfg.exact = true
	return cfg
}

// opener opens a store in memory with a flaw.
type opener = func(testing.TB, fakestore.Flaw, fakestore.Kind) Config

func simulates(t *testing.T, open opener, kind fakestore.Kind, seeds ...uint64) {
	t.Helper()
	Simulate(t, World{
		For: effort.Part(10 * time.Minute), Seeds: seeds,
		Open: func(tb testing.TB) Config { return open(tb, "", kind) },
	})
}

// directSeeds are the seeds of lives that have found something.
var directSeeds = map[fakestore.Kind][]uint64{
	fakestore.Tied: {9655500966254720794},
	// A late request shortened a long extension, and a lock that came slowly outlived a failed
	// release.
	fakestore.Queued: {3621920318389626302, 18290862228878709849},
}

func TestLivesOfEachKindOfStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakestore.Kind{
		fakestore.Polled, fakestore.Watched, fakestore.Queued, fakestore.Tied, fakestore.Full, fakestore.Permits,
	} {
		t.Run(string(kind), func(t *testing.T) { simulates(t, direct, kind, directSeeds[kind]...) })
	}
}

func TestLivesOfReadWriteLocks(t *testing.T) {
	t.Parallel()
	simulates(t, halved, "")
}

// connectionSeeds are the seeds of lives that have found something.
var connectionSeeds = map[fakestore.Kind][]uint64{
	fakestore.Queued: {12883172367685312267}, // a lock was freed by force that was acquired meanwhile
}

func TestLivesWithConnections(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakestore.Kind{fakestore.Watched, fakestore.Queued, fakestore.Tied, fakestore.Full} {
		t.Run(string(kind), func(t *testing.T) { simulates(t, fake, kind, connectionSeeds[kind]...) })
	}
}

// set sets a flag for the rest of the test.
func set[T any](t *testing.T, f *T, to T) {
	t.Helper()
	before := *f
	*f = to
	t.Cleanup(func() { *f = before })
}

func TestEachRunHasTheSameSeeds(t *testing.T) {
	t.Setenv("LOCKS_SEARCH", "all")
	set(t, seed, 0)
	set(t, simulated, 0)
	set(t, long, usual)
	var lives []uint64
	Simulate(t, World{For: time.Minute, Seeds: []uint64{7}, Open: func(tb testing.TB) Config {
		lives = append(lives, tb.(quiet).life.plan.seed)
		return direct(tb, "", fakestore.Full)
	}})
	want := []uint64{7}
	for seeds := rand.NewPCG(effort.Seed(t.Name()), 0); len(want) < len(lives); {
		want = append(want, seeds.Uint64())
	}
	if len(lives) < 2 || !slices.Equal(lives, want) {
		t.Errorf("the lives have the seeds %d, not %d", lives, want)
	}
	if check := (&suite{TB: t}).checkSeed(); check != effort.Seed(t.Name()) {
		t.Errorf("the seed of a check is %d", check)
	}
	if effort.Seed("TestOne") == effort.Seed("TestOther") {
		t.Error("two tests have one seed")
	}
}

// It lives no life: a new one may find something.
func TestALongerRunHasNewSeeds(t *testing.T) {
	for name, longer := range map[string]func(t *testing.T){
		"LOCKS_SEARCH": func(t *testing.T) { t.Setenv("LOCKS_SEARCH", "new") },
		"flags": func(t *testing.T) {
			t.Setenv("LOCKS_SEARCH", "")
			set(t, simulated, time.Minute)
			set(t, long, usual+1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			set(t, seed, 0)
			longer(t)
			one, other := lifeSeeds(t.Name()), lifeSeeds(t.Name())
			if one.Uint64() == other.Uint64() {
				t.Error("two runs have one life")
			}
			s := &suite{TB: t}
			if first := s.checkSeed(); first == s.checkSeed() {
				t.Error("two checks have one seed")
			}
		})
	}
}

func TestASearchDoesAPartUnlessItIsAsked(t *testing.T) {
	for search, parts := range map[string][]int{"": {4, 2}, "all": {16}, "new": {16}} {
		t.Setenv("LOCKS_SEARCH", search)
		if got := effort.Part(16); !slices.Contains(parts, got) { // the race detector halves the quarter
			t.Errorf("with %q, a search does %d of 16", search, got)
		}
	}
}

// It is one short life. Tools/lives simulates all worlds as services, for days.
func TestAServiceLivesForHours(t *testing.T) {
	t.Parallel()
	w := World{
		Service: true, For: time.Second, Open: func(tb testing.TB) Config { return direct(tb, "", fakestore.Full) },
	}
	seeds := rand.NewPCG(effort.Seed(t.Name()), 0)
	short := seeds.Uint64()
	for w.withDefaults().plan(short).long > 4*time.Hour {
		short = seeds.Uint64()
	}
	w.Seeds = []uint64{short}
	Simulate(t, w)
}

// lives lives until something is found. On a quiet machine that takes seconds.
func lives(t *testing.T, w World) *finding {
	t.Helper()
	w = w.withDefaults()
	began := time.Now()
	for seed := uint64(1); time.Since(began) < 5*time.Minute; seed++ {
		if f := w.live(t, w.plan(seed)); f != nil {
			return f
		}
	}
	return nil
}

func TestAFindingIsShortened(t *testing.T) {
	w := World{Open: func(tb testing.TB) Config { return direct(tb, fakestore.GivesOften, fakestore.Watched) }}.withDefaults()
	f := lives(t, w)
	if f == nil {
		t.Fatal("nothing is found")
	}
	short := w.shorten(t, f)
	if short.rule != f.rule || len(short.plan.troubles) > 0 {
		t.Errorf("the finding %q needs no fault, and became %q with %d", f.rule, short.rule, len(short.plan.troubles))
	}
	report := short.report("TestMyStore")
	first, _, _ := strings.Cut(report, "\n")
	if again := fmt.Sprintf("-run '^TestMyStore$' -leasetest.seed=%d", short.plan.seed); !strings.Contains(first, again) {
		t.Errorf("the first line has no %q: %s", again, first)
	}
	for _, part := range []string{"broken at", "client 1: "} {
		if !strings.Contains(report, part) {
			t.Errorf("the report has no %q:\n%s", part, report)
		}
	}
}

func TestASeedReplaysItsFinding(t *testing.T) {
	w := World{Open: func(tb testing.TB) Config { return direct(tb, fakestore.GivesOften, fakestore.Watched) }}.withDefaults()
	f := lives(t, w)
	if f == nil {
		t.Fatal("nothing is found")
	}
	for range 20 {
		if again := w.live(t, w.plan(f.plan.seed)); again != nil && again.rule == f.rule {
			return
		}
	}
	t.Errorf("seed %d does not find %q again", f.plan.seed, f.rule)
}

func TestAskLagsWithoutAWorld(t *testing.T) {
	l := NewLink(t)
	n, err := Ask(t.Context(), l, func(ctx context.Context) (int, error) { return 7, ctx.Err() })
	if n != 7 || err != nil {
		t.Error(n, err)
	}
}
