// Package burst gives back the memory of maps that have been large. A map of Go keeps its memory when
// its entries are deleted.
package burst

// kept is the number of entries whose memory is worth keeping. The map of a lock that is used again
// and again then allocates nothing.
const kept = 16

// Peak is the greatest length of a map since the map was made. The zero Peak is of a new map.
type Peak int32

// Grew notes the length of the map after an addition.
func (p *Peak) Grew(length int) { *p = max(*p, Peak(length)) }

// IsOver reports whether the map, which has a length now, is empty and has been large. Then the
// caller drops the map, and the Peak is of a new map.
func (p *Peak) IsOver(length int) bool {
	over := length == 0 && *p > kept
	if over {
		*p = 0
	}
	return over
}
