//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package filelock

import (
	"context"
	"time"
)

// wake does nothing: waiters poll.
func (m *mapping) wake(int) {}

func namespace() uint64 { return 0 }

// sleeper polls the word, less and less often.
type sleeper struct {
	a, b  context.Context
	w     backoff
	slept time.Duration
}

func newSleeper(_ *mapping, a, b context.Context) *sleeper { return &sleeper{a: a, b: b} }

// sleep returns after a pause, or when one of the contexts has ended. It reports whether the
// pauses since it last returned true add up to d.
func (s *sleeper) sleep(_ uint64, d time.Duration) bool {
	pause := s.w.next()
	s.w.wait(s.a, s.b, pause)
	if s.slept += pause; s.slept < d {
		return false
	}
	s.slept = 0
	return true
}

func (s *sleeper) end() { s.w.stop() }
