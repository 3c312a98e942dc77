package scenarios

import (
	"context"
	_ "embed" // for the program with the plain pointer
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/singleton"
)

var _ = register(lab.Scenario{
	Lesson:   140,
	Name:     "singleton",
	Topic:    "Without a lock",
	Title:    `A value that is made once: wrong, and right`,
	Question: `How can a program make a value once, on demand, without a lock for every later use?`,
	Claim: "The program checks for the value, and makes it if there is none: two goroutines that check at " +
		"the same time make two. With a lock around everything the program is right, but every reader " +
		"pays for the lock. Double-checked locking checks, locks, and checks again.\n\n" +
		"Its classic form has a bug of its own: the first check reads a plain pointer while another " +
		"goroutine may write it. To allocate, to initialise and to publish are separate writes, and other " +
		"goroutines may see them in another order. Java needs volatile there. In Go it is a data race, " +
		"and `go test -race` reports it: the first check, a read by one goroutine, and the assignment, a " +
		"write by another. The first check has to be an atomic load.",
	Look: `Without a lock both goroutines find nothing, and both make a value. With Lazy the second goroutine waits
for the first, and gets the same value. Later calls do not wait. If the race detector was available, a
program with the plain pointer follows, with the detector's report.`,
	Found: `{{.detector}} Without a lock {{.wrong}} values were made. {{n .callers}} callers of Lazy got the
same one, made {{times .right}}. After a constructor that failed the next caller tried again, and a
constructor that asked for its own value got an error.`,
	Take: "Use `singleton.Lazy`, or `sync.OnceValue` if the constructor cannot fail and no caller has to " +
		"cancel its wait.",
	Java: `private volatile Config instance;      // volatile is what makes it right
Config get() {
    Config c = instance;
    if (c == null) synchronized (this) {
        c = instance;
        if (c == null) instance = c = load();
    }
    return c;
}`,
	Run: single,
})

//lab:show

type config struct{ number int64 }

// checkThenAct is wrong: between the check and the store, others check as well.
func checkThenAct(instance *atomic.Pointer[config], load func() *config) *config {
	if c := instance.Load(); c != nil {
		return c
	}
	c := load()
	instance.Store(c)
	return c
}

// lazily is right: load runs once, and later calls are one atomic load.
func lazily(load func() *config) *singleton.Lazy[*config] {
	return singleton.New(func() (*config, error) { return load(), nil })
}

//lab:end

// plain is a program with the plain pointer. It is not part of this one, whose race detector
// would find it.
//
//go:embed testdata/plain/main.go
var plain string

func single(ctx context.Context, l *lab.Lab) error {
	plainPointer(ctx, l)
	var made atomic.Int64
	t := l.Timeline("Check, then act", "Both goroutines find nothing, and both make a value.")
	var instance atomic.Pointer[config]
	var both sync.WaitGroup
	both.Add(2)
	seen := make([]*config, 2)
	for i, name := range []string{"Ann", "Bob"} {
		t.Go(name, func(_ context.Context, me *lab.Lane) error {
			me.Work(time.Duration(i+1) * time.Millisecond)
			seen[i] = checkThenAct(&instance, func() *config {
				me.Mark("finds nothing")
				both.Done()
				both.Wait()
				var c *config
				me.Is(lab.Exclusive, "makes a value", func() {
					me.Work(3 * time.Millisecond)
					c = &config{made.Add(1)}
				})
				me.Mark("has value %d", c.number)
				return c
			})
			me.Work(time.Millisecond)
			return nil
		})
	}
	t.Wait()
	l.Check(seen[0] != seen[1], "without a lock, two goroutines can make two values")
	l.Observe("wrong", made.Swap(0))

	t = l.Timeline("singleton.Lazy", "The first makes the value, the others get the same one.")
	var maker *lab.Lane
	making := make(chan struct{})
	lazy := lazily(func() *config {
		me := maker
		close(making)
		c := new(config)
		me.Is(lab.Exclusive, "makes the value", func() {
			me.Work(4 * time.Millisecond)
			c.number = made.Add(1)
		})
		return c
	})
	names := []string{"Ann", "Bob", "Cid", "Dot"}
	got := make([]*config, len(names))
	for i, name := range names {
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			me.Work(time.Duration(1+2*i) * time.Millisecond)
			me.Mark("asks")
			var err error
			get := func() { got[i], err = lazy.GetContext(ctx) }
			if i == 0 {
				maker = me
				get()
			} else {
				<-making
				me.Is(lab.Waiting, "waits for the value", get)
			}
			me.Mark("has the value")
			me.Work(time.Millisecond)
			return err
		})
	}
	t.Wait()
	l.Equal([]*config{got[0], got[0], got[0], got[0]}, got, "every caller gets the same value")
	l.Equal(int64(1), made.Load(), "the value is made once")
	l.Observe("callers", len(names))
	l.Observe("right", made.Load())

	attempts := 0
	moody := singleton.New(func() (int, error) {
		if attempts++; attempts == 1 {
			return 0, errNoLuck
		}
		return attempts, nil
	})
	_, err := moody.GetContext(ctx)
	l.Is(errNoLuck, err, "an error of the constructor goes to the caller it ran for")
	value, err := moody.GetContext(ctx)
	l.Must(err)
	l.Equal(2, value, "after a failure the next caller tries again")
	var self *singleton.Lazy[int]
	self = singleton.New(func() (int, error) { return self.Get() })
	_, err = self.Get()
	l.Check(errors.Is(err, singleton.ErrRecursive), "a constructor that asks for its own value gets an error, "+
		"and does not hang")
	return nil
}

