// Package fakelock has a simple lock for tests of code that uses locks. The lock is correct unless
// it is given a [Flaw], with which it proves that a test notices this flaw.
package fakelock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/joined"
)

// Flaw is one way in which a lock violates its contract. The zero Flaw is none.
type Flaw string

// The flaws of a [Lock].
const (
	NoExclusion           Flaw = "LockContext does not wait"
	TryIgnoresHolder      Flaw = "TryLockContext ignores the holder"
	TryWaits              Flaw = "TryLockContext waits for the holder"
	TryAlwaysFalse        Flaw = "TryLockContext never takes the lock"
	TrySpuriouslyFalse    Flaw = "every third TryLockContext of a free lock is false"
	TrySometimesFalse     Flaw = "one TryLockContext of a free lock in ten is false"
	KeepsLock             Flaw = "UnlockContext does not release"
	FreeUnlockAccepted    Flaw = "UnlockContext of a free lock is no error"
	FreeUnlockCorrupts    Flaw = "UnlockContext of a free lock corrupts it"
	AnybodyUnlocks        Flaw = "UnlockContext ignores the owner"
	FreeClaimed           Flaw = "UnlockContext by another owner says that the lock is free"
	UnlockNeedsLocker     Flaw = "UnlockContext in another goroutine fails"
	FirstUnlockFrees      Flaw = "the first UnlockContext releases all holds"
	ReentryQueues         Flaw = "re-entry waits behind other waiters"
	ReentryByTryFalse     Flaw = "TryLockContext by the holder is false"
	HolderTryTakes        Flaw = "TryLockContext by the holder of a non-reentrant lock is true"
	DoneTakes             Flaw = "LockContext with a ctx that has ended takes the lock"
	DoneTryTakes          Flaw = "TryLockContext with a ctx that has ended takes the lock"
	DoneReenters          Flaw = "re-entry with a ctx that has ended counts"
	LosesCause            Flaw = "the cause of ctx is lost"
	OnlyCause             Flaw = "only the cause of ctx is reported"
	DeafWaiter            Flaw = "a waiter sees much too late that ctx has ended"
	ReturnsEarly          Flaw = "a waiter with a deadline returns at once"
	Ghost                 Flaw = "a cancelled waiter is given the lock"
	CancelSwallowsRelease Flaw = "a cancelled waiter empties the queue"
	GrantGivenBack        Flaw = "a waiter gives the lock back if ctx has ended since"
	CancelledUnlockFails  Flaw = "UnlockContext refuses a ctx that has ended"
	NilPanics             Flaw = "a nil ctx panics"
	NilTakes              Flaw = "a nil ctx is taken for one that never ends"
	NilUnlockFails        Flaw = "UnlockContext refuses a nil ctx"
	CtxBoundsHold         Flaw = "the hold ends with ctx"
	AsksWithMutex         Flaw = "LockContext calls ctx with its mutex held"
	AsksWithLock          Flaw = "LockContext calls ctx once it has the lock"
	AsksAsWaiter          Flaw = "a waiter calls ctx once it is in the queue"
	AsksInQueue           Flaw = "a waiter asks ctx for its error before it leaves the queue"
	IgnoresExplicitOwner  Flaw = "the owner in ctx is ignored"
	LIFO                  Flaw = "the last waiter is first"
	LeaksGoroutine        Flaw = "LockContext leaves a goroutine behind"
	JumpsQueue            Flaw = "every 20th waiter is first"
	ShortOrder            Flaw = "waiters after the eighth are admitted last first"
	TimedJumps            Flaw = "a waiter with a deadline is first"
	ReleaseBarges         Flaw = "the lock is free for a moment before the first waiter has it"
	CancelReverses        Flaw = "the cancellation of the last waiter reverses the queue"
	CancelTakesNext       Flaw = "the cancellation of the first waiter removes the second too"
	ShortQueue            Flaw = "the 17th waiter is forgotten"
	GrantLost             Flaw = "every 20th grant that meets the end of ctx is lost"
	BlindHandoff          Flaw = "a hand-off ignores a TryLockContext that came first"
	WakeupLost            Flaw = "the 100th release wakes no waiter for two seconds"
	GhostSometimes        Flaw = "every 20th cancelled waiter is given the lock"
	TimeoutSucceeds       Flaw = "every 20th wait that times out returns nil"
	SpuriousError         Flaw = "every 100th wait fails without a cause"
	FarDeadline           Flaw = "a deadline after 300 years is over"
	ThirdHoldLost         Flaw = "the third hold of an owner is not counted"
	ByteOfHolds           Flaw = "256 holds are none"
	WordOfHolds           Flaw = "65,536 holds are none"
	WearsOut              Flaw = "the 65,536th acquisition and later ones exclude nothing"
	TryReentryUncounted   Flaw = "re-entry by TryLockContext is not counted"
	OwnerOf16Bits         Flaw = "owners are compared by 16 bits"
	OwnerOf32Bits         Flaw = "owners are compared by 32 bits"
	OwnerWithoutSign      Flaw = "owner 7 is goroutine 7"
	TryIgnoresOwner       Flaw = "TryLockContext ignores the owner in ctx"
	IgnoresGoroutineOwner Flaw = "the owner in ctx is ignored if it is a goroutine"
	FreeUnlockOwes        Flaw = "the hold after a refused UnlockContext counts twice"
	Hoards                Flaw = "every acquisition retains memory"
	HoardsTimeouts        Flaw = "every cancelled waiter retains memory"

	HoldWithoutHold   Flaw = "Hold succeeds without a hold"
	LostByRelease     Flaw = "a release closes Lost"
	TokenRepeats      Flaw = "the token is always 7"
	NoTokens          Flaw = "the token is always 0" // not broken: there are stores without
	DeadlineInPast    Flaw = "the deadline is over"
	ExtendRevives     Flaw = "Extend succeeds after the release"
	LossUnnoticed     Flaw = "Lost is not closed by a loss"
	LostUnlockIsFine  Flaw = "UnlockContext after a loss is no error"
	LostRelockSilent  Flaw = "re-entry after a loss is no error"
	NewTokenOnReentry Flaw = "re-entry changes the token"
	TokenWraps        Flaw = "the token after 15 is 0"
	TokenNotByTry     Flaw = "TryLockContext does not increase the token"
	TokenFallsByQueue Flaw = "a hand-off decreases the token"
	TokenFollows      Flaw = "an old hold has the token of the present one"
	DeadlineFalls     Flaw = "the deadline moves backwards"
	ExtendIdle        Flaw = "Extend leaves the deadline as it is"
	HoldIgnoresOwner  Flaw = "Hold ignores the owner in ctx"
	LostHoldForgotten Flaw = "Hold after a loss is ErrNotHeld"
	LostAfterNext     Flaw = "Lost is closed after the next holder has the lock"

	ReadersExclude Flaw = "readers exclude each other"
	ReaderIntrudes Flaw = "readers ignore the writer"
	WriterIntrudes Flaw = "writers ignore the readers"

	WriterIgnoresWriter     Flaw = "writers ignore the writer"
	DowngradeGap            Flaw = "a writer that also reads releases both"
	ReaderReentryQueues     Flaw = "re-entry of a reader waits behind a writer"
	FirstReadUnlockFrees    Flaw = "the first release of a reader releases all its holds"
	AnyReaderUnlocks        Flaw = "a release of the read view ignores the owner"
	ViewsMixed              Flaw = "the read view releases a write hold"
	ByteOfReaders           Flaw = "256 readers are none"
	CancelledWriterExcludes Flaw = "a cancelled writer keeps readers out"
)

