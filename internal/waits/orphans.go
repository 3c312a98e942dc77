package waits

import (
	"slices"

	"github.com/jucgo/locks/internal/syncq"
)

// Suspects are the holders of locks that have waiters, as one look saw them.
type Suspects map[*syncq.Sync][]int64

// SuspectsOf returns the holders of the locks of waiting, which [Waiting] has just returned.
func SuspectsOf(waiting []Wait) Suspects {
	suspects := make(Suspects)
	for _, w := range waiting {
		if _, ok := suspects[w.Lock]; !ok {
			suspects[w.Lock] = Holders(w.Lock)
		}
	}
	return suspects
}

// Orphan is a lock with waiters whose holder, a goroutine, has exited.
type Orphan struct {
	Lock   *syncq.Sync
	Holder int64
	Waits  []Wait // longest first
}

// Orphans returns the orphans among suspects. After the look that made suspects, the caller has
// listed all goroutines. lives reports whether the list has a goroutine.
//
// A suspect existed at the first look. If the list, which is made afterwards, lacks the suspect,
// the suspect has exited, because identities are not reused. If the suspect is a holder at the
// second look, which is made here, it held the lock when it exited.
func Orphans(suspects Suspects, lives func(goroutine int64) bool) (orphans []Orphan) {
	type held struct {
		lock   *syncq.Sync
		holder int64
	}
	byHolder := make(map[held]int)
	for _, w := range Waiting() {
		for _, h := range w.Holders() {
			if h <= 0 || lives(h) || !slices.Contains(suspects[w.Lock], h) {
				continue
			}
			i, ok := byHolder[held{w.Lock, h}]
			if !ok {
				i = len(orphans)
				byHolder[held{w.Lock, h}] = i
				orphans = append(orphans, Orphan{Lock: w.Lock, Holder: h})
			}
			orphans[i].Waits = append(orphans[i].Waits, w)
		}
	}
	return orphans
}
