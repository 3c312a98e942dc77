// Package adapter has what the adapters of several stores need in addition to package lease.
//
// Adapters are modules of their own, and users combine their versions with other versions of this
// module. So a function here never changes: it gets a successor beside it.
package adapter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jucgo/locks"
)

// Check returns what keeps a call under ctx from beginning: ctx is nil or has ended.
func Check(ctx context.Context) error {
	switch {
	case ctx == nil:
		return locks.ErrNilContext
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	return nil
}

// Ended returns the error of ctx, which has ended, with its cause.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Sleep waits for d, or until ctx ends. It reports whether d is over.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Until calls wait with a context that has the values of ctx, and ends with ctx or with open. If
// wait fails after that, Until returns why: the error of [Ended], or [locks.ErrClosed].
func Until(ctx, open context.Context, wait func(context.Context) error) error {
	both := Detach(open, ctx)
	if ctx.Done() != nil {
		cancelled, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(open, cancel)()
		both = cancelled
	}
	err := wait(both)
	switch {
	case err == nil || both.Err() == nil:
		return err
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	return locks.ErrClosed
}

// Detach returns a context that ends with life, and has the values of ctx.
func Detach(life, ctx context.Context) context.Context { return detached{life, ctx} }

type detached struct {
	context.Context
	values context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }

// Jitter returns a random part of d, a half at least, so that waiters get out of step.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Jobs are goroutines that Close waits for. The zero value is ready.
type Jobs struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // not added to when closed
}

// Go runs job in a goroutine. It returns false, and does not run job, if Close was called.
func (j *Jobs) Go(job func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.wg.Go(job)
	}
	return !j.closed
}

// Close lets no further job begin, and waits until all have ended, or ctx does.
func (j *Jobs) Close(ctx context.Context) {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
