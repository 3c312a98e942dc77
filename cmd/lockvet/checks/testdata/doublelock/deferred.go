package doublelock

import "sync"

type journal struct {
	mu sync.Mutex
	rw sync.RWMutex
	n  int
}

func (j *journal) save() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
}

func (j *journal) sync() { j.save() }

func (j *journal) read() int {
	j.rw.RLock()
	defer j.rw.RUnlock()
	return j.n
}

func (j *journal) set(n int) {
	j.rw.Lock()
	defer j.rw.Unlock()
	j.n = n
}

// The last defer runs first.
func (j *journal) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.save() // want `deferred save calls Lock of j.mu before the deferred Unlock: it waits for itself`
	j.n++
}

func (j *journal) writeSynced() {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.sync() // want `deferred sync calls save, which calls Lock of j.mu before the deferred Unlock: it waits for itself`
	j.n++
}

func (j *journal) writeByLiteral() {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer func() { // want `deferred a function in writeByLiteral calls Lock of j.mu before the deferred Unlock`
		j.mu.Lock()
		j.n++
		j.mu.Unlock()
	}()
	j.n++
}

func (j *journal) readTwice() {
	j.rw.RLock()
	defer j.rw.RUnlock()
	defer j.read() // want `deferred read calls RLock of j.rw before the deferred RUnlock: a writer that waits between them stops both`
}

// What follows is right.

func (j *journal) writeThenSave() {
	defer j.save()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.n++
}

func (j *journal) unlocked() {
	j.mu.Lock()
	j.n++
	j.mu.Unlock()
	defer j.save()
}

func (j *journal) sometimes(yes bool) {
	if yes {
		j.mu.Lock()
		defer j.mu.Unlock()
	}
	defer j.saveIf(!yes)
}

func (j *journal) saveIf(yes bool) {
	if yes {
		j.save()
	}
}

func (j *journal) unlockedFirst() {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer func() {
		j.mu.Unlock()
		j.save()
		j.mu.Lock()
	}()
	j.n++
}

func (j *journal) leaves() {
	j.mu.Lock()
	defer func() { go j.save() }()
	defer j.mu.Unlock()
}
