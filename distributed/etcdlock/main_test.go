package etcdlock_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdLock, "wait": waitLock, "buy": buy})
	flag.Parse()
	flag.Set("test.parallel", "12") // they wait more than they work
	const process = "github.com/jucgo/locks/internal/test/testbed.start.func1.1"
	goleak.VerifyTestMain(testbed.Ending(m, servers.End), goleak.IgnoreAnyFunction(process))
}

// holdLock holds the lock it until it is killed, and says each time when it reads a line whether
// it does.
func holdLock(args []string) error {
	conn, err := dial(args[0])
	if err != nil {
		return err
	}
	c, err := etcdlock.New(conn, term(5*short))
	if err != nil {
		return err
	}
	ctx := context.Background()
	l := c.Mutex("it")
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fmt.Println(h.Token())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(errors.Is(h.Err(), locks.ErrLost))
	}
	return nil
}

// waitLock waits for the lock it, without polling, and says what came of it.
func waitLock(args []string) error {
	conn, err := dial(args[0])
	if err != nil {
		return err
	}
	c, err := etcdlock.New(conn, term(3*short), etcdlock.WithLeaseOptions(lease.WithPoll(time.Hour)))
	if err != nil {
		return err
	}
	fmt.Println(c.Mutex("it").LockContext(context.Background()))
	return nil
}

// buy takes part in the ticket test.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		conn, err := dial(strings.Split(args[0], ",")...)
		if err != nil {
			return nil, nil, err
		}
		c, err := etcdlock.New(conn, term(10*time.Second), etcdlock.WithLeaseOptions(lease.WithMaxLocalHandoffs(2)))
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("tickets"), func() { c.Close(context.Background()); conn.Close() }, nil
	})
}
