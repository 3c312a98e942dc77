package keyed_test

import (
	"sync"
	"testing"

	"github.com/jucgo/locks/keyed"
)

// countedMap is like the sets that programs write by hand: a map of locks with counts under a
// mutex.
type countedMap struct {
	mu    sync.Mutex
	locks map[string]*countedLock
}

type countedLock struct {
	sync.Mutex
	users int
}

func (c *countedMap) lock(key string) {
	c.mu.Lock()
	l := c.locks[key]
	if l == nil {
		l = new(countedLock)
		c.locks[key] = l
	}
	l.users++
	c.mu.Unlock()
	l.Lock()
}

func (c *countedMap) unlock(key string) {
	c.mu.Lock()
	l := c.locks[key]
	l.Unlock()
	if l.users--; l.users == 0 {
		delete(c.locks, key)
	}
	c.mu.Unlock()
}

func BenchmarkUncontended(b *testing.B) {
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = "orders/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	n := 0
	b.Run("keyed.Mutexes", func(b *testing.B) {
		b.ReportAllocs()
		var ms keyed.Mutexes[string]
		for i := range b.N {
			l := ms.Of(keys[i%1024])
			l.Lock()
			n++
			l.Unlock()
		}
	})
	b.Run("keyed.Mutexes of one key", func(b *testing.B) {
		b.ReportAllocs()
		var ms keyed.Mutexes[string]
		for range b.N {
			l := ms.Of("orders")
			l.Lock()
			n++
			l.Unlock()
		}
	})
	b.Run("map with counts", func(b *testing.B) {
		b.ReportAllocs()
		c := countedMap{locks: make(map[string]*countedLock)}
		for i := range b.N {
			c.lock(keys[i%1024])
			n++
			c.unlock(keys[i%1024])
		}
	})
}
