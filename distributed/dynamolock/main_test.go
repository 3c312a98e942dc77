package dynamolock_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(testbed.Ending(m, motos.End), map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8)
}

// in returns a client of the locks of a process that a test has started.
func in(addr string, ttl time.Duration) (*caslock.Client, error) {
	client := dynamodb.New(options(addr, http.DefaultTransport))
	return dynamolock.New(client, table, dynamolock.WithTTL(ttl),
		dynamolock.WithPolling(2*time.Millisecond, 50*time.Millisecond))
}

// holdLock holds the lock it until it is killed, and says each time when it reads a line whether
// it does.
func holdLock(args []string) error {
	c, err := in(args[0], 9*time.Second) // a renewal may be late on a busy machine
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy takes part in the ticket test.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		c, err := in(args[0], 10*time.Second)
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("tickets"), func() { c.Close(background) }, nil
	})
}
