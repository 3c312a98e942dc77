package explore_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/lockstest/explore"
)

func opposite(x *explore.X) {
	var a, b fair.Mutex
	x.Go("a, b", func() {
		a.Lock()
		b.Lock()
		b.Unlock()
		a.Unlock()
	})
	x.Go("b, a", func() {
		b.Lock()
		a.Lock()
		a.Unlock()
		b.Unlock()
	})
}

func counts(x *explore.X) {
	var m fair.Mutex
	n := 0
	for range 2 {
		x.Go("adds", func() {
			m.Lock()
			n++
			m.Unlock()
		})
	}
	x.Wait()
	require.Equal(x, 2, n)
}

func TestRunPassesACorrectProgram(t *testing.T) { explore.Run(t, counts) }

func TestRunFindsAnExpectedDeadlock(t *testing.T) {
	explore.Run(t, opposite, explore.Expect(explore.Deadlock))
}

func TestRunReplaysAPrintedSchedule(t *testing.T) {
	explore.Run(t, opposite, explore.Replay("2:2"), explore.Expect(explore.Deadlock))
}

// purpose is the environment variable that has TestRunOnPurpose fail in one of several ways.
const purpose = "LOCKS_EXPLORE_PURPOSE"

func TestRunOnPurpose(t *testing.T) {
	switch os.Getenv(purpose) {
	case "deadlock":
		explore.Run(t, opposite)
	case "correct":
		explore.Run(t, counts)
		explore.Run(t, counts)
	case "short":
		explore.Run(t, func(x *explore.X) { x.Check(!testing.Short(), "tests are short") })
	case "incomplete":
		explore.Run(t, counts, explore.Schedules(3))
	case "incomplete fails":
		explore.Run(t, counts, explore.Schedules(3), explore.Complete())
	case "nothing":
		explore.Run(t, counts, explore.Expect(explore.Deadlock))
	case "idle":
		explore.Run(t, func(x *explore.X) {
			var m sync.Mutex
			for range 2 {
				x.Go("locks", func() {
					m.Lock()
					m.Unlock()
				})
			}
			x.Wait()
		})
	case "unfit":
		explore.Run(t, counts, explore.Replay("3:200"))
	case "test":
		explore.Run(t, func(x *explore.X) {
			n := 0
			x.Go("sets", func() {
				x.Step()
				n = 1
			})
			x.Wait()
			if n == 1 {
				t.Error("the test says so itself")
			}
		})
	case "mutex":
		explore.SetStall(time.Second)
		explore.Run(t, func(x *explore.X) {
			var m sync.Mutex
			for range 2 {
				x.Go("locks", func() {
					m.Lock()
					x.Step()
					m.Unlock()
				})
			}
		})
	case "once":
		explore.SetStall(time.Second)
		t.Run("hangs", func(t *testing.T) {
			explore.Run(t, func(x *explore.X) {
				var m fair.Mutex
				var once sync.Once
				x.Go("begins", func() {
					once.Do(func() {
						m.Lock()
						m.Unlock()
					})
				})
				x.Go("uses", func() {
					m.Lock()
					once.Do(func() {})
					m.Unlock()
				})
			})
		})
		t.Run("other", func(t *testing.T) { explore.Run(t, counts) })
	case "once in order":
		explore.Run(t, func(x *explore.X) {
			var m fair.Mutex
			var once sync.Once
			n := 0
			for range 2 {
				x.Go("uses", func() {
					once.Do(func() {
						m.Lock()
						n++
						m.Unlock()
					})
					m.Lock()
					x.Check(n == 1, "n is %d", n)
					m.Unlock()
				})
			}
		})
	case "foreign panic":
		t.Run("panics", func(t *testing.T) {
			explore.Run(t, func(x *explore.X) {
				var m fair.Mutex
				go func() { m.Unlock() }()
				m.Lock()
				m.Unlock()
			})
		})
		t.Run("other", func(t *testing.T) { explore.Run(t, counts) })
	case "spins":
		explore.SetHang(time.Second)
		t.Run("hangs", func(t *testing.T) {
			explore.Run(t, func(x *explore.X) {
				var m fair.Mutex
				c := make(chan int)
				x.Go("sends", func() {
					m.Lock()
					m.Unlock()
					close(c)
				})
				for open := true; open; {
					select {
					case <-c:
						open = false
					default:
					}
				}
			})
		})
		t.Run("other", func(t *testing.T) { explore.Run(t, counts) })
	case "race":
		explore.Run(t, func(x *explore.X) {
			n := 0
			for range 2 {
				x.Go("adds", func() {
					x.Step()
					n++
				})
			}
		})
	}
}

// onPurpose runs TestRunOnPurpose in a process of its own. The process builds no tests with the
// tag.
func onPurpose(t *testing.T, binary, how string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(binary, append(args, "-test.run=^TestRunOnPurpose$")...)
	cmd.Env = append(os.Environ(), purpose+"="+how, explore.Given+"="+explore.Tagged(t))
	all, err := cmd.CombinedOutput()
	return string(all), err
}

// fails returns what Run must say about a program. The process has the tag.
func fails(t *testing.T, how string) string {
	t.Helper()
	out, err := onPurpose(t, explore.Tagged(t), how, "-test.count=1")
	require.Error(t, err, "%s", out)
	return out
}

// self returns the binary of this process, which may lack the tag.
func self(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	return binary
}

