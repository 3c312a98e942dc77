package joined_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/joined"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errA, errB, errC = errors.New("a"), errors.New("b"), errors.New("c")

func TestJoinedErrorsAreOneLine(t *testing.T) {
	err := joined.Errors(errA, nil, fmt.Errorf("in: %w", errors.Join(errB, errC)))
	require.EqualError(t, err, "a; in: b; c")
	for _, part := range []error{errA, errB, errC} {
		require.ErrorIs(t, err, part)
	}
	require.EqualError(t, joined.Errors(err, errA), "a; in: b; c; a")
}

func TestNothingJoinedIsNil(t *testing.T) {
	require.NoError(t, joined.Errors())
	require.NoError(t, joined.Errors(nil, nil))
}

func TestASingleErrorIsItself(t *testing.T) {
	require.Equal(t, errA, joined.Errors(nil, errA))
}

func TestJoinedErrorsCanBeCompared(t *testing.T) {
	require.False(t, joined.Errors(errA, errB) == joined.Errors(errA, errB))
}
