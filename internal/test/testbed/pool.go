package testbed

import (
	"os"
	"sync"
	"testing"
)

// Pool lends servers to tests. A test has its server to itself and finds it empty, as if it had
// started the server. The process goes on to serve later tests, because a start takes long.
// A test that pauses or kills a server starts one of its own instead.
type Pool[S any] struct {
	// Start runs a server until tb ends.
	Start func(tb testing.TB) S
	// Given returns a server that is there already and is tb's until its end, if there is one, see
	// [Given]. It may be nil.
	Given func(tb testing.TB) (server S, ok bool)
	// Empty removes what a test has left on a server. If it fails, nobody gets the server.
	Empty func(S) error

	mu   sync.Mutex
	free []lent[S] // the server that has been free for longest is the first
	all  []*lasting
}

type lent[S any] struct {
	server S
	until  *lasting
}

// Lend returns a server that is tb's until its end.
func (p *Pool[S]) Lend(tb testing.TB) S {
	tb.Helper()
	if p.Given != nil {
		if server, ok := p.Given(tb); ok {
			if err := p.Empty(server); err != nil {
				tb.Fatalf("empty the server that is there already: %v", err)
			}
			return server
		}
	}
	l, ok := p.take()
	if !ok {
		l.until = &lasting{TB: tb}
		p.mu.Lock()
		p.all = append(p.all, l.until)
		p.mu.Unlock()
		l.server = p.Start(l.until)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			l.until.end()
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, l)
	})
	return l.server
}

// take returns a free server that is empty. It empties the server now and not at the end of the
// last test: requests of that test may have come late.
func (p *Pool[S]) take() (l lent[S], ok bool) {
	for {
		p.mu.Lock()
		if len(p.free) == 0 {
			p.mu.Unlock()
			return l, false
		}
		l, p.free = p.free[0], p.free[1:]
		p.mu.Unlock()
		if p.Empty(l.server) == nil {
			return l, true
		}
		l.until.end()
	}
}

// End ends all servers. TestMain has it called after the tests, see [Ending].
func (p *Pool[S]) End() {
	p.mu.Lock()
	all := p.all
	p.all, p.free = nil, nil
	p.mu.Unlock()
	for _, l := range all {
		l.end()
	}
}

// lasting is the [testing.TB] of a server that outlasts the test which has started it.
type lasting struct {
	testing.TB // of that test

	mu       sync.Mutex
	cleanups []func()
}

func (l *lasting) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end calls the functions that Cleanup got, the last first. It may be called again.
func (l *lasting) end() {
	l.mu.Lock()
	cleanups := l.cleanups
	l.cleanups = nil
	l.mu.Unlock()
	for i := len(cleanups) - 1; i >= 0; i-- {
		cleanups[i]()
	}
}

// Ending returns m for TestMain. Its Run calls ends after the tests, such as [Pool.End].
func Ending(m interface{ Run() int }, ends ...func()) interface{ Run() int } {
	return ending{m, ends}
}

type ending struct {
	tests interface{ Run() int }
	ends  []func()
}

func (e ending) Run() int {
	code := e.tests.Run()
	for _, end := range e.ends {
		end()
	}
	return code
}
