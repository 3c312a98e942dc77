package testbed

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// Hang is a time that only a hang takes, however busy the machine is. A limit of a test is Hang,
// unless the test is about the end of that limit.
const Hang = 5 * time.Minute

// askAgain is how long a server that starts may take for an answer before it is asked again.
const askAgain = 15 * time.Second

// Await waits until ok returns true, because of another goroutine. It fails tb after [Hang].
func Await(tb testing.TB, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(Hang); !ok(); runtime.Gosched() {
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
