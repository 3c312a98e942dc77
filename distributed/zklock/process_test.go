package zklock_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// holdUntilKilled acquires a lock, prints its token, and keeps it. At each line of input it
// prints whether the hold is valid, and whether an unlock succeeds. Its arguments are the
// address of the server, the session timeout, the kind of the lock, and its name.
func holdUntilKilled(args []string) error {
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := zklock.New(context.Background(), args[:1], zklock.WithSessionTimeout(d))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	l := kinds[args[2]].lock(c, args[3])
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fmt.Println(h.Token())
	for b := make([]byte, 1); ; {
		if _, err := os.Stdin.Read(b); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		fmt.Println(h.Err() == nil)
		fmt.Println(l.UnlockContext(ctx) == nil)
	}
}

func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		c, err := zklock.New(context.Background(), args[:1], zklock.WithSessionTimeout(10*time.Second))
		if err != nil {
			return nil, nil, err
		}
		return kinds[args[1]].lock(c, "/tickets"), func() { c.Close(context.Background()) }, nil
	})
}
