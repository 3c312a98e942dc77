package locks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func TestThePoliciesHaveNames(t *testing.T) {
	var zero locks.Policy
	require.Equal(t, locks.NonFair, zero)
	require.Equal(t, "NonFair", locks.NonFair.String())
	require.Equal(t, "FIFO", locks.FIFO.String())
}
