//go:build race

package ruled

import "fmt"

// acquire calls Acquire of the rules twice, and panics if the two results differ.
func (s *Sync[R]) acquire(w, arg uint64) (next uint64, ok bool) {
	next, ok = s.rules.Acquire(w, arg)
	again, same := s.rules.Acquire(w, arg)
	s.compare("Acquire", w, arg, next, again, ok == same)
	return next, ok
}

// release calls Release of the rules twice, and panics if the two results differ.
func (s *Sync[R]) release(w, arg uint64) (next uint64, ok bool) {
	next, ok = s.rules.Release(w, arg)
	again, same := s.rules.Release(w, arg)
	s.compare("Release", w, arg, next, again, ok == same)
	return next, ok
}

func (s *Sync[R]) compare(method string, w, arg, next, again uint64, same bool) {
	if next != again || !same {
		panic(fmt.Sprintf("synchronizer: %T.%s(%d, %d) returned %d first and %d then: "+
			"rules must be functions of their arguments", s.rules, method, w, arg, next, again))
	}
}
