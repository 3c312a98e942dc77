package leftout

import "sync"

type box struct {
	mu, given, other, kept sync.Mutex
	n                      int
}

var shards [9]sync.Mutex

func (b *box) followed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

func nameless() {
	shards[1].Lock()
	shards[1].Unlock()
}

func (b *box) gives(to func(sync.Locker)) {
	to(&b.given)
	b.given.Lock()
	b.given.Unlock()
}

func (b *box) unclear(keep bool) {
	b.mu.Lock()
	defer func() {
		if !keep {
			b.mu.Unlock()
		}
	}()
	b.n++
}

func (b *box) Enter() { b.other.Lock() }

func (b *box) Leave() { b.other.Unlock() }

func (b *box) lockIt() { b.kept.Lock() }

// keep returns with kept held.
func (b *box) keep() { b.kept.Lock() }
