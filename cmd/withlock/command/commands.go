package command

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open"
	opener "github.com/jucgo/locks/distributed/open/driver"
	safe "github.com/jucgo/locks/internal/terminal"
)

// commands returns the definitions of the commands. The parser, the help, the manual and the
// completion are made of them.
func commands(stdout *output, stderr io.Writer) *cli.Command {
	said := language(safe.Chinese(os.Getenv))
	t := &tool{stdout, stderr, said}
	store := &cli.StringFlag{
		Name: "store", Sources: cli.EnvVars("WITHLOCK_STORE"), Usage: "`URL` of the store of the locks",
		DefaultText: "none",
	}
	name := &cli.StringFlag{Name: "name", Usage: "`NAME` of the lock"}
	permits := &cli.Int64Flag{
		Name: "permits", Usage: "let `N` commands of the name run at a time: a semaphore",
		DefaultText: "a lock",
	}
	held := []cli.Flag{
		store, name, permits,
		&cli.BoolFlag{Name: "keep-store", Usage: "leave the variable WITHLOCK_STORE to the command"},
		&timeFlag{
			Name: "ttl", Usage: "`TIME` that the lock outlasts a crash or an outage",
			DefaultText: "that of the store",
		},
		&cli.StringFlag{
			Name: "label", Usage: "`TEXT` that others see for this holder", DefaultText: "host and process id",
		},
		&cli.StringFlag{Name: "on-lost", Value: "term", Usage: "`WHAT` a loss does to the command: term, kill or none"},
		&timeFlag{
			Name: "grace", Value: 10 * time.Second,
			Usage: "`TIME` between SIGTERM and SIGKILL, at most a third of the ttl",
		},
	}
	jsonFlag := &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	first := 1
	root := &cli.Command{
		Name:        "withlock",
		Usage:       "run commands under a lock that several machines share",
		Description: about,
		Commands: []*cli.Command{
			{
				Name: "run", Usage: "run a command while the lock is held", ArgsUsage: "-- COMMAND [ARGUMENT...]",
				Description: "The command gets the variables LOCK_NAME and, if the lock has a fencing token, " +
					"LOCK_TOKEN. The exit code is that of the command. A loss ends the command and all that it " +
					"has started.",
				StopOnNthArg: &first, Action: t.run,
				Flags: append(held,
					&timeFlag{
						Name: "wait", Usage: "`TIME` to wait, from the start of withlock; 0 is -try",
						DefaultText: "no limit",
					},
					&cli.BoolFlag{Name: "try", Usage: "do not wait for another holder"}),
			},
			{
				Name: "lead", Usage: "keep a command running on one of several machines",
				ArgsUsage: "-- COMMAND [ARGUMENT...]",
				Description: "Each machine campaigns for the lock, and the leader runs the command. After a loss " +
					"it campaigns again. If the command fails, another machine can lead during the pause. " +
					"If the command succeeds, lead ends. It waits for a store that does not answer.",
				StopOnNthArg: &first, Action: t.lead,
				Flags: append(held,
					&timeFlag{
						Name: "pause", Value: 5 * time.Second, Usage: "`TIME` to stay out after the command failed",
					}),
			},
			{
				Name: "who", Usage: "show the holders and the waiters of a lock", ArgsUsage: "NAME",
				Action: t.who, Flags: []cli.Flag{store, jsonFlag, permits},
			},
			{
				Name: "ls", Usage: "list the locks of the store", ArgsUsage: "[PATTERN]",
				Description: "In a pattern, * stands for any text without a slash.",
				Action:      t.list, Flags: []cli.Flag{store, jsonFlag},
			},
			{
				Name: "force", Usage: "free a lock without its holder's consent", ArgsUsage: "NAME",
				Description: "The holder's work goes on until the holder learns of the loss.",
				Action:      t.force,
				Flags:       []cli.Flag{store, jsonFlag, &cli.BoolFlag{Name: "yes", Usage: "really free it"}},
			},
			{
				Name: "watch", Usage: "show the locks of the store until interrupted", ArgsUsage: "[PATTERN]",
				Description: "In a terminal, the table is redrawn. Elsewhere each change prints a table.",
				Action:      t.watch,
				Flags: []cli.Flag{store, jsonFlag,
					&timeFlag{
						Name: "every", Value: time.Second, Usage: "`TIME` between two looks at the store",
					}},
			},
			{
				Name: "completion", Usage: "print the completion of a shell: bash, zsh or fish", ArgsUsage: "SHELL",
				Action: t.completion,
			},
			{
				Name: "complete", Usage: "print candidates for the last of the words", ArgsUsage: "[WORD...]",
				Hidden: true, SkipFlagParsing: true, Action: t.complete,
			},
			{
				Name: "version", Usage: "print the version of withlock",
				Action: func(context.Context, *cli.Command) error {
					_, err := fmt.Fprintln(stdout, "withlock "+version())
					return err
				},
			},
			{
				Name: "man", Usage: "print the manual page",
				Action: func(_ context.Context, c *cli.Command) error {
					_, err := io.WriteString(stdout, manual(c.Root(), said))
					return err
				},
			},
		},
		Action: func(_ context.Context, c *cli.Command) error { return cli.ShowRootCommandHelp(c) },
		Writer: stdout, ErrWriter: stderr,
		HideHelpCommand: true, // help could be the name of a lock or of a command to run
		ExitErrHandler:  func(context.Context, *cli.Command, error) {},
	}
	said.translate(root)
	root.CustomRootCommandHelpTemplate = helpOf(root, said)
	for _, c := range append(root.Commands, root) {
		if c != root {
			c.CustomHelpTemplate = helpOfCommand(c, said)
			if !said { // helpOfFlags fills Chinese, and the manual has no lines
				c.Description = filled(c.Description, "", helpWidth-3)
			}
		}
		c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
			return fail(exitUsage, "%w: see %s -h", err, c.FullName())
		}
	}
	return root
}

