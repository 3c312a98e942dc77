package testbed

import (
	"context"
	"testing"
	"time"

	"github.com/jucgo/locks"
)

// TakeAll acquires all permits of s and releases them. Thus the permits of dead clients are
// collected, which otherwise happens only when another client wants permits.
func TakeAll(tb testing.TB, s interface {
	locks.Semaphore
	Size() int64
}) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := s.AcquireContext(ctx, s.Size())
	if err == nil {
		err = p.ReleaseContext(ctx)
	}
	if err != nil {
		tb.Fatal(err)
	}
}
