package filelock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/lockstest"
)

// provide returns a Client of dir that is closed with the test.
func provide(tb testing.TB, dir string, opts ...filelock.Option) *filelock.Client {
	tb.Helper()
	p, err := filelock.New(dir, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, p.Close(context.Background())) })
	return p
}

// open returns the lock of path, which is closed with the test.
func open(tb testing.TB, path string, opts ...filelock.Option) *filelock.File {
	tb.Helper()
	f, err := filelock.Open(path, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, f.Close(context.Background())) })
	return f
}

// somewhere returns the path of a file that does not exist.
func somewhere(tb testing.TB) string { return filepath.Join(tb.TempDir(), "it.lock") }

func queued(l locks.TryLocker) int { return l.(*filelock.Mutex).QueueLength() }

func TestTheExclusiveHalfConforms(t *testing.T) {
	for name, opts := range map[string][]filelock.Option{
		"cohort":    {filelock.WithWatch(time.Millisecond)},
		"no cohort": {filelock.WithWatch(time.Millisecond), filelock.WithMaxLocalHandoffs(0)},
		"tokens":    {filelock.WithWatch(time.Millisecond), filelock.WithTokens()},
	} {
		t.Run(name, func(t *testing.T) {
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(tb testing.TB) locks.TryLocker {
					return provide(tb, tb.TempDir(), opts...).Locker("it")
				},
				Reentrant:   true,
				Leased:      true,
				FIFO:        true,
				SpuriousTry: true, // while another attempt fails
				Lose:        replace,
				Waiting:     queued,
			})
		})
	}
}

// replace puts another file in the place of l's file, so that its hold is lost.
func replace(l locks.TryLocker) {
	path := l.(*filelock.Mutex).Path()
	other := path + ".other"
	if err := os.WriteFile(other, nil, 0o644); err != nil {
		panic(err)
	}
	if err := os.Rename(other, path); err != nil {
		panic(err)
	}
}

func TestTheSharedHalfConforms(t *testing.T) {
	writers := make(map[locks.TryLocker]locks.TryLocker)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			l := provide(tb, tb.TempDir(), filelock.WithWatch(time.Millisecond)).RWMutex("it")
			writers[l.ReadLocker()] = l.WriteLocker()
			return l.ReadLocker()
		},
		Exclusive:   func(l locks.TryLocker) locks.TryLocker { return writers[l] },
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true,
		Lose:        replace,
		Waiting:     queued,
	})
}
