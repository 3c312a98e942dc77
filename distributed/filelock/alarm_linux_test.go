package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	"github.com/jucgo/locks/distributed/internal/testbed"
)

// Alarms have to do without looks in these tests, in all processes: a look would find out what an alarm has missed.
func init() {
	filelock.SetFresh(time.Hour)
	roles["replace"] = replacing
	words["arm"] = arm
	for name, do := range replacements {
		words[name] = do
	}
	words["close-siren"] = func(string) error { return filelock.CloseSiren() }
	words["pretend-mounts"] = func(path string) error { return pretendMounts("", path) }
	words["pretend-mount-of-dir"] = func(path string) error { return pretendMounts(filepath.Dir(path), path) }
	words["pretend-mount-dir"] = func(path string) error { return replaceSecretly("rename-parent", path) }
	words["pretend-mount-file"] = func(path string) error { return replaceSecretly("rename-over", path) }
	words["mount-dir"] = func(path string) error { return unix.Mount("none", filepath.Dir(path), "tmpfs", 0, "") }
	words["unmount-dir"] = func(path string) error { return unix.Unmount(filepath.Dir(path), unix.MNT_DETACH) }
	words["mount-file"] = func(path string) error {
		return errors.Join(os.WriteFile(path+".other", nil, 0o666), unix.Mount(path+".other", path, "", unix.MS_BIND, ""))
	}
}

// changeMounts tells that the table of mounts has changed, in a process that only pretends that there are any.
var changeMounts func() error

func pretendMounts(at, path string) (err error) {
	nothing := path + ".nothing"
	if err := os.WriteFile(nothing, nil, 0o666); err != nil {
		return err
	}
	changeMounts, err = filelock.PretendMounts(at, nothing)
	return err
}

// replaceSecretly makes a replacement that only the table of mounts tells of.
func replaceSecretly(word, path string) error {
	return errors.Join(replacements[word](path), changeMounts())
}

// replacements have the name of a lock file lead elsewhere, or nowhere. The file is below two directories of its own.
var replacements = map[string]func(path string) error{
	"unlink": os.Remove,
	"unlink-and-make": func(path string) error {
		return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o666))
	},
	"unlink-with-another-link": func(path string) error {
		return errors.Join(os.Link(path, path+".link"), os.Remove(path), os.WriteFile(path, nil, 0o666))
	},
	"rename-over": func(path string) error {
		return errors.Join(os.WriteFile(path+".other", nil, 0o666), os.Rename(path+".other", path))
	},
	"rename-away": func(path string) error { return os.Rename(path, path+".old") },
	"exchange": func(path string) error {
		return errors.Join(os.WriteFile(path+".other", nil, 0o666), exchange(path, path+".other"))
	},
	"rename-parent":      func(path string) error { return renameAndMake(filepath.Dir(path), path) },
	"rename-grandparent": func(path string) error { return renameAndMake(filepath.Dir(filepath.Dir(path)), path) },
	"exchange-parent": func(path string) error {
		dir := filepath.Dir(path)
		return errors.Join(os.Mkdir(dir+".other", 0o777), exchange(dir, dir+".other"))
	},
	"parent-is-a-link": func(path string) error {
		dir := filepath.Dir(path)
		return errors.Join(os.Mkdir(dir+".other", 0o777), os.Rename(dir, dir+".old"), os.Symlink(dir+".other", dir))
	},
	"remove-all": func(path string) error {
		dir := filepath.Dir(path)
		return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777))
	},
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

func renameAndMake(dir, path string) error {
	return errors.Join(os.Rename(dir, dir+".old"), os.MkdirAll(filepath.Dir(path), 0o777))
}

// deep returns the path of a file below two directories of its own.
func deep(tb testing.TB) string {
	base := tb.TempDir()
	if !filelock.Alarmable(base) {
		var err error
		if base, err = os.MkdirTemp("/dev/shm", "filelock"); err != nil || !filelock.Alarmable(base) {
			testbed.Missing(tb, "a file system for temporary files where there are alarms")
		}
		tb.Cleanup(func() { os.RemoveAll(base) })
	}
	dir := filepath.Join(base, "a", "b")
	require.NoError(tb, os.MkdirAll(dir, 0o777))
	return filepath.Join(dir, "it.lock")
}

