//go:build unix

package filelock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/internal/test/testbed"
)

var background = context.Background()

func someone() context.Context { return locks.WithOwner(background, locks.NewOwner()) }

// serving starts a process that has the lock of the kind at path, and does with it what it is
// told.
func serving(t *testing.T, kind, path string) *testbed.Process {
	t.Helper()
	c := testbed.Child(t, "serve", kind, path)
	require.Equal(t, "ready", c.Line())
	return c
}

// ask makes c do something, and returns its answer.
func ask(c *testbed.Process, word string) string {
	c.Say(word)
	return c.Line()
}

func take(t *testing.T, l locks.TryLocker, ctx context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(t, l.LockContext(ctx))
}

func tries(t *testing.T, l locks.TryLocker, ctx context.Context) bool {
	t.Helper()
	ok, err := l.TryLockContext(ctx)
	require.NoError(t, err)
	return ok
}

// waits starts to take l, and returns when it waits for another process: it has left the
// local queue then. The result comes when it has ended.
func waits(t *testing.T, l locks.TryLocker, ctx context.Context) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	entered := make(chan struct{})
	go func() {
		close(entered)
		done <- l.LockContext(ctx)
	}()
	<-entered
	select {
	case err := <-done:
		t.Fatalf("it does not wait: %v", err)
	case <-time.After(30 * time.Millisecond): // some tries
	}
	return done
}

func soon(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("it waits still")
		return nil
	}
}

func TestProcessesExcludeEachOther(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	a := someone()
	take(t, l, a)
	require.Equal(t, "false", ask(c, "try"))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", ask(c, "try"))
	require.False(t, tries(t, l, a))
	require.False(t, tries(t, l.ReadLocker(), a))
	done := waits(t, l, a)
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.NoError(t, soon(t, done))
	require.NoError(t, l.UnlockContext(a))
}

func TestReadersOfSeveralProcessesAreInsideTogether(t *testing.T) {
	path := somewhere(t)
	l, c, w := open(t, path), serving(t, "read", path), serving(t, "write", path)
	a, b := someone(), someone()
	require.Equal(t, "<nil>", ask(c, "lock"))
	take(t, l.ReadLocker(), a)
	take(t, l.ReadLocker(), b)
	require.Equal(t, "false", ask(w, "try"))
	require.False(t, tries(t, l, someone()))
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.NoError(t, l.ReadLocker().UnlockContext(a))
	require.Equal(t, "false", ask(w, "try"), "one reads still")
	require.NoError(t, l.ReadLocker().UnlockContext(b))
	require.Equal(t, "true", ask(w, "try"))
	require.False(t, tries(t, l.ReadLocker(), a))
	require.Equal(t, "<nil>", ask(w, "unlock"))
}