func TestRunExploresOnceForEachCount(t *testing.T) {
	out, err := onPurpose(t, self(t), "correct", "-test.count=2", "-test.v")
	require.NoError(t, err, "%s", out)
	require.Equal(t, 4, strings.Count(out, "explore: no finding in"), "%s", out)
}

func TestRunSaysWithoutVerbosityThatASearchIsIncomplete(t *testing.T) {
	for _, binary := range []string{self(t), explore.Tagged(t)} {
		out, err := onPurpose(t, binary, "incomplete", "-test.count=1")
		require.NoError(t, err, "%s", out)
		require.Equal(t, 1, strings.Count(out, "explore: incomplete search of TestRunOnPurpose: "), "%s", out)
		out, err = onPurpose(t, binary, "correct", "-test.count=1")
		require.NoError(t, err, "%s", out)
		require.NotContains(t, out, "incomplete")
	}
}

func TestCompleteFailsAnIncompleteSearch(t *testing.T) {
	require.Contains(t, fails(t, "incomplete fails"), "the search was not complete")
}

func TestRunExploresShortTestsAsShort(t *testing.T) {
	out, err := onPurpose(t, self(t), "short", "-test.short", "-test.count=1")
	require.Error(t, err, "%s", out)
	require.Contains(t, out, "tests are short")
}

func TestRunPassesOnTheReportOfItsProcess(t *testing.T) {
	out, err := onPurpose(t, self(t), "deadlock", "-test.count=1")
	require.Error(t, err, "%s", out)
	require.Contains(t, out, "explore: deadlock:")
	require.Contains(t, out, `explore.Replay("2:2")`)
}

func TestRunReportsADeadlockWithItsReplay(t *testing.T) {
	out := fails(t, "deadlock")
	require.Contains(t, out, "explore: deadlock:")
	require.Contains(t, out, `explore.Replay("2:2")`)
	require.Contains(t, out, "held by")
	require.Contains(t, out, "run_test.go:")
}

func TestRunFailsIfAnExpectedFindingIsMissing(t *testing.T) {
	require.Contains(t, fails(t, "nothing"), "but a deadlock was expected")
}

func TestRunFailsIfThereIsNothingToDecide(t *testing.T) {
	require.Contains(t, fails(t, "idle"), "used no lock of this module")
}

func TestRunFailsIfAScheduleDoesNotFit(t *testing.T) {
	require.Contains(t, fails(t, "unfit"), "does not fit the program")
}

func TestRunReportsAFailureOfTheTestItself(t *testing.T) {
	out := fails(t, "test")
	require.Contains(t, out, "the test says so itself")
	require.Contains(t, out, "explore: failed check:")
	require.NotContains(t, out, "has not shown it again")
}

func TestRunNamesTheMutexOfSyncThatStopsIt(t *testing.T) {
	out := fails(t, "mutex")
	require.Contains(t, out, "explore: a run does not go on")
	require.Contains(t, out, "a fair.BargingMutex in its place")
	require.Regexp(t, `locks waits for a lock of package sync at run_test.go:\d+`, out)
	require.Regexp(t, `locks is stopped at a decision at run_test.go:\d+`, out)
	require.Contains(t, out, "sync.(*Mutex).Lock")
}

func TestAHangingRunFailsItsTestAlone(t *testing.T) {
	for how, says := range map[string][]string{
		"once": {
			"explore: deadlock:", `uses is blocked outside of locks at run_test.go:\d+,\n +holds fair.Mutex#1 at run_test.go:\d+`,
			`begins waits in Lock of fair.Mutex#1 at run_test.go:\d+,\n +held by uses`, `explore.Replay`,
		},
		"spins": {"explore: a run does not go on", "TestRunOnPurpose.func"},
	} {
		out, err := onPurpose(t, explore.Tagged(t), how, "-test.count=1", "-test.v")
		require.Error(t, err, "%s", out)
		for _, s := range says {
			require.Regexp(t, s, out)
		}
		require.Regexp(t, `run_test.go:\d+`, out)
		require.Contains(t, out, "--- FAIL: TestRunOnPurpose/hangs")
		require.Contains(t, out, "--- PASS: TestRunOnPurpose/other")
	}
}

func TestASyncOnceThatUsesALockIsExplored(t *testing.T) {
	out, err := onPurpose(t, explore.Tagged(t), "once in order", "-test.count=1", "-test.v")
	require.NoError(t, err, "%s", out)
	require.Contains(t, out, "no finding in")
}

// The process with the tag ends, and the process of go test goes on.
func TestAPanicOfAGoroutineWithoutGoFailsItsTestAlone(t *testing.T) {
	if sched.On {
		return // the process ends, as each one with a panic
	}
	out, err := onPurpose(t, self(t), "foreign panic", "-test.count=1", "-test.v")
	require.Error(t, err, "%s", out)
	require.Contains(t, out, "lock not held by the caller")
	require.Regexp(t, `run_test.go:\d+`, out)
	require.Contains(t, out, "--- FAIL: TestRunOnPurpose/panics")
	require.Contains(t, out, "--- PASS: TestRunOnPurpose/other")
}

func TestRunHidesNoDataRaceFromTheDetector(t *testing.T) {
	if !raceorder.Enabled {
		return // this is a test of the race detector
	}
	out := fails(t, "race")
	require.Contains(t, out, "WARNING: DATA RACE")
	require.Contains(t, out, "explore: data race")
}
