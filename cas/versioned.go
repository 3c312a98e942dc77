package cas

import (
	"context"
	"sync/atomic"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/spin"
)

// Versioned is an optimistic lock around a value. No goroutine waits to read the value or to
// compute the next value. A change is committed only if the version from which it was computed is
// still current. A version column does the same in a database. Java lacks such a type;
// AtomicReference.updateAndGet is the closest.
//
// The zero Versioned has the zero T and version 0. Each change adds 1 to the version, which has
// 64 bits and never wraps. A Versioned must not be copied after first use. A load copies the T,
// but not the memory to which the T refers, such as the elements of a slice. A function that
// computes a new value must not change the old one.
//
// Take a Versioned if writers must not wait for each other, or if readers need the version. Take
// rwlock.Snapshot if writers may wait, so that each change is computed once.
//
// A load costs two dependent reads and a copy of the value. A change costs one allocation and one
// compare-and-swap. A Versioned is the cheapest lock while changes seldom meet. Where changes
// often meet, much work is done in vain, and a lock that waits is cheaper.
type Versioned[T any] struct {
	p atomic.Pointer[version[T]]
}

// version does not change once it is published. A replaced version is never published again.
type version[T any] struct {
	value  T
	number uint64
}

// NewVersioned returns a Versioned with a value to start with, at version 0.
func NewVersioned[T any](value T) *Versioned[T] {
	v := new(Versioned[T])
	v.p.Store(&version[T]{value: value})
	return v
}

// Load returns the value and its version.
func (v *Versioned[T]) Load() (value T, version uint64) {
	if sched.On {
		sched.Begin("Load", v)
	}
	return v.p.Load().get()
}

func (p *version[T]) get() (value T, number uint64) {
	if p == nil {
		return value, 0
	}
	return p.value, p.number
}

func (p *version[T]) next() uint64 {
	if p == nil {
		return 1
	}
	return p.number + 1
}

// CompareAndSwap sets the value and adds 1 to the version if the version is as expected, and
// reports whether it was. It does not fail for any other reason. It does not compare values,
// which need not be comparable.
func (v *Versioned[T]) CompareAndSwap(expected uint64, value T) bool {
	if sched.On {
		sched.Begin("CompareAndSwap", v)
	}
	p := v.p.Load()
	if p.next() != expected+1 {
		return false
	}
	if sched.On {
		sched.Step()
	}
	return v.p.CompareAndSwap(p, &version[T]{value, expected + 1})
}

// Store sets the value, whatever it was, and returns its version.
func (v *Versioned[T]) Store(value T) uint64 {
	if sched.On {
		sched.Begin("Store", v)
	}
	changed := &version[T]{value: value}
	for {
		p := v.p.Load()
		changed.number = p.next()
		if sched.On {
			sched.Step()
		}
		if v.p.CompareAndSwap(p, changed) {
			return changed.number
		}
	}
}

// Update replaces the value by the result of fn, and returns the new value. It reads value and
// version, calls fn, and commits the result if the version is still the same. Otherwise it
// pauses like [spin.Backoff], and starts again with the current value. fn may be called any
// number of times, and by several goroutines at the same time. It must not have side effects.
//
// Update checks ctx before each call of fn. If ctx has ended, the error matches ctx.Err() and
// its cause. An error of fn is returned unchanged. In these cases, and if fn panics, nothing is
// committed, and the returned value is the zero T. A nil ctx is [locks.ErrNilContext], a nil fn
// [locks.ErrNilFunc].
//
// [locks.ErrNilContext]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilContext
// [locks.ErrNilFunc]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilFunc
func (v *Versioned[T]) Update(ctx context.Context, fn func(T) (T, error)) (T, error) {
	const op = "cas: Versioned.Update"
	var (
		none    T
		changed *version[T]
		backoff spin.Backoff
	)
	for {
		if err := ctxerr.Check(op, ctx); err != nil {
			return none, err
		}
		if fn == nil {
			return none, ctxerr.Wrap(op, ctxerr.ErrNilFunc)
		}
		if sched.On {
			sched.Begin("Load", v)
		}
		p := v.p.Load()
		value, _ := p.get()
		value, err := fn(value)
		if err != nil {
			return none, err
		}
		if changed == nil {
			changed = new(version[T])
		}
		changed.value, changed.number = value, p.next()
		if sched.On {
			sched.Begin("CompareAndSwap", v)
		}
		if v.p.CompareAndSwap(p, changed) {
			return value, nil
		}
		backoff.Pause()
	}
}
