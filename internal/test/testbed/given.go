package testbed

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Given lends tb a server that runs already. An environment variable, such as LOCKS_REDIS_URL,
// has its URL. Tests take turns on the server, also tests of other processes, because each test
// removes all data on the server. Given returns false if the variable is not set, or if tb or a
// test around it has the server already. Then the test starts a server of its own.
func Given(tb testing.TB, variable string) (server *url.URL, ok bool) {
	tb.Helper()
	server = GivenURL(tb, variable)
	if server == nil {
		return nil, false
	}
	value, _ := turns.LoadOrStore(variable, new(turn))
	t := value.(*turn)
	if !t.take(tb.Name()) {
		return nil, false
	}
	tb.Cleanup(t.leave)
	unlock, err := lockFile(filepath.Join(os.TempDir(), strings.ToLower(variable)+".lock"))
	if err != nil {
		tb.Fatalf("wait for the turn of this process on the server of %s: %v", variable, err)
	}
	tb.Cleanup(unlock)
	return server, true
}

// GivenURL returns the URL of a server that many tests use at once, each with names of its own, or
// nil if the variable is not set.
func GivenURL(tb testing.TB, variable string) *url.URL {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return nil
	}
	server, err := url.Parse(text)
	if err != nil || server.Host == "" {
		tb.Fatalf("%s has to be a URL with a host and a port", variable) // which may have a password
	}
	return server
}

var turns sync.Map // of *turn, by variable

// A turn is the right of one test to use a given server.
type turn struct {
	running sync.Mutex

	mu     sync.Mutex
	holder string // the name of the test
}

// take waits for the turn, and reports whether the test got it. A subtest of the holder would wait
// for ever.
func (t *turn) take(name string) bool {
	t.mu.Lock()
	inside := t.holder != "" && strings.HasPrefix(name+"/", t.holder+"/")
	t.mu.Unlock()
	if inside {
		return false
	}
	t.running.Lock()
	t.mu.Lock()
	t.holder = name
	t.mu.Unlock()
	return true
}

func (t *turn) leave() {
	t.mu.Lock()
	t.holder = ""
	t.mu.Unlock()
	t.running.Unlock()
}
