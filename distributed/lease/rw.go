package lease

import "github.com/jucgo/locks"

// RWMutex is a read-write lock: any number of readers, or one writer, among all processes. Its
// halves are Mutexes with holds of their own, which are renewed, lost and released separately. The
// store decides in which order readers and writers have their turn, see the adapter's
// documentation.
//
// The owner of the write half may acquire the read half too. An owner that then unlocks the write
// half is a reader, and no other writer was in between. If the hold of the write half is lost, the
// acquisition of the read half returns [locks.ErrLost]. A write half that is unlocked always goes
// back to the store once its owner has read. No local waiter gets the write half before, because
// its former owner may be reading still.
//
// An owner that holds the read half alone gets [locks.ErrUpgrade] from the write half at once,
// because the owner would wait for itself.
type RWMutex struct{ read, write *Mutex }

var _ locks.ReadWriteLocker = (*RWMutex)(nil)

// NewRWMutex returns the read-write lock of two halves, of which read is a [WithShared] lock. It is
// for adapters, which call it before either half is used. The halves may be locks of different
// Clients. The methods of a nil half return an error. Requests for the read half name the hold of
// the write half, see [driver.Request.Writer].
func NewRWMutex(read, write *Mutex) *RWMutex {
	read, write = half(read), half(write)
	read.write, write.read = write, read
	return &RWMutex{read, write}
}

// ReadLocker returns the half of the readers. It is a [*Mutex].
func (l *RWMutex) ReadLocker() locks.TryLocker { return l.ReadMutex() }

// WriteLocker returns the half of the writer. It is a [*Mutex].
func (l *RWMutex) WriteLocker() locks.TryLocker { return l.WriteMutex() }

// ReadMutex is [RWMutex.ReadLocker] with its own type, which has Hold and Inspect.
func (l *RWMutex) ReadMutex() *Mutex { return half(l.read) }

// WriteMutex is [RWMutex.WriteLocker] with its own type.
func (l *RWMutex) WriteMutex() *Mutex { return half(l.write) }

// half returns l, or a zero Mutex if l is the half of a zero RWMutex.
func half(l *Mutex) *Mutex {
	if l == nil {
		return new(Mutex)
	}
	return l
}

// enter prepares o to acquire l. If l is a read half and o holds the write half, enter returns
// the acquisition of the write hold. The error says why o cannot have l.
//
// The write hold is pinned before the request for l is sent: a pinned hold is always released to
// the store. Therefore the store receives the request of a concurrent unlock, either before or
// after the request for l.
func (l *Mutex) enter(o locks.Owner) (writer string, err error) {
	switch {
	case l.read != nil && l.read.holdOf(o, nil) != nil:
		return "", locks.ErrUpgrade
	case l.write != nil:
		l.write.holdOf(o, func(h *hold) {
			if err = h.Err(); err == nil {
				h.g.pinned, writer = true, h.g.id.Acquisition
			}
		})
	}
	return writer, err
}
