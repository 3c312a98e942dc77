// Command simulate predicts how the locks behave on machines with more processors than this
// machine.
//
//	go run ./bench/simulate
//
// Package internal/bench/model says which effects it models, and which it does not. The costs of
// the single steps are flags, measured on a machine at hand.
//
// The table goes to standard output. The command exits with 2 if the flags are wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jucgo/locks/internal/bench/model"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// settings are the values of the flags.
type settings struct {
	model.Settings
	procs []int
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "simulate: %v\nRun with -h for help.\n", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d goroutines a processor, %g ns inside, %g ns outside. For each lock: ns per "+
		"acquisition, all goroutines together, and the p99 wait: 99 %% of all time waiting is in waits of at "+
		"most this length.\n\n", s.PerProcessor, s.Inside, s.Outside)
	fmt.Fprintf(stdout, "%10s", "processors")
	for _, k := range model.Kinds {
		fmt.Fprintf(stdout, "%26s", k.Name)
	}
	fmt.Fprintln(stdout)
	for _, procs := range s.procs {
		fmt.Fprintf(stdout, "%10d", procs)
		for _, k := range model.Kinds {
			r := model.Simulate(s.Settings, procs, k)
			fmt.Fprintf(stdout, "%12.1f %13s", r.PerAcquisition, duration(r.P99))
		}
		fmt.Fprintln(stdout)
	}
	return 0
}

func parse(args []string, output io.Writer) (s settings, err error) {
	s.Settings = model.Defaults()
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	procs := f.String("procs", "1,2,4,8,16,32,64", "numbers of processors")
	f.IntVar(&s.PerProcessor, "per", s.PerProcessor, "goroutines per processor")
	f.Float64Var(&s.Inside, "inside", s.Inside, "ns of work while the lock is held")
	f.Float64Var(&s.Outside, "outside", s.Outside, "ns of work between a release and the next acquisition")
	f.Float64Var(&s.Span, "span", s.Span, "simulated ns")
	f.Float64Var(&s.Atomic, "atomic", s.Atomic, "ns of an atomic operation on a line that the processor has")
	f.Float64Var(&s.Transfer, "transfer", s.Transfer, "ns until a line has come from another processor")
	f.Float64Var(&s.Wake, "wake", s.Wake, "ns that it takes to make a goroutine runnable")
	f.Float64Var(&s.Turn, "turn", s.Turn, "ns from the park of a goroutine to the start of the next")
	f.Float64Var(&s.Rise, "rise", s.Rise, "ns until an idle processor takes what another one was to run next")
	f.Float64Var(&s.Spin, "spin", s.Spin, "ns for which a goroutine spins before it parks, if its lock does so")
	f.Float64Var(&s.Slice, "slice", s.Slice, "ns of a goroutine's turn while others want the processor")
	f.Float64Var(&s.Stop, "stop", s.Stop, "ns for which the system takes a processor for itself, on average")
	f.Float64Var(&s.Every, "every", s.Every, "ns of computing between two such stops, on average; 0 for none")
	f.Float64Var(&s.Jitter, "jitter", s.Jitter, "by what share times vary at random, from 0 to 1")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(output, "Predicts how locks behave with more processors. Flags:")
			f.SetOutput(output)
			f.PrintDefaults()
		}
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("there are no arguments: %q", f.Arg(0))
	}
	for _, n := range strings.Split(*procs, ",") {
		p, err := strconv.Atoi(n)
		if err != nil || p < 1 || p > 1024 {
			return s, fmt.Errorf("-procs %q: want numbers from 1 to 1024, separated by commas", *procs)
		}
		s.procs = append(s.procs, p)
	}
	if s.PerProcessor < 1 || s.PerProcessor > 1024 {
		return s, fmt.Errorf("-per %d: want 1 to 1024", s.PerProcessor)
	}
	f.VisitAll(func(each *flag.Flag) {
		if v, is := each.Value.(flag.Getter).Get().(float64); is && !(v >= 0 && v <= 1e12) && err == nil {
			err = fmt.Errorf("-%s %v: want 0 to 1e12", each.Name, v)
		}
	})
	if err == nil && s.Jitter > 1 {
		err = fmt.Errorf("-jitter %g: want 0 to 1", s.Jitter)
	}
	if err == nil && s.Atomic <= 0 {
		err = fmt.Errorf("-atomic %g: want more than 0", s.Atomic)
	}
	return s, err
}

// duration formats a number of nanoseconds.
func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f us", ns/1e3)
	}
	return fmt.Sprintf("%.1f ms", ns/1e6)
}
