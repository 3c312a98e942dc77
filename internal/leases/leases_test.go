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
	clients := map[string]int{}
	for _, l := range All() {
		clients[l.Name] = l.Client
	}
	require.Len(t, clients, 3)
	require.Equal(t, clients["b"], clients["c"])
	require.NotEqual(t, clients["a"], clients["b"])
	removeB()
	require.Equal(t, []Lease{{Name: "a", Client: clients["a"]}}, All())
	removeA()
	require.Empty(t, All())
}
