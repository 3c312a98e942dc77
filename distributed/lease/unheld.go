package lease

import (
	"fmt"
	"slices"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/unheld"
)

// errReleased is the error of a hold that has ended by a release.
var errReleased = unheld.Because("the hold is released already")

// notHeld returns the error of o, which does not hold l. The error rests on this client's knowledge
// alone, because the store may take long to answer.
func (l *Mutex) notHeld(o locks.Owner) error {
	if err := l.refusal(); err != nil {
		return fmt.Errorf("%w: %w", locks.ErrNotHeld, err)
	}
	var half *Mutex
	mode, other := "", ""
	switch {
	case l.read != nil:
		half, mode, other = l.read, " for writing", " for reading"
	case l.write != nil:
		half, mode, other = l.write, " for reading", " for writing"
	}
	if err := l.holdersError(o, mode); err != nil {
		return err
	}
	if half != nil {
		if held, lost := half.holders(); slices.Contains(held, o) || slices.Contains(lost, o) {
			return unheld.Because(o.String() + " holds the lock" + other + " only")
		}
		if err := half.holdersError(o, other); err != nil {
			return err
		}
	}
	const free = "the lock has no holder in this client; another client may hold it"
	if l.c.inspector != nil {
		return unheld.Because(free + ", see Inspect")
	}
	return unheld.Because(free)
}

// holdersError returns the error of o if other owners have holds of l in its client, and nil
// otherwise.
func (l *Mutex) holdersError(o locks.Owner, mode string) error {
	const where = " of this process"
	held, lost := l.holders()
	switch {
	case len(held) > 0:
		return unheld.By(o, "the lock is held"+mode+" by", where, held...)
	case len(lost) > 0:
		return unheld.By(o, "the lock is lost, but not unlocked, by", where, lost...)
	}
	return nil
}

// holders returns the owners that hold l in its client, and the owners whose holds are lost.
func (l *Mutex) holders() (held, lost []locks.Owner) {
	for _, q := range l.queues() {
		q.mu.Lock()
		if h := q.hold; h == nil {
		} else if h.g.err() == nil {
			held = append(held, q.turn.Owner())
		} else {
			lost = append(lost, q.turn.Owner())
		}
		q.mu.Unlock()
	}
	slices.Sort(held)
	slices.Sort(lost)
	return held, lost
}
