package bench

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

// fileLock returns the lock of a file, which is closed with b.
func fileLock(b *testing.B, opts ...filelock.Option) *filelock.File {
	l, err := filelock.Open(filepath.Join(b.TempDir(), "it.lock"), opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// pairs takes l and gives it back.
func pairs(b *testing.B, l locks.TryLocker) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.LockContext(ctx); err != nil {
			b.Fatal(err)
		}
		if err := l.UnlockContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func gofrs(b *testing.B, lock func(*flock.Flock) error) {
	l := flock.New(filepath.Join(b.TempDir(), "it.lock"))
	b.ReportAllocs()
	for b.Loop() {
		if err := lock(l); err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestGofrsFlockAndFilelockExcludeEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "it.lock")
	ours, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer ours.Close(ctx)
	theirs := flock.New(path)
	defer theirs.Close()
	must := func(what string, want bool, try func() (bool, error)) {
		t.Helper()
		if got, err := try(); err != nil || got != want {
			t.Fatalf("%s: %t, %v", what, got, err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try := func(l locks.TryLocker) func() (bool, error) {
		return func() (bool, error) { return l.TryLockContext(ctx) }
	}
	for range 5 {
		do(ours.LockContext(ctx))
		must("theirs while ours writes", false, theirs.TryLock)
		must("theirs to read while ours writes", false, theirs.TryRLock)
		do(ours.UnlockContext(ctx))
		must("theirs", true, theirs.TryLock)
		must("ours while theirs writes", false, try(ours))
		must("ours to read while theirs writes", false, try(ours.ReadLocker()))
		do(theirs.Unlock())
		do(ours.ReadLocker().LockContext(ctx))
		must("theirs while ours reads", false, theirs.TryLock)
		must("theirs to read while ours reads", true, theirs.TryRLock)
		do(ours.ReadLocker().UnlockContext(ctx))
		must("ours while theirs reads", false, try(ours))
		do(theirs.Unlock())
	}
}

// BenchmarkFileUncontended is a lock and an unlock that nobody else wants.
func BenchmarkFileUncontended(b *testing.B) {
	b.Run("filelock", func(b *testing.B) { pairs(b, fileLock(b)) })
	b.Run("filelock.R", func(b *testing.B) { pairs(b, fileLock(b).ReadLocker()) })
	b.Run("filelock-tokens", func(b *testing.B) { pairs(b, fileLock(b, filelock.WithTokens())) })
	b.Run("gofrs/flock", func(b *testing.B) { gofrs(b, (*flock.Flock).Lock) })
	b.Run("gofrs/flock.R", func(b *testing.B) { gofrs(b, (*flock.Flock).RLock) })
}

// BenchmarkFileReentry is a lock and an unlock by the holder.
func BenchmarkFileReentry(b *testing.B) {
	l := fileLock(b)
	if err := l.LockContext(context.Background()); err != nil {
		b.Fatal(err)
	}
	pairs(b, l)
	if err := l.UnlockContext(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFileContended is 8 goroutines of one process on one lock. gofrs/flock has no twin: its
// handle knows no goroutines, and with one handle each, they would poll like processes.
func BenchmarkFileContended(b *testing.B) {
	for name, opts := range map[string][]filelock.Option{
		"filelock":           nil,
		"filelock-no-cohort": {filelock.WithMaxLocalHandoffs(0)},
	} {
		b.Run(name, func(b *testing.B) {
			l := fileLock(b, opts...)
			ctx := context.Background()
			b.SetParallelism(8)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := l.LockContext(ctx); err != nil {
						b.Error(err)
						return
					}
					if err := l.UnlockContext(ctx); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
