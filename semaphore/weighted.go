package semaphore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/ruled"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// ErrTooLarge reports an acquisition of more permits than the size of the semaphore. Such an
// acquisition would wait until a Resize, and keep all later waiters from the free permits.
var ErrTooLarge = locks.ErrTooLarge

// Weighted is a semaphore: it has a number of permits, its size, and an acquisition takes several
// of them at once, its weight. It has the methods of semaphore.Weighted of golang.org/x/sync, and
// more. Java's Semaphore(permits, true).
//
// [NewWeighted] makes a Weighted. The zero Weighted is without permits; [Weighted.Resize] gives it
// permits. A Weighted must not be copied after first use. Permits belong to no goroutine: one
// goroutine may acquire them, and another may release them.
//
// Waiters are admitted in order of arrival. An acquisition that waits for more permits than are
// free does not let smaller acquisitions pass. Therefore a large weight does not starve, and
// permits can be free while goroutines wait.
//
// In the terms of the Go memory model, a release synchronizes before each acquisition that comes
// after it. Without waiters, an acquisition and a release cost a compare-and-swap each, and
// allocate nothing. Only waits with a context or a time limit allocate.
type Weighted struct {
	// The word is the number of free permits. It is negative while the holders have more than a
	// new size.
	sync ruled.Sync[permits]

	// size is never smaller than the sum of the free permits and the held permits. Therefore a
	// release by a holder is never refused. size differs from this sum only during a Resize,
	// which holds resizing.
	size     atomic.Int64
	resizing sync.Mutex
}

// permits are the rules of a word that is the number of free permits.
type permits struct{}

// Acquire admits 0 permits even if the holders have more than the size.
func (permits) Acquire(free, n uint64) (uint64, bool) {
	return free - n, int64(free) >= int64(n) || n == 0
}

func (permits) Release(free, n uint64) (uint64, bool) { return free + n, true }

// NewWeighted returns a semaphore of n permits. It panics if n is negative.
func NewWeighted(n int64) *Weighted {
	s := new(Weighted)
	s.Resize(n)
	return s
}

// Acquire acquires n permits, and waits for them behind all earlier waiters until ctx ends. It
// returns nil if and only if it acquired them. If ctx ends, the error is ctx.Err(), not wrapped.
// A ctx that has ended before the permits were granted is such an error even if they are free. An
// n greater than the size is an error that matches [ErrTooLarge] and has both numbers. Acquire
// returns this error at once, or when a Resize makes the size smaller than n. Acquire panics if n
// is negative. Java's acquire(permits).
func (s *Weighted) Acquire(ctx context.Context, n int64) (err error) {
	if sched.On {
		defer sched.Asked(sched.Amount("Acquire", n), s)(&err)
	}
	weigh(n)
	if ctx == nil {
		return locks.ErrNilContext
	}
	if done := ctx.Done(); done != nil && isClosed(done) {
		return endError(ctx)
	}
	if s.tryAcquire(n) {
		return nil
	}
	if n > s.size.Load() { // also without a Resize
		return s.failure(ctx, n, syncq.Refused)
	}
	done := ctx.Done()
	var out syncq.Outcome
	if who := int64(locks.CurrentOwner(ctx)); done == nil || sched.On {
		out = s.sync.Wait(uint64(n), who, park.Until(ctx))
	} else {
		// These are the steps of Wait without its frame, since a goroutine that wakes pays for
		// each frame through which it returns: 5 to 9 % of a contended Acquire.
		w := s.sync.Begin(uint64(n), who)
		select {
		case <-w.Permits():
			out = w.Outcome()
		case <-done:
			out = s.sync.Leave(w)
		}
	}
	if out == syncq.Acquired {
		if !isClosed(done) {
			return nil
		}
		s.Release(n) // perhaps ctx ended first: then the caller must not have the permits
	}
	return s.failure(ctx, n, out)
}

// failure returns the error of an acquisition of n permits that ended with out.
//
//go:noinline
func (s *Weighted) failure(ctx context.Context, n int64, out syncq.Outcome) error {
	if out == syncq.Refused {
		return fmt.Errorf("semaphore: Acquire: %w: %d of %d", ErrTooLarge, n, s.size.Load())
	}
	return endError(ctx)
}

// TryAcquire acquires n permits if they are free and no goroutine waits, and reports whether it
// did. It panics if n is negative. Unlike Java's tryAcquire(permits) it does not overtake
// waiters.
func (s *Weighted) TryAcquire(n int64) (ok bool) {
	if sched.On {
		defer sched.Tried[bool](sched.Amount("TryAcquire", n), s)(&ok)
	}
	weigh(n)
	return s.tryAcquire(n)
}

// tryAcquire is the engine's TryAcquire under FIFO, with the rule of permits.Acquire inlined.
func (s *Weighted) tryAcquire(n int64) bool {
	for !s.sync.HasQueued() {
		free := s.sync.Word()
		if int64(free) < n {
			return n == 0
		}
		if s.sync.Take(free, free-uint64(n)) {
			return true
		}
	}
	return false
}

// TryAcquireFor is Acquire for at most d, and reports whether it acquired. With d <= 0 it is
// TryAcquire. Java's tryAcquire(permits, timeout, unit).
func (s *Weighted) TryAcquireFor(n int64, d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool](sched.Amount("TryAcquireFor", n), s)(&ok)
	}
	weigh(n)
	return s.tryAcquire(n) || n <= s.size.Load() && d > 0 &&
		s.sync.Wait(uint64(n), 0, park.After(d)) == syncq.Acquired
}

