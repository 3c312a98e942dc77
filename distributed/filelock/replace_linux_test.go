package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func init() {
	roles["replace"] = replacing
	for name, do := range replacements {
		words[name] = do
	}
}

// replacements have the name of a lock file lead elsewhere, or nowhere. The file is below two
// directories of its own.
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
	dir := filepath.Join(tb.TempDir(), "a", "b")
	require.NoError(tb, os.MkdirAll(dir, 0o777))
	return filepath.Join(dir, "it.lock")
}

func TestAFileItsHolderReplacedIsLockedAnew(t *testing.T) {
	for word := range replacements {
		t.Run(word, func(t *testing.T) {
			path := deep(t)
			l, c := open(t, path), serving(t, "write", path)
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

func TestAWaiterLocksTheReplacementOfItsFile(t *testing.T) {
	for word := range replacements {
		t.Run(word, func(t *testing.T) {
			path := deep(t)
			l, c := open(t, path), serving(t, "write", path)
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

func TestAMovedLinksPathIsLockedAnew(t *testing.T) {
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
			take(t, l, background)
			require.NoError(t, l.UnlockContext(background))
			require.NoError(t, os.Symlink(two, link+".new"))
			require.NoError(t, os.Rename(link+".new", link))
			c := serving(t, "write", path)
			require.Equal(t, "true", ask(c, "try"))
			require.False(t, tries(t, l, background))
		})
	}
}

// replacing counts in a file, under locks that their holders replace now and then, as the last
// thing they do with them.
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
