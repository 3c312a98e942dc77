package calls

import "sync"

// The lock is a part of a part, and functions take its owner for a sync.Locker.
type part struct{ sync.Mutex }

type whole struct {
	part
	n int
}

func release(l sync.Locker) { l.Unlock() }

func take(l sync.Locker) { l.Lock() }

func (w *whole) set(n int) {
	w.Lock()
	defer w.Unlock()
	w.n = n
}

func (w *whole) get() int {
	w.Lock()
	defer w.Unlock()
	return w.n
}

func (w *whole) add() {
	w.Lock()
	defer release(w)
	w.n++
}

func (w *whole) double() {
	take(w)
	defer w.Unlock()
	w.n *= 2
}

func (w *whole) setAgain(n int) {
	take(w)
	w.set(n) // found: doublelock
	release(w)
}

func (w *whole) releaseTwice() {
	w.Lock()
	release(w)
	w.Unlock() // found: doubleunlock
}

// An interface is another name of a lock.
type hidden struct{ sync.Mutex }

type shown struct {
	hidden
	n int
}

func (s *shown) set(n int) {
	s.Lock()
	defer s.Unlock()
	s.n = n
}

func (s *shown) byVariable() {
	var l sync.Locker = s
	s.Lock()
	s.n++
	l.Unlock()
}

func (s *shown) byConversion() {
	s.Lock()
	s.n++
	sync.Locker(s).Unlock()
}