// module is the module of this package, which a smaller withlock requires.
const module = "github.com/jucgo/locks/cmd/withlock"

// version returns the versions of this module and of Go, and the platform.
func version() string {
	text := "(unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				text = m.Version
			}
		}
	}
	return fmt.Sprintf("%s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// tool has the actions.
type tool struct {
	stdout *output
	stderr io.Writer
	said   language
}

// say prints a line about what happens.
func (t *tool) say(format string, args ...any) {
	fmt.Fprintln(t.stderr, "withlock: "+oneLine(fmt.Errorf(format, args...)))
}

// open opens the store of the command line.
func (t *tool) open(ctx context.Context, c *cli.Command, opts ...open.Option) (*open.Client, error) {
	url := c.String("store")
	if url == "" {
		return nil, fail(exitUsage, "no store: give -store URL, such as redis://localhost:6379/0, "+
			"or set WITHLOCK_STORE")
	}
	if scheme, _, _ := strings.Cut(url, ":"); strings.EqualFold(scheme, "mem") {
		return nil, fail(exitUsage, "the locks of mem: are in the memory of one process: use file: instead")
	}
	store, err := open.URL(ctx, url, opts...)
	return store, storeFailure(ctx, err)
}

// closing is how long the end waits for the store.
const closing = 5 * time.Second

func shut(store *open.Client, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return store.Close(ctx)
}

// storeFailure returns err with the exit code of an error of the store.
func storeFailure(ctx context.Context, err error) error {
	var f failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	case errors.As(context.Cause(ctx), &f): // a signal or a time limit ended ctx
		return f
	case errors.Is(err, open.ErrURL), errors.Is(err, path.ErrBadPattern), errors.Is(err, errors.ErrUnsupported):
		return failure{exitUsage, err}
	case unanswered(err):
		return failure{exitUnreachable, err}
	case errors.Is(err, fs.ErrInvalid): // no lock of the store can have the name
		return failure{exitUsage, err}
	case errors.Is(err, locks.ErrLost):
		return failure{exitLost, err}
	}
	return failure{exitStore, err}
}

// unanswered reports whether err says that the store gave no answer: it is out of reach, hangs, or
// has ended the connection. The end of a time limit is a timeout, too.
func unanswered(err error) bool {
	for _, target := range []error{
		open.ErrUnreachable, lease.ErrUnavailable, io.EOF, io.ErrUnexpectedEOF,
		driver.ErrBadConn,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	var connection *net.OpError
	var timeout net.Error // also an error of a system call, without Timeout
	return opener.NoAnswer(err) || errors.As(err, &connection) || errors.As(err, &timeout) && timeout.Timeout()
}

// oneArgument returns the only argument of c.
func oneArgument(c *cli.Command) (string, error) {
	if c.Args().Len() != 1 || c.Args().First() == "" {
		return "", fail(exitUsage, "need one name: %s NAME", c.FullName())
	}
	return c.Args().First(), nil
}