func TestAReaderThatAsksToWriteIsRefused(t *testing.T) {
	l, a := open(t, somewhere(t)), someone()
	take(t, l.ReadLocker(), a)
	require.ErrorIs(t, l.LockContext(a), locks.ErrUpgrade)
	_, err := l.TryLockContext(a)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.NoError(t, l.ReadLocker().UnlockContext(a))
	take(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestNobodyWritesBetweenWritingAndReading(t *testing.T) {
	path := somewhere(t)
	l, w, r := open(t, path), serving(t, "write", path), serving(t, "read", path)
	a, b := someone(), someone()
	take(t, l, a)
	take(t, l.ReadLocker(), a)
	require.False(t, tries(t, l.ReadLocker(), b))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "false", ask(w, "try"))
	take(t, l.ReadLocker(), b)
	require.Equal(t, "false", ask(r, "try"), "other processes' readers wait until all here have left")
	require.NoError(t, l.ReadLocker().UnlockContext(a))
	require.Equal(t, "false", ask(w, "try"))
	require.NoError(t, l.ReadLocker().UnlockContext(b))
	require.Equal(t, "true", ask(w, "try"))
}

func TestAKilledProcessFreesItsFileLock(t *testing.T) {
	for _, kind := range []string{"write", "read"} {
		path := somewhere(t)
		l, c := open(t, path), serving(t, kind, path)
		require.Equal(t, "<nil>", ask(c, "lock"))
		done := waits(t, l, someone())
		c.Kill()
		require.NoError(t, soon(t, done))
	}
}

func TestAStoppedProcessKeepsItsFileLock(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	c.Pause()
	ctx, cancel := context.WithTimeout(background, 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
	c.Resume()
	require.Equal(t, "<nil>", ask(c, "unlock"))
	take(t, l, background)
}

func TestCancelledWaitersReturnAtOnceAndLeaveNothing(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	const n = 1000
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, n)
	for i := range n {
		half := l.WriteLocker()
		if i%3 == 0 {
			half = l.ReadLocker()
		}
		go func() {
			own, stop := context.WithTimeout(ctx, time.Duration(i%100)*time.Millisecond)
			if i%2 == 0 {
				own = ctx
			}
			done <- half.LockContext(own)
			stop()
		}()
	}
	time.Sleep(50 * time.Millisecond) // at any point
	cancel()
	for range n {
		require.Error(t, soon(t, done))
	}
	require.Zero(t, l.QueueLength())
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.Equal(t, "true", ask(c, "try"), "no lock comes late")
	require.Equal(t, "<nil>", ask(c, "unlock"))
	take(t, l, background)
}

func TestAReplacedFileIsNotTheWaitersLock(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	a := someone()
	done := waits(t, l, a)
	replace(l.Mutex)
	d := serving(t, "write", path) // has the new file
	require.Equal(t, "<nil>", ask(d, "lock"))
	require.Equal(t, "<nil>", ask(c, "unlock"), "of the old file")
	select {
	case err := <-done:
		t.Fatalf("the old file was taken: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.Equal(t, "<nil>", ask(d, "unlock"))
	require.NoError(t, soon(t, done))
	require.Equal(t, "false", ask(d, "try"))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", ask(d, "try"))
}

func TestAFileThatIsDeletedIsMadeAnew(t *testing.T) {
	path := somewhere(t)
	l, a := open(t, path), someone()
	require.NoError(t, os.Remove(path))
	take(t, l, a)
	require.FileExists(t, path)
	c := serving(t, "write", path)
	require.Equal(t, "false", ask(c, "try"))
	require.NoError(t, l.UnlockContext(a))
	require.FileExists(t, path, "a release deletes nothing")
	require.Equal(t, "true", ask(c, "try"))
}

func TestAHolderLearnsThatItsFileIsGone(t *testing.T) {
	for _, half := range []string{"write", "read"} {
		t.Run(half, func(t *testing.T) {
			path := somewhere(t)
			f, a := open(t, path), someone()
			l := f.Mutex
			if half == "read" {
				l = f.ReadMutex()
			}
			take(t, l, a)
			h, err := l.Hold(a)
			require.NoError(t, err)
			require.NoError(t, h.Err())
			_, ok := h.Deadline()
			require.False(t, ok)
			require.NoError(t, os.Remove(path))
			select {
			case <-h.Lost():
				t.Fatal("nobody has looked")
			default:
			}
			require.ErrorIs(t, h.Err(), locks.ErrLost)
			<-h.Lost()
			require.ErrorIs(t, l.LockContext(a), locks.ErrLost)
			if half == "write" {
				require.ErrorIs(t, f.ReadLocker().LockContext(a), locks.ErrLost)
			}
			b, other := someone(), someone()
			require.ErrorContains(t, l.UnlockContext(other), fmt.Sprintf(": the lock is lost, but not unlocked, by %v of", locks.CurrentOwner(a)))
			take(t, f, b) // it is a new file
			require.ErrorContains(t, l.UnlockContext(other), fmt.Sprintf(": the lock is held by %v of", locks.CurrentOwner(b)))
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
			require.False(t, tries(t, l, a))
			require.NoError(t, f.UnlockContext(b))
			take(t, l, a)
			require.NoError(t, l.UnlockContext(a))
		})
	}
}

func TestNewReadersDoNotJoinARemovedFile(t *testing.T) {
	path := somewhere(t)
	f, a, b := open(t, path), someone(), someone()
	take(t, f.ReadLocker(), a)
	h, err := f.ReadMutex().Hold(a)
	require.NoError(t, err)
	replace(f.Mutex)
	c := serving(t, "write", path)
	require.Equal(t, "true", ask(c, "try"))
	require.False(t, tries(t, f.ReadLocker(), b))
	<-h.Lost()
	require.ErrorIs(t, f.ReadLocker().UnlockContext(a), locks.ErrLost)
	require.Equal(t, "<nil>", ask(c, "unlock"))
	take(t, f.ReadLocker(), b)
}

func TestAStartedProgramDoesNotKeepTheLock(t *testing.T) {
	testbed.Lookup(t, "sleep")
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	require.Equal(t, "<nil>", ask(c, "spawn"))
	require.False(t, tries(t, l, background))
	c.Kill()
	ctx, cancel := context.WithTimeout(background, 5*time.Second) // half of what the program lasts
	defer cancel()
	require.NoError(t, l.LockContext(ctx))
	require.NoError(t, l.UnlockContext(background))
}

func TestManyTimeoutsLeaveNoLockBehind(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	for range 100 {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(background, time.Duration(20*i)*time.Microsecond)
				defer cancel()
				if l.LockContext(ctx) == nil {
					l.UnlockContext(ctx)
				}
			})
		}
		wg.Wait()
		require.Equal(t, "true", ask(c, "try"))
		require.Equal(t, "<nil>", ask(c, "unlock"))
	}
}

