package shmlock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/shmlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{
		"buy":   func(args []string) error { return testbed.Buy(args, opened) },
		"serve": serve,
	})
	goleak.VerifyTestMain(m, testbed.Children())
}

// opened returns the lock whose path args tell.
func opened(args []string) (locks.TryLocker, func(), error) {
	l, err := shmlock.Open(args[0])
	if err != nil {
		return nil, nil, err
	}
	return l, func() { l.Close(background) }, nil
}

// serve does with the lock what it reads, a word a line, and answers each.
func serve(args []string) error {
	l, end, err := opened(args)
	if err != nil {
		return err
	}
	defer end()
	ctx := someone()
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var answer any
		switch word := in.Text(); word {
		case "lock":
			answer = l.LockContext(ctx)
		case "try":
			ok, err := l.TryLockContext(ctx)
			if answer = err; err == nil {
				answer = ok
			}
		case "unlock":
			answer = l.UnlockContext(ctx)
		case "hog": // acquires the lock again and again, by several goroutines
			for range 4 {
				go func() {
					ctx := someone()
					for l.LockContext(ctx) == nil {
						l.UnlockContext(ctx)
					}
				}()
			}
			answer = "hogging"
		default:
			return fmt.Errorf("what is %q", word)
		}
		fmt.Println(answer)
	}
	return nil
}

var background = context.Background()

func someone() context.Context { return locks.WithOwner(background, locks.NewOwner()) }

// somewhere returns the path of a file that does not exist.
func somewhere(tb testing.TB) string { return filepath.Join(tb.TempDir(), "it.lock") }

// open returns the lock of path, which is closed with the test.
func open(tb testing.TB, path string) *shmlock.Mutex {
	tb.Helper()
	l, err := shmlock.Open(path)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, l.Close(background)) })
	return l
}

// serving starts a process that has the lock at path, and does with it what it is told.
func serving(t *testing.T, path string) *testbed.Process {
	t.Helper()
	c := testbed.Child(t, "serve", path)
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

// waits starts to acquire l, and returns when that waits for another process: it has left the
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
	case <-time.After(testbed.Hang):
		t.Fatal("it waits still")
		return nil
	}
}
