// Command ci runs the checks of this repository. Scripts and people call it by .ci/run:
//
//	.ci/run                  the gate: the checks that a change can break, before each change lands
//	.ci/run full             everything, each night
//	.ci/run NAME...          steps or parts by name, such as lint, vet or distributed/redislock
//	.ci/run full NAME...     the same with all of their tests
//	.ci/run list             the steps, their parts, and the checks of each step
//
// Steps that mostly wait for servers run beside steps that mostly compile. A step prints its output
// when it has ended. At the end a table has the time of each step, the slowest first.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ci:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := newCI(".")
	if err != nil {
		return err
	}
	if len(args) > 0 && args[0] == "full" {
		c.full, args = true, args[1:]
	}
	if len(args) == 1 && args[0] == "list" {
		return list(c.steps())
	}
	chosen, err := choose(c.steps(), c.full, args)
	if err != nil {
		return err
	}
	return c.run(ctx, chosen)
}

// choose returns the steps that args name, in their order. A name names a step or a part. Without
// names these are all steps of the run. A part has its steps that belong to the run. A named step
// belongs to each run. The steps that prepare a machine belong to all runs.
func choose(all []step, full bool, args []string) ([]step, error) {
	known := map[string]bool{}
	for _, s := range all {
		known[s.name], known[s.part] = true, true
	}
	for _, name := range args {
		if !known[name] {
			return nil, fmt.Errorf("%q is no step and no part; .ci/run list shows them", name)
		}
	}
	var chosen []step
	var any bool
	for _, s := range all {
		belongs := s.gate || full
		named := slices.Contains(args, s.name) || slices.Contains(args, s.part) && belongs
		any = any || named
		if len(args) == 0 && belongs || named || s.part == preparation {
			chosen = append(chosen, s)
		}
	}
	if len(args) > 0 && !any {
		return nil, errors.New("the full run alone has steps of this part: .ci/run full " + strings.Join(args, " "))
	}
	return chosen, nil
}

func list(steps []step) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		where := "full"
		if s.gate {
			where = "gate"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.part, s.name, where, s.what)
	}
	return w.Flush()
}
