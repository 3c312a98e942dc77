package ctxerr

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// End is the end of a caller's ctx. It is for a caller that has a lock, a turn or a place for which
// other goroutines wait. Such a caller calls no method of ctx: ctx may be a type of the program,
// whose methods may wait for one of these goroutines. [EndOf] calls Done and Deadline, before the
// caller has its turn. For the error the caller asks ctx once it has given up its turn.
//
// The method Value is an exception. The client of a store asks for values that it knows alone, such
// as the span of a trace, in the middle of a request.
type End struct {
	done     <-chan struct{}
	deadline time.Time
	limited  bool
	plain    context.Context // ctx if its Done and Err are those of package context, or nil
}

// EndOf returns the end of ctx.
func EndOf(ctx context.Context) End {
	e := End{done: ctx.Done()}
	e.deadline, e.limited = ctx.Deadline()
	if t := reflect.TypeOf(ctx); t == cancelCtx || t == timerCtx {
		e.plain = ctx
	}
	return e
}

// Done returns the Done channel of ctx.
func (e End) Done() <-chan struct{} { return e.done }

// Reached reports whether ctx has ended.
func (e End) Reached() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Err returns nil, or what ctx's Err probably returns: ctx has ended.
func (e End) Err() error {
	switch {
	case !e.Reached():
		return nil
	case e.limited && !time.Now().Before(e.deadline):
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// Context returns a context that ends with ctx, for a wait in this process. It need not have the
// values and the deadline of ctx.
func (e End) Context() context.Context {
	if e.plain != nil { // the wait then costs no goroutine
		return e.plain
	}
	return e.Of(context.Background())
}

// Of returns a context that ends with ctx, has the deadline of ctx, and the values of values.
func (e End) Of(values context.Context) context.Context { return ending{e, values} }

type ending struct {
	End
	values context.Context
}

func (e ending) Deadline() (time.Time, bool) { return e.deadline, e.limited }
func (e ending) Value(key any) any           { return e.values.Value(key) }

// Quiet returns a context with the end, the deadline and the values of ctx. It is for a call of a
// caller that has a lock: see [End]. The caller passes the error of that call to [Explain] later.
func Quiet(ctx context.Context) context.Context {
	switch reflect.TypeOf(ctx) {
	case background, timerCtx: // whose methods but Value are those of package context
		return ctx
	}
	return EndOf(ctx).Of(ctx)
}

// Explain returns err, the error of a call under [Quiet], so that it matches the error of ctx and
// its cause if the call has ended because of ctx.
func Explain(ctx context.Context, err error) error {
	if err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	for _, missing := range []error{ctx.Err(), context.Cause(ctx)} {
		if missing != nil && !errors.Is(err, missing) {
			err = fmt.Errorf("%w: %w", err, missing)
		}
	}
	return err
}

var background = reflect.TypeOf(context.Background())
