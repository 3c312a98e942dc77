package zklock

import "time"

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

// Takes has l's client believe that a turn of the lock takes d.
func (l *Lock) Takes(d time.Duration) {
	l.c.mu.Lock()
	st := l.c.stores[l.kind]
	l.c.mu.Unlock()
	st.turns.mu.Lock()
	defer st.turns.mu.Unlock()
	st.turns.m = map[string]time.Duration{l.Name(): d}
}

// Turn returns what l's client believes that a turn of the lock takes, or 0.
func (l *Lock) Turn() time.Duration {
	l.c.mu.Lock()
	st := l.c.stores[l.kind]
	l.c.mu.Unlock()
	return st.turns.get(l.Name())
}
