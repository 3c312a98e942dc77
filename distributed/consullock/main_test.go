package consullock_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdLock, "buy": buy})
	flag.Parse()
	flag.Set("test.parallel", "8") // they wait more than they work
	const process = "github.com/jucgo/locks/internal/test/testbed.start.func1.1"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(process))
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
	ctx := someone()
	l := c.Mutex("it")
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fmt.Println(h.Token())
	_, err = os.Stdin.Read(make([]byte, 1)) // for ever
	return err
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
