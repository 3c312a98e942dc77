package locks

import (
	"context"
	"errors"

	"github.com/jucgo/locks/internal/ctxerr"
)

var (
	errNilFunc = errors.New("locks: Do: nil function")
	errNilLock = errors.New("locks: Do: nil lock")
)

// Do runs fn while it holds l. It is the recommended way to use a lock where the call site does
// not know whether the lock is local or distributed.
//
// If the acquisition fails, its error is returned as it is, and fn does not run. Otherwise l is
// released exactly once, in the goroutine that called Do, also if ctx has ended meanwhile, and
// also if fn panics or calls [runtime.Goexit], which then go on. The result is fn's error. If the
// release fails too, the result is [errors.Join] of both. While fn panics, an error of the
// release is dropped.
//
// If l is [Leased], the ctx of fn is a child of ctx. It ends when fn returns, and it is cancelled
// with the cause [ErrLost] when the hold is lost. The result of Do matches ErrLost if the hold
// was lost before the release. A loss does not stop fn: fn has to look at its ctx. [HoldFrom]
// returns the hold.
//
// If l is not Leased, fn gets ctx itself, and Do allocates nothing.
//
// A nil ctx is an error that matches [ErrNilContext]. A nil l and a nil fn are errors too. All of
// these are found before the acquisition.
func Do(ctx context.Context, l Locker, fn func(ctx context.Context) error) (err error) {
	if err := checkArguments("locks: Do", ctx, l == nil, fn); err != nil {
		return err
	}
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	return doHeld(ctx, l, fn)
}

// TryDo is [Do] if l can be acquired without waiting for a holder, as by TryLockContext, and
// reports whether fn ran. It returns false and no error if another party holds l.
func TryDo(ctx context.Context, l TryLocker, fn func(ctx context.Context) error) (ran bool, err error) {
	if err := checkArguments("locks: TryDo", ctx, l == nil, fn); err != nil {
		return false, err
	}
	if ok, err := l.TryLockContext(ctx); !ok {
		return false, err
	}
	return true, doHeld(ctx, l, fn)
}

func checkArguments(op string, ctx context.Context, noLock bool, fn func(context.Context) error) error {
	switch {
	case ctx == nil:
		return ctxerr.Check(op, ctx)
	case noLock:
		return errNilLock
	case fn == nil:
		return errNilFunc
	}
	return nil
}

// doHeld runs fn under the caller's hold of l, and ends that.
func doHeld(ctx context.Context, l Locker, fn func(ctx context.Context) error) (err error) {
	defer func() {
		if released := l.UnlockContext(ctx); released != nil {
			err = errors.Join(err, released)
		}
	}()
	if leased, ok := l.(Leased); ok {
		return doLeased(ctx, leased, fn)
	}
	return fn(ctx)
}

// doLeased runs fn under the caller's hold of l, and cancels the ctx of fn when that is lost.
func doLeased(ctx context.Context, l Leased, fn func(ctx context.Context) error) (err error) {
	hold, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fnCtx, cancel := context.WithCancelCause(context.WithValue(ctx, holdKey{}, hold))
	lost, stop, stopped := hold.Lost(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-lost:
			cancel(ErrLost)
		case <-stop:
		}
	}()
	defer func() {
		close(stop)
		<-stopped
		cancel(nil)
		// Asked before the release, after which a hold has no state. Err sees a lease that ran
		// out just now, Lost a store that took it away.
		loss := hold.Err()
		if loss == nil && isClosed(lost) {
			loss = ErrLost
		}
		if loss != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, loss)
		}
	}()
	return fn(fnCtx)
}

type holdKey struct{}

// HoldFrom returns the hold under which [Do] or [TryDo] runs the function that was given ctx, and
// so its fencing token. It returns false outside of these, and if the lock is not [Leased]. In
// nested calls it is the innermost hold of a Leased lock.
func HoldFrom(ctx context.Context) (Hold, bool) {
	if ctx == nil {
		return nil, false
	}
	h, ok := ctx.Value(holdKey{}).(Hold)
	return h, ok
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
