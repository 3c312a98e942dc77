package testbed

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"

	"go.uber.org/goleak"

	"github.com/jucgo/locks"
)

// Main is the TestMain of a package whose tests start processes and wait for servers. It plays the
// roles, runs parallel tests at a time unless the command line says how many, and fails if
// goroutines are left.
func Main(m interface{ Run() int }, roles map[string]Role, parallel int, leaks ...goleak.Option) {
	Play(roles)
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		flag.Set(f.Name, strconv.Itoa(parallel))
	}
	goleak.VerifyTestMain(m, append(leaks, Children())...)
}

// Children makes goleak ignore the goroutines that wait for processes which the tests share.
func Children() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.start.func1.1")
}

// HoldLock is the role of a process that holds a lock until it is killed. It prints the token. Each
// time when it reads a line, it prints whether the lock is lost.
func HoldLock(l locks.Leased) error {
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
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