// Lock is a lock that is handed off in order of arrival. The exported fields must not change after
// the first use.
type Lock struct {
	Owned     bool // holds belong to an owner
	Reentrant bool // implies Owned
	Flaw      Flaw

	// LockErr, TryErr and UnlockErr, if not nil, are called first. If LockErr or TryErr returns
	// an error, there is no acquisition. UnlockErr does not prevent the release.
	LockErr, TryErr, UnlockErr func() error

	// Left ends the goroutines that LeaksGoroutine leaves behind.
	Left <-chan struct{}

	mu      sync.Mutex
	count   int
	owner   locks.Owner
	by      locks.Owner // the goroutine that locked, for UnlockNeedsLocker
	queue   []*waiter
	tries   int
	waits   int // calls that began to wait
	cancels int // waits that ctx ended
	meets   int // grants that met the end of ctx
	frees   int // releases with waiters
	owes    bool
	byTry   bool // acquire is called by TryLockContext
	byQueue bool // acquire is called by a hand-off
	hoard   [][]byte
	entries uint64 // acquisitions of a free lock
	began   func() // called with mu held when a free lock is acquired
	ended   func() // called with mu held when the lock becomes free
}

type waiter struct {
	owner    locks.Owner
	granted  chan struct{}
	done     <-chan struct{} // of ctx, whose methods are not called in the queue
	deadline time.Time
	timed    bool
}

