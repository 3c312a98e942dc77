package consullock_test

import (
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(m, map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8)
}

// holdLock holds the lock it until it is killed, and says its token.
func holdLock(args []string) error {
	client, err := api.NewClient(&api.Config{Address: args[0]})
	if err != nil {
		return err
	}
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := consullock.New(client, consullock.WithTTL(ttl))
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy buys tickets under the lock it.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		client, err := api.NewClient(&api.Config{Address: args[0]})
		if err != nil {
			return nil, nil, err
		}
		c, err := consullock.New(client)
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("it"), func() { c.Close(background) }, nil
	})
}
