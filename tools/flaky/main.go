// Flaky runs the tests of a package many times on a busy machine, and prints how often each test
// failed and how long it took. `.ci/flaky` starts it.
//
//	.ci/flaky PACKAGE [-run REGEXP] [-n RUNS]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jucgo/locks/tools/internal/workspace"
)

const usage = `usage: flaky PACKAGE [flags]

Flaky compiles the tests of one package with the race detector, and runs them RUNS times: with one, two and
eight processors in turn, and beside eight processes that compute for ever. A PACKAGE is a folder or an import
path of any module of this repository.

`

func main() {
	if os.Getenv(loopVariable) != "" {
		loop()
	}
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		if errors.Is(err, errUsage) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New("see flaky -h")

func command(args []string) error {
	var o options
	flags := flag.NewFlagSet("flaky", flag.ContinueOnError)
	flags.StringVar(&o.run, "run", "", "run the tests that match, as go test -run does")
	flags.StringVar(&o.skip, "skip", "", "leave out the tests that match, as go test -skip does")
	flags.IntVar(&o.runs, "n", 200, "how often to run them")
	flags.IntVar(&o.beside, "p", 1, "how many runs are beside each other")
	flags.IntVar(&o.loops, "loops", 8, "how many processes compute for ever beside them")
	flags.StringVar(&o.tags, "tags", "", "build tags")
	flags.BoolVar(&o.subtests, "v", false, "print subtests too")
	flags.DurationVar(&o.timeout, "timeout", 20*time.Minute, "how long one run may take before it counts as hung")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	// The package stands before the flags or after them.
	var packages []string
	for len(args) > 0 {
		if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil
		} else if err != nil {
			return errUsage
		}
		if args = flags.Args(); len(args) > 0 {
			packages, args = append(packages, args[0]), args[1:]
		}
	}
	if len(packages) != 1 || o.runs < 1 || o.beside < 1 {
		return fmt.Errorf("%w: it wants one package and positive numbers", errUsage)
	}
	folder, err := find(packages[0])
	if err != nil {
		return err
	}
	o.folder = folder
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := o.repeat(ctx, os.Stdout)
	if err != nil {
		return err
	}
	if failed > 0 {
		os.Exit(1)
	}
	return nil
}

// find returns the folder of a package: a path from here or from the root of the repository, or an
// import path.
func find(name string) (string, error) {
	if folder, err := filepath.Abs(name); err == nil && isFolder(folder) {
		return folder, nil
	}
	w, err := workspace.Open(".")
	if err != nil {
		return "", err
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, workspace.Root), "/")
	if folder := filepath.Join(w.Folder, filepath.FromSlash(name)); isFolder(folder) {
		return folder, nil
	}
	return "", fmt.Errorf("%s is no package of this repository", name)
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
