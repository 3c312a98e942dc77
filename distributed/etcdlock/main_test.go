package etcdlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(testbed.Ending(m, servers.End), map[string]testbed.Role{"hold": holdLock, "wait": waitLock, "buy": buy}, 12)
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
	return testbed.HoldLock(c.Mutex("it"))
}

// waitLock waits for the lock it, without polling, and prints the result.
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
