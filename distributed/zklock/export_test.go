package zklock

// Expects reports whether somebody who waits for l's lock has it when the node before goes.
func (l *Lock) Expects() bool {
	l.c.mu.Lock()
	st := l.c.stores[l.kind]
	l.c.mu.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range st.records {
		r.mu.Lock()
		expects := r.ref.Name == l.Name() && r.heir.path != ""
		r.mu.Unlock()
		if expects {
			return true
		}
	}
	return false
}
