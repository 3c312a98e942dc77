package shmlock_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/shmlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// Only Linux has a futex. Elsewhere the sleeper looks again after its pause.
func TestAReleaseOfAWordWakesASleeper(t *testing.T) {
	path := somewhere(t)
	l, other := open(t, path), open(t, path)
	b := someone()
	defer shmlock.SetSlice(2 * testbed.Hang)()
	for range 20 {
		take(t, l, background)
		done := make(chan error, 1)
		go func() { done <- other.LockContext(b) }()
		time.Sleep(5 * time.Millisecond) // it sleeps on, if nobody wakes it
		require.NoError(t, l.UnlockContext(background))
		require.NoError(t, soon(t, done))
		require.NoError(t, other.UnlockContext(b))
	}
}

// In another time namespace each process seems to have another start time, as if it were another
// process, whose predecessor is dead.
func TestAWordIsRefusedInAnotherTimeNamespace(t *testing.T) {
	path := somewhere(t)
	l := open(t, path)
	take(t, l, background)
	child := testbed.ChildCommand(t, "serve", path)
	args := []string{"--time", "--boottime", "100000"}
	if os.Geteuid() != 0 {
		args = append(args, "--map-root-user")
	}
	cmd := exec.Command(testbed.Lookup(t, "unshare"), append(append(args, "--"), child.Args...)...)
	cmd.Env, cmd.Stdin = child.Env, strings.NewReader("try\n")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), locks.ErrForeign.Error())
	require.Contains(t, string(out), "time namespace")
	require.NotContains(t, string(out), "true", "it took the lock from its holder")
	require.NoError(t, l.UnlockContext(background))
}

func TestAReadOnlyFileIsRefused(t *testing.T) {
	path := somewhere(t)
	require.NoError(t, os.WriteFile(path, nil, 0o444))
	for dir := filepath.Dir(path); dir != os.TempDir(); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	if os.Getuid() == 0 { // the superuser may write everything: this thread is another user for a while
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		require.NoError(t, unix.Setfsuid(65534))
		defer unix.Setfsuid(0)
	}
	_, err := shmlock.Open(path)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NotErrorIs(t, err, locks.ErrForeign)
}
