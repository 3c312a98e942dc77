// Package stacks returns the stacks of goroutines for reports about locks.
package stacks

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Goroutine is a goroutine at the moment of [All].
type Goroutine struct {
	State  string // as in a stack trace, such as "sync.Mutex.Lock, 5 minutes"
	Frames string // as in a stack trace, without the header
}

// All returns all goroutines of the process by their identities. It stops the world meanwhile, for
// no longer than the time that it returns.
func All() (all map[int64]Goroutine, stopped time.Duration) {
	// A buffer that is too short costs another walk over all stacks, which is most of the cost.
	buf := make([]byte, 1<<16+runtime.NumGoroutine()<<11)
	for {
		begin := time.Now()
		n := runtime.Stack(buf, true)
		stopped += time.Since(begin)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all = make(map[int64]Goroutine)
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		rest, ok := strings.CutPrefix(header, "goroutine ")
		number, state, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			continue
		}
		if open, end := strings.IndexByte(state, '['), strings.LastIndexByte(state, ']'); open >= 0 && open < end {
			state = state[open+1 : end]
		}
		all[id] = Goroutine{state, strings.TrimSuffix(frames, "\n") + "\n"}
	}
	return all, stopped
}

// internals are the packages of the locks. Their frames on top of a stack do not show where a
// lock was acquired.
var internals = []string{
	"github.com/jucgo/locks/internal/",
	"github.com/jucgo/locks/reentrant.",
	"github.com/jucgo/locks/keyed.",
	"github.com/jucgo/locks/condition.",
	"github.com/jucgo/locks/rwlock.",
}

// Format returns a recorded stack as a stack trace that begins with the caller of the lock.
func Format(stack []uintptr) string {
	if len(stack) == 0 {
		return ""
	}
	var b strings.Builder
	frames := runtime.CallersFrames(stack)
	for top := true; ; {
		f, more := frames.Next()
		if top = top && internal(f.Function); !top && f.Function != "" {
			fmt.Fprintf(&b, "%s()\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

func internal(function string) bool {
	for _, prefix := range internals {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}
