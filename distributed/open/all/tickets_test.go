package all_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

// buy buys tickets under a lock of the store that the URL names.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		ctx := context.Background()
		store, err := open.URL(ctx, args[0])
		if err != nil {
			return nil, nil, err
		}
		return store.Locker("orders"), func() { store.Close(ctx) }, nil
	})
}

func TestProcessesThatKnowAURLSellEachTicketOnce(t *testing.T) {
	for name, start := range map[string]func(tb testing.TB) string{
		"consul": startConsul,
		"consul, a cluster": func(tb testing.TB) string {
			s := testbed.StartConsul(tb, testbed.ConsulCluster{Version: "1.14", Servers: 3})
			return serving(tb, "consul://"+s[1].Addr()+"?ttl=20s")
		},
		"nats": startNATS,
		"nats, a cluster": func(tb testing.TB) string {
			var hosts []string
			for _, s := range testbed.StartNATS(tb, testbed.NATSCluster{Version: "2.15", Servers: 3}) {
				hosts = append(hosts, s.Addr())
			}
			return serving(tb, "nats://"+strings.Join(hosts, ",")+"/locks?replicas=3&ttl=20s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testbed.Tickets{Role: "buy", Args: []string{start(t)}, Buyers: 60, Processes: 3}.Run(t)
		})
	}
}

func TestABucketThatIsMissingNamesItsParameter(t *testing.T) {
	at, _, _ := strings.Cut(startNATS(t), "/locks?")
	_, err := open.URL(t.Context(), at+"/others")
	if err == nil || !strings.Contains(err.Error(), `bucket "others"`) || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("the error does not help: %v", err)
	}
}
