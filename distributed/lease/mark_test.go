package lease_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

func TestAMarkedErrorKeepsItsTextAndMatches(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	err := lease.Mark(cause, lease.ErrRefused, lease.ErrUnavailable)
	require.EqualError(t, err, cause.Error())
	for _, target := range []error{lease.ErrRefused, lease.ErrUnavailable, fs.ErrPermission} {
		require.ErrorIs(t, err, target)
	}
	require.NotErrorIs(t, err, lease.ErrUnreachable)
	var path *fs.PathError
	require.True(t, errors.As(err, &path))
}
