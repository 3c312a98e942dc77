package cas

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/spin"
)

// ErrNilFunc reports a nil function where [Versioned.Update] needs one.
var ErrNilFunc = errors.New("cas: nil function")

// Versioned is an optimistic lock around a value: nobody waits to read it or to compute its
// successor, and a change is committed only if the version that it was computed from is still the
// current one. It does in memory what a version column does in a database. Java has no such type;
// AtomicReference.updateAndGet is the closest.
//
// The zero Versioned has the zero T and version 0; each change adds 1 to the version, which with
// 64 bits never wraps. It must not be copied after first use. What a T refers to, such as the
// elements of a slice, is not copied: a function that computes a new value must leave the old one
// as it is.
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

// version is never changed once it is published, and never published again once it was replaced.
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
func (v *Versioned[T]) Load() (value T, version uint64) { return v.p.Load().get() }

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

// CompareAndSwap sets the value, and adds 1 to the version, if that is as expected, and reports
// whether it was. It does not fail for any other reason. Values are not compared, and need not be
// comparable.
func (v *Versioned[T]) CompareAndSwap(expected uint64, value T) bool {
	p := v.p.Load()
	if p.next() != expected+1 {
		return false
	}
	return v.p.CompareAndSwap(p, &version[T]{value, expected + 1})
}

// Store sets the value, whatever it was, and returns its version.
func (v *Versioned[T]) Store(value T) (number uint64) {
	changed := &version[T]{value: value}
	for {
		p := v.p.Load()
		changed.number = p.next()
		if v.p.CompareAndSwap(p, changed) {
			return changed.number
		}
	}
}

// Update replaces the value by what fn makes of it, and returns the new value. It reads value and
// version, calls fn, and commits the result if the version is still the same; otherwise it backs
// off, as [spin.Backoff] has it, and starts over with the current value. fn may thus be called
// any number of times, also at the same time by several goroutines, and must do nothing but
// compute.
//
// ctx is checked before each call of fn, and it ending cuts off the retries: the error matches
// ctx.Err() and its cause. An error of fn is returned as it is. In these cases, and if fn panics,
// nothing is committed, and the value returned is the zero T. A nil ctx is [locks.ErrNilContext],
// a nil fn [ErrNilFunc].
//
// [locks.ErrNilContext]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilContext
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
			return none, ctxerr.Wrap(op, ErrNilFunc)
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
		if v.p.CompareAndSwap(p, changed) {
			return value, nil
		}
		backoff.Pause()
	}
}
