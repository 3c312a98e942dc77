// Command tickets sells numbered tickets to buyers in several processes at once, under one lock
// on Redis. A sale reads a counter and writes it back, in two requests. Only the lock keeps them
// together: with -unlocked, numbers are sold more than once.
//
//	go run ./examples/stores/tickets
//	go run ./examples/stores/tickets -unlocked
//	go run ./examples/stores/tickets -redis localhost:6379
//
// Without an address the program starts a small Redis server of its own.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

// sold is the key of the counter, and counter the name of the lock.
const (
	sold    = "examples:tickets:sold"
	counter = "examples:tickets"
)

func main() {
	var (
		addr      = flag.String("redis", "", "`address` of a Redis server; without it, one is started in this process")
		buyers    = flag.Int("buyers", 200, "how many buyers there are in all")
		processes = flag.Int("processes", 4, "how many processes they are in")
		unlocked  = flag.Bool("unlocked", false, "sell without the lock")
		child     = flag.Bool("child", false, "be one of the processes")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case flag.NArg() > 0 || *buyers < 1 || *processes < 1 || *processes > *buyers:
		err = errors.New("want no arguments, at least one process, and no more processes than buyers")
	case *child:
		err = buy(ctx, *addr, *buyers, *unlocked)
	default:
		err = sell(ctx, os.Stdout, *addr, *buyers, *processes, *unlocked)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tickets:", err)
		os.Exit(1)
	}
}

// sell starts the processes and prints what they have bought.
func sell(ctx context.Context, w io.Writer, addr string, buyers, processes int, unlocked bool) error {
	where := "the Redis server at " + addr
	if addr == "" {
		s, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer s.Close()
		addr, where = s.Addr(), "a Redis server inside this process"
	}
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer client.Close()
	if err := client.Set(ctx, sold, 0, 0).Err(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d buyers in %d processes, on %s\n", buyers, processes, where)
	began := time.Now()
	var mu sync.Mutex
	var numbers []int
	var failed []error
	var wg sync.WaitGroup
	for i := range processes {
		n := buyers / processes
		if i < buyers%processes {
			n++
		}
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, self, "-child", "-redis", addr, "-processes", "1",
				"-buyers", strconv.Itoa(n), "-unlocked="+strconv.FormatBool(unlocked))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("process %d: %w", i+1, err))
			}
			first := len(numbers)
			for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
				if number, err := strconv.Atoi(s.Text()); err == nil {
					numbers = append(numbers, number)
				}
			}
			mine := slices.Clone(numbers[first:])
			slices.Sort(mine)
			fmt.Fprintf(w, "process %d bought %d tickets: %s\n", i+1, len(mine), some(mine))
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	slices.Sort(numbers)
	distinct := len(slices.Compact(slices.Clone(numbers)))
	fmt.Fprintf(w, "%d tickets in %v, %d different numbers, the last one is %d\n",
		len(numbers), time.Since(began).Round(time.Millisecond), distinct, numbers[len(numbers)-1])
	if !unlocked && (distinct != buyers || numbers[len(numbers)-1] != buyers) {
		return errors.New("a number was sold twice, or left out")
	}
	return nil
}

// some returns the first few of numbers.
func some(numbers []int) string {
	text, more := numbers, ""
	if len(text) > 8 {
		text, more = text[:8], " …"
	}
	return strings.Trim(fmt.Sprint(text), "[]") + more
}

// buy lets n buyers of this process buy a ticket each, and prints the numbers.
func buy(ctx context.Context, addr string, n int, unlocked bool) error {
	client := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer client.Close()
	provider, err := redislock.New(client)
	if err != nil {
		return err
	}
	defer provider.Close(context.Background())
	ticket := func(ctx context.Context) error {
		number, err := client.Get(ctx, sold).Int()
		if err != nil {
			return err
		}
		number++
		if err := client.Set(ctx, sold, number, 0).Err(); err != nil {
			return err
		}
		_, err = fmt.Println(number)
		return err
	}
	errs := make(chan error, n)
	for range n {
		go func() {
			if unlocked {
				errs <- ticket(ctx)
			} else {
				errs <- locks.Do(ctx, provider.Locker(counter), ticket)
			}
		}()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	return err
}
