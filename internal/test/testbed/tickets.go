package testbed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks"
)

// Tickets is the ticket test: buyers in several processes start together, and each buys one
// ticket under the lock. The numbers on the tickets must be 1 to the number of buyers, without
// gap or repeat, and no two buyers may be at the counter at once. The counter is a file that is
// read and written without any protection of its own.
type Tickets struct {
	// Role is the role of the processes, which calls [Buy].
	Role string
	// Args are given to the role, for it to find the store.
	Args []string
	// Buyers is how many there are in all, 200 if 0.
	Buyers int
	// Processes is how many processes they are in, 4 if 0.
	Processes int
	// Trouble, if not nil, is called again and again during the sale. It may cause every fault that
	// a lock must survive without a loss. It mends the fault before it returns: the next call waits
	// until a ticket is sold without trouble, however slow the machine is.
	Trouble func()
	// Limit is for how long the test may take, three times [Hang] if 0.
	Limit time.Duration
}

// Run runs the test, and returns how many buyers of each process had to try more than once,
// because of an error.
func (x Tickets) Run(tb testing.TB) []int {
	tb.Helper()
	if x.Buyers == 0 {
		x.Buyers = 200
	}
	if x.Processes == 0 {
		x.Processes = 4
	}
	if x.Limit == 0 {
		x.Limit = 3 * Hang
	}
	dir := tb.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sold"), []byte("0"), 0o644); err != nil {
		tb.Fatal(err)
	}
	children := make([]*Process, x.Processes)
	for i := range children {
		n := x.Buyers / x.Processes
		if i < x.Buyers%x.Processes {
			n++
		}
		children[i] = Child(tb, x.Role, append([]string{dir, strconv.Itoa(n), x.Limit.String()}, x.Args...)...)
	}
	for _, c := range children {
		if line := c.Line(); line != "ready" {
			tb.Fatalf("a process says %q instead of ready", line)
		}
	}
	for _, c := range children {
		c.Say("go")
	}
	over := make(chan struct{})
	var troubled sync.WaitGroup
	if x.Trouble != nil {
		troubled.Go(func() {
			for {
				x.Trouble()
				for sold := sales(dir); sales(dir) <= sold; {
					select {
					case <-over:
						return
					case <-time.After(time.Millisecond):
					}
				}
			}
		})
	}
	sold, retries := results(tb, children)
	close(over)
	troubled.Wait()
	slices.Sort(sold)
	want := make([]int, x.Buyers)
	for i := range want {
		want[i] = i + 1
	}
	if !slices.Equal(sold, want) {
		tb.Errorf("tickets %v, not 1 to %d", sold, x.Buyers)
	}
	return retries
}

// sales returns how many tickets are sold, or 0 while the counter is written.
func sales(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "sold"))
	n, _ := strconv.Atoi(string(text))
	return n
}

// results returns which tickets the processes have sold, and the retries of each, when all have
// ended.
func results(tb testing.TB, children []*Process) (sold, retries []int) {
	tb.Helper()
	for i, c := range children {
		for line := range c.Lines() {
			word, rest, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(rest)
			switch {
			case err != nil:
				tb.Errorf("process %d: %s", i, line)
			case word == "ticket":
				sold = append(sold, n)
			case word == "retries":
				retries = append(retries, n)
			}
		}
		if !c.Wait() {
			tb.Errorf("process %d failed", i)
		}
	}
	return sold, retries
}

// Buy is the work of a role of [Tickets]. Given the arguments of the test, open returns the lock
// and a function that closes it.
func Buy(args []string, open func(args []string) (locks.TryLocker, func(), error)) error {
	dir := args[0]
	buyers, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	limit, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	lock, end, err := open(args[3:])
	if err != nil {
		return err
	}
	defer end()
	fmt.Println("ready")
	if !bufio.NewScanner(os.Stdin).Scan() {
		return errors.New("nobody said go")
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var mu sync.Mutex // of the output
	var wg sync.WaitGroup
	var failed []error
	retries := 0
	for range buyers {
		wg.Go(func() {
			for {
				n := 0
				err := locks.Do(ctx, lock, func(context.Context) (err error) {
					n, err = counter(dir)
					return err
				})
				mu.Lock()
				switch {
				case n > 0: // sold, whatever came after
					fmt.Println("ticket", n)
				case errors.Is(err, errOccupied), ctx.Err() != nil:
					failed = append(failed, err)
				default:
					retries++
				}
				done := n > 0 || len(failed) > 0
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("retries", retries)
	return errors.Join(failed...)
}

var errOccupied = errors.New("two at the counter at once")

// counter sells one ticket.
func counter(dir string) (int, error) {
	inside := filepath.Join(dir, "inside")
	f, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errOccupied, err)
	}
	f.Close()
	path := filepath.Join(dir, "sold")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, fmt.Errorf("%w: the counter shows %q", errOccupied, text)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o644); err != nil {
		return 0, err
	}
	return n + 1, os.Remove(inside)
}
