package fair

// Policy is the order in which a lock admits its waiters.
type Policy uint8

const (
	// NonFair gives a free lock to the first goroutine that asks, past the waiters: barging. It is
	// the zero Policy, Java's default, and the faster one. A single wait can be long, but not
	// unbounded. A first waiter that lost the race for the lock 16 times, or that has waited for
	// 1 ms when it loses, gets the lock from the next release. The waiters of a broadcast get it
	// one after the other.
	NonFair Policy = iota

	// FIFO admits in order of arrival. A release hands the lock directly to the longest waiter, so
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
