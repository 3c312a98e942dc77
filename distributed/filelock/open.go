package filelock

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
)

// RWMutex is the lock of a file as a read-write lock: any number of readers, or one writer,
// among all processes. In this process waiters are admitted in order of arrival. Processes have
// no order among each other, and a stream of readers can starve a writer of another process.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// ReadLocker returns the shared half. It is a [*Mutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.read }

// WriteLocker returns the exclusive half. It is a [*Mutex].
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.write }

// ReadMutex is [RWMutex.ReadLocker] with its own type, which has Hold and Inspect.
func (l *RWMutex) ReadMutex() *Mutex { return l.read }

// WriteMutex is [RWMutex.WriteLocker] with its own type.
func (l *RWMutex) WriteMutex() *Mutex { return l.write }

// File is the lock of one file, made by [Open]: the exclusive lock, and both halves of a
// read-write lock.
type File struct {
	*Mutex
	read *Mutex
}

// Open returns the lock of the file at path. It creates the file if it does not exist, but not
// its directory. The file may have contents, and may be read-only: it is locked, never changed,
// except by [WithTokens]. If it is not a regular file, the error matches [locks.ErrForeign].
//
// All programs that lock the file with flock exclude each other: flock(1) of util-linux, and
// most libraries.
func Open(path string, opts ...Option) (*File, error) {
	fail := func(err error) (*File, error) { return nil, fmt.Errorf("filelock: Open(%q): %w", path, err) }
	c, err := newClient(path, opts)
	if err != nil {
		return fail(err)
	}
	f := &File{Mutex: c.lock(path, c.dir, exclusive), read: c.lock(path, c.dir, shared)}
	if _, err := files.get(f.path, c.perm); err != nil {
		return fail(err)
	}
	return f, nil
}

// ReadLocker returns the shared half. It is a [*Mutex].
func (f *File) ReadLocker() locks.TryLocker { return f.read }

// ReadMutex is [File.ReadLocker] with its own type.
func (f *File) ReadMutex() *Mutex { return f.read }

// WriteLocker returns the exclusive half, which f is itself. It is a [*Mutex].
func (f *File) WriteLocker() locks.TryLocker { return f.Mutex }

// Close ends all holds that f began, see [Client.Close].
func (f *File) Close(ctx context.Context) error { return f.client.Close(ctx) }
