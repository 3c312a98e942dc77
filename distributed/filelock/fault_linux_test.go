package filelock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

// marked reports whether a process says that it waits for the file: it has the byte locked that
// is for that.
func marked(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	l := &unix.Flock_t{Type: unix.F_WRLCK, Start: 1 << 62, Len: 1}
	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, l))
	return l.Type != unix.F_UNLCK
}

func TestAWaitingProcessIsMarkedUntilItAcquires(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	require.False(t, marked(t, path))
	a := someone()
	done := waits(t, l, a)
	require.Eventually(t, func() bool { return marked(t, path) }, 10*time.Second, time.Millisecond)
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.NoError(t, soon(t, done))
	require.False(t, marked(t, path))
}

func TestAWaiterThatIsKilledLeavesNothing(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	a := someone()
	take(t, l, a)
	c.Say("lock")
	require.Eventually(t, func() bool { return marked(t, path) }, 10*time.Second, time.Millisecond)
	c.Kill()
	require.False(t, marked(t, path))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", ask(serving(t, "write", path), "try"))
}

func TestAReadOnlyFileIsLocked(t *testing.T) {
	path, empty := somewhere(t), somewhere(t)
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o444))
	require.NoError(t, os.WriteFile(empty, nil, 0o444))
	for _, file := range []string{path, empty} {
		for dir := filepath.Dir(file); dir != os.TempDir(); dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	c := serving(t, "write", path)
	if os.Getuid() == 0 { // root may write everything, so this thread is another user for a while
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		require.NoError(t, unix.Setfsuid(65534))
		defer unix.Setfsuid(0)
	}
	_, err := os.OpenFile(path, os.O_RDWR, 0)
	require.ErrorIs(t, err, os.ErrPermission)
	l, a := open(t, path), someone()
	take(t, l, a)
	require.Equal(t, "false", ask(c, "try"))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", ask(c, "try"))

	// A counter cannot be written.
	require.NoError(t, l.Close(background))
	require.Equal(t, "<nil>", ask(c, "unlock"))
	counting := open(t, empty, filelock.WithTokens())
	err = counting.LockContext(a)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NotErrorIs(t, err, locks.ErrForeign)
	require.Equal(t, "true", ask(serving(t, "write", empty), "try"), "it was given back")
}
