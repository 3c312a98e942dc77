package filelock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// roles are the roles of this binary's processes in the tests.
var roles = map[string]testbed.Role{
	"buy":   func(args []string) error { return testbed.Buy(args, kindOf) },
	"serve": serve,
}

// words are the operations of a serving process on the file at a path, beside the operations on the
// lock.
var words = map[string]func(path string) error{}

// kindOf returns the lock that args tell: its kind, and its path.
func kindOf(args []string) (locks.TryLocker, func(), error) {
	kind, path := args[0], args[1]
	var opts []filelock.Option
	if kind == "tokens" {
		opts = append(opts, filelock.WithTokens())
	}
	f, err := filelock.Open(path, opts...)
	if err != nil {
		return nil, nil, err
	}
	end := func() { f.Close(context.Background()) }
	if kind == "read" {
		return f.ReadLocker(), end, nil
	}
	return f, end, nil
}

// serve does with the lock what it reads, a word a line, and answers each.
func serve(args []string) error {
	l, end, err := kindOf(args)
	if err != nil {
		return err
	}
	defer end()
	ctx := locks.WithOwner(context.Background(), locks.NewOwner())
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word, _, _ := strings.Cut(in.Text(), " ")
		var answer any
		switch word {
		case "lock":
			answer = l.LockContext(ctx)
		case "try":
			ok, err := l.TryLockContext(ctx)
			if answer = err; err == nil {
				answer = ok
			}
		case "unlock":
			answer = l.UnlockContext(ctx)
		case "token":
			h, err := l.(locks.Leased).Hold(ctx)
			if answer = err; err == nil {
				answer = h.Token()
			}
		case "spawn": // a program that outlives this one for a while
			answer = exec.Command("sleep", "10").Start()
		case "hog": // takes it again and again, by several goroutines
			for range 4 {
				go func() {
					ctx := locks.WithOwner(context.Background(), locks.NewOwner())
					for l.LockContext(ctx) == nil {
						l.UnlockContext(ctx)
					}
				}()
			}
			answer = "hogging"
		default:
			do := words[word]
			if do == nil {
				return errors.New("what is " + word)
			}
			answer = do(args[1])
		}
		fmt.Println(answer)
	}
	return nil
}
