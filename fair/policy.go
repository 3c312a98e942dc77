package fair

// Policy is the order in which a lock admits those who wait for it.
type Policy uint8

const (
	// NonFair lets whoever comes first have a lock that is free, past those who
	// wait: barging. It is the zero Policy, Java's default, and the faster one. The wait of a
	// single goroutine is long at times, but not unbounded: a first waiter
	// that woke up and found the lock taken 16 times, or that has waited for 1 ms when it does, is handed it, and so is
	// one after the other of those whom a condition has let go at once.
	NonFair Policy = iota

	// FIFO admits in order of arrival: who releases the lock hands it directly to the
	// longest waiter, so that nobody can come in between. As in [Mutex], the next one may spin until its turn.
	FIFO
)

// String returns "NonFair" or "FIFO".
func (p Policy) String() string {
	if p == FIFO {
		return "FIFO"
	}
	return "NonFair"
}
