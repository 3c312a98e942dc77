package lease_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestAMarkedErrorKeepsItsTextAndMatches(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	err := driver.Mark(cause, driver.ErrRefused, driver.ErrUnavailable)
	require.EqualError(t, err, cause.Error())
	for _, target := range []error{driver.ErrRefused, driver.ErrUnavailable, fs.ErrPermission} {
		require.ErrorIs(t, err, target)
	}
	require.NotErrorIs(t, err, driver.ErrUnreachable)
	var path *fs.PathError
	require.True(t, errors.As(err, &path))
}
