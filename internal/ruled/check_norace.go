//go:build !race

package ruled

func (s *Sync[R]) acquire(w, arg uint64) (next uint64, ok bool) { return s.rules.Acquire(w, arg) }
func (s *Sync[R]) release(w, arg uint64) (next uint64, ok bool) { return s.rules.Release(w, arg) }
