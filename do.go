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

// Do runs fn while it holds l. It is the recommended way to use a lock of which it is not
// known at the call site whether it is local or distributed.
//
// An error of the acquisition is returned as it is, and fn does not run. Otherwise l is
// released exactly once, in the goroutine that called Do, also if fn panics or calls
// [runtime.Goexit], which then go on, and also if ctx ends meanwhile. The result is fn's error;
// if the release fails too, [errors.Join] of both, so that [errors.Is] finds
// either. While fn panics, an error of the release has nowhere to go and is dropped.
//
// If l is [Leased], fn's ctx is a child of ctx that is cancelled with the cause [ErrLost] when
// the hold is lost, and that ends when fn returns; the result of Do matches ErrLost if
// the hold was lost before the release. A loss does not stop fn: it has to look at its ctx.
//
// If l is not Leased, fn gets ctx itself, and Do allocates nothing.
//
// Before anything is acquired, a nil ctx is an error matching [ErrNilContext], and so, without a
// sentinel to match, are a nil l and a nil fn.
func Do(ctx context.Context, l Locker, fn func(ctx context.Context) error) (err error) {
	switch {
	case ctx == nil:
		return ctxerr.Check("locks: Do", ctx)
	case l == nil:
		return errNilLock
	case fn == nil:
		return errNilFunc
	}
	if err := l.LockContext(ctx); err != nil {
		return err
	}
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

// doLeased runs fn under the caller's hold of l, and tells fn when that is lost.
func doLeased(ctx context.Context, l Leased, fn func(ctx context.Context) error) (err error) {
	hold, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fnCtx, cancel := context.WithCancelCause(ctx)
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
		// Asked before the release, after which a hold has no state to speak of. Err sees
		// a lease that ran out just now, Lost a store that took it away.
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
