package filelock

import "github.com/jucgo/locks"

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
