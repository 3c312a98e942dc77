package testbed

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// Await waits until ok returns true, because of another goroutine. It fails tb after a minute, which
// only a hang reaches.
func Await(tb testing.TB, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(deadline) {
			tb.Fatalf("did not happen\n%s", stacks())
		}
	}
}

// WaitsForMutex reports whether a goroutine with a call of function on its stack waits for a
// sync.Mutex.
func WaitsForMutex(function string) bool {
	for g := range strings.SplitSeq(stacks(), "\n\n") {
		header, frames, _ := strings.Cut(g, "\n")
		if strings.Contains(header, "[sync.Mutex.Lock") && strings.Contains(frames, function+"(") {
			return true
		}
	}
	return false
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
