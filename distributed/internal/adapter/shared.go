package adapter

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks"
)

// Shared sends one request for all callers that ask for it at about the same time, such as the
// request that keeps a session alive for all batches of holds. A caller never gets the answer to a
// request that was sent before the caller asked.
//
//	under way   waiting   a caller asks
//	none        none      the request is sent at once
//	some        none      the next request is sent when the last request is answered, or after the gap
//	some        one       the caller shares the request that waits
//
// So a request without an answer delays later callers by the gap. While the store is silent, at
// most one request is sent in each gap.
type Shared[T any] struct {
	jobs *Jobs
	gap  time.Duration
	ask  func() (T, error)

	mu      sync.Mutex
	running bool        // a goroutine sends what waits
	waiting *sharing[T] // the request that is not sent yet, or nil
}

// sharing is one request. Its result is set before done is closed.
type sharing[T any] struct {
	done   chan struct{}
	result T
	err    error
}

// NewShared returns a request that ask sends, and whose goroutines are jobs. The function ask ends
// by itself.
func NewShared[T any](jobs *Jobs, gap time.Duration, ask func() (T, error)) *Shared[T] {
	return &Shared[T]{jobs: jobs, gap: gap, ask: ask}
}

// Do returns the result of a request that is sent from now on. If ctx ends before, Do returns the
// error of ctx, and the request goes on for the other callers.
func (s *Shared[T]) Do(ctx context.Context) (none T, err error) {
	s.mu.Lock()
	r := s.waiting
	if r == nil {
		r = &sharing[T]{done: make(chan struct{})}
		s.waiting = r
		if !s.running {
			s.running = s.jobs.Go(s.run)
		}
		if !s.running {
			s.waiting = nil
			s.mu.Unlock()
			return none, locks.ErrClosed
		}
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return none, Ended(ctx)
	}
}

// run sends requests until none waits.
func (s *Shared[T]) run() {
	for {
		s.mu.Lock()
		r := s.waiting
		s.waiting = nil
		s.running = r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		send := func() {
			defer close(r.done)
			r.result, r.err = s.ask()
		}
		if !s.jobs.Go(send) {
			r.err = locks.ErrClosed
			close(r.done)
			continue
		}
		gap := time.NewTimer(s.gap)
		select {
		case <-r.done:
		case <-gap.C:
		}
		gap.Stop()
	}
}
