package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/open"
)

// job is the command to run, and the lock under which it runs.
type job struct {
	*tool
	name   string
	argv   []string
	file   string // argv[0], found in PATH
	onLost string
	grace  time.Duration
	lock   locks.TryLocker
	sigs   *signals
}

// job reads the flags that run and lead share, and opens the store. The caller calls end.
func (t *tool) job(ctx context.Context, c *cli.Command) (j *job, end func() error, err error) {
	j = &job{
		tool: t, name: c.String("name"), argv: c.Args().Slice(),
		onLost: c.String("on-lost"), grace: c.Duration("grace"),
	}
	ttl := c.Duration("ttl")
	switch {
	case j.name == "":
		return nil, nil, fail(exitUsage, "no lock: give -name NAME")
	case len(j.argv) == 0:
		return nil, nil, fail(exitUsage, "no command: %s ... -- COMMAND", c.FullName())
	case j.onLost != "term" && j.onLost != "kill" && j.onLost != "none":
		return nil, nil, fail(exitUsage, "-on-lost %q: need term, kill or none", j.onLost)
	case j.grace < 0 || ttl < 0 || c.IsSet("ttl") && ttl == 0 || c.Duration("wait") < 0 || c.Duration("pause") < 0:
		return nil, nil, fail(exitUsage, "a time must not be negative, and a ttl must be positive")
	}
	if j.file, err = exec.LookPath(j.argv[0]); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, fail(exitNotRunnable, "%s: permission denied", j.argv[0])
		}
		return nil, nil, fail(exitNotFound, "%s: command not found", j.argv[0])
	}
	var opts []open.Option
	if ttl > 0 {
		opts = append(opts, open.WithTTL(ttl))
	}
	if label := c.String("label"); label != "" {
		opts = append(opts, open.WithLabel(label))
	}
	store, err := t.open(ctx, c, opts...)
	if err != nil {
		return nil, nil, err
	}
	j.lock = store.Locker(j.name)
	return j, func() error { return storeFailure(context.Background(), shut(store)) }, nil
}

// run runs the command once.
func (t *tool) run(ctx context.Context, c *cli.Command) (err error) {
	if c.Bool("try") && c.IsSet("wait") {
		return fail(exitUsage, "-try does not wait: give -try or -wait")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sigs := watchSignals(cancel, false)
	defer sigs.stop()
	j, end, err := t.job(ctx, c)
	if err != nil {
		return err
	}
	j.sigs = sigs
	code := 0
	work := func(ctx context.Context) (err error) {
		code, err = j.once(ctx)
		return err
	}
	if c.Bool("try") {
		var ran bool
		if ran, err = locks.TryDo(ctx, j.lock, work); err == nil && !ran {
			err = fail(exitNotAcquired, "another owner holds the lock %q", j.name)
		}
	} else {
		if c.IsSet("wait") {
			wait := c.Duration("wait")
			limit := time.AfterFunc(wait, func() { cancel(j.waited(ctx, wait)) })
			waited := work
			work = func(ctx context.Context) error {
				if !limit.Stop() { // the wait ended just before
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return waited(ctx)
			}
			defer limit.Stop()
		}
		err = locks.Do(ctx, j.lock, work)
	}
	closed := end()
	switch {
	case err == nil && code == 0:
		return closed
	case err == nil:
		return failure{code: code}
	case errors.Is(err, locks.ErrLost):
		return fail(exitLost, "the lock %q was lost, the command ended with %d: %w", j.name, code, err)
	}
	return storeFailure(ctx, err)
}

// waited returns why the lock was not acquired in time: another owner holds it, or the store does
// not answer.
func (j *job) waited(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, closing)
	defer cancel()
	if _, err := j.lock.(locks.Inspector).Inspect(ctx); unanswered(err) {
		return fail(exitUnreachable, "waited %v for the lock %q: %w", wait, j.name, err)
	}
	return fail(exitNotAcquired, "another owner holds the lock %q: waited %v", j.name, wait)
}

// lead runs the command in each term of leadership.
func (t *tool) lead(ctx context.Context, c *cli.Command) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sigs := watchSignals(cancel, true)
	defer sigs.stop()
	j, end, err := t.job(ctx, c)
	if err != nil {
		return err
	}
	j.sigs = sigs
	code := 0
	e := leader.New(j.lock,
		leader.OnGained(func(ctx context.Context) { t.say("leads %q%s", j.name, tokenText(ctx)) }),
		leader.OnLost(func(reason error) {
			if reason != nil {
				t.say("leads %q no longer: %s", j.name, strings.Join(strings.Fields(reason.Error()), " "))
			}
		}),
		leader.OnError(func(err error) { t.say("%v", err) }),
	)
	err = e.Run(ctx, func(ctx context.Context) (err error) {
		if code, err = j.once(ctx); err == nil && code != 0 && ctx.Err() == nil {
			err = fmt.Errorf("the command ended with %d", code)
			e.Resign(c.Duration("pause"))
		}
		return err
	})
	closed := end()
	switch {
	case err == nil:
		return closed
	case ctx.Err() != nil && sigs.forwarded(): // then the exit code is the command's
		return failure{code: code}
	}
	return storeFailure(ctx, err)
}