// Waiting returns the number of waiters.
func (l *Lock) Waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// Waits returns the number of calls that have begun to wait so far.
func (l *Lock) Waits() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits
}

// Owner returns the holder, or 0.
func (l *Lock) Owner() locks.Owner {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 {
		return 0
	}
	return l.owner
}

// Count returns the number of holds.
func (l *Lock) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

func (l *Lock) ownerOf(ctx context.Context) locks.Owner {
	if !l.Owned && !l.Reentrant {
		return 0
	}
	if l.Flaw == IgnoresExplicitOwner {
		ctx = nil
	}
	o := locks.CurrentOwner(ctx)
	switch l.Flaw {
	case IgnoresGoroutineOwner:
		if o > 0 {
			o = locks.CurrentOwner(nil)
		}
	case OwnerOf16Bits:
		o = locks.Owner(int16(o))
	case OwnerOf32Bits:
		o = locks.Owner(int32(o))
	case OwnerWithoutSign:
		o = max(o, -o)
	}
	return o
}

func (l *Lock) check(ctx context.Context) error {
	if ctx == nil {
		switch l.Flaw {
		case NilPanics:
			panic("fakelock: nil ctx")
		case NilTakes:
			return nil
		}
		return fmt.Errorf("fakelock: %w", locks.ErrNilContext)
	}
	if ctx.Err() != nil {
		return l.ctxErr(ctx)
	}
	return nil
}

func (l *Lock) ctxErr(ctx context.Context) error {
	switch err, cause := ctx.Err(), context.Cause(ctx); {
	case l.Flaw == LosesCause:
		return err
	case l.Flaw == OnlyCause:
		return cause
	case err == cause:
		return fmt.Errorf("fakelock: %w", err)
	default:
		return fmt.Errorf("fakelock: %w: %w", err, cause)
	}
}

func (l *Lock) acquire(o locks.Owner) {
	l.count, l.owner, l.by = 1, o, locks.CurrentOwner(context.Background())
	l.entries++
	if l.owes {
		l.count, l.owes = 2, false
	}
	if l.Flaw == Hoards {
		l.hoard = append(l.hoard, make([]byte, 64))
	}
	if l.began != nil {
		l.began()
	}
}