// arm takes the lock at path until the file has an alarm.
func arm(path string) error {
	l, err := filelock.Open(path)
	if err != nil {
		return err
	}
	for range 100 {
		if err := errors.Join(l.LockContext(background), l.UnlockContext(background)); err != nil {
			return err
		}
	}
	if !filelock.Alarmed(path) { // l is left open: its Close would close the file
		return errors.New("there is no alarm")
	}
	return nil
}

// armed returns the lock of path, whose file has an alarm in this process.
func armed(t *testing.T, path string) *filelock.File {
	t.Helper()
	l := open(t, path)
	for range 100 {
		take(t, l, background)
		require.NoError(t, l.UnlockContext(background))
	}
	require.True(t, filelock.Alarmed(path))
	return l
}

func TestAnAlarmedFileThatIsReplacedByItsHolderIsLockedAnew(t *testing.T) {
	for word := range replacements {
		t.Run(word, func(t *testing.T) {
			path := deep(t)
			l, c := armed(t, path), serving(t, "write", path)
			require.Equal(t, "<nil>", ask(c, "lock"))
			require.Equal(t, "<nil>", ask(c, word))
			require.Equal(t, "<nil>", ask(c, "unlock"))
			d := serving(t, "write", path)
			require.Equal(t, "true", ask(d, "try"))
			require.False(t, tries(t, l, background), "the old file was taken")
			require.Equal(t, "<nil>", ask(d, "unlock"))
			require.True(t, tries(t, l, background))
			require.Equal(t, "false", ask(d, "try"))
			require.NoError(t, l.UnlockContext(background))
		})
	}
}

func TestAnAlarmedFileThatIsReplacedWhileSomeoneWaitsIsLockedAnew(t *testing.T) {
	for word := range replacements {
		t.Run(word, func(t *testing.T) {
			path := deep(t)
			l, c := armed(t, path), serving(t, "write", path)
			require.Equal(t, "<nil>", ask(c, "lock"))
			a := someone()
			done := waits(t, l, a)
			require.Equal(t, "<nil>", ask(c, word))
			require.Equal(t, "<nil>", ask(c, "unlock"))
			require.NoError(t, soon(t, done))
			require.Equal(t, "false", ask(serving(t, "write", path), "try"))
			require.NoError(t, l.UnlockContext(a))
		})
	}
}

func TestReadersOfAnAlarmedFileThatIsGoneAreNotJoined(t *testing.T) {
	path := deep(t)
	l := armed(t, path)
	a := someone()
	take(t, l.ReadLocker(), a)
	h, err := l.ReadLocker().(*filelock.Lock).Hold(a)
	require.NoError(t, err)
	replace(l.Lock)
	c := serving(t, "write", path)
	require.Equal(t, "true", ask(c, "try"))
	require.False(t, tries(t, l.ReadLocker(), someone()))
	<-h.Lost()
	require.ErrorIs(t, l.ReadLocker().UnlockContext(a), locks.ErrLost)
}

func TestWhatIsNoReplacementOnlyEndsTheAlarm(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"chmod":  func(path string) error { return os.Chmod(path, 0o600) },
		"chown":  func(path string) error { return os.Chown(path, os.Getuid(), os.Getgid()) },
		"touch":  func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) },
		"link":   func(path string) error { return os.Link(path, path+".link") },
		"rename": func(path string) error { return errors.Join(os.Rename(path, path+".x"), os.Rename(path+".x", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := deep(t)
			l, c := armed(t, path), serving(t, "write", path)
			opened := filelock.OpenFiles()
			require.NoError(t, do(path))
			a := someone()
			take(t, l, a)
			require.Equal(t, "false", ask(c, "try"))
			require.NoError(t, l.UnlockContext(a))
			require.False(t, filelock.Alarmed(path))
			require.Equal(t, opened, filelock.OpenFiles(), "it is the same file")
			armed(t, path)
		})
	}
}

