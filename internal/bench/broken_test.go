//go:build !race

package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// The race detector would find the same, and fail the test for it.
func TestALockThatExcludesNobodyIsFound(t *testing.T) {
	// Sections are longer than a time slice, so that they overlap on one CPU too.
	_, err := Contend(t.Context(), noLock{}, Contest{Goroutines: 4, Ops: 12, Inside: 25 * time.Millisecond})
	require.ErrorIs(t, err, ErrExclusion)
}
