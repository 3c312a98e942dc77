package adaptertest

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// hang is the time that package testbed calls Hang: a test kit imports no other test kit.
const hang = 5 * time.Minute

// Patient makes a client wait as long for the answer to a release as only a hang takes. The default
// release timeout is too short for a busy machine.
var Patient = lease.WithReleaseTimeout(hang)

// Owner returns a context with an owner of its own.
func Owner() context.Context { return locks.WithOwner(context.Background(), locks.NewOwner()) }

// Hold acquires the lock and returns the hold.
func Hold(tb testing.TB, l Lock, owner context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, l.LockContext(owner))
	h, err := l.Hold(owner)
	require.NoError(tb, err)
	return h
}

// Patiently is Hold for a server that cannot be reached yet, and for a lease so short that the
// answer of a busy machine may come too late. It asks again after an error.
func Patiently(tb testing.TB, l locks.Leased, owner context.Context) locks.Hold {
	tb.Helper()
	for end := time.Now().Add(hang); ; time.Sleep(10 * time.Millisecond) {
		err := l.LockContext(owner)
		if err == nil {
			break
		}
		require.True(tb, time.Now().Before(end), "%v", err)
	}
	h, err := l.Hold(owner)
	require.NoError(tb, err)
	return h
}

// Try reports whether an attempt gets the lock.
func Try(tb testing.TB, l locks.TryLocker, owner context.Context) bool {
	tb.Helper()
	held, err := l.TryLockContext(owner)
	require.NoError(tb, err)
	return held
}

// Close closes a client whose requests may be unanswered. The error may say that acquisitions are
// in doubt. It may not say that holds are left.
func Close(tb testing.TB, c interface {
	Close(ctx context.Context) error
}) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		counts := regexp.MustCompile(`close: (?:(\d+) of (\d+) holds released, )?acquisitions in doubt: `).
			FindStringSubmatch(err.Error())
		require.NotNil(tb, counts, "%v", err)
		require.Equal(tb, counts[1], counts[2], "%v", err)
	}
}

// Pair acquires and releases the lock.
func Pair(tb testing.TB, l locks.Locker) {
	tb.Helper()
	owner := Owner()
	require.NoError(tb, l.LockContext(owner))
	require.NoError(tb, l.UnlockContext(owner))
}

// Token returns the token of the owner's hold.
func Token(tb testing.TB, l locks.Leased, owner context.Context) uint64 {
	tb.Helper()
	h, err := l.Hold(owner)
	require.NoError(tb, err)
	return h.Token()
}

// Start acquires the lock in a goroutine of its own.
func Start(l locks.Locker, owner context.Context) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.LockContext(owner) }()
	return got
}

// Result waits for the outcome of [Start].
func Result(tb testing.TB, got <-chan error) error {
	tb.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(hang):
		require.Fail(tb, "the acquisition still waits")
		return nil
	}
}

// AwaitLoss waits for the loss of h.
func AwaitLoss(tb testing.TB, h locks.Hold) {
	tb.Helper()
	select {
	case <-h.Lost():
	case <-time.After(hang):
		require.Fail(tb, "the loss is not reported")
	}
	require.ErrorIs(tb, h.Err(), locks.ErrLost)
}

// Closer is a client of locks.
type Closer interface {
	Close(ctx context.Context) error
}

// CloseWith closes a client with the test. It ignores the error: a client that the kit has cut off
// cannot close in time.
func CloseWith(tb testing.TB, c Closer) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
}
