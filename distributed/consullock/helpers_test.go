package consullock_test

import (
	"os"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
)

// pairOf returns the pair of a key that is there.
func pairOf(tb testing.TB, direct *api.Client, key string) *api.KVPair {
	tb.Helper()
	pair, _, err := direct.KV().Get(key, nil)
	require.NoError(tb, err)
	require.NotNil(tb, pair, key)
	return pair
}

func readme(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(tb, err)
	return string(text)
}
