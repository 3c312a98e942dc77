package redisson

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdUntilKilled, "wait": waitUntilKilled})
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("6") // the parallel ones sleep most of the time
	}
	goleak.VerifyTestMain(m, testbed.Children())
}

// holdUntilKilled takes locks, says so, and keeps them. Its arguments are the address of the
// server, the lease, and locks as their kind, a slash and their name.
func holdUntilKilled(args []string) error {
	term, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	conn := redis.NewClient(&redis.Options{Addr: args[0], DialTimeout: patience, ReadTimeout: patience})
	defer conn.Close()
	c, err := redislock.New(conn, redislock.WithTTL(term))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	for _, arg := range args[2:] {
		kind, name, _ := strings.Cut(arg, "/")
		if err := lockOf(c, kind, name).LockContext(context.Background()); err != nil {
			return err
		}
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// waitUntilKilled waits for the fair lock args[1] of the server args[0], with a place in the
// queue for a second beyond the lease.
func waitUntilKilled(args []string) error {
	conn := redis.NewClient(&redis.Options{Addr: args[0], DialTimeout: patience, ReadTimeout: patience})
	defer conn.Close()
	c, err := redislock.New(conn, redislock.WithTTL(brief), redislock.WithFairWait(time.Second))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	return c.FairMutex(args[1]).LockContext(context.Background())
}
