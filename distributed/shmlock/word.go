package shmlock

// The word of a [Mutex]:
//
//	bit 0       sleepers: a waiter sleeps, or is about to, and the release wakes one
//	bits 1-22   the number of the process that holds the lock
//	bits 23-63  its start time, in units of the system, or 0 if that is unknown
//
//	word         meaning
//	0            free
//	id           held, no waiter sleeps
//	id|sleepers  held, a waiter may sleep
//	orphan       the holder died, and later no process had the file open
//	sleepers     never
//
// A free word becomes id, or id|sleepers by a waiter that has slept. The word of a holder
// becomes 0 at its release, which wakes a sleeper if the bit is set. A waiter sets the bit
// before it sleeps. The word of a dead process, or orphan, becomes id|sleepers of the waiter
// that takes the lock over.
//
// Every step is one compare-and-swap of the whole word. Only a waiter that has seen the holder
// dead changes the word of a dead process, and no later process gets the same id. The waiter
// whose compare-and-swap succeeds takes the lock over.
//
// A sleeper waits in a futex for a change of the lower half of the word, which has the bit. If
// the lock changes hands without a change of that half, the bit is still set, and the new
// holder's release wakes a sleeper.
const (
	sleepers uint64 = 1

	pidBits  = 22
	pidShift = 1
	startAt  = pidShift + pidBits
)

// orphan is the id of no process: its number is 0.
const orphan uint64 = 1 << startAt

// idOf returns the word of a process that holds the lock, without sleepers.
func idOf(pid int, start uint64) uint64 { return uint64(pid)<<pidShift | start<<startAt }

// partsOf returns the arguments of idOf, as far as the word has room for them.
func partsOf(word uint64) (pid int, start uint64) {
	return int(word >> pidShift & (1<<pidBits - 1)), word >> startAt
}
