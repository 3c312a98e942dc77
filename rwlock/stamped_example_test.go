package rwlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/rwlock"
)

// Point is read optimistically. Its coordinates are atomic, for a reader may look at them while a
// writer stores; the lock makes the two of them one value.
type Point struct {
	l    rwlock.StampedLock
	x, y atomic.Int64
}

// Move changes both coordinates.
func (p *Point) Move(dx, dy int64) {
	st := p.l.WriteLock()
	defer p.l.UnlockWrite(st)
	p.x.Add(dx)
	p.y.Add(dy)
}

// Norm tries without the lock a few times, and then waits for a read hold, so that writers cannot
// keep it from an answer.
func (p *Point) Norm() int64 {
	for range 3 {
		st := p.l.TryOptimisticRead()
		if st == 0 {
			break // held for writing: better wait
		}
		x, y := p.x.Load(), p.y.Load() // copies, of which nothing is known yet
		if p.l.Validate(st) {
			return x*x + y*y
		}
	}
	st := p.l.ReadLock()
	defer p.l.UnlockRead(st)
	x, y := p.x.Load(), p.y.Load()
	return x*x + y*y
}

// MoveFromOrigin moves p if it is at the origin, and takes the write lock only then.
func (p *Point) MoveFromOrigin(x, y int64) bool {
	st := p.l.ReadLock()
	defer func() { p.l.Unlock(st) }() // whichever it is in the end
	for p.x.Load() == 0 && p.y.Load() == 0 {
		if w := p.l.TryConvertToWriteLock(st); w != 0 {
			st = w
			p.x.Store(x)
			p.y.Store(y)
			return true
		}
		// Others read, too. Let go, so that they may do the same, and look again.
		p.l.UnlockRead(st)
		st = p.l.WriteLock()
	}
	return false
}

func ExampleStampedLock() {
	var p Point
	fmt.Println(p.MoveFromOrigin(3, 4), p.Norm())
	p.Move(3, 4)
	fmt.Println(p.MoveFromOrigin(1, 1), p.Norm())
	// Output:
	// true 25
	// false 100
}

func ExampleStampedLock_Validate() {
	var (
		l         rwlock.StampedLock
		low, high atomic.Int64
	)
	st := l.TryOptimisticRead()
	from, to := low.Load(), high.Load()
	fmt.Println(l.Validate(st), from, to)

	st = l.TryOptimisticRead()
	from = low.Load()
	w := l.WriteLock() // a writer comes in between
	low.Store(10)
	high.Store(20)
	l.UnlockWrite(w)
	to = high.Load()
	fmt.Println(l.Validate(st), from, to) // halves of two values
	// Output:
	// true 0 0
	// false 0 20
}

func ExampleStampedLock_TryConvertToReadLock() {
	var l rwlock.StampedLock
	st := l.WriteLock()
	// ... change something, and go on reading without letting another writer in between:
	st = l.TryConvertToReadLock(st)
	fmt.Println(l.IsWriteLocked(), l.ReadLockCount())
	l.Unlock(st)
	// Output: false 1
}

func ExampleSnapshot() {
	type limits struct {
		Low, High int
		Name      string
	}
	var s rwlock.Snapshot[limits]
	s.Store(limits{1, 9, "narrow"})
	s.Update(func(old limits) limits {
		old.High *= 10
		return old
	})
	fmt.Println(s.Load())
	// Output: {1 90 narrow}
}

// Each acquisition returns a stamp, or 0 if it fails. The stamp says which hold it is of.
func ExampleStamp() {
	var l rwlock.StampedLock
	optimistic, st := l.TryOptimisticRead(), l.TryReadLock()
	fmt.Println("optimistic:", optimistic.IsOptimisticRead(), optimistic.IsLock())
	fmt.Println("read hold:", st.IsReadLock(), st.IsLock())
	fmt.Println("no write lock in time:", l.TryWriteLockFor(time.Millisecond) == 0)
	l.UnlockRead(st)

	ctx := context.Background()
	st, err := l.WriteLockContext(ctx)
	fmt.Println("write hold:", st.IsWriteLock(), err)
	fmt.Println("no read hold in time:", l.TryReadLockFor(time.Millisecond) == 0)
	l.UnlockWrite(st)

	st, err = l.ReadLockContext(ctx)
	fmt.Println("read hold:", st.IsReadLock(), err)
	l.Unlock(st)
	// Output:
	// optimistic: true false
	// read hold: true true
	// no write lock in time: true
	// write hold: true <nil>
	// no read hold in time: true
	// read hold: true <nil>
}