func TestAnAlarmIsNotReliedOnForLongWithoutALook(t *testing.T) {
	defer filelock.SetFresh(filelock.SetFresh(100 * time.Millisecond))
	path := deep(t)
	l := open(t, path)
	require.Eventually(t, func() bool { // as long as there is time for 16 pairs
		take(t, l, background)
		require.NoError(t, l.UnlockContext(background))
		return filelock.Alarmed(path)
	}, time.Minute, time.Microsecond)
	deaf := filelock.DeafSiren() // whatever happens, nothing rings
	defer deaf()
	replace(l.Lock)
	c := serving(t, "write", path)
	require.Equal(t, "true", ask(c, "try"))
	time.Sleep(100 * time.Millisecond) // is what is tested
	require.False(t, tries(t, l, background))
}

func TestAPathWithALinkInItIsLookedAtEachTime(t *testing.T) {
	for _, where := range []string{"file", "directory"} {
		t.Run(where, func(t *testing.T) {
			one, two := deep(t), deep(t)
			link := filepath.Join(t.TempDir(), "link")
			path := link
			if where == "directory" {
				one, two = filepath.Dir(one), filepath.Dir(two)
				path = filepath.Join(link, "it.lock")
			} else {
				require.NoError(t, os.WriteFile(one, nil, 0o666))
				require.NoError(t, os.WriteFile(two, nil, 0o666))
			}
			require.NoError(t, os.Symlink(one, link))
			l := open(t, path)
			for range 100 {
				take(t, l, background)
				require.NoError(t, l.UnlockContext(background))
			}
			require.False(t, filelock.Alarmed(path))
			require.NoError(t, os.Symlink(two, link+".new"))
			require.NoError(t, os.Rename(link+".new", link))
			c := serving(t, "write", path)
			require.Equal(t, "true", ask(c, "try"))
			require.False(t, tries(t, l, background))
		})
	}
}

func TestEventsThatDidNotFitIntoTheQueueRingAllAlarms(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	require.NoError(t, err)
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	noise := []string{deep(t), deep(t)}
	armed(t, noise[0])
	armed(t, noise[1])
	path := deep(t)
	l := armed(t, path)
	if most <= 1<<17 {
		for i := range most + 100 { // two events in a row that are equal are one
			require.NoError(t, os.Chmod(noise[i%2], 0o644))
		}
	} else { // that would take too long
		filelock.Overflow()
		require.False(t, filelock.Alarmed(path))
	}
	replace(l.Lock) // which the queue has no room for
	c := serving(t, "write", path)
	require.Equal(t, "true", ask(c, "try"))
	require.False(t, tries(t, l, background))
}

func TestWithoutOneOfItsWatchesThereIsNoAlarm(t *testing.T) {
	for n, refused := 0, true; refused; n++ { // from the root down to the file
		path := deep(t)
		l := open(t, path)
		left := n
		refused = false
		end := filelock.OnWatch(func(watch func() (int, error)) (int, error) {
			if left--; left == -1 {
				refused = true
				return -1, unix.ENOSPC
			}
			return watch()
		})
		for range 100 {
			take(t, l, background)
			require.NoError(t, l.UnlockContext(background))
		}
		end()
		require.Equal(t, !refused, filelock.Alarmed(path), n)
		replace(l.Lock)
		take(t, l, background)
		require.False(t, isFree(t, path))
		require.NoError(t, l.UnlockContext(background))
	}
}

func TestTheAlarmOfOneNameOfAFileIsNotThatOfAnother(t *testing.T) {
	one, two := deep(t), deep(t)
	require.NoError(t, os.WriteFile(one, nil, 0o666))
	require.NoError(t, os.Link(one, two))
	l, other := armed(t, one), open(t, two)
	require.NoError(t, replacements["rename-parent"](two))
	take(t, l, background)
	require.False(t, isFree(t, one))
	require.NoError(t, l.UnlockContext(background))
	require.True(t, filelock.Alarmed(one))
	take(t, other, background)
	require.False(t, isFree(t, two))
	require.NoError(t, other.UnlockContext(background))
}

