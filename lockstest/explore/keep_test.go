//go:build lockexplore

package explore

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
)

// lost is a program with a mistake that needs a preemption. The balance is checked if right is
// false.
func lost(right bool) func(x *X) {
	return func(x *X) {
		var m fair.Mutex
		n := 0
		for range 2 {
			x.Go("adds", func() {
				m.Lock()
				was := n
				m.Unlock()
				m.Lock()
				n = was + 1
				m.Unlock()
			})
		}
		x.Wait()
		x.Check(right || n == 2, "n is %d", n)
	}
}

// keeping searches with Keep, and keeps what it finds.
func keeping(t *testing.T, folder string, f func(x *X), opts ...Option) result {
	t.Helper()
	c := configure(append(opts, Keep(folder)))
	r := search(t, c, f)
	require.NoError(t, r.err)
	require.NoError(t, r.keep(t, c))
	return r
}

// files returns the names of the files that a test has kept.
func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(folder, t.Name()))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for _, f := range all {
		names = append(names, f.Name())
	}
	return names
}

func TestAKeptScheduleIsTriedFirst(t *testing.T) {
	folder := t.TempDir()
	first := keeping(t, folder, lost(false))
	require.NotNil(t, first.finding)
	require.Greater(t, first.schedules, 1)
	require.Len(t, files(t, folder), 1)
	require.Contains(t, first.report(), "The next run tries it first: it is in "+first.to)

	again := keeping(t, folder, lost(false))
	require.NotNil(t, again.finding)
	require.Equal(t, 1, again.schedules)
	require.Equal(t, first.replay(), again.replay())
	require.Contains(t, again.report(), "The schedule was in "+first.to)
	require.Len(t, files(t, folder), 1)
}

func TestAKeptScheduleOfACorrectedProgramIsNoFinding(t *testing.T) {
	folder := t.TempDir()
	require.NotNil(t, keeping(t, folder, lost(false)).finding)
	r := keeping(t, folder, lost(true))
	require.Nil(t, r.finding)
	require.Empty(t, r.elsewhere, "its steps are the same")
	require.NotEmpty(t, r.complete)
}

func TestAKeptScheduleThatLeadsElsewhereIsNamed(t *testing.T) {
	folder := t.TempDir()
	first := keeping(t, folder, lost(false))
	r := keeping(t, folder, correctCounter)
	require.Nil(t, r.finding)
	require.Equal(t, []string{first.to}, r.elsewhere)
	require.Len(t, files(t, folder), 1, "it stays")
}

func correctCounter(x *X) {
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
	x.Check(n == 2, "n is %d", n)
}

func TestAKeptScheduleOfAProgramThatChanceDecidesIsRunAgain(t *testing.T) {
	unlocks := func(*X) bool { return rand.IntN(2) == 0 }
	folder := t.TempDir()
	for !keeping(t, folder, forgets(unlocks)).strayed {
		require.NoError(t, os.RemoveAll(filepath.Join(folder, t.Name()))) // by chance, all runs were alike
	}
	r := keeping(t, folder, forgets(unlocks))
	require.NotNil(t, r.finding)
	require.NotEmpty(t, r.from)
	require.LessOrEqual(t, r.schedules, mostReplays)
}

func TestAnExpectedFindingIsNotKept(t *testing.T) {
	folder := t.TempDir()
	require.NotNil(t, keeping(t, folder, abba, Expect(Deadlock)).finding)
	require.NotNil(t, keeping(t, folder, abba, Replay("2:2")).finding)
	require.Empty(t, files(t, folder))
}

func TestAKeptFileThatIsNoScheduleIsAnError(t *testing.T) {
	for _, text := range []string{"", "2:2", "explore.Replay: x"} {
		folder := t.TempDir()
		c := configure([]Option{Keep(folder)})
		require.NoError(t, os.MkdirAll(c.folderOf(t), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(c.folderOf(t), "a.schedule"), []byte(text), 0o600))
		r := search(t, c, abba)
		require.ErrorContains(t, r.err, "explore: Keep: ")
		require.ErrorContains(t, r.err, "a.schedule")
	}
}