func tokenText(ctx context.Context) string {
	if hold, ok := locks.HoldFrom(ctx); ok && hold.Token() != 0 {
		return fmt.Sprintf(", token %d", hold.Token())
	}
	return ""
}

// environment returns the variables of the command.
func (j *job) environment(ctx context.Context) []string {
	// The token of a lock around this one must not pass for that of this lock.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LOCK_TOKEN=") })
	env = append(env, "LOCK_NAME="+j.name)
	if hold, ok := locks.HoldFrom(ctx); ok && hold.Token() != 0 {
		env = append(env, "LOCK_TOKEN="+strconv.FormatUint(hold.Token(), 10))
	}
	return env
}

// once runs the command, and returns its exit code. When ctx ends, it ends the command.
func (j *job) once(ctx context.Context) (code int, err error) {
	cmd := exec.Command(j.file, j.argv[1:]...)
	cmd.Args[0] = j.argv[0]
	cmd.Env = j.environment(ctx)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	child := newChild(cmd)
	defer child.forget()
	if err := j.sigs.start(ctx, child); err != nil {
		return 0, err
	}
	defer j.sigs.ended()
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	select {
	case err = <-exited:
	case <-ctx.Done():
		err = j.end(ctx, child, exited)
	}
	code = exitCode(cmd, err)
	if code < 0 {
		return 0, fail(exitNotRunnable, "%s: %w", j.argv[0], err)
	}
	return code, nil
}

// end ends the command, whose ctx has ended, and returns the result of its Wait.
func (j *job) end(ctx context.Context, child *child, exited <-chan error) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, locks.ErrLost) {
		if j.onLost == "none" {
			j.say("lost the lock %q: the command goes on", j.name)
			return <-exited
		}
		j.say("lost the lock %q: %s goes to process %d", j.name, endSignalName(j.onLost), child.pid())
	}
	var interrupted failure
	switch {
	case errors.As(cause, &interrupted): // the command has got the signal
	case j.onLost == "kill":
		child.kill()
	default:
		child.terminate()
	}
	limit := time.NewTimer(j.grace)
	defer limit.Stop()
	var err error
	select {
	case err = <-exited:
		child.waitForGroup(limit.C)
		child.kill() // what is left of its group
	case <-limit.C:
		child.kill()
		err = <-exited
	}
	return err
}

func endSignalName(onLost string) string {
	if onLost == "kill" {
		return "SIGKILL"
	}
	return "SIGTERM"
}

// exitCode returns the exit code of a command as a shell reports it, or -1 if Wait failed
// otherwise.
func exitCode(cmd *exec.Cmd, err error) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1
	}
	if n := signalOf(cmd.ProcessState); n > 0 {
		return exitSignal + n
	}
	return cmd.ProcessState.ExitCode()
}
