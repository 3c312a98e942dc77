package caslock

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// batch is several releases of one semaphore by this client, in one write. While a batch is under
// way, the next releases gather in another batch. Otherwise the releases would collide with each
// other.
type batch struct {
	holds  []driver.HoldID
	closed bool // no further release joins it
	done   chan struct{}
	held   []bool // of each hold, when it is done
	err    error
}

// releaseTogether removes the entry of id, together with entries that are released at the same
// time.
func (s *store) releaseTogether(ctx context.Context, id driver.HoldID) (held bool, err error) {
	s.mu.Lock()
	b, before := s.batches[id.Name], (*batch)(nil)
	first := b == nil || b.closed
	if first {
		b, before = &batch{done: make(chan struct{})}, b
		s.batches[id.Name] = b
	}
	place := len(b.holds)
	b.holds = append(b.holds, id)
	s.mu.Unlock()
	if first {
		s.write(ctx, b, before)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		select {
		case <-b.done: // an answer that is there counts
		default: // the first release may still write it
			return false, ctx.Err()
		}
	}
	return b.held[place], b.err
}

// longWrite is how long a batch waits for the batch before it. The earlier batch may hang until
// its context ends, and Close gives the releases of both batches one context.
const longWrite = 2 * time.Second

// write writes b after the batch before it, or after longWrite. If ctx ends, the releases of b fail
// although their own contexts may go on. Package lease repeats them.
func (s *store) write(ctx context.Context, b, before *batch) {
	if before != nil {
		timer := time.NewTimer(longWrite)
		defer timer.Stop()
		select {
		case <-before.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	b.closed = true
	s.mu.Unlock()
	b.held, b.err = s.releaseHolds(ctx, b.holds)
	s.mu.Lock()
	if name := b.holds[0].Name; s.batches[name] == b {
		delete(s.batches, name)
	}
	s.mu.Unlock()
	close(b.done)
}