// isFree reports whether nobody has the file locked that is at path.
func isFree(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	require.NoError(t, err)
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func TestAFileThatIsReplacedWhileItsAlarmIsSetIsLockedAnew(t *testing.T) {
	for _, word := range []string{"rename-over", "unlink", "exchange", "rename-parent", "exchange-parent"} {
		for _, before := range []bool{true, false} {
			for n, did := 0, true; did; n++ { // at any of the watches
				path := deep(t)
				l := open(t, path)
				left := n
				did = false
				end := filelock.OnWatch(func(watch func() (int, error)) (wd int, err error) {
					if left--; left != -1 {
						return watch()
					}
					did = true
					if !before {
						wd, err = watch()
					}
					require.NoError(t, replacements[word](path))
					if before {
						wd, err = watch()
					}
					return wd, err
				})
				for i := 0; i < 17 && !did; i++ {
					take(t, l, background)
					if !did {
						require.NoError(t, l.UnlockContext(background))
					}
				}
				if did {
					require.False(t, isFree(t, path), "%s %t %d", word, before, n)
				}
				end()
			}
		}
	}
}

func TestASirenThatSomebodyClosedIsNotReliedOn(t *testing.T) {
	path := deep(t)
	a := serving(t, "write", path) // not this process, which needs its own
	require.Equal(t, "<nil>", ask(a, "arm"))
	require.Equal(t, "<nil>", ask(a, "close-siren"))
	require.NoError(t, replacements["rename-over"](path))
	c := serving(t, "write", path)
	require.Equal(t, "true", ask(c, "try"))
	require.Equal(t, "false", ask(a, "try"))
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.Equal(t, "true", ask(a, "try"))
	require.Equal(t, "false", ask(c, "try"))
}

func TestManyNamesDoNotKeepManyWatches(t *testing.T) {
	for i := range 600 {
		l := armed(t, deep(t))
		if i%100 == 0 { // among all the others
			replace(l.Lock)
			c := serving(t, "write", l.Path())
			require.Equal(t, "true", ask(c, "try"))
			require.False(t, tries(t, l, background))
			c.Kill()
		}
		require.NoError(t, l.Close(background))
		files, dirs := filelock.Watches()
		require.LessOrEqual(t, files, 300)
		require.LessOrEqual(t, dirs, 600)
	}
	files, _ := filelock.Watches()
	require.Zero(t, files, "files that are closed are not watched")
}

// replacing counts in a file, under locks that their holders replace now and then, as the last thing they do with them.
func replacing(args []string) error {
	dir := args[0]
	var wg sync.WaitGroup
	failed := make([]error, 6)
	for g := range failed {
		wg.Go(func() {
			path := filepath.Join(dir, strconv.Itoa(g%3), "it.lock")
			l, err := filelock.Open(path)
			if err != nil {
				failed[g] = err
				return
			}
			for range 400 {
				if failed[g] = count(l, path); failed[g] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

func count(l *filelock.File, path string) error {
	ctx, cancel := context.WithTimeout(locks.WithOwner(background, locks.NewOwner()), 30*time.Second)
	defer cancel()
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(path), "count")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("somebody else is inside: %w", err)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o666); err != nil {
		return err
	}
	switch rand.N(120) {
	case 0:
		err = os.Remove(path)
	case 1:
		other := fmt.Sprint(path, ".", os.Getpid(), rand.Int())
		err = errors.Join(os.WriteFile(other, nil, 0o666), os.Rename(other, path))
	default:
		return l.UnlockContext(ctx)
	}
	if err != nil {
		return err
	}
	if err := l.UnlockContext(ctx); err != nil && !errors.Is(err, locks.ErrLost) {
		return err
	}
	return nil
}

func TestHoldersThatReplaceTheirFilesExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		require.NoError(t, os.Mkdir(filepath.Join(dir, strconv.Itoa(i)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i), "count"), []byte("0"), 0o666))
	}
	var children []*testbed.Process
	for range 3 {
		children = append(children, testbed.Child(t, "replace", dir))
	}
	for _, c := range children {
		require.True(t, c.Wait())
	}
	for i := range 3 {
		text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i), "count"))
		require.NoError(t, err)
		require.Equal(t, "2400", string(text))
	}
}

