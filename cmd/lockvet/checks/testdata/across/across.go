// Package across uses locks of other packages: what their functions do with locks is known as facts.
package across

import (
	"errors"
	"sync"

	"example.com/testdata/across/store"
	"example.com/testdata/across/syncutil"
)

var errFull = errors.New("full")

type server struct {
	mu   syncutil.Mutex
	a, b sync.Mutex
	m    store.Map
	n    int
}

func (s *server) forgets() error {
	s.mu.Lock()
	if s.n > 9 {
		return errFull // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

func (s *server) defers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errFull
}

func (s *server) twice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.Lock() // found: doublelock
	s.mu.Unlock()
}

func (s *server) enters() error {
	if err := s.mu.Enter(); err != nil {
		return err
	}
	s.n++
	s.mu.Unlock()
	return nil
}

func (s *server) entersAndForgets() error {
	if err := s.mu.Enter(); err != nil {
		return err
	}
	if s.n > 9 {
		return errFull // found: missingunlock
	}
	s.mu.Unlock()
	return nil
}

func (s *server) both() {
	syncutil.LockBoth(&s.a, &s.b)
	syncutil.UnlockBoth(&s.a, &s.b)
}

func (s *server) bothTwice() {
	syncutil.LockBoth(&s.a, &s.b)
	defer syncutil.UnlockBoth(&s.a, &s.b)
	s.b.Lock() // a lock that other code gets is not followed
}

func (s *server) all() {
	syncutil.LockAll()
	syncutil.LockAll() // found: doublelock
	syncutil.UnlockAll()
}

func public(p *store.Public) error {
	p.Mu.Lock()
	if p == nil {
		return errFull // found: missingunlock
	}
	p.AddLocked()
	p.Mu.Unlock()
	return nil
}

func finishes(p *store.Public) error {
	p.Mu.Lock()
	if p == nil {
		p.Finish()
		return errFull
	}
	p.Mu.Unlock()
	return nil
}

func addsTwice(p *store.Public) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Add() // found: doublelock
}

func given(g *store.Given) {
	g.Mu.Lock()
	g.Use() // other code may have released it
	g.Mu.Unlock()
}

func (s *server) calledBack() {
	s.m.Each(func(string) { s.m.Len() }) // found: doublelock
	s.m.View(func(k string) {            // found: lockupgrade
		s.m.Put(k)
	})
	s.m.View(func(string) { s.m.Len() }) // found: doublelock
	s.m.Apart(func(k string) { s.m.Put(k) })
	s.m.Later(func(k string) { s.m.Put(k) })
	s.m.Each(s.note) // found: doublelock
}

func (s *server) note(string) { s.m.Put("") }

func other(m, o *store.Map) {
	m.Each(func(k string) { o.Put(k) })
}

type index struct {
	mu sync.Mutex
	m  *store.Map
}

func (i *index) rebuild() {
	i.m.Each(func(string) {
		i.mu.Lock()
		defer i.mu.Unlock()
	})
}

func (i *index) put() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.m.Put("") // found: lockorder
}

func opposite(f *store.First, s *store.Second) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	f.Mu.Lock() // found: lockorder
	defer f.Mu.Unlock()
}
