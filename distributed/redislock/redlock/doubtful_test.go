package redlock

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

// Two servers of three are starting, and the third one has not answered.
func TestADoubtfulErrorTellsThatServersAreStarting(t *testing.T) {
	starting := lease.Mark(errors.New("LOADING"), lease.ErrRefused, lease.ErrUnavailable)
	err := doubtful{errors.Join(starting, starting)}
	require.ErrorIs(t, err, lease.ErrUnavailable, "LockContext waits for them")
	require.NotErrorIs(t, err, lease.ErrRefused, "the third one may have the vote")
}
