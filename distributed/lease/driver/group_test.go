package driver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// stranger is a client that knows nothing of the others.
type stranger struct {
	closed chan struct{}
	err    error
}

func (s stranger) Close(context.Context) error {
	close(s.closed)
	return s.err
}

func TestAGroupOfOtherClientsCloses(t *testing.T) {
	var g driver.Group[int, stranger]
	var all []stranger
	failure := errors.New("no answer")
	for i, failure := range []error{nil, failure} {
		c, err := g.Client(i, func() (stranger, error) { return stranger{make(chan struct{}), failure}, nil })
		require.NoError(t, err)
		all = append(all, c)
	}
	first, err := g.Close(t.Context())
	require.True(t, first)
	require.ErrorIs(t, err, failure)
	for _, c := range all {
		<-c.closed
	}
}
