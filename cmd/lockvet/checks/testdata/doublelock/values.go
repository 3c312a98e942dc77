package doublelock

import "sync"

// A step locks by itself, and the others run under the lock.
type machine struct {
	mu   sync.Mutex
	n    int
	all  map[string]func()
	next func()
}

func (m *machine) step() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
}

func (m *machine) one() {
	work := m.step
	m.mu.Lock()
	defer m.mu.Unlock()
	work() // want `work calls Lock of m.mu, which this function already holds: it waits for itself`
}

// What follows is right: the package does not show which function is called.

func (m *machine) fromMap(name string) {
	work := m.step
	if name != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		work = m.all[name]
		work()
		return
	}
	work()
}

func (m *machine) fromLoop(all []func()) {
	work := m.step
	work()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, work = range all {
		work()
	}
}

func (m *machine) fromChannel(all chan func()) {
	work := m.step
	work()
	m.mu.Lock()
	defer m.mu.Unlock()
	work = <-all
	work()
}

func (m *machine) byPointer() {
	work := m.step
	work()
	giveTo(&work)
	m.mu.Lock()
	defer m.mu.Unlock()
	work()
}

func giveTo(work *func()) { *work = func() {} }

func (m *machine) fromOthers() {
	work := m.step
	work()
	m.mu.Lock()
	defer m.mu.Unlock()
	work = sync.OnceFunc(func() { m.n++ })
	work()
}

func (m *machine) fromResult() {
	work := m.step
	work()
	m.mu.Lock()
	defer m.mu.Unlock()
	work = m.chosen()
	work()
}

func (m *machine) chosen() (work func()) {
	work = m.all[""]
	return
}

func (m *machine) SetNext(next func()) { m.next = next }

func (m *machine) reset() { m.next = m.step }

func (m *machine) runNext() {
	if m.next == nil {
		m.reset()
		m.next()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next()
}

// The package puts another lock into the field meanwhile.
type replaced struct {
	mu *sync.Mutex
	n  int
}

func (r *replaced) replace() { r.mu = new(sync.Mutex) }

func (r *replaced) both() {
	r.mu.Lock()
	r.replace()
	r.mu.Lock()
	r.n++
	r.mu.Unlock()
}
