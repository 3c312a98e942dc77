package lockstest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks"
)

// Config says how to make the locks under test, what they promise, and how slow they are.
// Only New is needed.
type Config struct {
	// New returns a lock that is free and that nobody else uses. What it needs to have
	// cleaned up it registers with tb. It is called once for each check.
	New func(tb testing.TB) locks.TryLocker

	// Owned declares that holds belong to an owner: to the calling goroutine, or to the
	// Owner in ctx. Without it any goroutine may unlock, and owners are ignored. With it, but without
	// Reentrant, LockContext may refuse the holder with locks.ErrDeadlock instead of waiting for ever.
	Owned bool

	// Reentrant declares that the owner may lock again. It implies Owned.
	Reentrant bool

	// FIFO declares that LockContext admits in order of arrival.
	FIFO bool

	// Exclusive, if not nil, declares that the lock that New returns is a read view, whose holders
	// do not exclude one another, and returns the write view of the same lock.
	Exclusive func(view locks.TryLocker) locks.TryLocker

	// Leased declares that the lock implements locks.Leased; else it must not.
	Leased bool

	// Lose, if not nil, makes the present holder of l, a Leased lock, lose it as if its
	// lease had run out, and returns when others can have it or the holder knows.
	Lose func(l locks.TryLocker)

	// SpuriousTry declares that TryLockContext may be false although nobody holds the lock, when
	// another acquisition is under way. The check of random histories then allows it.
	SpuriousTry bool

	// Waiting, if not nil, returns how many wait for l, the length of its queue. The suite
	// then knows when a goroutine has begun to wait. Without it, the suite takes a call for
	// waiting whose goroutine has been blocked for the time Settle. l is what New or
	// Exclusive returned.
	Waiting func(l locks.TryLocker) int

	// Settle is how long a call is watched that must not return. Default 2 ms. A lock behind
	// a network needs several round trips, and so more.
	Settle time.Duration

	// Timeout is how long a call may take that must return: the suite reports it as hanging
	// then. Default 10 s.
	Timeout time.Duration

	// Rounds is how often each goroutine takes the lock in the contended checks, and
	// Goroutines how many of these there are. Default 200 and 8.
	Rounds, Goroutines int

	// IgnoreLeaks are goroutines that may outlive a check, such as those of a connection pool
	// that the locks share.
	IgnoreLeaks []goleak.Option
}

func (cfg Config) withDefaults() Config {
	if cfg.Settle <= 0 {
		cfg.Settle = 2 * time.Millisecond
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Rounds <= 0 {
		cfg.Rounds = 200
	}
	if cfg.Goroutines <= 0 {
		cfg.Goroutines = 8
	}
	cfg.Owned = cfg.Owned || cfg.Reentrant
	return cfg
}

func (cfg Config) shared() bool { return cfg.Exclusive != nil }
