package redlock

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Two servers of three are starting, and the third one has not answered.
func TestADoubtfulErrorTellsThatServersAreStarting(t *testing.T) {
	starting := driver.Mark(errors.New("LOADING"), driver.ErrRefused, driver.ErrUnavailable)
	err := doubtful{errors.Join(starting, starting)}
	require.ErrorIs(t, err, driver.ErrUnavailable, "LockContext waits for them")
	require.NotErrorIs(t, err, driver.ErrRefused, "the third one may have the vote")
}
