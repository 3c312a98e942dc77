package curator

import (
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

// The versions of Curator. Up to the older one, the node of a reader below a writer has a
// number of its own.
const (
	current = "5.9.0"
	before  = "5.4.0"
)

// patience is a limit that only a Java process that hangs reaches.
const patience = testbed.Hang

// process is a Java process that executes requests on locks.
type process struct {
	*testbed.Process
	revoked chan string
	said    sync.WaitGroup

	mu      sync.Mutex
	number  int
	answers map[string]chan string
}

// startProcess starts a Java process, whose session has a timeout.
func startProcess(tb testing.TB, version, addr string, session time.Duration) *process {
	tb.Helper()
	classes := testbed.Jars(tb, "curator", version)
	java := testbed.Lookup(tb, "java")
	cmd := exec.Command(java, "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classes,
		"interop.Agent", addr, strconv.FormatInt(session.Milliseconds(), 10))
	cmd.Stderr = os.Stderr
	p := &process{
		Process: testbed.Start(tb, cmd), revoked: make(chan string, 16), answers: make(map[string]chan string),
	}
	require.Equal(tb, "ready", p.Line())
	p.said.Go(func() {
		for line := range p.Lines() {
			number, answer, _ := strings.Cut(line, " ")
			if number == "revoked" {
				p.revoked <- answer
				continue
			}
			p.mu.Lock()
			c := p.answers[number]
			delete(p.answers, number)
			p.mu.Unlock()
			if c != nil {
				c <- answer
			}
		}
	})
	tb.Cleanup(func() {
		p.Kill()
		p.said.Wait()
	})
	return p
}

// agent has a Java process execute the requests of one test, whose paths are below root.
type agent struct {
	*process
	tb   testing.TB
	root string
}

// start sends a request, and returns the channel of its answer. A multi-lock has several paths,
// with commas between them.
func (a *agent) start(thread, what, kind, path string, args ...string) <-chan string {
	a.tb.Helper()
	a.mu.Lock()
	a.number++
	number := strconv.Itoa(a.number)
	c := make(chan string, 1)
	a.answers[number] = c
	a.mu.Unlock()
	path = a.root + strings.ReplaceAll(path, ",", ","+a.root)
	a.Say(strings.Join(append([]string{number, thread, what, kind, path}, args...), " "))
	return c
}

// do sends a request, and checks that its answer is want.
func (a *agent) do(want, thread, what, kind, path string, args ...string) {
	a.tb.Helper()
	got := a.wait(a.start(thread, what, kind, path, args...))
	require.Equal(a.tb, want, got, "%s %s %s by %s", what, kind, path, thread)
}

func (a *agent) wait(c <-chan string) string {
	a.tb.Helper()
	select {
	case answer := <-c:
		return answer
	case <-time.After(patience):
		a.tb.Fatal("no answer from the Java process")
		return ""
	}
}
