package leases

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAllAsksEachClientUntilItIsRemoved(t *testing.T) {
	require.Empty(t, All())
	removeA := Register(func() []Lease { return []Lease{{Name: "a"}} })
	removeB := Register(func() []Lease { return []Lease{{Name: "b"}, {Name: "c"}} })
	require.ElementsMatch(t, []Lease{{Name: "a"}, {Name: "b"}, {Name: "c"}}, All())
	removeB()
	require.Equal(t, []Lease{{Name: "a"}}, All())
	removeA()
	require.Empty(t, All())
}
