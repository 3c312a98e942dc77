package syncq

// Party is a goroutine or an explicit owner that acquires: its value in the state word, and the
// identity that inspection shows.
type Party struct {
	value  uint64
	who    int64
	kind   *Kind
	policy Policy // FIFO if the lock is so without New
}

// Owned returns the party of a lock that knows its owner, which must not be 0 and must fit, with
// its sign, in 58 bits.
func Owned(owner int64) Party { return Party{value: Value(owner), who: owner} }

// Taken is the word of a lock without owners while it is held exclusively and nobody waits.
const Taken = oneHold

// Anonymous returns the party of a lock without owners. who is for inspection only; 0 stands for
// the calling goroutine.
func Anonymous(who int64) Party { return Party{value: Taken, who: who} }

// Of returns p as a party of a lock of kind k.
func (p Party) Of(k *Kind) Party {
	p.kind = k
	return p
}

// FIFO returns p as a party of a lock whose zero value is FIFO. Each party of such a lock must say
// so.
func (p Party) FIFO() Party {
	p.policy = FIFO
	return p
}

// Owner returns the owner whose party p is.
func (p Party) Owner() int64 { return p.who }
