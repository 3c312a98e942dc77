package filelock_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func TestUncontendedPairsAllocateLittle(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f, counting := open(t, somewhere(t)), open(t, somewhere(t), filelock.WithTokens())
	ls := map[string]locks.TryLocker{"exclusive": f, "shared": f.ReadLocker(), "tokens": counting}
	for name, l := range ls {
		most := 2.0 // the hold, and the path for the system
		if name == "tokens" {
			most = 4 // and its text
		}
		for range 10 { // what is kept for later is made
			require.NoError(t, l.LockContext(ctx))
			require.NoError(t, l.UnlockContext(ctx))
		}
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			_ = l.LockContext(ctx)
			_ = l.UnlockContext(ctx)
		}), most, name)
		require.NoError(t, l.LockContext(ctx))
		require.Zero(t, testing.AllocsPerRun(200, func() {
			_ = l.LockContext(ctx)
			_ = l.UnlockContext(ctx)
		}), "%s, re-entry", name)
		require.NoError(t, l.UnlockContext(ctx))
	}
}

func TestManyNamesDoNotKeepManyFilesOpen(t *testing.T) {
	p := provide(t, t.TempDir())
	for i := range 1000 {
		l := p.Locker(strconv.Itoa(i))
		require.NoError(t, l.LockContext(t.Context()))
		require.NoError(t, l.UnlockContext(t.Context()))
		require.LessOrEqual(t, filelock.OpenFiles(), 100)
		require.LessOrEqual(t, filelock.OpenNames(), 100)
	}
}
