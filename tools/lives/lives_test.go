package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const output = `=== RUN   TestLivesOfLocks
=== RUN   TestLivesOfLocks/plain
    simulate.go:135: seed 7 begins
    simulate.go:135: seed 7: 14s simulated in 1 lives: 30 acquisitions, 400 requests, 3 losses, 5 faults, in 600ms
    simulate.go:135: seed 8 begins
    simulate.go:135: seed 8: 7s simulated in 1 lives: 10 acquisitions, 100 requests, 0 losses, 2 faults, in 400ms
    simulate.go:135: 21s simulated in 2 lives: 40 acquisitions, 500 requests, 3 losses, 7 faults
=== RUN   TestLivesOfLocks/fair
    simulate.go:135: seed 9 begins
    simulate.go:135: seed 9: 1h30m0s simulated in 1 lives: 4 acquisitions, 50 requests, 0 losses, 1 faults, in 3s
    simulate.go:135: seed 9 is broken at 1s: no two holds are valid at once: live it again by go test
    simulate.go:120: seed 9 is broken at 1s: no two holds are valid at once: live it again by go test
        the hold of process 1
--- FAIL: TestLivesOfLocks (4.00s)
    --- PASS: TestLivesOfLocks/plain (1.00s)
    --- FAIL: TestLivesOfLocks/fair (3.00s)
FAIL
`

func TestTheOutputOfARunIsRead(t *testing.T) {
	all := read(output, 8*time.Second)
	for test, want := range map[string]sums{
		"TestLivesOfLocks/plain": {
			Hours: 21.0 / 3600, Lives: 2, Acquisitions: 40, Requests: 500, Losses: 3, Faults: 7, Processor: 2,
		},
		"TestLivesOfLocks/fair": {Hours: 1.5, Lives: 1, Acquisitions: 4, Requests: 50, Faults: 1, Processor: 6, Failures: 1},
	} {
		got := all[test]
		if got == nil || math.Abs(got.Hours-want.Hours) > 1e-9 {
			t.Fatalf("%s: %+v, want %+v", test, got, want)
		}
		if got.Hours = want.Hours; *got != want {
			t.Errorf("%s: %+v, want %+v", test, got, want)
		}
	}
	if len(all) != 2 {
		t.Errorf("%d tests, want 2", len(all))
	}
}

func TestARunThatIsStoppedCountsWhatHasEnded(t *testing.T) {
	stopped, _, _ := strings.Cut(output, "    simulate.go:135: seed 8:")
	all := read(stopped, time.Second)
	if s := all["TestLivesOfLocks/plain"]; len(all) != 1 || s == nil || s.Acquisitions != 30 || failures(all) > 0 {
		t.Errorf("%+v", all)
	}
}

func TestThePageHasToTellTheHoursOfTheGate(t *testing.T) {
	page := filepath.Join(t.TempDir(), "stores.md")
	rows := "| each gate, full of faults: all stores | 4.6 | 44,000 | 13,000 |\n" +
		"| each gate, as a service: a store in memory | 4 | 1,300 | 2 |\n"
	if err := os.WriteFile(page, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		faults, service float64
		failures        int
		right           bool
	}{{4.62, 4, 0, true}, {4.8, 4, 0, false}, {4.6, 3.8, 0, false}, {4.62, 4, 1, false}} {
		a := account{worlds: map[string]*sums{
			"caslock OfLocks gate":                 {Hours: 1.6},
			"leasetest Of/plain gate":              {Hours: c.faults - 1.6, Failures: c.failures},
			"leasetest TestAServiceLivesLong gate": {Hours: c.service},
		}}
		if err := a.comparePage(page); (err == nil) != c.right {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := os.WriteFile(page, []byte("no table"), 0o600); err != nil {
		t.Fatal(err)
	}
	if new(account).comparePage(page) == nil {
		t.Error("a page without the rows passes")
	}
}

func TestTheLedgerAddsRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.json")
	for range 2 {
		a, err := openAccount(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.add(job{pkg: "a/redislock", service: true}, read(output, time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := openAccount(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := a.worlds["redislock OfLocks/fair service"]; s == nil || math.Abs(s.Hours-3) > 1e-9 {
		t.Errorf("the ledger has of fair locks: %+v", s)
	}
	if s := a.worlds["redislock OfLocks/plain service"]; s == nil || s.Faults != 14 {
		t.Errorf("the ledger has of plain locks: %+v", s)
	}
}
