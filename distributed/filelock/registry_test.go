//go:build unix

package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func init() {
	roles["storm"] = storm
	roles["few"] = few
}

// late is a context whose end the local queue does not notice: only the first call of Done returns
// the channel.
type late struct {
	context.Context
	asked atomic.Bool
}

func (l *late) Done() <-chan struct{} {
	if l.asked.Swap(true) {
		return nil
	}
	return l.Context.Done()
}

func TestAHandOffAfterCancellationUnlocksTheFile(t *testing.T) {
	for _, half := range []string{"write", "read"} {
		t.Run(half, func(t *testing.T) {
			path := somewhere(t)
			f, c := open(t, path), serving(t, "write", path)
			next := f.WriteLocker()
			if half == "read" {
				next = f.ReadLocker()
			}
			a := someone()
			take(t, f, a)
			end, cancel := context.WithCancel(someone())
			defer cancel()
			ctx := &late{Context: end}
			done := make(chan error, 1)
			go func() { done <- next.LockContext(ctx) }()
			require.Eventually(t, func() bool { return f.QueueLength() == 1 }, 10*time.Second, time.Millisecond)
			cancel()
			require.NoError(t, f.UnlockContext(a)) // leaves the lock to the waiter that seems to be there
			require.ErrorIs(t, soon(t, done), context.Canceled)
			require.Equal(t, "true", ask(c, "try"))
		})
	}
}

func TestTheLastUnlockClosesAStaleFile(t *testing.T) {
	path := somewhere(t)
	f := open(t, path)
	a, b, c := someone(), someone(), someone()
	before := filelock.OpenFiles()
	take(t, f.ReadLocker(), a)
	take(t, f.ReadLocker(), b)
	require.NoError(t, os.Remove(path))
	take(t, f.ReadLocker(), c)
	require.Equal(t, before+1, filelock.OpenFiles())
	require.ErrorIs(t, f.ReadLocker().UnlockContext(a), locks.ErrLost)
	require.Equal(t, before+1, filelock.OpenFiles(), "another one holds it still")
	require.ErrorIs(t, f.ReadLocker().UnlockContext(b), locks.ErrLost)
	require.Equal(t, before, filelock.OpenFiles())
	require.NoError(t, f.ReadLocker().UnlockContext(c))
}

func TestAnOftenReplacedFileIsOpenOnce(t *testing.T) {
	f := open(t, somewhere(t))
	before := filelock.OpenFiles()
	for range 50 {
		replace(f.Mutex)
		take(t, f, background)
		require.NoError(t, f.UnlockContext(background))
		require.LessOrEqual(t, filelock.OpenFiles(), before)
	}
}

func TestPathsFollowWhatTheProcessHasFound(t *testing.T) {
	one, two := somewhere(t), somewhere(t)
	require.NoError(t, os.WriteFile(one, nil, 0o666))
	require.NoError(t, os.Link(one, two))
	first, other, link := open(t, one), open(t, one), open(t, two)
	for _, l := range []*filelock.File{first, other, link} {
		take(t, l, background)
		require.NoError(t, l.UnlockContext(background))
	}
	replace(first.Mutex)
	take(t, other, background)
	require.NoError(t, other.UnlockContext(background))
	c := serving(t, "write", one)
	take(t, first, background)
	require.Equal(t, "false", ask(c, "try"))
	require.NoError(t, first.UnlockContext(background))
	require.True(t, tries(t, link, background), "it is another file now")
	require.NoError(t, link.UnlockContext(background))
}

func TestALockGoesOnAfterItsFileCloses(t *testing.T) {
	dir := t.TempDir()
	l := provide(t, dir).Mutex("it")
	take(t, l, background)
	require.NoError(t, l.UnlockContext(background))
	other, err := filelock.New(dir)
	require.NoError(t, err)
	before := filelock.OpenFiles()
	require.NoError(t, other.Close(background))
	require.Less(t, filelock.OpenFiles(), before)
	take(t, l, background)
	require.Equal(t, "false", ask(serving(t, "write", l.Path()), "try"))
	require.NoError(t, l.UnlockContext(background))
}