func TestAnOwnerReentersByEveryPathAndClient(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "it.lock")
	a, b := someone(), someone()
	ls := []locks.TryLocker{provide(t, dir).Locker("it"), provide(t, dir).Locker("it"), open(t, path)}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(path, link))
	hard := filepath.Join(t.TempDir(), "hard")
	require.NoError(t, os.Link(path, hard))
	ls = append(ls, open(t, link), open(t, hard))
	for _, l := range ls {
		take(t, l, a)
	}
	for _, l := range ls {
		require.False(t, tries(t, l, b))
	}
	for _, l := range ls {
		require.False(t, tries(t, ls[0], b))
		require.NoError(t, l.UnlockContext(a))
	}
	require.ErrorIs(t, ls[0].UnlockContext(a), locks.ErrNotHeld)
	require.True(t, tries(t, ls[3], b))
	require.NoError(t, ls[1].UnlockContext(b))
}

func TestWhatIsNoRegularFileIsForeign(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	for _, path := range []string{dir, pipe, "/dev/null"} {
		_, err := filelock.Open(path)
		require.ErrorIs(t, err, locks.ErrForeign, path)
	}
	p := provide(t, dir)
	require.NoError(t, os.Mkdir(p.Path("a"), 0o755))
	require.ErrorIs(t, p.Locker("a").LockContext(background), locks.ErrForeign)
}

func TestOnlyNewMakesAMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	_, err := filelock.Open(filepath.Join(dir, "it"))
	require.ErrorIs(t, err, os.ErrNotExist)
	p := provide(t, dir)
	l, a := p.Locker("it"), someone()
	take(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, l.LockContext(a), os.ErrNotExist)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	take(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestFlockOfUtilLinuxIsExcluded(t *testing.T) {
	flock := testbed.Lookup(t, "flock")
	path := somewhere(t)
	l, a := open(t, path), someone()
	run := func(args ...string) bool { return exec.Command(flock, append(args, path, "true")...).Run() == nil }
	take(t, l, a)
	require.False(t, run("-n"))
	require.False(t, run("-n", "-s"))
	require.NoError(t, l.UnlockContext(a))
	require.True(t, run("-n"))
	take(t, l.ReadLocker(), a)
	require.False(t, run("-n"))
	require.True(t, run("-n", "-s"))
	require.NoError(t, l.ReadLocker().UnlockContext(a))

	c := testbed.Start(t, exec.Command(flock, path, "sh", "-c", "echo got; read x"))
	require.Equal(t, "got", c.Line())
	require.False(t, tries(t, l, a))
	done := waits(t, l, a)
	c.Wait() // whose read fails
	require.NoError(t, soon(t, done))
	require.NoError(t, l.UnlockContext(a))
}

func TestTicketsOfFourProcessesAreSoldOnce(t *testing.T) {
	for _, kind := range []string{"write", "tokens"} {
		t.Run(kind, func(t *testing.T) {
			retries := testbed.Tickets{Role: "buy", Args: []string{kind, somewhere(t)}}.Run(t)
			require.Equal(t, []int{0, 0, 0, 0}, retries)
		})
	}
}

func TestTokensIncreaseFromProcessToProcess(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path, filelock.WithTokens()), serving(t, "tokens", path)
	last := uint64(0)
	for range 3 {
		a := someone()
		take(t, l, a)
		h, err := l.Hold(a)
		require.NoError(t, err)
		require.Equal(t, last+1, h.Token())
		last = h.Token()
		require.NoError(t, l.UnlockContext(a))
		require.Equal(t, "<nil>", ask(c, "lock"))
		last++
		require.Equal(t, strconv.FormatUint(last, 10), ask(c, "token"))
		require.Equal(t, "<nil>", ask(c, "unlock"))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("0", 19)+"6\n", string(text))

	require.NoError(t, os.WriteFile(path, []byte("my diary\n"), 0o644))
	require.ErrorIs(t, l.LockContext(someone()), locks.ErrForeign)
	require.Equal(t, "true", ask(serving(t, "write", path), "try"), "it was given back")
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "my diary\n", string(text))
}

func TestABusyProcessLetsOthersAcquire(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, "write", path)
	require.Equal(t, "hogging", ask(c, "hog"))
	for range 5 {
		a := someone()
		take(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestCloseEndsHoldsAndWaits(t *testing.T) {
	path := somewhere(t)
	first, second, c := open(t, path), open(t, path), serving(t, "write", path)
	a, b := someone(), someone()
	take(t, first, a)
	take(t, first, a)
	h, err := first.Hold(a)
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() { failed <- first.LockContext(b) }()
	require.Eventually(t, func() bool { return first.QueueLength() == 1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, first.Close(background))
	require.ErrorIs(t, soon(t, failed), locks.ErrClosed)
	<-h.Lost()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, h.Err(), locks.ErrClosed)
	require.Equal(t, "true", ask(c, "try"), "it is free for other processes")
	require.ErrorIs(t, first.LockContext(b), locks.ErrClosed)
	require.ErrorIs(t, first.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, first.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, first.UnlockContext(a), locks.ErrNotHeld)

	// One that waits for another process.
	done := waits(t, second, a)
	require.NoError(t, second.Close(background))
	require.ErrorIs(t, soon(t, done), locks.ErrClosed)
	require.NoError(t, second.Close(background))
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.Equal(t, "true", ask(c, "try"), "nothing came late")
}

func TestCloseLeavesTheHoldsOfOthersAlone(t *testing.T) {
	path := somewhere(t)
	first, second, c := open(t, path), open(t, path), serving(t, "write", path)
	a, b := someone(), someone()
	take(t, first.ReadLocker(), a)
	take(t, second.ReadLocker(), b)
	require.NoError(t, first.Close(background))
	require.Equal(t, "false", ask(c, "try"))
	require.ErrorIs(t, first.ReadLocker().UnlockContext(a), locks.ErrLost)
	require.NoError(t, second.ReadLocker().UnlockContext(b))
	require.Equal(t, "true", ask(c, "try"))
}