// LockContext implements [locks.Locker].
func (l *Lock) LockContext(ctx context.Context) error {
	o := l.ownerOf(ctx)
	l.mu.Lock()
	mine := l.Reentrant && l.count > 0 && l.owner == o
	l.mu.Unlock()
	if err := l.check(ctx); err != nil && l.Flaw != DoneTakes && (l.Flaw != DoneReenters || !mine) {
		return err
	}
	if l.LockErr != nil {
		if err := l.LockErr(); err != nil {
			return err
		}
	}
	if l.Flaw == LeaksGoroutine {
		go func() { <-l.Left }()
	}
	if l.Flaw == CtxBoundsHold && ctx.Done() != nil {
		context.AfterFunc(ctx, func() { l.end(o) })
	}
	w := l.enqueue(ctx, o)
	if w == nil || l.await(ctx, w) {
		if l.Flaw == AsksWithLock {
			_ = ctx.Err()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.Flaw == SpuriousError && w != nil && l.waits%100 == 0 {
			l.free()
			return errors.New("fakelock: interrupted")
		}
		return nil
	}
	return l.cancel(ctx, w)
}

// end releases all holds of o.
func (l *Lock) end(o locks.Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > 0 && l.owner == o {
		l.free()
	}
}

// enqueue acquires the lock for o and returns nil, or returns a waiter in the queue.
func (l *Lock) enqueue(ctx context.Context, o locks.Owner) *waiter {
	var (
		done     <-chan struct{}
		deadline time.Time
		timed    bool
	)
	if ctx != nil { // see NilTakes
		done = ctx.Done()
		deadline, timed = ctx.Deadline()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Flaw == AsksWithMutex && ctx.Err() != nil {
		return nil
	}
	switch {
	case l.count == 0 || l.Flaw == NoExclusion || l.wornOut():
		l.acquire(o)
		return nil
	case l.Reentrant && l.owner == o && (l.Flaw != ReentryQueues || len(l.queue) == 0):
		l.reenter()
		return nil
	}
	w := &waiter{o, make(chan struct{}), done, deadline, timed}
	l.waits++
	switch {
	case l.Flaw == LIFO, l.Flaw == JumpsQueue && l.waits%20 == 0, l.Flaw == TimedJumps && timed:
		l.queue = slices.Insert(l.queue, 0, w)
	case l.Flaw == ShortOrder && len(l.queue) >= 8:
		l.queue = slices.Insert(l.queue, 8, w)
	case l.Flaw == ShortQueue && len(l.queue) == 16:
	default:
		l.queue = append(l.queue, w)
	}
	return w
}

func (l *Lock) wornOut() bool { return l.Flaw == WearsOut && l.entries >= 1<<16-1 }

// reenter counts a hold more. l.mu is held.
func (l *Lock) reenter() {
	if l.Flaw != ThirdHoldLost || l.count != 2 {
		l.count++
	}
	if l.Flaw == ByteOfHolds && l.count == 1<<8 || l.Flaw == WordOfHolds && l.count == 1<<16 {
		l.count = 0
	}
}

// await waits until w has the lock or ctx ends, and reports whether w has it.
func (l *Lock) await(ctx context.Context, w *waiter) bool {
	if l.Flaw == AsksAsWaiter {
		_ = ctx.Done()
	}
	done := w.done
	if w.timed && (l.Flaw == ReturnsEarly || l.Flaw == FarDeadline && time.Until(w.deadline) == math.MaxInt64) {
		closed := make(chan struct{})
		close(closed)
		done = closed
	}
	select {
	case <-w.granted:
		return l.Flaw != GrantGivenBack || ctx.Err() == nil
	case <-done:
	}
	if l.Flaw != DeafWaiter {
		return false
	}
	select {
	case <-w.granted:
		return true
	case <-time.After(300 * time.Millisecond): // not for ever, or it would outlive the test
		return false
	}
}

// cancel ends the wait of w, whose ctx has ended. It returns nil if w has the lock.
func (l *Lock) cancel(ctx context.Context, w *waiter) error {
	if l.Flaw == AsksInQueue {
		_ = ctx.Err()
	}
	switch {
	case l.leave(w):
		return nil
	case ctx.Err() == nil:
		return fmt.Errorf("fakelock: %w", context.DeadlineExceeded)
	}
	return l.ctxErr(ctx)
}

// leave removes w from the queue. It reports whether w has the lock.
func (l *Lock) leave(w *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, w)
	if i < 0 {
		select {
		case <-w.granted:
			l.meets++
			switch {
			case l.Flaw == GrantGivenBack:
				l.free()
				return false
			case l.Flaw == GrantLost && l.meets%20 == 0:
				return false
			}
			return true
		default: // another waiter has removed it: see CancelSwallowsRelease
			return false
		}
	}
	l.cancels++
	last := i == len(l.queue)-1
	switch {
	case l.Flaw == Ghost, l.Flaw == GhostSometimes && l.cancels%20 == 0:
	case l.Flaw == CancelSwallowsRelease:
		l.queue = nil
	case l.Flaw == CancelTakesNext && i == 0 && !last:
		l.queue = slices.Delete(l.queue, 0, 2)
	default:
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	switch {
	case l.Flaw == CancelReverses && last:
		slices.Reverse(l.queue)
	case l.Flaw == HoardsTimeouts:
		l.hoard = append(l.hoard, make([]byte, 256))
	case l.Flaw == TimeoutSucceeds && l.cancels%20 == 0:
		return true
	}
	return false
}

// TryLockContext implements [locks.TryLocker].
func (l *Lock) TryLockContext(ctx context.Context) (bool, error) {
	if err := l.check(ctx); err != nil && l.Flaw != DoneTryTakes {
		return false, err
	}
	if l.TryErr != nil {
		if err := l.TryErr(); err != nil {
			return false, err
		}
	}
	o := l.ownerOf(ctx)
	if l.Flaw == TryIgnoresOwner {
		o = locks.CurrentOwner(nil)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries++
	for l.Flaw == TryWaits && l.count > 0 && l.owner != o {
		l.mu.Unlock()
		select {
		case <-time.After(time.Millisecond):
			l.mu.Lock()
		case <-ctx.Done():
			l.mu.Lock()
			return false, l.ctxErr(ctx)
		}
	}
	switch {
	case l.refusesTry():
		return false, nil
	case l.count == 0 || l.Flaw == TryIgnoresHolder || l.wornOut():
		l.byTry = true
		l.acquire(o)
		l.byTry = false
		return true, nil
	case l.Reentrant && l.owner == o && l.Flaw != ReentryByTryFalse:
		if l.Flaw != TryReentryUncounted {
			l.reenter()
		}
		return true, nil
	}
	return l.Flaw == HolderTryTakes && l.by == locks.CurrentOwner(context.Background()), nil
}

// refusesTry reports whether a flaw makes a TryLockContext false. l.mu is held.
func (l *Lock) refusesTry() bool {
	switch l.Flaw {
	case TryAlwaysFalse:
		return true
	case TrySpuriouslyFalse:
		return l.count == 0 && l.tries%3 == 0
	case TrySometimesFalse:
		return l.count == 0 && rand.IntN(10) == 0
	}
	return false
}

// UnlockContext implements [locks.Locker].
func (l *Lock) UnlockContext(ctx context.Context) error {
	if l.UnlockErr != nil {
		if err := l.UnlockErr(); err != nil {
			return joined.Errors(err, l.unlock(ctx))
		}
	}
	return l.unlock(ctx)
}

func (l *Lock) unlock(ctx context.Context) error {
	if ctx == nil && l.Flaw == NilUnlockFails {
		return locks.ErrNilContext
	}
	if ctx != nil && ctx.Err() != nil && l.Flaw == CancelledUnlockFails {
		return ctx.Err()
	}
	o := l.ownerOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.count == 0:
		if l.Flaw == FreeUnlockCorrupts {
			l.count, l.owner = 1, -1
		}
		l.owes = l.Flaw == FreeUnlockOwes
		if l.Flaw == FreeUnlockAccepted {
			return nil
		}
		return fmt.Errorf("fakelock: free: %w", locks.ErrNotHeld)
	case l.owner != o && l.Flaw != AnybodyUnlocks && l.Flaw != TryIgnoresHolder && l.Flaw != NoExclusion:
		if l.Flaw == FreeClaimed {
			return fmt.Errorf("fakelock: free: %w", locks.ErrNotHeld)
		}
		return fmt.Errorf("fakelock: held by %v: %w", l.owner, locks.ErrNotHeld)
	case l.Flaw == UnlockNeedsLocker && l.by != locks.CurrentOwner(context.Background()):
		return fmt.Errorf("fakelock: locked by %v: %w", l.by, locks.ErrNotHeld)
	case l.Flaw == KeepsLock:
		return nil
	}
	l.count--
	if l.count == 0 || l.Flaw == FirstUnlockFrees {
		l.free()
	}
	return nil
}

func (l *Lock) free() {
	if l.ended != nil {
		l.ended()
	}
	l.count, l.owner = 0, 0
	if len(l.queue) == 0 {
		return
	}
	l.frees++
	switch {
	case l.Flaw == WakeupLost && l.frees == 100 || l.Flaw == ReleaseBarges:
		pause := time.Millisecond
		if l.Flaw == WakeupLost {
			l.count, pause = 1, 2*time.Second // it looks held, and not for ever, or it would outlive the test
		}
		time.AfterFunc(pause, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.count == 0 || l.Flaw == WakeupLost {
				l.handOff()
			}
		})
	case l.Flaw == BlindHandoff:
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
		l.handOff()
	default:
		l.handOff()
	}
}

// handOff gives the lock to the first waiter, if there is one. l.mu is held.
func (l *Lock) handOff() {
	if len(l.queue) == 0 {
		return
	}
	w := l.queue[0]
	l.queue = l.queue[1:]
	l.byQueue = true
	l.acquire(w.owner)
	l.byQueue = false
	close(w.granted)
}

// Value is a Lock in a value that is not a pointer and has no key.
type Value struct{ L *Lock }

// LockContext implements [locks.Locker].
func (v Value) LockContext(ctx context.Context) error { return v.L.LockContext(ctx) }

// TryLockContext implements [locks.TryLocker].
func (v Value) TryLockContext(ctx context.Context) (bool, error) { return v.L.TryLockContext(ctx) }

// UnlockContext implements [locks.Locker].
func (v Value) UnlockContext(ctx context.Context) error { return v.L.UnlockContext(ctx) }

// Keyed is a Lock with a name.
type Keyed struct {
	*Lock
	Key string
}

// LockKey returns the name.
func (k Keyed) LockKey() string { return k.Key }

// Leased is a Lock that can be lost.
type Leased struct {
	Lock
	hold *hold
}

var _ locks.Leased = (*Leased)(nil)

// NewLeased returns a reentrant lock that can be lost.
func NewLeased(flaw Flaw) *Leased {
	l := &Leased{Lock: Lock{Reentrant: true, Flaw: flaw}}
	l.began = func() {
		h := &hold{l: l, token: l.entries, lost: make(chan struct{})}
		switch {
		case flaw == TokenRepeats:
			h.token = 7
		case flaw == NoTokens:
			h.token = 0
		case flaw == TokenWraps:
			h.token %= 16
		case flaw == TokenNotByTry && l.byTry:
			l.entries--
			h.token--
		case flaw == TokenFallsByQueue && l.byQueue:
			l.entries -= 2
			h.token -= 2
		}
		h.deadline = time.Now().Add(time.Minute)
		if flaw == DeadlineInPast {
			h.deadline = time.Now().Add(-time.Minute)
		}
		l.hold = h
	}
	l.ended = func() {
		l.hold.over = true
		if flaw == LostByRelease && !l.hold.gone {
			close(l.hold.lost)
		}
	}
	return l
}

// LockContext implements [locks.Locker].
func (l *Leased) LockContext(ctx context.Context) error {
	if err := l.reenter(ctx); err != nil {
		return err
	}
	return l.Lock.LockContext(ctx)
}

// TryLockContext implements [locks.TryLocker].
func (l *Leased) TryLockContext(ctx context.Context) (bool, error) {
	if err := l.reenter(ctx); err != nil {
		return false, err
	}
	return l.Lock.TryLockContext(ctx)
}

// reenter returns an error if ctx's owner has the lock and has lost it.
func (l *Leased) reenter(ctx context.Context) error {
	if ctx == nil || ctx.Err() != nil || l.Flaw == LostRelockSilent {
		return nil
	}
	o := l.ownerOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Flaw == NewTokenOnReentry && l.count > 0 && l.owner == o {
		l.hold.token++
	}
	if l.count > 0 && l.owner == o && l.hold.gone {
		return fmt.Errorf("fakelock: re-entry: %w", locks.ErrLost)
	}
	return nil
}

// UnlockContext implements [locks.Locker].
func (l *Leased) UnlockContext(ctx context.Context) error {
	o := l.ownerOf(ctx)
	l.mu.Lock()
	lost := l.count > 0 && l.owner == o && l.hold.gone
	l.mu.Unlock()
	err := l.Lock.UnlockContext(ctx)
	if lost && l.Flaw != LostUnlockIsFine {
		err = joined.Errors(err, fmt.Errorf("fakelock: %w", locks.ErrLost))
	}
	return err
}

// Lose makes the present holder lose the lock. The lock stays taken until that holder unlocks it.
func (l *Leased) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 || l.hold.gone {
		return
	}
	l.hold.gone = true
	switch l.Flaw {
	case LossUnnoticed:
	case LostAfterNext:
		h := l.hold
		time.AfterFunc(50*time.Millisecond, func() { close(h.lost) })
		l.free()
	default:
		close(l.hold.lost)
	}
}