// plainPointer has the race detector look at the plain pointer.
func plainPointer(ctx context.Context, l *lab.Lab) {
	// A minute's worth of figures should not wait for a compiler that has never built for the
	// race detector.
	ctx, cancel := context.WithTimeout(ctx, lab.Pick(l, 4*time.Second, 15*time.Second))
	defer cancel()
	report, err := raceReport(ctx)
	if err != nil {
		l.Observe("detector", "The race detector was not at hand, so what it says was not seen in this run.")
		l.Observe("detectorError", err.Error())
		return
	}
	l.Check(strings.Contains(report, "DATA RACE") && strings.Contains(report, "main.get()"),
		"the race detector objects to double-checked locking with a plain pointer")
	l.Observe("detector", "The race detector objected to the plain pointer.")
	var numbered strings.Builder
	n := 0
	for line := range strings.Lines(plain) {
		n++
		fmt.Fprintf(&numbered, "%2d  %s", n, line)
	}
	l.Quote(lab.Quote{Title: "Double-checked locking with a plain pointer", Desc: "The whole program, with " +
		"the numbers of its lines.", Text: numbered.String()})
	l.Quote(lab.Quote{Title: "What the race detector said of it", Desc: "Its report in this run. Only " +
		"folders are left out.", Text: report})
}

var folder = regexp.MustCompile(`(?m)^(\s+)\S*[/\\]([^/\\\s]+\.go:\d+)`)

// raceReport builds the program with the plain pointer for the race detector, runs it, and
// returns what the detector says, without folders. An error says that it could not be asked.
func raceReport(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "locklab")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "plain.exe")
	if err := os.WriteFile(source, []byte(plain), 0o600); err != nil {
		return "", err
	}
	// It has no dependencies, and nothing is to be fetched for it, a toolchain neither.
	out, err := said(ctx, dir, []string{"GO111MODULE=", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local",
		"GOPROXY=off", "CGO_ENABLED=1", "GOOS=", "GOARCH="},
		"go", "build", "-race", "-o", program, source)
	if err != nil {
		return "", fmt.Errorf("go build -race: %w: %s", err, strings.TrimSpace(out))
	}
	out, err = said(ctx, dir, []string{"GORACE=halt_on_error=1 atexit_sleep_ms=0 exitcode=66"}, program)
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 66) {
		return "", fmt.Errorf("the program with the plain pointer: %w: %s", err, strings.TrimSpace(out))
	}
	return folder.ReplaceAllString(strings.ReplaceAll(out, "\r\n", "\n"), "$1$2"), nil
}

// said runs a command, and returns all that it says.
func said(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), environment...)
	c.Cancel = func() error {
		// A go command that is interrupted tidies up behind itself.
		if c.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return c.Process.Kill()
	}
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}
