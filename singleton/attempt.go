package singleton

import (
	"bytes"
	"context"
	"runtime"
	"sync"
)

// attempt is one call of a constructor, and where others wait for it to end.
//
// They may be in other testing/synctest bubbles than the constructor: a package's singleton that
// is used by two tests is enough. Channels cannot be used from outside the bubble that they were
// made in, and a goroutine that waits in a bubble should let the bubble's clock go on. So
// everybody waits in the way that does for them:
//
//   - over is a WaitGroup of which only the constructor's goroutine changes the count. Anybody
//     may wait for it, and in the constructor's own bubble the wait lets the clock go on. But it
//     cannot be cut short.
//   - closed is a channel, for those in the constructor's bubble, or with it outside of all, who
//     want to look at their context at the same time.
//   - those in another bubble, who want that too, have a goroutine wait for over, which closes a
//     channel of their own. It is not the general way because the goroutine stays until the
//     constructor is through.
type attempt struct {
	over      sync.WaitGroup
	closed    chan struct{}
	goroutine int64  // that runs the constructor
	bubble    string // that it is in
}

func newAttempt(goroutine int64) *attempt {
	a := &attempt{closed: make(chan struct{}), goroutine: goroutine, bubble: bubble()}
	a.over.Add(1)
	return a
}

// end wakes all who wait.
func (a *attempt) end() {
	a.over.Done()
	close(a.closed)
}

// wait waits until a ends, or ctx does.
func (a *attempt) wait(ctx context.Context) {
	ended := ctx.Done()
	if ended == nil {
		a.over.Wait()
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

// within is the key of the value by which a context is known to come from an attempt.
type within struct{ a *attempt }

// mark returns ctx in the form for a's constructor.
func (a *attempt) mark(ctx context.Context) context.Context {
	return context.WithValue(ctx, within{a}, true)
}

// within reports whether ctx is that of a's constructor, or was made from it.
func (a *attempt) within(ctx context.Context) bool { return ctx.Value(within{a}) != nil }

// bubble returns the name of the testing/synctest bubble that the caller is in, or "" if it is in
// none. The only place where Go tells is the header of a stack trace, such as "goroutine 7
// [running, synctest bubble 5]:". Reading it takes a microsecond or two, which is little beside a
// constructor. Should the header change, all is as if there were no bubbles.
func bubble() string {
	var buf [128]byte
	header, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte("]:"))
	_, name, _ := bytes.Cut(header, []byte(", synctest bubble "))
	return string(name)
}
