package lease

import "github.com/jucgo/locks"

// Halves makes a [WithShared] lock and another one the two halves of one read-write lock. It is
// for adapters, which call it before either half is used. The halves may be locks of different
// Clients.
//
// The owner of the write half may acquire the read half too. Requests for that name the hold of
// the write half, see [Request.Writer]. If that hold is lost, the error is [locks.ErrLost].
// From then on the write half goes back to the store when it is unlocked. No local waiter gets it
// before, because its owner may be reading still.
//
// An owner that holds the read half alone gets [locks.ErrUpgrade] from the write half at once,
// because it would wait for itself.
func Halves(read, write *Mutex) { read.write, write.read = write, read }

// enter prepares o to acquire l. If l is a read half and o holds the write half, enter returns the
// acquisition of that hold. The error says why o cannot have l.
//
// That hold is pinned before the request is sent. So a concurrent unlock has the same outcome: the
// store receives one before the other.
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
