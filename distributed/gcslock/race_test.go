package gcslock_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
)

// race has eight writers replace one version of an object at once, and returns the new version.
func race(t *testing.T, d caslock.Documents, name, version string) string {
	t.Helper()
	var versions [8]string
	var errs [8]error
	var wg sync.WaitGroup
	for i := range versions {
		wg.Go(func() { versions[i], errs[i] = d.Swap(t.Context(), name, []byte(strconv.Itoa(i)), version) })
	}
	wg.Wait()
	winner := ""
	for i, err := range errs {
		if err == nil {
			require.Empty(t, winner, "two writers replaced version %q of %s", version, name)
			winner = versions[i]
		} else {
			require.ErrorIs(t, err, caslock.ErrConflict)
		}
	}
	require.NotEmpty(t, winner)
	return winner
}

func TestOneOfEightWritersReplacesAVersion(t *testing.T) {
	d := documentsAt(t, start(t))
	for i := range 200 {
		name := fmt.Sprint("it", i)
		created := race(t, d, name, "")
		replaced := race(t, d, name, created)
		require.NotEqual(t, created, replaced)
		_, version, err := d.Load(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, replaced, version)
	}
}
