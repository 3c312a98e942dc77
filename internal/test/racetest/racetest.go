//go:build race

package racetest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ways are ways to run f under a hold of a lock, by name.
type Ways[L any] map[string]func(l *L, f func())

// unseen sends a signal that orders two goroutines in time, but not for the race detector.
type unseen chan struct{}

func (c unseen) send() {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	c <- struct{}{}
}

func (c unseen) receive() {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	<-c
}

// InTurn runs first and then second, in goroutines that only a lock orders.
func InTurn(first, second func()) {
	turn := make(unseen)
	var wg sync.WaitGroup
	wg.Go(func() { first(); turn.send() })
	wg.Go(func() { turn.receive(); second() })
	wg.Wait()
}

const childEnv = "LOCKS_RACE_CHILD"

// WritesAreReported fails unless the detector reports two writes under the read lock that happen
// one after the other, for each way to read. The report must name the file of the caller. A child
// process performs the writes, because the report would fail the process of the test.
func WritesAreReported[L any](t *testing.T, file string, reading Ways[L]) {
	if way := os.Getenv(childEnv); way != "" {
		l := new(L)
		read := reading[way]
		var n int
		InTurn(func() { read(l, func() { n++ }) }, func() { read(l, func() { n++ }) })
		return
	}
	test := t.Name()
	for way := range reading {
		t.Run(way, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$")
			child.Env = append(os.Environ(), childEnv+"="+way, "GORACE=exitcode=66")
			report, err := child.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(report), "WARNING: DATA RACE")
			require.True(t, strings.Contains(string(report), file), "%s is not in the report: %s", file, report)
		})
	}
}

// ExclusiveHoldsAreOrdered performs accesses under each pair of holds that exclude each other. The
// test fails by the detector's report if it does not know their order.
func ExclusiveHoldsAreOrdered[L any](t *testing.T, reading, writing Ways[L]) {
	for wName, write := range writing {
		for other, next := range writing {
			t.Run(wName+", then to write by "+other, func(t *testing.T) {
				l := new(L)
				var n int
				InTurn(func() { write(l, func() { n++ }) }, func() { next(l, func() { n++ }) })
			})
		}
		for rName, read := range reading {
			t.Run(wName+", then to read by "+rName, func(t *testing.T) {
				l := new(L)
				n, sum := 0, 0
				InTurn(func() { write(l, func() { n++ }) }, func() { read(l, func() { sum += n }) })
				require.Equal(t, 1, sum)
			})
			t.Run(rName+", then to write by "+wName, func(t *testing.T) {
				l := new(L)
				n, sum := 0, 0
				InTurn(func() { read(l, func() { sum += n }) }, func() { write(l, func() { n++ }) })
			})
		}
	}
}
