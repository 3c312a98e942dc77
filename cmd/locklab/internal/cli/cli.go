// Package cli is the command line of the lab's commands.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/report"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as from a shell, for a command that SIGINT ended
)

// Main is the command that shows a course.
func Main(course *lab.Course) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, course, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// usageError says that the command line is wrong.
type usageError struct{ error }

// settings are what the command line says.
type settings struct {
	command    string // run, list or docs
	scenarios  []*lab.Scenario
	named      bool // the scenarios were given by name
	dir        string
	html, json string
	options    lab.Options
}

// run is the command, and returns its exit code.
func run(ctx context.Context, course *lab.Course, args []string, stdout, stderr io.Writer) int {
	err := command(ctx, course, args, stdout, stderr)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "%s: %v\nRun with -h for help.\n", course.Name, err)
		return exitUsage
	case ctx.Err() != nil:
		fmt.Fprintf(stderr, "%s: interrupted; nothing was written\n", course.Name)
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "%s: %v\n", course.Name, err)
	return exitFailed
}

func command(ctx context.Context, course *lab.Course, args []string, stdout, stderr io.Writer) error {
	s, err := parse(course, args, stdout)
	if err != nil {
		return err
	}
	switch s.command {
	case "list":
		return list(course, stdout)
	case "docs":
		n, err := report.WriteDocs(course, s.dir)
		if err != nil {
			return fmt.Errorf("writing the chapters: %w", err)
		}
		_, err = fmt.Fprintf(stdout, "%d chapters in %s\n", n, s.dir)
		return err
	}
	return experiment(ctx, course, s, stdout, stderr)
}

const help = `Usage: %[1]s [flags]                     run all scenarios
       %[1]s [flags] run NAME...         run some
       %[1]s list                        list them
       %[1]s docs DIR                    write the chapters of the documentation

Runs scenarios on real locks, checks what they teach, and leaves a page with pictures.

`

// parse reads the command line. Flags may be anywhere in it. Help goes to stdout.
func parse(course *lab.Course, args []string, stdout io.Writer) (s settings, err error) {
	fs := flag.NewFlagSet(course.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // The caller reports errors, and in one line.
	fs.Usage = func() {}     // Called for errors too.
	fs.StringVar(&s.html, "o", course.Page, "write the page to `FILE`")
	fs.StringVar(&s.json, "json", "", "write the results as JSON to `FILE`, to standard output if it is -")
	fs.Uint64Var(&s.options.Seed, "seed", 1, "what is left to chance follows from it; what the scheduler "+
		"does, does not")
	fs.BoolVar(&s.options.Quick, "quick", false, "take a few seconds only, for rough figures")
	var words []string
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				fmt.Fprintf(stdout, help, course.Name)
				fs.SetOutput(stdout)
				fs.PrintDefaults()
				return s, err
			}
			return s, usageError{err}
		}
		if fs.NArg() == 0 {
			break
		}
		words = append(words, fs.Arg(0))
		rest = fs.Args()[1:]
	}
	if s.html == "" {
		return s, usageError{errors.New("-o needs the name of a file")}
	}
	s.command = "run"
	if len(words) == 0 {
		s.scenarios = course.All()
		return s, nil
	}
	s.command, words = words[0], words[1:]
	switch s.command {
	case "list":
		if len(words) > 0 {
			return s, usageError{fmt.Errorf("list takes no arguments, and was given %q", words[0])}
		}
	case "docs":
		if len(words) != 1 {
			return s, usageError{errors.New("docs needs one directory")}
		}
		s.dir = words[0]
	case "run":
		s.named = len(words) > 0
		if !s.named {
			s.scenarios = course.All()
		}
		given := map[string]bool{}
		for _, name := range words {
			scenario, ok := course.Find(name)
			if !ok {
				return s, usageError{fmt.Errorf("no scenario %q; there are %s", name, names(course))}
			}
			if !given[name] {
				s.scenarios = append(s.scenarios, scenario)
			}
			given[name] = true
		}
	default:
		hint := ""
		if _, ok := course.Find(s.command); ok {
			hint = fmt.Sprintf("; did you mean: run %s", s.command)
		}
		return s, usageError{fmt.Errorf("no command %q%s", s.command, hint)}
	}
	return s, nil
}

func names(course *lab.Course) string {
	var all []string
	for _, s := range course.All() {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

func list(course *lab.Course, w io.Writer) error {
	var b strings.Builder
	topic := ""
	for _, s := range course.All() {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(&b, "%s\n", topic)
		}
		fmt.Fprintf(&b, "  %-15s %s\n", s.Name, s.Question)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// experiment runs the scenarios, and writes what they found.
func experiment(ctx context.Context, course *lab.Course, s settings, stdout, stderr io.Writer) (err error) {
	// Whether the results can be written is found out before a minute is spent on them.
	page, err := create(s.html)
	if err != nil {
		return fmt.Errorf("the page cannot be written: %w", err)
	}
	defer page.discard()
	var data *output
	if s.json != "" && s.json != "-" {
		if data, err = create(s.json); err != nil {
			return fmt.Errorf("the JSON report cannot be written: %w", err)
		}
		defer data.discard()
	}
	summary := stdout
	if s.json == "-" {
		summary = stderr // Standard output is for the data alone.
	}

	s.options.Servers = course.Servers
	r := report.New(course, s.options)
	fmt.Fprintf(summary, "%s: %d scenarios on %s %s/%s, GOMAXPROCS %d, seed %d\n\n", course.Name,
		len(s.scenarios), r.Go, r.OS, r.Arch, r.GOMAXPROCS, r.Seed)
	if s.named {
		fmt.Fprintf(summary, "%s\n", report.Legend)
	}
	for i, scenario := range s.scenarios {
		clear := progress(stderr, fmt.Sprintf("[%d/%d] %s ...", i+1, len(s.scenarios), scenario.Title))
		result := lab.Run(ctx, scenario, s.options)
		clear()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Add(result)
		if err := report.Text(summary, result, s.named); err != nil {
			return fmt.Errorf("the summary: %w", err)
		}
	}

	if err := page.write(r.HTML); err != nil {
		return err
	}
	if data != nil {
		if err := data.write(r.JSON); err != nil {
			return err
		}
	}
	if s.json == "-" {
		if err := r.JSON(stdout); err != nil {
			return err
		}
	}
	busy := ""
	if n := r.Busy(); n > 0 {
		busy = fmt.Sprintf(" The machine was busy during %d of them: their times are not to be trusted.", n)
	}
	_, err = fmt.Fprintf(summary, "\n%d of %d scenarios observed as taught, in %s.%s The page: %s\n",
		r.Held(), len(r.Scenarios), lab.Duration(r.Elapsed.Round(10*time.Millisecond)), busy, page.name)
	if err != nil {
		return fmt.Errorf("the summary: %w", err)
	}
	if !r.OK {
		return fmt.Errorf("%d of %d scenarios were not observed as taught", len(r.Scenarios)-r.Held(),
			len(r.Scenarios))
	}
	return nil
}

// progress shows what is going on if the output is a terminal.
func progress(w io.Writer, text string) (clear func()) {
	f, ok := w.(*os.File)
	if ok {
		info, err := f.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		fmt.Fprintln(w, text)
		return func() {}
	}
	fmt.Fprintf(w, "\r%s", text)
	return func() { fmt.Fprintf(w, "\r%s\r", strings.Repeat(" ", len(text))) }
}
