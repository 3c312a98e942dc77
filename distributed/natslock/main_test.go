package natslock_test

import (
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(m, map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8)
}

// holdLock holds the lock it until it is killed, and says its token.
func holdLock(args []string) error {
	js, err := dial(args[0], answer)
	if err != nil {
		return err
	}
	ttl, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	c, err := natslock.New(background, js, args[1], caslock.WithTTL(ttl))
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy buys tickets under the lock it.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		js, err := dial(args[0], brief)
		if err != nil {
			return nil, nil, err
		}
		c, err := natslock.New(background, js, args[1])
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("it"), func() {
			c.Close(background)
			js.Conn().Close()
		}, nil
	})
}
