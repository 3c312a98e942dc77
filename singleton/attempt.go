package singleton

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/stacks"
)

// attempt is one call of a constructor, with the means to wait for its end.
//
// A waiter may be in another testing/synctest bubble than the constructor, for example if two
// tests use the same package variable. A channel cannot be used outside of the bubble that made
// it. A waiter in a bubble should block durably, so that the bubble's clock advances. Therefore
// there are two ways to wait:
//
//   - closed is a channel for waiters in the constructor's bubble, or outside of all bubbles with
//     it.
//   - A waiter in another bubble starts a goroutine that waits for over and closes a channel of its
//     own. This goroutine stays until the constructor ends. Any goroutine may wait for over: it is
//     a WaitGroup whose count only the constructor's goroutine changes.
type attempt struct {
	over      sync.WaitGroup
	closed    chan struct{}
	goroutine int64  // runs the constructor
	bubble    string // of that goroutine
}

func newAttempt(goroutine int64) *attempt {
	a := &attempt{closed: make(chan struct{}), goroutine: goroutine, bubble: bubble()}
	a.over.Add(1)
	return a
}

// end wakes all waiters.
func (a *attempt) end() {
	a.over.Done()
	close(a.closed)
}

// wait waits until the attempt or ctx ends.
func (a *attempt) wait(ctx context.Context) {
	ended := ctx.Done()
	if sched.On && sched.Explored() {
		p := make(parker, 1)
		sched.Parks(p)
		select {
		case <-a.closed:
		case <-ended:
		case <-p:
		}
		sched.Woken()
		return
	}
	closed := a.closed
	if bubble() != a.bubble {
		closed = make(chan struct{})
		go func() {
			a.over.Wait()
			close(closed)
		}()
	}
	select {
	case <-closed:
	case <-ended:
	}
}

// parker is where a goroutine of an explored test waits. Unpark ends the wait with the test.
type parker chan struct{}

func (p parker) Unpark() { p <- struct{}{} }

// within is the key of the context value that marks contexts of an attempt.
type within struct{ a *attempt }

// mark returns a child of ctx that is marked as a's.
func (a *attempt) mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, within{a}, true)
}

// within reports whether ctx is marked as a's.
func (a *attempt) within(ctx context.Context) bool { return ctx.Value(within{a}) != nil }

// bubble returns the name of the caller's testing/synctest bubble, or "" if it is in none. Go
// shows it only in the header of a stack trace, such as "goroutine 7 [running, synctest bubble
// 5]:". To read it takes one or two microseconds, little compared with a constructor. If Go
// changes the header, bubble returns "".
func bubble() string {
	var buf [128]byte
	state := stacks.State(string(buf[:runtime.Stack(buf[:], false)]))
	_, name, _ := strings.Cut(state, ", synctest bubble ")
	return name
}
