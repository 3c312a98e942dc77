package caslock

import (
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// sights are the last documents that a client has seen. A holder needs the version to renew and
// to release. A waiter needs the time when the document was seen first. A sight is a hint: a
// write that relies on an old version finds another version, and the client reads the document.
type sights struct {
	shared bool // several holders replace a document
	mu     sync.Mutex
	byName map[string]*sight
	least  int // how many are remembered in any case
	full   int // how many there are when the useless ones are dropped
}

type sight struct {
	document
	handed time.Time // when the token was seen first
	looked time.Time // when the document was seen last
	// calm says that no other client came between the last release here and the next look. Then the
	// next acquisition writes at once.
	calm bool
}

// manySights is how many documents a client remembers in any case.
const manySights = 4096

// saw notes a document that the store has just returned or written, and returns it. A store may
// break its promise and give a new document an old version. The nonce tells them apart.
func (s *sights) saw(name string, r roster, version string) document {
	now := driver.Now() // after the store's answer
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.byName[name]
	if k == nil {
		s.drop(now)
		k = &sight{document: document{version: "\x00"}, handed: now, calm: true}
		s.byName[name] = k
	}
	k.looked = now
	if k.version == version && k.nonce == r.nonce {
		k.calm = k.calm || len(r.holders) == 0
		return k.document
	}
	if k.token != r.token {
		k.handed = now
	}
	for i := range r.holders {
		h := &r.holders[i]
		h.seen = now
		// Each version of a lock counts as a renewal, since other programs may write it as well.
		if j := k.index(h.acquisition); s.shared && j >= 0 && h.same(k.holders[j]) {
			h.seen = k.holders[j].seen
		}
	}
	k.document = document{r, version}
	return k.document
}

// drop makes room for one more document. It forgets free locks, which are read again, and locks
// that no waiter has looked at for two leases. s.mu is held.
func (s *sights) drop(now time.Time) {
	if s.byName == nil {
		s.byName, s.full = make(map[string]*sight), s.least
	}
	if len(s.byName) < s.full {
		return
	}
	for name, k := range s.byName {
		if len(k.holders) == 0 || now.Sub(k.looked) > 2*k.longestLease() {
			delete(s.byName, name)
		}
	}
	s.full = max(s.least, 2*len(s.byName))
}

// noteSurprise notes that the document has another version than this client knew.
func (s *sights) noteSurprise(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byName[name]; k != nil {
		k.calm = false
	}
}

// free returns the document of a free lock to which an acquisition can write at once, or nil.
func (s *sights) free(name string) *document {
	return s.find(name, func(k *sight) bool { return k.calm && len(k.holders) == 0 && k.version != "" })
}

// of returns the document in which id is a holder, if a change can be written at once, or nil.
func (s *sights) of(id driver.HoldID) *document {
	return s.find(id.Name, func(k *sight) bool { return (k.calm || !s.shared) && k.index(id.Acquisition) >= 0 })
}

func (s *sights) find(name string, fits func(k *sight) bool) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.byName[name]
	if k == nil || !fits(k) {
		return nil
	}
	d := k.document
	return &d
}

// lasts returns for how long the lock has had the same holder, as far as this client knows.
func (s *sights) lasts(name string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.byName[name]; k != nil {
		return driver.Now().Sub(k.handed)
	}
	return 0
}
