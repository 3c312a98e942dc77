package filelock

// The word of a [Mapped]:
//
//	bit 0       sleepers: somebody sleeps, or is about to, and is woken at the release
//	bits 1-22   the number of the process that holds the lock
//	bits 23-63  when it was started, in units of the system, or 0 if that is unknown
//
//	word        meaning                            becomes
//	0           free                               id, or id|sleepers by one who has slept
//	id          held, and nobody sleeps            0 by the holder; id|sleepers by one who is about to sleep;
//	                                               another id|sleepers if the holder is dead
//	id|sleepers held, and somebody may sleep       0 by the holder, who wakes one then; another id|sleepers if the holder is dead
//	sleepers    never
//
// Every step is one compare-and-swap of the whole word. A word with the id of a dead process can only become another one by
// somebody who has
// seen that it is dead, and no process gets that id again: so the one whose compare-and-swap succeeds is the one that takes over.
//
// A sleeper in a futex waits for a change of the lower half of the word, where the bit is. Should the lock change hands
// without that half
// changing, the bit is set in it, and whoever holds it now will wake one.
const (
	sleepers uint64 = 1

	pidBits  = 22
	pidShift = 1
	startAt  = pidShift + pidBits
)

// idOf returns the word of a process that holds the lock, without sleepers.
func idOf(pid int, start uint64) uint64 { return uint64(pid)<<pidShift | start<<startAt }

// partsOf returns what idOf was given, as far as there is room for it.
func partsOf(word uint64) (pid int, start uint64) {
	return int(word >> pidShift & (1<<pidBits - 1)), word >> startAt
}