// Hold implements [locks.Leased].
func (l *Leased) Hold(ctx context.Context) (locks.Hold, error) {
	if l.Flaw == HoldIgnoresOwner {
		ctx = nil
	}
	o := l.ownerOf(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 || l.owner != o || l.Flaw == LostHoldForgotten && l.hold.gone {
		if l.Flaw == HoldWithoutHold {
			return &hold{l: l, lost: make(chan struct{})}, nil
		}
		return nil, fmt.Errorf("fakelock: hold: %w", locks.ErrNotHeld)
	}
	return l.hold, nil
}

type hold struct {
	l        *Leased
	lost     chan struct{}
	token    uint64
	deadline time.Time
	gone     bool
	over     bool
}

func (h *hold) Lost() <-chan struct{} { return h.lost }

func (h *hold) Err() error {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if h.gone {
		return fmt.Errorf("fakelock: %w", locks.ErrLost)
	}
	return nil
}

func (h *hold) Token() uint64 {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if h.l.Flaw == TokenFollows {
		return h.l.entries
	}
	return h.token
}

func (h *hold) Deadline() (time.Time, bool) {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if h.l.Flaw == DeadlineFalls {
		h.deadline = h.deadline.Add(-time.Second)
	}
	return h.deadline, true
}

func (h *hold) Extend(_ context.Context, d time.Duration) error {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	if h.l.Flaw != ExtendRevives && (h.gone || h.over) {
		return fmt.Errorf("fakelock: extend: %w", locks.ErrLost)
	}
	if h.l.Flaw != ExtendIdle {
		h.deadline = time.Now().Add(d)
	}
	return nil
}

// RW is a reentrant read-write lock in which writers may read. It admits in no order.
type RW struct {
	Flaw    Flaw
	mu      sync.Mutex
	reads   map[locks.Owner]int
	writer  locks.Owner
	writes  int
	changed chan struct{} // closed by a release
	waiting int           // writers that wait, for the flaws that need them
}

// Reader is the read view of an RW.
type Reader RW

// Writer is the write view of an RW.
type Writer RW

// ReadLocker implements [locks.ReadWriteLocker].
func (rw *RW) ReadLocker() locks.TryLocker { return (*Reader)(rw) }

// WriteLocker implements [locks.ReadWriteLocker].
func (rw *RW) WriteLocker() locks.TryLocker { return (*Writer)(rw) }

func (rw *RW) try(o locks.Owner, write bool) (bool, error) {
	if rw.reads == nil {
		rw.reads, rw.changed = map[locks.Owner]int{}, make(chan struct{})
	}
	free := rw.writes == 0 || rw.writer == o
	if write {
		if rw.reads[o] > 0 && !(rw.writes > 0 && rw.writer == o) {
			return false, locks.ErrUpgrade
		}
		none := len(rw.reads) == 0 || rw.Flaw == ByteOfReaders && len(rw.reads) == 1<<8
		if !free && rw.Flaw != WriterIgnoresWriter || rw.writes == 0 && !none && rw.Flaw != WriterIntrudes {
			return false, nil
		}
		rw.writer = o
		rw.writes++
		return true, nil
	}
	if !free && rw.Flaw != ReaderIntrudes || rw.Flaw == ReadersExclude && len(rw.reads) > 0 && rw.reads[o] == 0 {
		return false, nil
	}
	switch rw.Flaw {
	case CancelledWriterExcludes:
		if rw.waiting > 0 && rw.reads[o] == 0 && rw.writer != o {
			return false, nil
		}
	case ReaderReentryQueues:
		if rw.waiting > 0 && rw.reads[o] > 0 {
			return false, nil
		}
	}
	rw.reads[o]++
	return true, nil
}

func (rw *RW) acquire(ctx context.Context, write, wait bool) (bool, error) {
	l := Lock{}
	if err := l.check(ctx); err != nil {
		return false, err
	}
	o := locks.CurrentOwner(ctx)
	waits := 0
	defer func() {
		rw.mu.Lock()
		defer rw.mu.Unlock()
		if rw.Flaw != CancelledWriterExcludes || ctx.Err() == nil {
			rw.waiting -= waits
		}
	}()
	for {
		rw.mu.Lock()
		ok, err := rw.try(o, write)
		if write && wait && !ok && waits == 0 {
			waits = 1
			rw.waiting++
		}
		changed := rw.changed
		rw.mu.Unlock()
		if ok || err != nil || !wait {
			return ok, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, l.ctxErr(ctx)
		}
	}
}

func (rw *RW) release(ctx context.Context, write bool) error {
	o := locks.CurrentOwner(ctx)
	rw.mu.Lock()
	defer rw.mu.Unlock()
	if rw.Flaw == AnyReaderUnlocks && !write && rw.reads[o] == 0 {
		for other := range rw.reads {
			o = other
		}
	}
	switch {
	case write && rw.writes > 0 && (rw.writer == o || rw.Flaw == WriterIgnoresWriter):
		rw.writes--
		if rw.Flaw == DowngradeGap && rw.writes == 0 {
			delete(rw.reads, o)
		}
	case !write && rw.reads[o] > 0:
		rw.reads[o]--
		if rw.reads[o] == 0 || rw.Flaw == FirstReadUnlockFrees {
			delete(rw.reads, o)
		}
	case rw.Flaw == ViewsMixed && !write && rw.writes > 0 && rw.writer == o:
		rw.writes--
	default:
		return fmt.Errorf("fakelock: %w", locks.ErrNotHeld)
	}
	close(rw.changed)
	rw.changed = make(chan struct{})
	return nil
}

// LockContext implements [locks.Locker].
func (r *Reader) LockContext(ctx context.Context) error {
	_, err := (*RW)(r).acquire(ctx, false, true)
	return err
}

// TryLockContext implements [locks.TryLocker].
func (r *Reader) TryLockContext(ctx context.Context) (bool, error) {
	return (*RW)(r).acquire(ctx, false, false)
}

// UnlockContext implements [locks.Locker].
func (r *Reader) UnlockContext(ctx context.Context) error { return (*RW)(r).release(ctx, false) }

// LockContext implements [locks.Locker].
func (w *Writer) LockContext(ctx context.Context) error {
	_, err := (*RW)(w).acquire(ctx, true, true)
	return err
}

// TryLockContext implements [locks.TryLocker].
func (w *Writer) TryLockContext(ctx context.Context) (bool, error) {
	return (*RW)(w).acquire(ctx, true, false)
}

// UnlockContext implements [locks.Locker].
func (w *Writer) UnlockContext(ctx context.Context) error { return (*RW)(w).release(ctx, true) }
