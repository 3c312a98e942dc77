// Command growth measures what one process and one server of a store pay for 10, 1,000 and 100,000
// locks: held, waited for, and used once. It prints tables in Markdown.
//
//	go run ./distributed/bench/growth -url fake: -url mem:
//	go run ./distributed/bench/growth -url redis://127.0.0.1:6379 -n 10,1000,100000
//	go run ./distributed/bench/growth -url etcd://127.0.0.1:2379 -phases held,names
//
// A URL is of package open: mem, redis, postgres, mysql, etcd or zk. The server must be on this
// machine, without TLS. The store fake: is a map in this process, behind the engine that all stores
// share. All keys that the program makes begin with "growth".
//
// Bytes and messages are counted by a proxy in front of the server. A message is one write of the
// client: a request, or several in a pipeline. The client's memory is the heap after a collection,
// and the stacks. The server's memory is the share of its processes (Pss), on Linux. Times are of
// this machine at this moment: take them as orders of magnitude.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/jucgo/locks/distributed/etcdlock/etcdopen"
	_ "github.com/jucgo/locks/distributed/redislock/redisopen"
	_ "github.com/jucgo/locks/distributed/sqllock/mysqlopen"
	_ "github.com/jucgo/locks/distributed/sqllock/postgresopen"
	_ "github.com/jucgo/locks/distributed/zklock/zkopen"
)

// settings are the values of the flags.
type settings struct {
	urls    []string
	sizes   []int
	phases  []string
	ttl     time.Duration
	watched time.Duration
	workers int
}

// phases are the measurements of the program, each with a table of its own.
var phases = []string{"held", "waiters", "crowd", "names"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, s, os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func parse(args []string, help io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("growth", flag.ContinueOnError)
	fs.SetOutput(help)
	fs.Func("url", "a store to measure; may be repeated", func(url string) error {
		s.urls = append(s.urls, url)
		return nil
	})
	n := fs.String("n", "10,1000,100000", "how many locks")
	some := fs.String("phases", strings.Join(phases, ","), "what to measure")
	fs.DurationVar(&s.ttl, "ttl", 30*time.Second, "the lease of the holds")
	fs.DurationVar(&s.watched, "watched", 3*time.Second, "how long waiters are watched")
	fs.IntVar(&s.workers, "workers", 64, "how many goroutines acquire the locks")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	for text := range strings.SplitSeq(*n, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return s, fmt.Errorf("-n %q: want numbers from 1 on, with commas between them", *n)
		}
		s.sizes = append(s.sizes, size)
	}
	for phase := range strings.SplitSeq(*some, ",") {
		if !slices.Contains(phases, phase) {
			return s, fmt.Errorf("-phases %q: want some of %s", *some, strings.Join(phases, ","))
		}
		s.phases = append(s.phases, phase)
	}
	switch {
	case len(s.urls) == 0:
		return s, errors.New("-url: want a store, such as -url redis://127.0.0.1:6379")
	case s.ttl < time.Second:
		return s, fmt.Errorf("-ttl %v: want a second or more", s.ttl)
	case s.watched <= 0:
		return s, fmt.Errorf("-watched %v: want more than 0s", s.watched)
	case s.workers < 1:
		return s, fmt.Errorf("-workers %d: want 1 or more", s.workers)
	}
	return s, nil
}

// run measures all stores, and then prints a table for each phase.
func run(ctx context.Context, s settings, out, progress io.Writer) error {
	tables := make(map[string][][]string)
	for _, url := range s.urls {
		for _, n := range s.sizes {
			for _, phase := range s.phases {
				fmt.Fprintf(progress, "%s, %d %s\n", url, n, phase)
				row, err := measure(ctx, s, url, phase, n)
				if err != nil {
					return fmt.Errorf("%s, %d %s: %w", url, n, phase, err)
				}
				tables[phase] = append(tables[phase], row)
			}
		}
	}
	for _, phase := range s.phases {
		fmt.Fprintf(out, "%s\n\n", titles[phase])
		writeRow(out, columns[phase])
		writeRow(out, slices.Repeat([]string{"---"}, len(columns[phase])))
		for _, row := range tables[phase] {
			writeRow(out, row)
		}
		fmt.Fprintln(out)
	}
	return nil
}

func writeRow(out io.Writer, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

var titles = map[string]string{
	"held":    "One process holds n locks.",
	"waiters": "One process waits for n locks that another client holds.",
	"crowd":   "n goroutines of one process wait for one lock that another client holds.",
	"names":   "One process has locked and unlocked n names, each once.",
}

var columns = map[string][]string{
	"held": {
		"store", "n", "client, a hold", "goroutines", "server, a hold", "messages of an acquisition", "bytes",
		"a renewal of all: messages", "bytes", "time", "acquire all", "Inspect", "Names", "Close",
	},
	"waiters": {
		"store", "n", "client, a waiter", "goroutines", "server, a waiter", "messages a second", "bytes a second", "cancel all",
	},
	"crowd": {
		"store", "n", "client, a waiter", "goroutines", "server, a waiter", "messages a second", "bytes a second", "cancel all",
	},
	"names": {
		"store", "n", "client, a name", "goroutines", "server, a name", "messages of a pair", "bytes", "Names", "Close",
	},
}
