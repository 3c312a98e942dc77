package otel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/jucgo/locks"
)

// section is one call of Do or TryDo. The context of its acquisition and its release carries
// it. Only the goroutine of the call writes lock and span, and not while the section runs.
type section struct {
	lock string     // the name of the first lock that the call acquired: a Multi acquires several
	span trace.Span // of its hold, or nil
	once sync.Once
}

type sectionKey struct{}

func sectionFrom(ctx context.Context) *section {
	s, _ := ctx.Value(sectionKey{}).(*section)
	return s
}

// of reports whether s has the span of a hold of this lock.
func (s *section) of(lock string) bool { return s != nil && s.span != nil && s.lock == lock }

// lose adds the event of a loss, at most once.
func (s *section) lose(span trace.Span) { s.once.Do(func() { span.AddEvent("lost") }) }

// Do is [locks.Do] with one difference: the ctx of fn carries the span of the hold. This needs a
// lock of an instrumented Recorder, and a ctx with a sampled span. Spans that fn starts are its
// children. If the hold is lost while fn runs, its span gets the event "lost" at that time. A
// re-entry does not get a span of its own.
func Do(ctx context.Context, l locks.Locker, fn func(ctx context.Context) error) error {
	if ctx == nil || fn == nil {
		return locks.Do(ctx, l, fn)
	}
	s := new(section)
	return locks.Do(context.WithValue(ctx, sectionKey{}, s), l, s.around(ctx, fn))
}

// TryDo is [locks.TryDo] with the same difference as in [Do].
func TryDo(ctx context.Context, l locks.TryLocker, fn func(ctx context.Context) error) (ran bool, err error) {
	if ctx == nil || fn == nil {
		return locks.TryDo(ctx, l, fn)
	}
	s := new(section)
	return locks.TryDo(context.WithValue(ctx, sectionKey{}, s), l, s.around(ctx, fn))
}

// around returns fn with the span of the hold in its ctx. Locks that fn acquires are not of this
// section. A loss that ends the caller's ctx is of a lock around this section.
func (s *section) around(caller context.Context, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx = context.WithValue(ctx, sectionKey{}, (*section)(nil))
		span := s.span // the release clears s.span, maybe before the goroutine of AfterFunc runs
		if span == nil {
			return fn(ctx)
		}
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), locks.ErrLost) && !errors.Is(context.Cause(caller), locks.ErrLost) {
				s.lose(span)
			}
		})()
		return fn(trace.ContextWithSpan(ctx, span))
	}
}
