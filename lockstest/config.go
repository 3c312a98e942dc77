package lockstest

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks"
)

// Config has a function that makes the locks under test, their promises, and their speed. Only
// New is needed.
type Config struct {
	// New returns a free lock without other users. It registers its clean-up with tb. The suite
	// calls New once for each check. It calls New twice for the check that two locks that are not
	// Leased are independent. There New may return the same value again, or a lock with the same
	// LockKey.
	New func(tb testing.TB) locks.TryLocker

	// Owned declares that holds belong to an owner: to the calling goroutine, or to the Owner in
	// ctx. Without Owned any goroutine may unlock, and owners are ignored. With Owned, but
	// without Reentrant, LockContext may refuse the holder with locks.ErrDeadlock instead of
	// waiting for ever.
	Owned bool

	// Reentrant declares that the owner may lock again. Reentrant implies Owned.
	Reentrant bool

	// FIFO declares that LockContext admits in order of arrival.
	FIFO bool

	// Exclusive, if not nil, declares that New returns a read view, whose holders do not exclude
	// one another. Exclusive returns the write view of the same lock.
	Exclusive func(view locks.TryLocker) locks.TryLocker

	// Leased declares that the lock implements locks.Leased. Without Leased the lock must not
	// implement it.
	Leased bool

	// Lose, if not nil, makes the holder of l lose it, as if its lease had run out. l is a Leased
	// lock. Lose returns when others can acquire l or the holder knows of the loss.
	Lose func(l locks.TryLocker)

	// SpuriousTry declares that TryLockContext may return false for a free lock while another
	// acquisition is under way. The check of random histories then allows it.
	SpuriousTry bool

	// Waiting, if not nil, returns the length of the queue of l, which New or Exclusive returned.
	// The suite then knows when a goroutine has begun to wait. Without Waiting, a call counts as
	// waiting when its goroutine has been blocked for the time Settle.
	Waiting func(l locks.TryLocker) int

	// Settle is how long the suite watches a call that must not return. Default 2 ms. A lock
	// behind a network needs a longer time: several round trips.
	Settle time.Duration

	// Timeout is how long a call may take that must return. After that the suite reports it as
	// hanging. Default 10 s.
	Timeout time.Duration

	// Rounds is the number of acquisitions of each goroutine in the contended checks. Goroutines is
	// the number of goroutines. Default 200 and 8.
	Rounds, Goroutines int

	// IgnoreLeaks are goroutines that may outlive a check, such as the goroutines of a connection
	// pool that the locks share.
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
