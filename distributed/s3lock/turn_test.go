package s3lock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/s3lock"
)

// valued is a context of the program's own type.
type valued struct {
	context.Context
	asked func()
}

func (v valued) Value(key any) any { v.asked(); return v.Context.Value(key) }

func TestAProbeRunsWithoutTheCallersValues(t *testing.T) {
	d := s3lock.Documents(newFake().client(), bucketName)
	asked := 0
	_, err := d.Swap(valued{context.Background(), func() {
		asked++
		require.False(t, s3lock.Probing(d), "other writers wait for the probe")
	}}, "it", []byte("data"), "")
	require.NoError(t, err)
	require.Positive(t, asked)
}
