//go:build !lockexplore

package explore

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheTestsOfThisPackagePassWithTheTag(t *testing.T) {
	binary, err := tagged(t)
	require.NoError(t, err)
	cmd := exec.Command(binary, "-test.count=1", "-test.skip=^TestRun|^Example")
	if !raceEnabled { // with the race detector, the tests have all processors
		cmd.Env = onOneProcessor(os.Environ())
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAProcessOfRunHasOneProcessorUnlessToldOtherwise(t *testing.T) {
	t.Setenv(processors, "")
	require.Equal(t, []string{"A=1", "GOMAXPROCS=1"}, onOneProcessor([]string{"A=1"}))
	t.Setenv(processors, "3")
	require.Equal(t, []string{"GOMAXPROCS=3"}, onOneProcessor([]string{"GOMAXPROCS=3"}))
}

func TestTheOutputIsLoggedLineByLine(t *testing.T) {
	var lines []string
	o := output{log: func(line []byte) { lines = append(lines, string(line)) }}
	for _, s := range []string{"one\ntw", "o", "\n\nthree"} {
		_, err := o.Write([]byte(s))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"one", "two", ""}, lines)
	o.flush()
	require.Equal(t, []string{"one", "two", "", "three"}, lines)
	require.Equal(t, "one\ntwo\n\nthree", o.all.String())
}

func TestTheTaggedProcessEndsBeforeTheTest(t *testing.T) {
	require.Equal(t, 9*time.Second, childTimeout(10*time.Second))
	require.Equal(t, 500*time.Millisecond, childTimeout(time.Second))
	require.Positive(t, childTimeout(-time.Second))
}

func TestTheTaggedBuildKeepsTagsAndLinkerFlags(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "-ldflags", Value: "-X main.version=5"}, {Key: "-tags", Value: "a,b"}}
	flags := buildFlags(settings, "")
	require.Contains(t, flags, "-ldflags=-X main.version=5")
	require.Contains(t, flags, "-tags=a,b,"+Tag)

	require.Contains(t, buildFlags(nil, ""), "-ldflags=-s -w")
	for _, f := range buildFlags(nil, "-trimpath '-ldflags=-X main.version=5'") {
		require.NotContains(t, f, "-ldflags", "those of the environment stay")
	}
}

// copied is set in a process that runs a copy of the test binary, which go test has not started.
const copied = "LOCKS_EXPLORE_COPIED"

func TestTheBinaryIsInAFolderOfItsOwn(t *testing.T) {
	under, removed := parent()
	if os.Getenv(copied) != "" {
		require.False(t, removed, "go test does not remove the folder of a copy")
	}
	if under == "" {
		under = os.TempDir()
	}
	var binary string
	var err error
	t.Run("user", func(t *testing.T) {
		binary, err = tagged(t)
		require.NoError(t, err)
		info, err := os.Stat(filepath.Dir(binary))
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
		}
		require.Equal(t, filepath.Clean(under), filepath.Dir(filepath.Dir(binary)))
	})
	_, err = os.Stat(binary)
	if removed {
		require.NoError(t, err, "it is there for the next test")
	} else {
		require.ErrorIs(t, err, fs.ErrNotExist, "nothing else removes it")
	}
}

func TestABinaryOutsideOfGoTestIsRemoved(t *testing.T) {
	running, err := os.Executable()
	require.NoError(t, err)
	self, err := os.ReadFile(running)
	require.NoError(t, err)
	binary, temporary := filepath.Join(t.TempDir(), "explore.test"), t.TempDir()
	require.NoError(t, os.WriteFile(binary, self, 0o700))
	cmd := exec.Command(binary, "-test.run=^TestTheBinaryIsInAFolderOfItsOwn$", "-test.count=1")
	cmd.Env = append(os.Environ(), copied+"=1", "GOTMPDIR="+temporary)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
