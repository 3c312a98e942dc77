// Command stores does the same work under the locks of any store. A flag selects the store. One
// line of the program depends on it.
//
//	go run ./examples/stores                    the memory of this process
//	go run ./examples/stores -store file:       files, between the processes of this machine
//	go run ./examples/stores -store sqlite:     a table of SQLite
//	go run ./examples/stores -store redis:      Redis; without an address a server inside
//	go run ./examples/stores -store 'redis://localhost:6379/0?kind=fenced'
//	go run ./examples/stores -store postgres://me:secret@localhost/shop
//	go run ./examples/stores -store mysql://me:secret@localhost/shop
//	go run ./examples/stores -store zk://localhost
//	go run ./examples/stores -store etcd://localhost
//	go run ./examples/stores -store consul://localhost
//	go run ./examples/stores -store nats://localhost/locks?replicas=1
//	go run ./examples/stores -store dynamodb://eu-west-1/locks
//	go run ./examples/stores -store kubernetes:default
//	go run ./examples/stores -store redis: -processes 3
//
// The store is a URL of package open, which has many more parameters.
//
// A few workers sell numbered tickets. Then a TryLockContext is refused, two locks are taken at
// once, and a hold is lost. With -processes N the workers run in N processes, which take turns and
// only sell tickets. The environment variable LOCKS_EXAMPLE_STORE can give the store as well:
// other users of the machine do not see a password there.
//
// providers.go opens the store. work.go has the work, and nothing in it depends on the store.
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
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // of go-redis, which would add lines to the error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage): // package flag has printed it
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "stores:", strings.Join(strings.Fields(err.Error()), " ")) // some have several lines
		os.Exit(1)
	}
}

// The environment of a process that another process has started. The store is not among its
// arguments, because every user can read those.
const (
	storeVariable   = "LOCKS_EXAMPLE_STORE"
	processVariable = "LOCKS_EXAMPLE_PROCESS" // what the process is called
	ledgerVariable  = "LOCKS_EXAMPLE_LEDGER"
)

var errUsage = errors.New("wrong arguments")

type settings struct {
	store     string
	processes int
	workers   int
	tickets   int
	timeout   time.Duration
}

func parse(args []string, errs io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("stores", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&s.store, "store", "", "where the locks are: a URL of package open, or file:, sqlite: or redis: "+
		"for something temporary; mem: if not given, nor $"+storeVariable)
	flags.IntVar(&s.processes, "processes", 1, "how many processes do the work")
	flags.IntVar(&s.workers, "workers", 3, "how many workers there are in a process")
	flags.IntVar(&s.tickets, "tickets", 12, "how many tickets there are")
	flags.DurationVar(&s.timeout, "timeout", time.Minute, "for how long all may take")
	flags.Usage = func() {
		fmt.Fprintln(errs, "Usage: stores [flags]")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return s, err
	} else if err != nil {
		return s, errUsage
	}
	if s.store == "" {
		s.store = os.Getenv(storeVariable)
	}
	if s.store == "" {
		s.store = "mem:"
	}
	switch {
	case flags.NArg() > 0:
		return s, errors.New("there are arguments that are no flags; see -help")
	case s.processes < 1 || s.workers < 1 || s.tickets < 1:
		return s, errors.New("-processes, -workers and -tickets must be 1 at least")
	case s.timeout <= 0:
		return s, errors.New("-timeout must be more than 0")
	}
	return s, nil
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) (err error) {
	s, err := parse(args, errs)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("the time of -timeout %v is over", s.timeout))
	defer cancel()
	where, err := openStore(ctx, s.store)
	if err != nil {
		return err
	}
	// Locks are released even if ctx has ended.
	defer func() { err = errors.Join(err, where.Close(context.WithoutCancel(ctx))) }()

	w := &work{locks: where, tickets: s.tickets, workers: s.workers, out: &shared{to: out}}
	if w.process = os.Getenv(processVariable); w.process != "" {
		w.ledger.path = os.Getenv(ledgerVariable)
		if err := awaitOthers(ctx, in, out); err != nil {
			return err
		}
		return w.sell(ctx)
	}
	if s.processes > 1 && where.url == "" {
		return errors.New("-processes needs a store that processes share, such as file: and not mem:, " +
			"the memory of one of them")
	}
	dir, err := os.MkdirTemp("", "locks-example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w.ledger.path = filepath.Join(dir, "ledger")
	w.say("The locks are in %s", where)
	if s.processes > 1 {
		if err := w.startOthers(ctx, s, where.url, errs); err != nil {
			return err
		}
		return w.check()
	}
	for _, step := range []func() error{
		func() error { return w.sell(ctx) },
		w.check,
		func() error { return w.try(ctx) },
		func() error { return w.transfer(ctx) },
		func() error { return w.lose(ctx, where.Close) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ready is the line that a process prints when it has opened the store. It begins to work when its
// standard input ends, so that all processes begin together.
const ready = "ready"

func awaitOthers(ctx context.Context, in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, ready)
	begun := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(begun)
	}()
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startOthers runs the program several times. The processes sell the tickets together. It waits
// for all of them.
func (w *work) startOthers(ctx context.Context, s settings, url string, errs io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	errs = &shared{to: errs}
	var missing atomic.Int64
	missing.Store(int64(s.processes))
	begin := make(chan struct{}) // closed when the last process is ready
	return together(ctx, s.processes, func(ctx context.Context, i int) error {
		name := fmt.Sprint("process ", i)
		c := exec.CommandContext(ctx, self,
			"-workers", strconv.Itoa(s.workers), "-tickets", strconv.Itoa(s.tickets), "-timeout", s.timeout.String())
		c.Env = append(os.Environ(), storeVariable+"="+url, processVariable+"="+name,
			ledgerVariable+"="+w.ledger.path)
		c.Stderr = errs
		// An interrupted process releases its locks. It is killed only if that takes too long.
		c.Cancel = func() error {
			if c.Process.Signal(os.Interrupt) != nil {
				return c.Process.Kill()
			}
			return nil
		}
		c.WaitDelay = 10 * time.Second
		in, err := c.StdinPipe()
		if err != nil {
			return err
		}
		out, err := c.StdoutPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() != ready {
				w.say("%s", lines.Text())
				continue
			}
			if missing.Add(-1) == 0 {
				close(begin)
			}
			select {
			case <-begin:
			case <-ctx.Done():
			}
			in.Close()
		}
		if err := c.Wait(); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// shared is a Writer for several goroutines.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}
