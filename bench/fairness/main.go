// Command fairness measures on this machine the price and the gain of admitting goroutines to a
// lock in order of arrival.
//
//	go run ./bench/fairness
//
// It takes about half a minute. The table goes to standard output, progress to standard error. It
// exits with 2 if the flags are wrong, with 130 if it was interrupted, and with 1 if a lock failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the values of the flags.
type settings struct {
	total           time.Duration
	rounds          int
	goroutines      int
	inside, outside time.Duration
}

// run is the command, and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "fairness: %v\nRun with -h for help.\n", err)
		return exitUsage
	}
	rows, err := measure(ctx, s, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "fairness: interrupted; no figures from half a measurement")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "fairness: %v\n", err)
		return exitFailed
	}
	if err := write(stdout, s, rows); err != nil {
		fmt.Fprintf(stderr, "fairness: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// parse reads the flags. Help goes to stdout.
func parse(args []string, stdout io.Writer) (settings, error) {
	fs := flag.NewFlagSet("fairness", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // The caller reports errors, and in one line.
	fs.Usage = func() {}     // Called for errors too.
	help := func() {
		fmt.Fprint(stdout, `Usage: fairness [flags]

Compares locks on this machine: what an acquisition costs, alone and with many
goroutines after it, how long they wait, and how evenly they get the lock.

`)
		fs.SetOutput(stdout)
		fs.PrintDefaults()
	}
	seconds := fs.Float64("seconds", 24, "how long to measure, all in all")
	quick := fs.Bool("quick", false, "take a few seconds only, for rough figures")
	goroutines := fs.Int("goroutines", 64, "how many goroutines contend for the lock")
	inside := fs.Duration("inside", 300*time.Nanosecond, "how long each works with the lock")
	outside := fs.Duration("outside", 300*time.Nanosecond, "how long each works before it wants the lock again")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help()
		}
		return settings{}, err
	}

	s := settings{rounds: 6, goroutines: *goroutines, inside: *inside, outside: *outside}
	if *quick {
		s.rounds = 2
		given := false
		fs.Visit(func(f *flag.Flag) { given = given || f.Name == "seconds" })
		if !given {
			*seconds = 3
		}
	}
	switch {
	case fs.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q: all settings are flags", fs.Arg(0))
	case !(*seconds > 0 && *seconds <= 3600): // NaN is neither.
		return s, fmt.Errorf("-seconds %v: want more than 0 and at most 3600", *seconds)
	case s.goroutines < 2 || s.goroutines > 100_000:
		return s, fmt.Errorf("-goroutines %d: want 2 to 100000", s.goroutines)
	case s.inside < 0 || s.inside > time.Second:
		return s, fmt.Errorf("-inside %v: want 0s to 1s", s.inside)
	case s.outside < 0 || s.outside > time.Second:
		return s, fmt.Errorf("-outside %v: want 0s to 1s", s.outside)
	}
	s.total = time.Duration(*seconds * float64(time.Second))
	return s, nil
}

// row has the figures of one lock.
type row struct {
	lock bench.Lock
	// One of each for every round.
	alone, contended, waiting, jain []float64
	// Of all rounds together.
	waits  bench.Histogram
	streak int
}

// measure measures all locks. It goes round them several times, for a short
// while each, so that a machine which gets slower or busier meanwhile does so
// for all of them.
func measure(ctx context.Context, s settings, progress io.Writer) ([]row, error) {
	locks := bench.Locks()
	rows := make([]row, len(locks))
	slot := s.total / time.Duration(s.rounds*len(locks))
	clear := func() { fmt.Fprintf(progress, "\r%-60s\r", "") }
	for round := range s.rounds {
		for i := range locks {
			if round%2 == 1 {
				// Backwards, as no lock is to come after the same one each time.
				i = len(locks) - 1 - i
			}
			fmt.Fprintf(progress, "\r%-60s", fmt.Sprintf("round %d of %d: %s", round+1, s.rounds, locks[i].Name))
			r := &rows[i]
			r.lock = locks[i]
			r.alone = append(r.alone, alone(ctx, r.lock, slot/10))
			res, err := bench.Contend(ctx, r.lock.New(), bench.Contest{
				Goroutines: s.goroutines,
				For:        slot - slot/10,
				Inside:     s.inside,
				Outside:    s.outside,
				Sample:     1,
				Streaks:    true,
			})
			if err != nil {
				clear()
				return nil, fmt.Errorf("%s: %w", r.lock.Name, err)
			}
			r.contended = append(r.contended, res.PerOp())
			r.waiting = append(r.waiting, res.Waiting)
			r.jain = append(r.jain, res.Jain)
			r.waits.Merge(&res.Waits)
			r.streak = max(r.streak, res.Streak)
		}
	}
	clear()
	return rows, nil
}

// alone returns the nanoseconds that a lock and an unlock take without
// contention, measured for about d. The best of several parts counts, as
// nothing that disturbs them makes them faster.
func alone(ctx context.Context, l bench.Lock, d time.Duration) float64 {
	const part = 20_000
	pairs := l.Pairs()
	best := time.Duration(1<<63 - 1)
	for start := time.Now(); ; {
		before := time.Now()
		pairs(part)
		best = min(best, time.Since(before))
		if time.Since(start) >= d || ctx.Err() != nil {
			return float64(best) / part
		}
	}
}

func platform() string {
	return fmt.Sprintf("%s %s/%s, GOMAXPROCS %d",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
}
