// Package command is the program withlock as a function. A program that imports the openers of one
// or some stores is a withlock for these stores, without the clients of the others:
//
//	package main
//
//	import (
//		"github.com/jucgo/locks/cmd/withlock/command"
//		_ "github.com/jucgo/locks/distributed/redislock/redisopen"
//	)
//
//	func main() { command.Main() }
//
// Its help shows the URLs of these stores only.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/jucgo/locks/distributed/open/driver"
	safe "github.com/jucgo/locks/internal/terminal"
)

// The exit codes besides the command's own. They begin where the codes of sysexits.h do.
const (
	exitFree        = 1   // who and force: the lock is not held
	exitUsage       = 64  // wrong arguments, or the store cannot do that
	exitUnreachable = 69  // the store does not answer
	exitStore       = 74  // the store answers with an error, or the output cannot be written
	exitNotAcquired = 75  // another owner holds the lock
	exitLost        = 79  // the lock was lost, or its release was not confirmed
	exitNotRunnable = 126 // the command cannot be executed
	exitNotFound    = 127 // the command does not exist
	exitSignal      = 128 // and the number of the signal that ended the command
)

// failure is an error with an exit code. Its err is nil if there is nothing to say.
type failure struct {
	code int
	err  error
}

func (f failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f failure) Unwrap() error { return f.err }

func fail(code int, format string, args ...any) error {
	return failure{code, fmt.Errorf(format, args...)}
}

// Main runs the command line of the process, and ends the process with the exit code of withlock.
// The process may also be one that withlock has started to guard its command. So main calls Main
// before it does anything else.
func Main() {
	guardIfAsked()
	driver.Silence() // a client of a store would add lines to the error
	os.Exit(execute(os.Args, os.Stdout, os.Stderr))
}

// output is standard output, and notes an error of it.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// arranged returns args in the order that the parser knows, or an error if the first word is not a
// command. The parser would take the flags behind that word for flags of root.
func arranged(root *cli.Command, args []string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	switch first := args[1]; {
	case first == "--version" || first == "-version" || first == "-V":
		return []string{args[0], "version"}, nil
	case first == "help":
		return append(append(args[:1:1], args[2:]...), "-h"), nil
	case first == "-h" || first == "-help" || first == "--help" || root.Command(first) != nil:
		return args, nil
	case strings.HasPrefix(first, "-"): // its value may have a password
		return nil, fail(exitUsage, "the flags follow the command, as in withlock run -name NAME: see withlock -h")
	case strings.Contains(first, "://"): // it may have a password
		return nil, fail(exitUsage, "a URL is no command: give -store URL")
	default:
		return nil, fail(exitUsage, "%q is no command: see withlock -h", first)
	}
}

// execute runs the command line args, and returns the exit code. An error is one line on stderr.
func execute(args []string, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	root := commands(out, stderr)
	args, err := arranged(root, args)
	if err == nil {
		err = root.Run(context.Background(), args)
	}
	if out.err != nil {
		err = fail(exitStore, "standard output: %w", out.err)
	}
	if err == nil {
		return 0
	}
	var f failure
	if !errors.As(err, &f) {
		f = failure{exitUsage, err} // of the command line
	}
	if text := oneLine(f); text != "" {
		fmt.Fprintln(stderr, "withlock: "+text)
	}
	return f.code
}

// oneLine returns the text of err for a terminal.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSuffix(strings.Join(strings.Fields(line), " "), ":"); line != "" {
			lines = append(lines, line)
		}
	}
	return safe.Line(strings.ReplaceAll(strings.Join(lines, "; "), ": ;", ";"))
}
