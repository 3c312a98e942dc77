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
		number, rest, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			continue
		}
		all[id] = Goroutine{State(rest), strings.TrimSuffix(frames, "\n") + "\n"}
	}
	return all, stopped
}

// State returns the state of a goroutine from the header of its stack trace, such as "running,
// synctest bubble 5". The labels of the goroutine follow the state: inside of the brackets with Go
// 1.26, and behind them with Go 1.27.
func State(header string) string {
	_, state, _ := strings.Cut(header, "[")
	state, _, _ = strings.Cut(state, "]")
	state, _, _ = strings.Cut(state, " labels:{")
	return state
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
		if top = top && IsLibrary(f.Function); !top && f.Function != "" {
			fmt.Fprintf(&b, "%s()\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

// Program returns the frames of a Goroutine without the frames of the library above the function
// that the program called. If the goroutine is in the client of a store, whose packages are not the
// library's, the frames of that client are left out too. Program returns all frames if no frame is
// the program's.
func Program(frames string) string {
	called := 0 // where the library's function begins that the program called
	client := clientEnd(frames)
	for at := 0; at < len(frames); {
		if at >= client && !IsLibrary(functionOf(frames[at:])) {
			return frames[called:]
		}
		called = at
		if at = next(frames, at); at < 0 {
			return frames
		}
	}
	return frames
}

// next returns where the frame behind the frame at an offset begins, or -1. A frame has two lines:
// its function, and its place.
func next(frames string, at int) int {
	for range 2 {
		end := strings.IndexByte(frames[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
	}
	return at
}

// clientEnd returns where the frames of a store's client end: at the innermost frame of this
// module, if that frame is an adapter's. Otherwise it returns 0. An adapter calls no function of
// the program, so a goroutine in an adapter is in the client's code, or in the adapter's own.
func clientEnd(frames string) int {
	for at := 0; at >= 0 && at < len(frames); at = next(frames, at) {
		function := functionOf(frames[at:])
		rest, ours := strings.CutPrefix(function, module+"/distributed/")
		if ours && IsLibrary(function) && isAdapter(rest) {
			return at
		}
		if strings.HasPrefix(function, module) {
			return 0
		}
	}
	return 0
}

// isAdapter reports whether a function belongs to an adapter. The path of the function begins below
// the folder distributed. The other packages there call functions of the program: a Store of
// package lease, the Documents of caslock, and the function that package leader runs.
func isAdapter(path string) bool {
	folder := path[:max(strings.IndexAny(path, "/."), 0)]
	return strings.HasSuffix(folder, "lock") && folder != "caslock"
}

// functionOf returns the function that a frame begins with.
func functionOf(frame string) string {
	line, _, _ := strings.Cut(frame, "\n")
	if open := strings.LastIndexByte(line, '('); open > 0 {
		line = line[:open]
	}
	return line
}

// module is the path of the root module. The paths of the other modules begin with it.
const module = "github.com/jucgo/locks"

// IsLibrary reports whether a function belongs to the locks, or to the packages that they use.
func IsLibrary(function string) bool {
	if rest, ok := strings.CutPrefix(function, module); ok {
		own := rest == "" || rest[0] == '.' || rest[0] == '/'
		for _, program := range []string{"_test.", "/cmd/", "/examples/", "/bench/"} {
			own = own && !strings.Contains(rest, program)
		}
		return own
	}
	for _, prefix := range []string{"runtime.", "sync.", "internal/", "time.", "created by "} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// WaitsInLibrary reports whether the goroutine waits in a function of the library, or of a store's
// client that the library called. The state of such a goroutine names what the library or the
// client is made of, such as sync.Cond.Wait, which the program may not even have.
func (g Goroutine) WaitsInLibrary() bool {
	if clientEnd(g.Frames) > 0 {
		return true
	}
	for line := range strings.Lines(g.Frames) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		function := functionOf(strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(function, module) {
			return IsLibrary(function)
		}
		if !IsLibrary(function) {
			return false
		}
	}
	return false
}
