package lease

import (
	"fmt"
	"slices"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/unheld"
)

// errReleased is the error of a hold that has ended by a release.
var errReleased = unheld.Because("the hold is released already")

// notHeld returns the error of o, which has no hold of l. It says what this client knows, because
// the store may take long to answer.
func (l *Mutex) notHeld(o locks.Owner) error {
	if l.bad != nil {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, l.bad)
	}
	var half *Mutex
	mode, other := "", ""
	switch {
	case l.read != nil:
		half, mode, other = l.read, " for writing", " for reading"
	case l.write != nil:
		half, mode, other = l.write, " for reading", " for writing"
	}
	const where = " of this process"
	if holders, lost := l.holders(); lost {
		return unheld.By(o, "the lock is lost, but not unlocked, by", where, holders...)
	} else if len(holders) > 0 {
		return unheld.By(o, "the lock is held"+mode+" by", where, holders...)
	}
	if half != nil {
		if holders, _ := half.holders(); slices.Contains(holders, o) {
			return unheld.Because(o.String() + " holds the lock" + other + " only")
		} else if len(holders) > 0 {
			return unheld.By(o, "the lock is held"+other+" by", where, holders...)
		}
	}
	if l.c.inspector != nil {
		return unheld.Because("the lock is free in this client; Inspect finds holders elsewhere")
	}
	return unheld.Because("the lock is free in this client")
}

// holders returns the owners that hold l by its client, and whether one of their holds is lost.
func (l *Mutex) holders() (owners []locks.Owner, lost bool) {
	for _, q := range l.queues() {
		q.mu.Lock()
		if h := q.hold; h != nil {
			owners = append(owners, q.turn.Owner())
			lost = lost || h.g.err() != nil
		}
		q.mu.Unlock()
	}
	slices.Sort(owners)
	return owners, lost
}
