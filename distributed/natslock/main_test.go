package natslock_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/natslock"
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
