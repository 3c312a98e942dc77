package explore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jucgo/locks/internal/joined"
)

// Tag is the build tag of programs whose locks announce their operations.
const Tag = "lockexplore"

// again runs the test in a process whose locks announce their operations. A test with several calls
// of Run does so at the first.
func again(t *testing.T) {
	t.Helper()
	if _, ran := ranAgain.LoadOrStore(t.Name(), true); ran {
		return
	}
	t.Cleanup(func() { ranAgain.Delete(t.Name()) }) // -count runs it again
	binary, err := tagged(t)
	if err != nil {
		t.Fatalf("explore: %v", err)
	}
	parts := strings.Split(t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	args := []string{"-test.run=" + strings.Join(parts, "/"), "-test.count=1"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+childTimeout(time.Until(deadline)).String())
	}
	out := output{log: func(line []byte) {}}
	if testing.Verbose() {
		args = append(args, "-test.v")
		out.log = func(line []byte) { t.Logf("%s", line) }
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = onOneProcessor(os.Environ())
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	out.flush()
	all := out.all.String()
	if testing.Verbose() {
		all = "see above"
	}
	if err != nil {
		t.Fatalf("explore: the test with the tag %s: %v\n%s", Tag, err, all)
	}
	for line := range strings.Lines(out.all.String()) {
		if strings.HasPrefix(line, incomplete) {
			fmt.Fprint(os.Stderr, line)
		}
	}
	if strings.Contains(out.all.String(), "no tests to run") {
		t.Fatalf("explore: the test with the tag %s has not run:\n%s", Tag, all)
	}
}

// onOneProcessor returns an environment in which a process uses one processor, unless the
// environment has a number already. One goroutine of a run goes on at a time. On a second processor
// it would go on later: that processor has to wake up first.
func onOneProcessor(environment []string) []string {
	if os.Getenv(processors) != "" {
		return environment
	}
	return append(environment, processors+"=1")
}

// processors is the environment variable of the runtime with the number of processors.
const processors = "GOMAXPROCS"

// childTimeout returns the time limit of a process whose output its parent reports. The parent ends
// after the time left.
func childTimeout(left time.Duration) time.Duration {
	return max(left-time.Second, left/2, 1) // 0 would be no limit
}

// output keeps what is written to it, and logs each line as soon as it is complete.
type output struct {
	all    bytes.Buffer
	logged int
	log    func(line []byte)
}

func (o *output) Write(p []byte) (int, error) {
	n, _ := o.all.Write(p)
	for {
		line, _, whole := bytes.Cut(o.all.Bytes()[o.logged:], []byte("\n"))
		if !whole {
			return n, nil
		}
		o.log(line)
		o.logged += len(line) + 1
	}
}

// flush logs a last line without an end.
func (o *output) flush() {
	if rest := o.all.Bytes()[o.logged:]; len(rest) > 0 {
		o.log(rest)
	}
}

var ranAgain sync.Map // names of running tests

// built is the binary with the tag, if users is not 0.
var built struct {
	sync.Mutex
	users  int // tests that use it, and the process itself if go test removes the folder
	folder string
	binary string
}

// tagged returns the tests of the package in the working directory, built with the tag. They are
// built once a process. A process that go test has not started cannot tell its last test, so it
// removes them when no test uses them, and may build them again.
func tagged(t *testing.T) (binary string, err error) {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.users == 0 {
		under, removed := parent()
		folder, err := os.MkdirTemp(under, "lockexplore-*")
		if err != nil {
			return "", err
		}
		built.folder, built.binary = folder, filepath.Join(folder, "tagged.test")
		if runtime.GOOS == "windows" {
			built.binary += ".exe"
		}
		if err := build(built.binary); err != nil {
			return "", joined.Errors(err, os.RemoveAll(folder))
		}
		if removed {
			built.users = 1
		}
	}
	built.users++
	t.Cleanup(func() {
		built.Lock()
		defer built.Unlock()
		if built.users--; built.users > 0 {
			return
		}
		if err := os.RemoveAll(built.folder); err != nil {
			t.Errorf("explore: %v", err)
		}
	})
	return built.binary, nil
}

// parent returns the folder below which the binary goes. Programs can be executed there. Go test
// has made a folder for the binary that runs, and removes it at the end. The folder of temporary
// files may be one for all users, so each process makes a folder of its own below it.
func parent() (folder string, removed bool) {
	if running, err := os.Executable(); err == nil {
		folder = filepath.Dir(running)
		if strings.HasPrefix(filepath.Base(filepath.Dir(folder)), "go-build") {
			return folder, true
		}
	}
	return os.Getenv("GOTMPDIR"), false
}

// build builds the tests of the package in the working directory with the tag.
func build(binary string) error {
	var settings []debug.BuildSetting
	if info, ok := debug.ReadBuildInfo(); ok {
		settings = info.Settings
	}
	args := append(buildFlags(settings, os.Getenv("GOFLAGS")), "-o", binary, ".")
	out, err := exec.Command("go", args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the go command is not there to build the tests with the tag %s: "+
			"run them with go test -tags %s", Tag, Tag)
	}
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// buildFlags returns the arguments of the go command that builds the tests of a binary with these
// settings again, with the tag.
func buildFlags(settings []debug.BuildSetting, environment string) []string {
	tags, linker := Tag, ""
	for _, s := range settings {
		switch {
		case s.Key == "-tags" && s.Value != "":
			tags = s.Value + "," + Tag
		case s.Key == "-ldflags":
			linker = s.Value
		}
	}
	flags := []string{"test", "-c", "-vet=off", "-tags=" + tags}
	switch {
	case linker != "":
		flags = append(flags, "-ldflags="+linker)
	case !strings.Contains(environment, "-ldflags"):
		// No debugger sees this binary. Without symbols the linker needs three fifths of the time.
		flags = append(flags, "-ldflags=-s -w")
	}
	if raceEnabled {
		flags = append(flags, "-race")
	}
	return flags
}
