package redisson

import (
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// The versions of Redisson. The older one has neither sharded channels nor latches of unlocking.
const (
	current = "4.7.0"
	before  = "3.21.3"
)

// patience is a limit that only a Java process that hangs reaches.
const patience = testbed.Hang

// agent is a Java process.
type agent struct {
	*testbed.Process
	said sync.WaitGroup

	mu      sync.Mutex
	number  int
	answers map[string]chan string
}

// startAgent starts a Java process, whose locks are renewed so that they last for watchdog.
func startAgent(tb testing.TB, version, topology, addr string, watchdog time.Duration) *agent {
	tb.Helper()
	classes := testbed.Jars(tb, "redisson", version)
	java := testbed.Lookup(tb, "java")
	cmd := exec.Command(java, "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes,
		"interop.Agent",
		topology, addr, strconv.FormatInt(watchdog.Milliseconds(), 10))
	cmd.Stderr = os.Stderr
	a := &agent{Process: testbed.Start(tb, cmd), answers: make(map[string]chan string)}
	require.Equal(tb, "ready", a.Line())
	a.said.Go(func() {
		for line := range a.Lines() {
			number, answer, _ := strings.Cut(line, " ")
			a.mu.Lock()
			if c := a.answers[number]; c != nil {
				c <- answer
			}
			a.mu.Unlock()
		}
	})
	tb.Cleanup(func() {
		a.Kill()
		a.said.Wait()
	})
	return a
}

// start makes a thread do something with a lock.
func (a *agent) start(thread, command, kind, name string, numbers ...int64) (answer <-chan string) {
	c := make(chan string, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.number++
	number := strconv.Itoa(a.number)
	a.answers[number] = c
	line := strings.Join([]string{number, thread, command, kind, url.QueryEscape(name)}, " ")
	for _, n := range numbers {
		line += " " + strconv.FormatInt(n, 10)
	}
	a.Say(line)
	return c
}

// ask makes a thread do something with a lock, and returns the answer.
func (a *agent) ask(tb testing.TB, thread, command, kind, name string, numbers ...int64) string {
	tb.Helper()
	return soon(tb, a.start(thread, command, kind, name, numbers...))
}

// must is ask for commands whose answer must be true.
func (a *agent) must(tb testing.TB, thread, command, kind, name string, numbers ...int64) {
	tb.Helper()
	require.Equal(tb, "true", a.ask(tb, thread, command, kind, name, numbers...), "%s %s", command, kind)
}

// soon receives from c.
func soon[T any](tb testing.TB, c <-chan T) (v T) {
	tb.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		tb.Fatal("nothing happens")
	}
	return v
}

// asleep reports whether a thread waits to be told of a release.
func (a *agent) asleep(tb testing.TB, thread string) bool {
	tb.Helper()
	return a.ask(tb, thread, "asleep", "-", "-") == "true"
}
