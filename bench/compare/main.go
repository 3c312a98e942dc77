// Command compare compares the locks of this module with the locks that programs would use instead:
// of the standard library, golang.org/x/sync and other modules. With -other, it measures locks of
// other languages as well.
//
//	go run ./bench/compare
//	go run ./bench/compare -quick
//	go run ./bench/compare -list
//	go run ./bench/compare -run 'uncontended|re-entry' -page compare.html
//	go run ./bench/compare -growth -page growth.html
//	go run ./bench/compare -many
//	go run ./bench/compare -other
//
// Each workload goes round its subjects several times, and the median of the rounds counts. The
// first table has the subjects with a target, worst first. The second has all figures with their
// spread. It states when other processes took so much processor time that the figures are not to
// be trusted.
//
// With -many, it measures from one processor up to all, beside what docs/guides/processors.md
// predicts, and says where both part and which statements of that page hold. It writes the page
// many.html unless -page names another file. The project would like to have that page from machines
// with 16 processors and more.
//
// With -other, programs of their own measure the JDK by JMH, and parking_lot, after those rounds.
// The JDK needs java and mvn, and parking_lot needs cargo. A program that is not installed is
// left out. Both fetch packages. They are built in a temporary folder, which is removed in the
// end. Their subjects wait with threads of the system, not with goroutines.
//
// The tables go to standard output, progress to standard error. It exits with 2 if the flags are
// wrong, with 130 if it was interrupted, and with 1 if anything else failed. A missed target is
// not a failure.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/jucgo/locks/internal/bench"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as from a shell, for a command that SIGINT ended
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the values of the flags.
type settings struct {
	run        *regexp.Regexp
	rounds     int
	slot       time.Duration
	list, json bool
	growth     bool
	many       bool
	other      bool
	page       string
}

// run is the command, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "compare: %v\nRun with -h for help.\n", err)
		return exitUsage
	}
	all := workloads()
	switch {
	case s.growth:
		all = bench.Growth()
	case s.many:
		all = bench.Many(runtime.NumCPU())
	}
	var others []program
	if s.other {
		others = installed(stderr)
		addSubjects(all, others)
	}
	chosen := choose(all, s.run)
	if len(chosen) == 0 {
		fmt.Fprintf(stderr, "compare: -run %v: no workload has a subject of that name\n"+
			"Run with -list for all.\n", s.run)
		return exitUsage
	}
	if s.list {
		for _, w := range chosen {
			for _, subject := range w.Subjects {
				fmt.Fprintf(stdout, "%s/%s\n", w.Name, subject.Name)
			}
		}
		return exitOK
	}
	report, err := measureWith(ctx, chosenOf(others, chosen), chosen, s, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "compare: interrupted; no figures from half a measurement")
		return exitInterrupted
	case err == nil && s.page != "":
		err = writePage(s.page, report)
	}
	if err == nil {
		if s.json {
			e := json.NewEncoder(stdout)
			e.SetIndent("", "  ")
			err = e.Encode(report)
		} else {
			err = writeTables(stdout, report)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "compare: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// parse reads the flags. Help goes to stdout.
func parse(args []string, stdout io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // the caller reports errors, in one line
	fs.Usage = func() {}
	pattern := fs.String("run", "", "measure only WORKLOAD/SUBJECT that match this regular expression, and their peers")
	quick := fs.Bool("quick", false, "take less than a minute, for rough figures")
	fs.IntVar(&s.rounds, "rounds", 0, "how often to go round the subjects; 0 means 9, or 3 with -quick")
	fs.DurationVar(&s.slot, "slot", 0, "how long each subject runs in each round; 0 means 50ms, or 2ms with -quick")
	fs.BoolVar(&s.list, "list", false, "list what there is to measure, and measure nothing")
	fs.BoolVar(&s.json, "json", false, "print all figures as JSON instead of the tables")
	fs.BoolVar(&s.growth, "growth", false, "measure how costs grow with goroutines and waiters")
	fs.BoolVar(&s.many, "many", false, "measure from one processor up to all, beside the prediction of\n"+
		"docs/guides/processors.md; the page is many.html unless -page names another one")
	fs.BoolVar(&s.other, "other", false, "also measure the JDK, if java and mvn are installed, and parking_lot,\n"+
		"if cargo is; both fetch packages, and take a minute or two longer")
	fs.StringVar(&s.page, "page", "", "write a page with charts to this file as well")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, "Usage: compare [flags]\n\n"+
				"Compares the locks of this module with those that programs would use instead.\n\n")
			fs.SetOutput(stdout)
			fs.PrintDefaults()
		}
		return s, err
	}
	defaultTo := func(rounds int, slot time.Duration) {
		if s.rounds == 0 {
			s.rounds = rounds
		}
		if s.slot == 0 {
			s.slot = slot
		}
	}
	if *quick {
		defaultTo(3, 2*time.Millisecond)
	}
	defaultTo(9, 50*time.Millisecond)
	if s.many && s.page == "" && !s.list {
		s.page = "many.html"
	}
	s.run, err = regexp.Compile(*pattern)
	switch {
	case err != nil:
		return s, fmt.Errorf("-run: %w", err)
	case fs.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q: all settings are flags", fs.Arg(0))
	case s.rounds < 1 || s.rounds > 1000:
		return s, fmt.Errorf("-rounds %d: want 1 to 1000", s.rounds)
	case s.growth && s.many:
		return s, errors.New("-growth and -many: want one of them")
	case (s.growth || s.many) && s.other:
		return s, errors.New("-other: with -growth and -many, only locks of Go are measured")
	case s.slot < 0 || s.slot > time.Minute:
		return s, fmt.Errorf("-slot %v: want 0s to 1m", s.slot)
	}
	return s, nil
}
