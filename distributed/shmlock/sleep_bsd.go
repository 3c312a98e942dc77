//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package shmlock

import (
	"context"
	"math/rand/v2"
	"time"
)

// longest is the longest pause between two looks at the word.
const longest = 25 * time.Millisecond

// wake does nothing: waiters poll.
func (m *mapping) wake(int) {}

func namespace() uint64 { return 0 }

// sleeper polls the word, less and less often.
type sleeper struct {
	ctx          context.Context
	pause, slept time.Duration
}

func newSleeper(ctx context.Context, _ *mapping) *sleeper { return &sleeper{ctx: ctx} }

// sleep returns after a pause, or when the context has ended. It reports whether the pauses since
// it last returned true add up to d.
func (s *sleeper) sleep(_ uint64, d time.Duration) bool {
	s.pause = min(max(s.pause+s.pause/2, time.Millisecond), longest)
	pause := s.pause/2 + rand.N(s.pause/2)
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
	}
	if s.slept += pause; s.slept < d {
		return false
	}
	s.slept = 0
	return true
}

func (s *sleeper) end() {}
