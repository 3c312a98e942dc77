//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package shmlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// These systems lack a [Mutex].

type mapping struct{ word *atomic.Uint64 }

func openMapping(string) (*mapping, error) {
	return nil, fmt.Errorf("shared memory on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func (*mapping) wake(int) {}
func (*mapping) close()   {}

func self() (uint64, error) { return 0, nil }
func alive(uint64) bool     { return true }

type sleeper struct{}

func newSleeper(context.Context, *mapping) sleeper { return sleeper{} }

func (sleeper) sleep(uint64, time.Duration) bool { return true }
func (sleeper) end()                             {}
