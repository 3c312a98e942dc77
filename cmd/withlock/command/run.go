package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
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
	store  *open.Client
	lock   locks.TryLocker
	taken  string // what keeps the lock from this job
	many   bool   // the lock is a permit, which others have as well
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
	case c.IsSet("permits") && c.Int64("permits") < 1:
		return nil, fail(exitUsage, "-permits %d: need at least 1", c.Int64("permits"))
	case j.name == os.Getenv("LOCK_NAME") && !c.IsSet("permits"):
		return nil, fail(exitUsage, "this runs under the lock %q already, and would wait for itself: "+
			"unset LOCK_NAME if that is the lock of another store", j.name)
	case len(j.argv) == 0:
		return nil, fail(exitUsage, "no command: %s ... -- COMMAND", c.FullName())
	case j.onLost != "term" && j.onLost != "kill" && j.onLost != "none":
		return nil, fail(exitUsage, "-on-lost %q: need term, kill or none", j.onLost)
	case j.grace < 0 || ttl < 0 || c.IsSet("ttl") && ttl == 0 || c.Duration("wait") < 0 || c.Duration("pause") < 0:
		return nil, fail(exitUsage, "a time must not be negative, and a ttl must be positive")
	}
	if strings.Contains(j.argv[0], "://") { // it may have a password
		return nil, fail(exitUsage, "a URL is no command: give -store URL before the command")
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
	if j.store, err = j.tool.open(ctx, c, opts...); err != nil {
		return err
	}
	j.lock, j.taken = j.store.Locker(j.name), fmt.Sprintf("another owner holds the lock %q", j.name)
	if j.many = c.IsSet("permits"); j.many {
		n := c.Int64("permits")
		s, err := j.store.Semaphore(j.name, n)
		if err != nil {
			return j.close(fail(exitUsage, "%w", err))
		}
		j.lock, j.taken = s.Locker(1), fmt.Sprintf("others hold all permits of %q, which are %d", j.name, n)
	}
	return nil
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

// close closes the store, and returns the outcome of the job that ended with err. A command that
// has succeeded stays a success if Close fails: the command's lock is released. The store may keep
// a lock of a request without an answer until its lease ends, and a line says so.
func (j *job) close(err error) error {
	limit := closing
	if f := (failure{}); errors.As(err, &f) && f.code == exitUnreachable {
		limit = 100 * time.Millisecond // nothing can be undone there
	}
	if closed := shut(j.store, limit); closed != nil && err == nil {
		j.say("%w", closed)
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

// shortest is how long run waits for an answer of the store at least, however short -wait is. Tests
// change it.
var shortest = time.Second

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
		return fail(exitNotAcquired, "%s: waited %v", j.taken, wait)
	case left <= 0:
		return fail(exitNotAcquired, "%s", j.taken)
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
	return fail(exitNotAcquired, "%s: waited %v", j.taken, wait)
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
		leader.WithOnGained(func(ctx context.Context) { t.say("leads %q%s", j.name, tokenText(ctx)) }),
		leader.WithOnLost(func(reason error) {
			if reason != nil {
				t.say("leads %q no longer: %w", j.name, reason)
			}
		}),
		leader.WithOnError(func(err error) {
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
		} else if errors.Is(err, locks.ErrLost) {
			e.Resign(0) // which releases the lock, if that is possible, and campaigns again
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
		// The token of a lock around this lock must not be taken for the token of this lock. The
		// URL of the store may have a password.
		return strings.HasPrefix(v, "LOCK_TOKEN=") || !j.keep && strings.HasPrefix(v, "WITHLOCK_STORE=")
	})
	if j.many {
		return append(env, "PERMIT_NAME="+j.name)
	}
	env = append(env, "LOCK_NAME="+j.name)
	if hold, ok := locks.HoldFrom(ctx); ok && hold.Token() != 0 {
		env = append(env, "LOCK_TOKEN="+strconv.FormatUint(hold.Token(), 10))
	}
	return env
}

// errExpiring says that the command was ended before its lock was lost.
var errExpiring = fmt.Errorf("%w: it was not renewed in time", locks.ErrLost)

// once runs the command, and returns its exit code. When ctx ends, it ends the command. If the hold
// is not renewed, it ends the command while the hold still lasts, and returns errExpiring.
func (j *job) once(ctx context.Context) (code int, err error) {
	lock, err := j.descriptor(ctx)
	if err != nil {
		return 0, err
	}
	if lock != nil {
		defer lock.Close()
	}
	child := newChild(j.file, j.argv, j.environment(ctx), lock)
	if err := j.sigs.start(ctx, child); err != nil {
		return 0, err
	}
	defer j.sigs.ended()
	// SIGKILL comes before the end of the hold, and SIGTERM so much earlier. A renewal comes after
	// a third of the hold. The renewal has another third, and the grace has at most the last third.
	grace := min(j.grace, max(left(ctx), 0)/3)
	expiring := time.NewTimer(left(ctx) - grace)
	defer expiring.Stop()
	if j.onLost != "term" {
		expiring.Stop()
	}
	for {
		select {
		case <-child.ended:
			child.leave()
		case <-ctx.Done():
			j.end(ctx, context.Cause(ctx), child, grace)
		case <-expiring.C:
			if d := left(ctx); d > grace || d <= 0 { // it was renewed, or ctx ends just now
				expiring.Reset(max(d-grace, time.Millisecond))
				continue
			}
			err = errExpiring
			j.end(ctx, err, child, grace)
		}
		<-child.gone
		return child.code, err
	}
}

// left returns how long the hold of ctx lasts if it is not renewed.
func left(ctx context.Context) time.Duration {
	if hold, ok := locks.HoldFrom(ctx); ok {
		if end, ok := hold.Deadline(); ok {
			return time.Until(end)
		}
	}
	return math.MaxInt64
}

// descriptor returns the open file of a file lock for the command, or nil. While a process has it,
// the file stays locked, also if withlock was killed.
func (j *job) descriptor(ctx context.Context) (*os.File, error) {
	hold, _ := locks.HoldFrom(ctx)
	l, ok := hold.(interface{ Descriptor() (*os.File, error) })
	if !ok {
		return nil, nil
	}
	f, err := l.Descriptor()
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return f, err
}

// end ends the command because of cause. It returns when the command has ended, at the latest soon
// after the grace or the hold.
func (j *job) end(ctx context.Context, cause error, child *child, grace time.Duration) {
	var interrupted failure
	if errors.As(cause, &interrupted) { // the command has got the signal
		child.finish()
		grace = j.grace
	} else if j.onLost == "none" {
		j.say("lost the lock %q: the command goes on", j.name)
		<-child.ended
		child.leave()
		return
	} else {
		what, sig := "lost", "SIGTERM"
		if cause == errExpiring {
			what = "cannot renew"
		}
		if j.onLost == "kill" {
			sig = "SIGKILL"
			child.kill()
		} else {
			child.terminate()
		}
		j.say("%s the lock %q: %s goes to process %d", what, j.name, sig, child.pid)
	}
	var lost <-chan struct{} // later than now
	if hold, ok := locks.HoldFrom(ctx); ok && !errors.Is(context.Cause(ctx), locks.ErrLost) {
		lost = hold.Lost()
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-child.gone:
	case <-limit.C:
	case <-lost:
	}
	child.kill()
}
