package locks

import (
	"context"
	"errors"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/joined"
)

var errNilLock = errors.New("nil lock")

// Do runs fn while it holds l. Use it at call sites that do not know whether the lock is local
// or distributed.
//
// If the acquisition fails, Do returns its error unchanged, and fn does not run. Otherwise Do
// releases l exactly once, in the calling goroutine. It does so even if ctx has ended, or if fn
// panics or calls [runtime.Goexit]; the panic or the exit then continues. The result is fn's
// error. If the release fails too, the result matches both errors, like the result of
// [errors.Join], but has a text of one line. If fn panics, an error of the release is dropped.
//
// If l is [Leased], the ctx of fn is a child of ctx. It ends when fn returns. If the hold is lost,
// it is cancelled with the cause [ErrLost]. The result of Do matches ErrLost if the hold was lost
// before the release. A loss does not stop fn: fn must check its ctx. [HoldFrom] returns the hold.
//
// If l is not Leased, fn gets ctx itself, and Do allocates nothing. Either way a time limit of ctx
// limits the wait and fn together. To limit the wait alone, call LockContext with a limited ctx.
//
// A nil ctx is an error that matches [ErrNilContext]. A nil fn is an error that matches
// [ErrNilFunc]. A nil l is an error too, and so is an l that is a nil pointer. Do returns these
// errors before it acquires l.
func Do(ctx context.Context, l Locker, fn func(ctx context.Context) error) error {
	return do("locks: Do", ctx, l, fn)
}

// do is Do, called op in errors.
func do(op string, ctx context.Context, l Locker, fn func(ctx context.Context) error) error {
	if err := checkArguments(op, ctx, ctxerr.IsNil(l), fn); err != nil {
		return err
	}
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	return doHeld(op, ctx, l, fn)
}

// TryDo is [Do] if l can be acquired without waiting for a holder, as by TryLockContext. It
// reports whether fn ran. It returns false and no error if another owner holds l.
func TryDo(ctx context.Context, l TryLocker, fn func(ctx context.Context) error) (ran bool, err error) {
	return tryDo("locks: TryDo", ctx, l, fn)
}

// tryDo is TryDo, called op in errors.
func tryDo(op string, ctx context.Context, l TryLocker, fn func(ctx context.Context) error) (ran bool, err error) {
	if err := checkArguments(op, ctx, ctxerr.IsNil(l), fn); err != nil {
		return false, err
	}
	if ok, err := l.TryLockContext(ctx); !ok {
		return false, err
	}
	return true, doHeld(op, ctx, l, fn)
}

func checkArguments(op string, ctx context.Context, noLock bool, fn func(context.Context) error) error {
	switch {
	case ctx == nil:
		return ctxerr.Check(op, ctx)
	case noLock:
		return ctxerr.Wrap(op, errNilLock)
	case fn == nil:
		return ctxerr.Wrap(op, ErrNilFunc)
	}
	return nil
}

// doHeld runs fn under the caller's hold of l, and releases the hold. It is called op in errors.
func doHeld(op string, ctx context.Context, l Locker, fn func(ctx context.Context) error) (err error) {
	var loss error
	defer func() {
		released := l.UnlockContext(ctx)
		switch {
		case errors.Is(released, ErrLost): // with the name of the lock, so nothing else has to say it
			if err == ErrLost {
				err = nil
			}
		case loss != nil && !errors.Is(err, ErrLost):
			err = joined.Errors(err, ctxerr.Wrap(op, loss))
		}
		err = joined.Errors(err, released)
	}()
	if leased, ok := l.(Leased); ok {
		return doLeased(ctx, leased, fn, &loss)
	}
	return fn(ctx)
}

// doLeased runs fn under the caller's hold of l. It cancels the ctx of fn when the hold is lost.
// When fn has ended, it sets loss to the reason of a loss.
func doLeased(ctx context.Context, l Leased, fn func(ctx context.Context) error, loss *error) error {
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
		// Err comes before the release, because a released hold lacks a state. Err sees that the
		// lease expired just now. Lost sees that the store took the lock away.
		*loss = hold.Err()
		if *loss == nil && isClosed(lost) {
			*loss = ErrLost
		}
	}()
	return fn(fnCtx)
}

type holdKey struct{}

// HoldFrom returns the hold under which [Do] or [TryDo] runs the function with this ctx. The
// hold has the fencing token. HoldFrom returns false outside of such a function, and if the lock
// is not [Leased]. In nested calls it returns the innermost hold of a Leased lock.
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
