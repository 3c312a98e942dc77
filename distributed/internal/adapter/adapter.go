// Package adapter has functions that adapters of several stores need in addition to package lease.
//
// Adapters are modules of their own, and users combine their versions with other versions of this
// module. So a function here never changes: it gets a successor beside it.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/joined"
	"github.com/jucgo/locks/internal/unheld"
)

// Check returns the error that keeps a call with ctx from beginning: ctx is nil or has ended.
func Check(ctx context.Context) error {
	switch {
	case ctx == nil:
		return locks.ErrNilContext
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	return nil
}

// Ended returns the error of ctx, which has ended, with its cause. A context that has closed its
// Done channel and has no Err counts as cancelled.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return context.Canceled
	}
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// OfStore returns err, the error of a request to a store. The result matches, and names,
// context.Canceled or context.DeadlineExceeded only if the caller's ctx has ended in this way. The
// context of a request may end before the caller's: its time is shorter, and Close ends it. A nil
// ctx has not ended.
func OfStore(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var foreign []error
	for _, of := range ofContexts {
		if ctx != nil && ctx.Err() != nil && (errors.Is(ctx.Err(), of.err) || errors.Is(context.Cause(ctx), of.err)) {
			continue // the caller's ctx has ended in this way
		}
		if said := of.err.Error(); errors.Is(err, of.err) || strings.Contains(text, said) {
			text, foreign = strings.ReplaceAll(text, said, of.text), append(foreign, of.err)
		}
	}
	if foreign == nil {
		return err
	}
	return requestError{err, text, foreign}
}

// ofContexts are the errors of contexts, and the texts that replace theirs in the error of a
// request.
var ofContexts = []struct {
	err  error
	text string
}{
	{context.DeadlineExceeded, "no answer in time"},
	{context.Canceled, "the request was given up"},
}

// requestError is an error that matches the same errors as err, except for foreign.
type requestError struct {
	err     error
	text    string
	foreign []error
}

func (e requestError) Error() string { return e.text }

func (e requestError) Is(target error) bool {
	return !slices.Contains(e.foreign, target) && errors.Is(e.err, target)
}

func (e requestError) As(target any) bool { return errors.As(e.err, target) }

// Join returns an error that wraps all of errs but nil, like errors.Join, with a text of one line.
func Join(errs ...error) error { return joined.Errors(errs...) }

// Names returns the names that list adds and pattern matches, sorted, each once. The pattern has
// the syntax of [path.Match], and the empty pattern matches all names. The error begins with op,
// and is the error of a context only as [OfStore] says.
func Names(ctx context.Context, op, pattern string, list func(add func(name string)) error) ([]string, error) {
	var names []string
	_, err := path.Match(pattern, "")
	if ctx == nil {
		err = locks.ErrNilContext
	}
	if err == nil {
		err = OfStore(ctx, list(func(name string) {
			if matched, _ := path.Match(pattern, name); matched || pattern == "" {
				names = append(names, name)
			}
		}))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// A Bell notifies one waiter. It keeps one notification until the waiter hears it, and drops
// further notifications meanwhile.
type Bell chan struct{}

// NewBell returns a Bell.
func NewBell() Bell { return make(Bell, 1) }

// Ring notifies the waiter. A nil Bell has no waiter.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// C returns the channel of the notifications. The watch of a store that embeds a Bell has this
// method.
func (b Bell) C() <-chan struct{} { return b }

// Sleep waits for d, or until ctx ends. It reports whether d is over.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Until calls wait with a context that has the values of ctx, and ends with ctx or with open. If
// wait fails after that, Until returns why: the error of [Ended], or [locks.ErrClosed].
func Until(ctx, open context.Context, wait func(context.Context) error) error {
	both := Detach(open, ctx)
	if ctx.Done() != nil {
		cancelled, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(open, cancel)()
		both = cancelled
	}
	err := wait(both)
	switch {
	case err == nil || both.Err() == nil:
		return err
	case ctx.Err() != nil:
		return Ended(ctx)
	}
	return locks.ErrClosed
}

// Detach returns a context that ends with life, and has the values of ctx.
func Detach(life, ctx context.Context) context.Context { return detached{life, ctx} }

type detached struct {
	context.Context
	values context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }

// As returns a context that has only the owner o. A caller's ctx may be a type of the program, and
// must not be called where a mutex is held, or after a state has changed.
func As(o locks.Owner) context.Context {
	if o == locks.CurrentOwner(nil) { //nolint:staticcheck // of the calling goroutine
		return context.Background()
	}
	return locks.WithOwner(context.Background(), o)
}

// HostOf returns the host of a URL, with its port, and no login. It is empty if there is none.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// Jitter returns a random part of d, a half at least, so that waiters get out of step.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Jobs are goroutines that Close waits for. The zero value is ready.
type Jobs struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup // not added to when closed
}

// Go runs job in a goroutine. It returns false, and does not run job, if Close was called.
func (j *Jobs) Go(job func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.closed {
		j.wg.Go(job)
	}
	return !j.closed
}

// Close lets no further job begin, and waits until all have ended, or ctx does.
func (j *Jobs) Close(ctx context.Context) {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// NotHeld returns the error of caller, which does not hold a lock. It matches locks.ErrNotHeld. The
// holders are all holders that the caller's process knows.
func NotHeld(caller locks.Owner, holders ...locks.Owner) error {
	if len(holders) == 0 {
		return unheld.Because("the lock has no holder here; another process may hold it")
	}
	return unheld.By(caller, "the lock is held by", " of this process", holders...)
}

// NotHeldButLost is NotHeld if the holds of holders are lost.
func NotHeldButLost(caller locks.Owner, holders ...locks.Owner) error {
	return unheld.By(caller, "the lock is lost, but not unlocked, by", " of this process", holders...)
}

// Released returns the error of an operation on a thing, such as "the permits", that the caller has
// already released. It matches locks.ErrNotHeld.
func Released(something string) error { return unheld.Because(something + " released already") }