// Release gives n permits back, and admits waiters, in order of arrival, as far as the free
// permits suffice. If n is negative or more than the number of held permits, Release panics and
// changes nothing. During a Resize, a release of too many permits may succeed instead, and makes
// more permits than the size. Java's release(permits), which always makes new permits instead.
func (s *Weighted) Release(n int64) {
	if sched.On {
		defer sched.Enter(sched.Amount("Release", n), s)()
	}
	weigh(n)
	for {
		free := int64(s.sync.Word())
		if n > s.size.Load()-free {
			s.mustRelease(n)
			return
		}
		// If the size has changed since, the word has changed too. A release of too many permits
		// can succeed here only if other releases have made the word the same again.
		if s.sync.CompareAndSwap(uint64(free), uint64(free+n)) {
			return
		}
	}
}

// mustRelease ends a Release that misuses the semaphore, or that has read free and size at
// different moments.
func (s *Weighted) mustRelease(n int64) {
	if held := s.releaseSlowly(n); held < n {
		panic(fmt.Sprintf("semaphore: released more than held: %d of %d", n, held))
	}
}

// releaseSlowly is Release with Resize kept out. It returns the number of permits that were held,
// and changes nothing if they are fewer than n.
func (s *Weighted) releaseSlowly(n int64) (held int64) {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	for {
		free := int64(s.sync.Word())
		if held = s.size.Load() - free; n > held || s.sync.CompareAndSwap(uint64(free), uint64(free+n)) {
			return held
		}
	}
}

// Resize makes n the size. It panics if n is negative. If n is more than before, waiters are
// admitted to the new permits. If n is less, holders keep their permits, and their next releases
// pay the difference: see [Weighted.Available]. Waiters for more than n get [ErrTooLarge]. Java's
// reducePermits(reduction), which is protected.
func (s *Weighted) Resize(n int64) {
	if sched.On {
		defer sched.Enter("Resize", s)() // no decision while resizing is held
	}
	if n < 0 {
		panic("semaphore: size < 0")
	}
	s.resizing.Lock()
	defer s.resizing.Unlock()
	by := n - s.size.Load()
	if by > 0 {
		s.size.Store(n)
	}
	for free := s.sync.Word(); !s.sync.CompareAndSwap(free, free+uint64(by)); free = s.sync.Word() {
	}
	if by < 0 {
		s.size.Store(n)
		s.sync.Refuse(s.exceeds)
	}
}

// exceeds reports whether a wait for n permits is refused.
func (s *Weighted) exceeds(n uint64) bool { return int64(n) > s.size.Load() }

// Size returns the number of permits, free and held.
func (s *Weighted) Size() int64 {
	sched.Begin("Size", s)
	return s.size.Load()
}

// Available returns the number of free permits. After a Resize to less than the number of held
// permits it is negative: the holders have that many permits more than the size. Java's
// availablePermits().
func (s *Weighted) Available() int64 {
	if sched.On {
		defer sched.Enter("Available", s)()
	}
	return int64(s.sync.Word())
}

// Drain acquires all free permits in one step, and returns their number. If a goroutine waits,
// Drain acquires no permits. The caller releases them like any others. Java's drainPermits().
func (s *Weighted) Drain() (n int64) {
	if sched.On {
		defer sched.Tried[int64]("Drain", s)(&n)
	}
	for !s.sync.HasQueued() {
		free := int64(s.sync.Word())
		if free <= 0 {
			return 0
		}
		if s.sync.CompareAndSwap(uint64(free), 0) {
			return free
		}
	}
	return 0
}

// HasQueued reports whether a goroutine waits for permits. Java's hasQueuedThreads().
func (s *Weighted) HasQueued() bool {
	if sched.On {
		defer sched.Enter("HasQueued", s)()
	}
	return s.sync.HasQueued()
}

// QueueLength returns the number of goroutines that wait for permits. Java's getQueueLength().
func (s *Weighted) QueueLength() int {
	if sched.On {
		defer sched.Enter("QueueLength", s)()
	}
	return s.sync.QueueLength()
}

// Queued returns the owners that wait for permits, longest wait first. Java's getQueuedThreads().
func (s *Weighted) Queued() []locks.Owner {
	if sched.On {
		defer sched.Enter("Queued", s)()
	}
	return outcome.Owners(s.sync.Waiters())
}

// Inspect describes the semaphore, whose holders are not known. Held is true if a permit is held.
// Shared is true if, besides, the size is more than one. See [locks.Inspector].
func (s *Weighted) Inspect(ctx context.Context) (locks.Info, error) {
	if sched.On {
		defer sched.Enter("Inspect", s)()
	}
	held := s.heldPermits() > 0
	return info.State{Held: held, Shared: held && s.Size() > 1, Waiters: s.Queued()}.Answer("semaphore: Inspect", ctx)
}

// String describes the semaphore and its state.
func (s *Weighted) String() string {
	if sched.On {
		defer sched.Enter("String", s)()
	}
	return fmt.Sprintf("semaphore.Weighted(%p)[%d of %d held, %d queued]", s, s.heldPermits(), s.Size(), s.QueueLength())
}

// heldPermits returns the number of permits that are held.
func (s *Weighted) heldPermits() int64 {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	return s.size.Load() - s.Available()
}

// weigh panics if n is negative.
func weigh(n int64) {
	if n < 0 {
		panic("semaphore: n < 0")
	}
}

// isClosed reports whether the context of done has ended. Unlike ctx.Err it takes the same time
// however deep the context is. A nil done never ends.
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// endError returns the error of ctx, which has ended.
func endError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}
