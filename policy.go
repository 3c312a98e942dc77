package locks

// Policy is the order in which a lock admits its waiters.
type Policy uint8

const (
	// NonFair gives a free lock to the first goroutine that asks, ahead of the waiters: barging.
	// It is the zero Policy, Java's default, and the faster one. A single wait can be long, but
	// is limited. A first waiter that has lost 16 races for the lock, or has waited for 1 ms
	// when it loses one, gets the lock from the next release. After a signal, the millisecond
	// can begin with the first lost race. A writer that waits for readers gets the lock from
	// the next release as well. The waiters of a broadcast get it one after the other.
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
