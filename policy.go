package locks

// Policy is the order in which a lock admits its waiters.
type Policy uint8

const (
	// NonFair gives a free lock to the first goroutine that asks, ahead of the waiters: barging.
	// It is the zero Policy, Java's default, and the faster policy. A single wait can be long, but
	// is limited. A first waiter that has lost 16 races for the lock gets it from the next
	// release. So does a first waiter that has waited for 1 ms, and 1 ms more for each 128
	// waiters. The lock looks at that time when the waiter loses a race, and at each 64th
	// acquisition past a waiter that is awake and has still to run. After a signal, the
	// millisecond can begin with the first lost race. A writer that waits for readers gets the
	// lock from the next release as well. The waiters of a broadcast get it one after the other.
	NonFair Policy = iota

	// FIFO admits in order of arrival. A release hands the lock off to the longest waiter, so
	// that no other goroutine can come in between.
	FIFO
)

// String returns "NonFair" or "FIFO".
func (p Policy) String() string {
	if p == FIFO {
		return "FIFO"
	}
	return "NonFair"
}
