//go:build unix

package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// mix reads and writes, by some goroutines, two files that are equal whenever nobody writes. It
// counts what it has written.
func mix(args []string) error {
	dir := args[0]
	l, err := filelock.Open(filepath.Join(dir, "it.lock"))
	if err != nil {
		return err
	}
	defer l.Close(context.Background())
	read := func() (int, error) {
		x, err := os.ReadFile(filepath.Join(dir, "x"))
		if err != nil {
			return 0, err
		}
		y, err := os.ReadFile(filepath.Join(dir, "y"))
		if err != nil {
			return 0, err
		}
		if string(x) != string(y) {
			return 0, fmt.Errorf("a reader and a writer are inside: %q, %q", x, y)
		}
		return strconv.Atoi(string(x))
	}
	written := 0 // under the lock
	once := func(i int) error {
		ctx := context.Background()
		if i%5 == 4 { // one that may not wait long
			hurry, cancel := context.WithTimeout(ctx, time.Duration(i%7)*time.Millisecond)
			defer cancel()
			ctx = hurry
		}
		half := l.ReadLocker()
		if i%3 == 0 {
			half = l.WriteLocker()
		}
		if err := half.LockContext(ctx); errors.Is(err, context.DeadlineExceeded) {
			return nil
		} else if err != nil {
			return err
		}
		n, err := read()
		if err != nil {
			return err
		}
		if i%3 != 0 {
			return half.UnlockContext(ctx)
		}
		text := []byte(strconv.Itoa(n + 1))
		for _, file := range []string{"x", "y"} {
			if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
				return err
			}
		}
		written++
		if i%2 == 1 {
			return half.UnlockContext(ctx)
		}
		// It goes on reading: nobody writes in between.
		if err := l.ReadLocker().LockContext(context.Background()); err != nil {
			return err
		}
		if err := half.UnlockContext(ctx); err != nil {
			return err
		}
		if now, err := read(); err != nil || now != n+1 {
			return fmt.Errorf("somebody wrote %d after %d: %v", now, n+1, err)
		}
		return l.ReadLocker().UnlockContext(ctx)
	}
	failed := make([]error, 4)
	var wg sync.WaitGroup
	for g := range failed {
		wg.Go(func() {
			for i := range 150 {
				if failed[g] = once(g + i); failed[g] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	fmt.Println(written)
	return nil
}

func init() { roles["mix"] = mix }

func TestFourProcessesReadersAndWritersExcludeEachOther(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"x", "y"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("0"), 0o600))
	}
	var children []*testbed.Process
	for range 4 {
		children = append(children, testbed.Child(t, "mix", dir))
	}
	sum := 0
	for _, c := range children {
		n, err := strconv.Atoi(c.Line())
		require.NoError(t, err)
		sum += n
		require.True(t, c.Wait())
	}
	require.Positive(t, sum)
	text, err := os.ReadFile(filepath.Join(dir, "x"))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(sum), string(text))
}
