// Package series bounds the number of lock names that the exporters of a record.Recorder tell
// apart.
//
// Exporters are modules of their own, and users combine their versions with other versions of this
// module. So a function here never changes: it gets a successor beside it.
package series

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks/record"
)

const (
	// Max is the number of names that are told apart.
	Max = 1000
	// Other is the label of all further names, and of names that are not UTF-8, which the
	// exporters' protocols refuse.
	Other = "_other"
)

// Series has a value for each name that is told apart, and one value for all other names. Init
// comes first. A Series must not be copied.
type Series[T any] struct {
	make func(label string) T

	// byName is copied for each new name, under mu. Therefore events read it without a lock.
	mu     sync.Mutex
	byName atomic.Pointer[map[string]entry[T]]
}

type entry[T any] struct {
	label string
	value T
}

// Init has the values of s made by make, each when it is first asked for.
func (s *Series[T]) Init(make func(label string) T) {
	s.make = make
	s.byName.Store(&map[string]entry[T]{})
}

// Of returns the label of a name, which is the name or [Other], and the value of the label.
func (s *Series[T]) Of(name string) (label string, value T) {
	e, known := (*s.byName.Load())[name]
	if !known {
		e = s.add(name)
	}
	return e.label, e.value
}

func (s *Series[T]) add(name string) entry[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := *s.byName.Load()
	if _, is := known[name]; len(known) >= Max && !is || !utf8.ValidString(name) {
		name = Other
	}
	e, is := known[name]
	if !is {
		e = entry[T]{name, s.make(name)}
		known = maps.Clone(known)
		known[name] = e
		s.byName.Store(&known)
	}
	return e
}

// Each calls f for each label, with the counters of r for its names and the time at which the
// oldest present hold began. The time is zero without a hold.
func (s *Series[T]) Each(r *record.Recorder, f func(stats record.Stats, since time.Time)) {
	since := map[string]time.Time{}
	for _, h := range r.Holds() {
		if label, _ := s.Of(h.Lock); since[label].IsZero() {
			since[label] = h.Since
		}
	}
	var others record.Stats
	for _, st := range r.Stats() {
		if label, _ := s.Of(st.Lock); label != Other {
			f(st, since[label])
			continue
		}
		others.Lock = Other
		others.Acquired += st.Acquired
		others.Cancelled += st.Cancelled
		others.TimedOut += st.TimedOut
		others.Failed += st.Failed
		others.Busy += st.Busy
		others.Refused += st.Refused
		others.Lost += st.Lost
		others.Waiting += st.Waiting
		others.Held += st.Held
	}
	if others.Lock != "" {
		f(others, since[Other])
	}
}
