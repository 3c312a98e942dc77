package idioms

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/rwlock"
)

// ReentrantReadWriteLock: class CachedData { void processCachedData() }
type CachedData struct {
	rwl        rwlock.RWMutex
	data       int
	cacheValid bool
	computed   atomic.Int64
}

func (c *CachedData) ProcessCachedData(use func(data int)) {
	c.rwl.RLock()
	if !c.cacheValid {
		// A reader cannot become the writer: it gives its hold up first.
		c.rwl.RUnlock()
		c.rwl.Lock()
		// Another goroutine may have written meanwhile.
		if !c.cacheValid {
			c.data = int(c.computed.Add(1))
			c.cacheValid = true
		}
		// The writer downgrades: it reads before it gives its write hold up.
		c.rwl.RLock()
		c.rwl.Unlock()
	}
	defer c.rwl.RUnlock()
	use(c.data)
}

func TestCachedDataIsComputedOnce(t *testing.T) {
	var c CachedData
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c.ProcessCachedData(func(data int) {
				if data != 1 {
					t.Errorf("used %d", data)
				}
			})
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, c.computed.Load())
}

// ReentrantReadWriteLock: class RWDictionary
type RWDictionary[D any] struct {
	rwl rwlock.RWMutex
	m   map[string]D
}

func (d *RWDictionary[D]) Get(key string) D {
	d.rwl.RLock()
	defer d.rwl.RUnlock()
	return d.m[key]
}

func (d *RWDictionary[D]) AllKeys() []string {
	d.rwl.RLock()
	defer d.rwl.RUnlock()
	return slices.Sorted(maps.Keys(d.m))
}

func (d *RWDictionary[D]) Put(key string, value D) (before D) {
	d.rwl.Lock()
	defer d.rwl.Unlock()
	before = d.m[key]
	d.m[key] = value
	return before
}

func (d *RWDictionary[D]) Clear() {
	d.rwl.Lock()
	defer d.rwl.Unlock()
	clear(d.m)
}

func TestDictionaryIsReadByManyAndWrittenByOne(t *testing.T) {
	d := RWDictionary[int]{m: map[string]int{}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				if i%10 == 0 {
					d.Put("a", i)
				}
				d.Get("a")
				d.AllKeys()
			}
		})
	}
	wg.Wait()
	d.Put("b", 2)
	require.Equal(t, []string{"a", "b"}, d.AllKeys())
	require.Equal(t, 90, d.Put("a", 1))
	d.Clear()
	require.Empty(t, d.AllKeys())
}

// ReadLock.tryLock: if (lock.tryLock() || lock.tryLock(timeout, unit)) { ... }
func TestReaderTriesAtOnceAndThenInTurn(t *testing.T) {
	var rwl rwlock.RWMutex
	read := func() bool {
		if !rwl.TryRLock() && !rwl.TryRLockFor(time.Microsecond) {
			return false
		}
		defer rwl.RUnlock()
		return true
	}
	require.True(t, read())
	release := holdElsewhere(t, &rwl)
	require.False(t, read())
	release()
	require.True(t, read())
}

// StampedLock: class Point
type Point struct {
	sl   rwlock.StampedLock
	x, y atomic.Int64 // optimistic readers read while a writer writes
}

// void move(double deltaX, double deltaY)
func (p *Point) Move(dx, dy int64) {
	stamp := p.sl.WriteLock()
	defer p.sl.UnlockWrite(stamp)
	p.x.Add(dx)
	p.y.Add(dy)
}

// double distanceFromOrigin()
func (p *Point) Norm() int64 {
	stamp := p.sl.TryOptimisticRead()
	for {
		if stamp == 0 {
			stamp = p.sl.ReadLock()
		}
		x, y := p.x.Load(), p.y.Load()
		if p.sl.Validate(stamp) {
			if stamp.IsReadLock() {
				p.sl.UnlockRead(stamp)
			}
			return x*x + y*y
		}
		stamp = p.sl.ReadLock()
	}
}

// double distanceFromOrigin2(), which upgrades to a read lock
func (p *Point) Norm2() int64 {
	stamp := p.sl.TryOptimisticRead()
	x, y := p.x.Load(), p.y.Load()
	if !p.sl.Validate(stamp) {
		stamp = p.sl.ReadLock()
		defer p.sl.UnlockRead(stamp)
		x, y = p.x.Load(), p.y.Load()
	}
	return x*x + y*y
}

// void moveIfAtOrigin(double newX, double newY)
func (p *Point) MoveIfAtOrigin(x, y int64) {
	stamp := p.sl.ReadLock()
	defer func() { p.sl.Unlock(stamp) }()
	for p.x.Load() == 0 && p.y.Load() == 0 {
		if w := p.sl.TryConvertToWriteLock(stamp); w != 0 {
			stamp = w
			p.x.Store(x)
			p.y.Store(y)
			return
		}
		p.sl.UnlockRead(stamp)
		stamp = p.sl.WriteLock()
	}
}

func TestPointIsReadAsAWholeWhileItMoves(t *testing.T) {
	var p Point
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 500 {
				p.Move(1, 1)
				p.Move(-1, -1)
			}
		})
		wg.Go(func() {
			for range 500 {
				// Both coordinates are always the same, 0 to 2.
				for _, norm := range []int64{p.Norm(), p.Norm2()} {
					if norm != 0 && norm != 2 && norm != 8 {
						t.Errorf("a norm of %d", norm)
					}
				}
			}
		})
	}
	wg.Wait()
	p.MoveIfAtOrigin(3, 4)
	p.MoveIfAtOrigin(1, 1)
	require.EqualValues(t, 25, p.Norm())
}
