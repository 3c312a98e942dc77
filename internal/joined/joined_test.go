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

var a, b, c = errors.New("a"), errors.New("b"), errors.New("c")

func TestJoinedErrorsAreOneLine(t *testing.T) {
	err := joined.Errors(a, nil, fmt.Errorf("in: %w", errors.Join(b, c)))
	require.EqualError(t, err, "a; in: b; c")
	for _, part := range []error{a, b, c} {
		require.ErrorIs(t, err, part)
	}
	require.EqualError(t, joined.Errors(err, a), "a; in: b; c; a")
}

func TestNothingJoinedIsNil(t *testing.T) {
	require.NoError(t, joined.Errors())
	require.NoError(t, joined.Errors(nil, nil))
}

func TestASingleErrorIsItself(t *testing.T) {
	require.Equal(t, a, joined.Errors(nil, a))
}

func TestJoinedErrorsCanBeCompared(t *testing.T) {
	require.False(t, joined.Errors(a, b) == joined.Errors(a, b))
}