// elsewhere is where something is mounted, seen from a process.
type elsewhere struct {
	*testbed.Process
	words string // what its words for mounts begin with
	// free reports whether nobody has the file locked that is at the path there.
	free func() bool
}

// mounting calls f with a process that has mounts of its own, where the system lets one have that, and with one that pretends to.
func mounting(t *testing.T, pretend string, f func(t *testing.T, path string, c elsewhere)) {
	t.Run("pretended", func(t *testing.T) {
		path := deep(t)
		c := serving(t, "write", path)
		require.Equal(t, "<nil>", ask(c, pretend))
		f(t, path, elsewhere{c, "pretend-", func() bool { return isFree(t, path) }})
	})
	unshare := []string{testbed.Lookup(t, "unshare"), "--mount", "--propagation", "private"}
	enter := []string{testbed.Lookup(t, "nsenter"), "-m"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
		enter = append(enter, "-U", "--preserve-credentials")
	}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Logf("there are no namespaces to be had, and so no real mounts: %s", out)
		return
	}
	flock := testbed.Lookup(t, "flock")
	t.Run("real", func(t *testing.T) {
		path := deep(t)
		cmd := testbed.ChildCommand(t, "serve", "write", path)
		cmd.Args = append(unshare, cmd.Args...)
		cmd.Path = unshare[0]
		c := testbed.Start(t, cmd)
		require.Equal(t, "ready", c.Line())
		f(t, path, elsewhere{c, "", func() bool {
			args := append(enter[1:], "-t", strconv.Itoa(c.Pid()), flock, "-n", path, "true")
			return exec.Command(enter[0], args...).Run() == nil
		}})
	})
}

func TestAMountOverAnAlarmedFileRings(t *testing.T) {
	for _, word := range []string{"mount-dir", "mount-file"} {
		t.Run(word, func(t *testing.T) {
			mounting(t, "pretend-mounts", func(t *testing.T, path string, c elsewhere) {
				require.Equal(t, "<nil>", ask(c.Process, "arm"))
				require.True(t, c.free())
				require.Equal(t, "<nil>", ask(c.Process, c.words+word))
				require.Equal(t, "true", ask(c.Process, "try"))
				require.False(t, c.free(), "it has locked what is not there any more")
				require.Equal(t, "<nil>", ask(c.Process, "unlock"))
				if word == "mount-dir" && c.words == "" {
					require.Equal(t, "<nil>", ask(c.Process, "arm"))
					require.Equal(t, "<nil>", ask(c.Process, "unmount-dir"))
					require.Equal(t, "true", ask(c.Process, "try"))
					require.False(t, c.free(), "it has locked what is not there any more")
				}
			})
		})
	}
}

func TestADirectoryUnderAMountThatIsRenamedElsewhereRings(t *testing.T) {
	mounting(t, "pretend-mount-of-dir", func(t *testing.T, path string, c elsewhere) {
		dir := filepath.Dir(path)
		if c.words == "" {
			require.Equal(t, "<nil>", ask(c.Process, "mount-dir"))
		}
		require.Equal(t, "<nil>", ask(c.Process, "arm"))
		// Here nothing is mounted on it, and so it can be renamed. There the mount goes along.
		require.NoError(t, os.Rename(dir, dir+".old"))
		require.NoError(t, os.Mkdir(dir, 0o777))
		require.Equal(t, "true", ask(c.Process, "try"))
		l := open(t, path)
		require.False(t, tries(t, l, background), "it has locked what is not there any more")
		require.Equal(t, "<nil>", ask(c.Process, "unlock"))
		take(t, l, background)
		require.Equal(t, "false", ask(c.Process, "try"))
	})
}
