package filelock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only Linux has a futex. Elsewhere the sleeper looks again after its pause.
func TestAReleaseOfAWordWakesASleeper(t *testing.T) {
	path := somewhere(t)
	l, other := share(t, path), share(t, path)
	b := someone()
	var took []time.Duration
	for range 20 {
		take(t, l, background)
		done := make(chan error, 1)
		go func() { done <- other.LockContext(b) }()
		time.Sleep(5 * time.Millisecond) // it sleeps for 45 ms more, if nobody wakes it
		released := time.Now()
		require.NoError(t, l.UnlockContext(background))
		require.NoError(t, soon(t, done))
		took = append(took, time.Since(released))
		require.NoError(t, other.UnlockContext(b))
	}
	slices.Sort(took)
	require.Less(t, took[len(took)/2], 25*time.Millisecond)
}
