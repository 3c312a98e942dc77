package locks

import "fmt"

// CheckMulti returns where l, a Multi at rest, departs from its table of legal states.
func CheckMulti(l TryLocker) error {
	var m *multi
	switch l := l.(type) {
	case *multi:
		m = l
	case *leasedMulti:
		m = l.multi
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := len(m.others)
	if m.first.owner != 0 {
		counts++
	}
	if word := m.word.Load(); (word == counted) != (counts > 0) {
		return fmt.Errorf("the word is %d with %d counts", word, counts)
	}
	return nil
}