func TestAnOwnerWithALostHoldCannotLock(t *testing.T) {
	path := somewhere(t)
	f := open(t, path)
	read := f.ReadLocker()
	a, b := someone(), someone()
	take(t, read, a)
	require.NoError(t, os.Remove(path))
	take(t, read, b) // the new file
	require.NoError(t, read.UnlockContext(b))
	require.ErrorIs(t, read.LockContext(a), locks.ErrLost)
	require.ErrorIs(t, read.UnlockContext(a), locks.ErrLost)
	take(t, f, a)
	require.NoError(t, f.UnlockContext(a))
}

func TestFilesInUseStayOpenAmongManyNames(t *testing.T) {
	p := provide(t, t.TempDir())
	held, awaited := p.Mutex("held"), p.Mutex("awaited")
	rival, other := serving(t, "write", held.Path()), serving(t, "write", awaited.Path())
	a, b := someone(), someone()
	take(t, held, a)
	require.Equal(t, "<nil>", ask(other, "lock"))
	done := waits(t, awaited, b)
	for i := range 1000 {
		l := p.Locker(strconv.Itoa(i))
		take(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	}
	require.Equal(t, "false", ask(rival, "try"))
	require.NoError(t, held.UnlockContext(a))
	require.Equal(t, "true", ask(rival, "try"))
	require.Equal(t, "<nil>", ask(other, "unlock"))
	require.NoError(t, soon(t, done))
	require.Equal(t, "false", ask(other, "try"))
	require.NoError(t, awaited.UnlockContext(b))
}

// storm takes locks of more names than files are kept open, some in vain, and sees that nobody
// else is inside.
func storm(args []string) error {
	p, err := filelock.New(args[0])
	if err != nil {
		return err
	}
	once := func(i int) error {
		ctx, cancel := context.WithTimeout(locks.WithOwner(background, locks.NewOwner()), 30*time.Second)
		if i%5 == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rand.N(200))*time.Microsecond)
		}
		defer cancel()
		l := p.Mutex(strconv.Itoa(rand.N(8) * rand.N(60))) // some more often than others
		if err := l.LockContext(ctx); i%5 == 0 && errors.Is(err, context.DeadlineExceeded) {
			return nil
		} else if err != nil {
			return err
		}
		inside := l.Path() + ".inside"
		if err := os.Mkdir(inside, 0o777); err != nil {
			return fmt.Errorf("somebody else is inside: %w", err)
		}
		return errors.Join(os.Remove(inside), l.UnlockContext(ctx))
	}
	failed := make([]error, 8)
	var wg sync.WaitGroup
	for g := range failed {
		wg.Go(func() {
			for i := 0; i < 400 && failed[g] == nil; i++ {
				failed[g] = once(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(append(failed, p.Close(background))...)
}

func TestThreeProcessesExcludeEachOtherOnManyNames(t *testing.T) {
	dir := t.TempDir()
	var children []*testbed.Process
	for range 3 {
		children = append(children, testbed.Child(t, "storm", dir))
	}
	for _, c := range children {
		require.True(t, c.Wait())
	}
}

// few acquires locks of many names while the process may open hardly any more files.
func few([]string) error {
	dir, err := os.MkdirTemp("", "few")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	client, err := filelock.New(dir)
	if err != nil {
		return err
	}
	once := func(i int) error {
		l := client.Mutex(strconv.Itoa(i))
		return errors.Join(l.LockContext(background), l.UnlockContext(background))
	}
	for i := range 20 { // 20 files that are not in use
		if err := once(i); err != nil {
			return err
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 200, Max: 200}); err != nil {
		return err
	}
	var others []*os.File
	for {
		f, err := os.Open(dir)
		if err != nil {
			break // no descriptor is left
		}
		others = append(others, f)
	}
	for i := 20; i < 500; i++ {
		if err := once(i); err != nil {
			return err
		}
	}
	for _, f := range others {
		f.Close()
	}
	return client.Close(background)
}

func TestManyNamesNeedFewDescriptors(t *testing.T) {
	require.True(t, testbed.Child(t, "few").Wait())
}
