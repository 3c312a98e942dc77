// Package goid tells which goroutine is running.
//
// The fast way reads the id out of the runtime's goroutine descriptor at an offset that
// github.com/petermattis/goid knows per Go version. A stale offset is silent: every goroutine
// would read the same number, and a reentrant lock would exclude no goroutine. When the process
// starts, the fast way is therefore checked against the header of a stack trace, in the first
// goroutine and in several fresh goroutines. If any answer differs, the fast way is abandoned for
// good.
package goid

import (
	"iter"
	"runtime"
	"sync/atomic"

	fastgoid "github.com/petermattis/goid"
)

// trusted is all ones if the fast way was found right, else zero. It is written
// once, before main.
var trusted = trust(fastgoid.Get)

// fast is trusted, or zero while each acquisition is recorded.
var fast atomic.Int64

func init() { fast.Store(trusted) }

func trust(get func() int64) int64 {
	if verify(get) {
		return -1
	}
	return 0
}

// Get returns the id of the calling goroutine: positive, and never used again
// in this process. It costs a nanosecond or two, or microseconds where the fast
// way is not trusted.
func Get() int64 {
	if id := fastgoid.Get() & trusted; id != 0 {
		return id
	}
	return Slow()
}

// Fast returns the id of the calling goroutine, or 0 if the fast way is not trusted, or
// while acquisitions are recorded. Unlike [Get] it is always inlined.
func Fast() int64 { return fastgoid.Get() & fast.Load() }

// SetRecording makes [Fast] return 0, or ends that, and reports whether it did. Fast paths that
// cannot do without the id are then not taken in any goroutine, and need not check for that.
func SetRecording(on bool) (was bool) {
	was = recording.Swap(on)
	if on {
		fast.Store(0)
	} else {
		fast.Store(trusted)
	}
	return was
}

var recording atomic.Bool

// Recording reports whether acquisitions are recorded, and [Fast] returns 0.
func Recording() bool { return recording.Load() }

// Slow returns the id of the calling goroutine as its stack trace has it.
func Slow() int64 {
	var buf [64]byte
	return parse(buf[:runtime.Stack(buf[:], false)])
}

// header is how every stack trace starts; the id follows.
const header = "goroutine "

// parse returns the id in a stack trace. A trace of another form is fatal, because a lock without
// identities cannot exclude.
func parse(trace []byte) int64 {
	if len(trace) > len(header) && string(trace[:len(header)]) == header {
		var id int64
		for i, c := range trace[len(header):] {
			if c < '0' || c > '9' {
				if i > 0 && c == ' ' && id > 0 {
					return id
				}
				break
			}
			if id > (1<<63-1-9)/10 {
				break
			}
			id = id*10 + int64(c-'0')
		}
	}
	panic("goid: no goroutine id in the stack trace header " + string(trace))
}

// verify reports whether get agrees with the stack trace in this goroutine and in fresh
// goroutines that live at the same time. The fresh goroutines are coroutines: the runtime ends a
// coroutine before its caller goes on, so a program starts main with no goroutine of this
// package.
func verify(get func() int64) bool {
	if get() != Slow() {
		return false
	}
	answer := func(yield func(bool) bool) { yield(get() == Slow()) }
	for range 4 {
		next, stop := iter.Pull(answer)
		defer stop() // only now, so that no coroutine gets the descriptor of an earlier one
		if agrees, _ := next(); !agrees {
			return false
		}
	}
	return true
}
