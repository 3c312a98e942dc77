package comingfrom

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func flockImport(ctx context.Context, path string, work func(ctx context.Context) error) error {
	lock := flock.New(path)
	ok, err := lock.TryLockContext(ctx, 50*time.Millisecond)
	if err != nil || !ok {
		return err
	}
	defer lock.Unlock()
	return work(ctx)
}

func flockImportHere(ctx context.Context, path string, work func(ctx context.Context) error) error {
	lock, err := filelock.Open(path)
	if err != nil {
		return err
	}
	defer lock.Close(ctx)
	return locks.Do(ctx, lock, work)
}

func flockRead(ctx context.Context, lock *flock.Flock, work func(ctx context.Context) error) error {
	ok, err := lock.TryRLockContext(ctx, 50*time.Millisecond)
	if err != nil || !ok {
		return err
	}
	defer lock.Unlock()
	return work(ctx)
}

func flockReadHere(ctx context.Context, lock *filelock.File, work func(ctx context.Context) error) error {
	return locks.Do(ctx, lock.ReadLocker(), work)
}

func TestFlockAndFilelockExcludeEachOther(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "import.lock")
	ours, err := filelock.Open(path)
	require.NoError(t, err)
	defer ours.Close(ctx)
	require.NoError(t, flockImport(ctx, path, func(context.Context) error {
		ran, err := locks.TryDo(ctx, ours, fail(t))
		require.False(t, ran, "theirs holds it")
		return err
	}))
	require.NoError(t, flockImportHere(ctx, path, func(context.Context) error {
		ok, err := flock.New(path).TryLock()
		require.False(t, ok, "ours holds it")
		return err
	}))
	require.NoError(t, flockReadHere(ctx, ours, func(context.Context) error {
		return flockRead(ctx, flock.New(path), func(context.Context) error { return nil })
	}))
}

// Two goroutines that share a Flock are both told that they have it.
func TestASharedFlockLetsASecondGoroutineIn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "import.lock")
	shared := flock.New(path)
	first, err := shared.TryLock()
	require.NoError(t, err)
	second, err := shared.TryLock()
	require.NoError(t, err)
	require.True(t, first && second)
	require.NoError(t, shared.Unlock())
}
