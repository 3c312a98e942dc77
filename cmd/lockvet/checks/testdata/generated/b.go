package generated

func (m *mock) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.Lock() // found: doublelock
}
