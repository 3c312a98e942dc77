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
	"github.com/jucgo/locks/distributed/lease"
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
	keep   bool // the variable WITHLOCK_STORE
	sigs   *signals
	store  *open.Store
	lock   locks.TryLocker
}

// job reads the flags that run and lead share.
func (t *tool) job(c *cli.Command, sigs *signals) (j *job, err error) {
	j = &job{
		tool: t, name: c.String("name"), argv: c.Args().Slice(),
		onLost: c.String("on-lost"), grace: c.Duration("grace"), keep: c.Bool("keep-store"), sigs: sigs,
	}
	ttl := c.Duration("ttl")
	switch {
	case j.name == "":
		return nil, fail(exitUsage, "no lock: give -name NAME")
	case j.name == os.Getenv("LOCK_NAME"):
		return nil, fail(exitUsage, "this runs under the lock %q already, and would wait for itself: "+
			"unset LOCK_NAME if that is the lock of another store", j.name)
	case len(j.argv) == 0:
		return nil, fail(exitUsage, "no command: %s ... -- COMMAND", c.FullName())
	case j.onLost != "term" && j.onLost != "kill" && j.onLost != "none":
		return nil, fail(exitUsage, "-on-lost %q: need term, kill or none", j.onLost)
	case j.grace < 0 || ttl < 0 || c.IsSet("ttl") && ttl == 0 || c.Duration("wait") < 0 || c.Duration("pause") < 0:
		return nil, fail(exitUsage, "a time must not be negative, and a ttl must be positive")
	}
	if j.file, err = exec.LookPath(j.argv[0]); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			return nil, fail(exitNotFound, "%s: command not found", j.argv[0])
		}
		return nil, fail(exitNotRunnable, "%w", err)
	}
	return j, nil
}

// open opens the store of the lock. The caller calls close.
func (j *job) open(ctx context.Context, c *cli.Command) (err error) {
	var opts []open.Option
	if ttl := c.Duration("ttl"); ttl > 0 {
		opts = append(opts, open.WithTTL(ttl))
	}
	if label := c.String("label"); label != "" {
		opts = append(opts, open.WithLabel(label))
	}
	if j.store, err = j.tool.open(ctx, c, opts...); err == nil {
		j.lock = j.store.Locker(j.name)
	}
	return err
}

// openPatiently is open that waits for a store that does not answer, until ctx ends.
func (j *job) openPatiently(ctx context.Context, c *cli.Command) error {
	for pause := leader.DefaultMinBackoff; ; pause = min(2*pause, leader.DefaultMaxBackoff) {
		err := j.open(ctx, c)
		if f := (failure{}); !errors.As(err, &f) || f.code != exitUnreachable {
			return err
		}
		j.say("%w", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close closes the store, and returns the outcome of the job that ended with err.
func (j *job) close(err error) error {
	limit := closing
	if f := (failure{}); errors.As(err, &f) && f.code == exitUnreachable {
		limit = 100 * time.Millisecond // nothing can be undone there
	}
	closed := storeFailure(context.Background(), shut(j.store, limit))
	if err == nil {
		return closed
	}
	return err
}

// run runs the command once.
func (t *tool) run(ctx context.Context, c *cli.Command) (err error) {
	began := time.Now()
	if c.Bool("try") && c.IsSet("wait") {
		return fail(exitUsage, "-try does not wait: give -try or -wait")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sigs := watchSignals(cancel, false)
	defer sigs.stop()
	j, err := t.job(c, sigs)
	if err != nil {
		return err
	}
	wait, answer := c.Duration("wait"), requestTimeout
	if wait > 0 {
		answer = min(max(wait, shortest), requestTimeout)
	}
	limited, stop := context.WithTimeout(ctx, answer)
	err = j.open(limited, c)
	stop()
	if err != nil {
		return err
	}
	code := 0
	work := func(ctx context.Context) (err error) {
		code, err = j.once(ctx)
		return err
	}
	if c.Bool("try") || c.IsSet("wait") {
		err = j.try(ctx, cancel, answer, wait, began.Add(wait), work)
	} else {
		err = locks.Do(ctx, j.lock, work)
	}
	switch {
	case err == nil && code != 0:
		err = failure{code: code}
	case errors.Is(err, locks.ErrLost):
		err = fail(exitLost, "the lock %q was lost, the command ended with %d: %w", j.name, code, err)
	}
	return j.close(storeFailure(ctx, err))
}

// shortest is how long run waits for an answer of the store at least, however short -wait is.
const shortest = time.Second

// try runs work under the lock if it can be acquired until end, after a wait. The first request has
// the time answer of its own: a free lock is acquired even if nothing is left of the wait.
func (j *job) try(ctx context.Context, cancel context.CancelCauseFunc,
	answer, wait time.Duration, end time.Time, work func(context.Context) error) error {
	var limit *time.Timer
	started := func(ctx context.Context) error {
		if !limit.Stop() { // the time ended just before
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return work(ctx)
	}
	limit = time.AfterFunc(answer, func() {
		cancel(fail(exitUnreachable, "the store did not answer for the lock %q in %v", j.name, answer))
	})
	ran, err := locks.TryDo(ctx, j.lock, started)
	limit.Stop()
	left := time.Until(end)
	switch {
	case ran || err != nil && (left <= 0 || !errors.Is(err, lease.ErrUnavailable)):
		return err
	case left <= 0 && wait > 0:
		return fail(exitNotAcquired, "another owner holds the lock %q: waited %v", j.name, wait)
	case left <= 0:
		return fail(exitNotAcquired, "another owner holds the lock %q", j.name)
	}
	limit = time.AfterFunc(left, func() { cancel(j.waited(ctx, wait)) })
	defer limit.Stop()
	return locks.Do(ctx, j.lock, started)
}

// waited returns why the lock was not acquired in time: another owner holds it, or the store does
// not answer.
func (j *job) waited(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, shortest)
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
	j, err := t.job(c, sigs)
	if err != nil {
		return err
	}
	if err := j.openPatiently(ctx, c); err != nil {
		return err
	}
	code := 0
	e := leader.New(j.lock,
		leader.OnGained(func(ctx context.Context) { t.say("leads %q%s", j.name, tokenText(ctx)) }),
		leader.OnLost(func(reason error) {
			if reason != nil {
				t.say("leads %q no longer: %w", j.name, reason)
			}
		}),
		leader.OnError(func(err error) {
			if f := (failure{}); asUsage(storeFailure(ctx, err), &f) {
				cancel(f) // the next campaign fails too
				return
			}
			t.say("%w", err)
		}),
	)
	err = e.Run(ctx, func(ctx context.Context) (err error) {
		if code, err = j.once(ctx); err == nil && code != 0 && ctx.Err() == nil {
			err = fmt.Errorf("the command ended with %d", code)
			e.Resign(c.Duration("pause"))
		}
		return err
	})
	if err != nil && ctx.Err() != nil && sigs.forwarded() { // then the exit code is the command's
		err = failure{code: code}
	}
	return j.close(storeFailure(ctx, err))
}

func tokenText(ctx context.Context) string {
	if hold, ok := locks.HoldFrom(ctx); ok && hold.Token() != 0 {
		return fmt.Sprintf(", token %d", hold.Token())
	}
	return ""
}

// environment returns the variables of the command.
func (j *job) environment(ctx context.Context) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		// The token of a lock around this one must not pass for that of this lock. The URL of the
		// store may have a password.
		return strings.HasPrefix(v, "LOCK_TOKEN=") || !j.keep && strings.HasPrefix(v, "WITHLOCK_STORE=")
	})
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
