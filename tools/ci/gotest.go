package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// results counts tests, not subtests.
type results struct {
	passed, failed int
	times          []timing
	failures       []string // what each failing test or package printed
}

// An event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

// allSearches and newSearches are for tests that call package effort. With each of them, these
// tests search all lives of stores and all schedules that they know, without them a quarter or
// less. With newSearches, the tests draw new seeds. Only the full run may find what the change
// under test did not cause, so the gate sets sameSeed for the tests that call rapid.
const (
	allSearches = "LOCKS_SEARCH=all"
	newSearches = "LOCKS_SEARCH=new"
	sameSeed    = "RAPID_SEED=1"
)

// goTest runs go test in a folder of the repository. It prints a line for each package, and all
// that a failing test or package printed. A test that skips itself fails: the tests that the gate
// leaves out are named in .ci/full. Only a hang reaches the limit: a busy machine takes longer than
// the ten minutes of go test.
func (j *job) goTest(ctx context.Context, folder string, env []string, args ...string) error {
	cmd := j.command(ctx, "go", append([]string{"test", "-json", "-timeout=30m"}, args...)...)
	cmd.Dir = j.path(folder)
	cmd.Env = append(append(cmd.Env, "PWD="+cmd.Dir), env...)
	if j.full {
		cmd.Env = append(cmd.Env, newSearches)
	} else {
		cmd.Env = append(cmd.Env, sameSeed)
	}
	cmd.Stdout = nil
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := j.read(pipe)
	err = cmd.Wait()
	j.count(cmd)
	j.mu.Lock()
	j.result.passed += r.passed
	j.result.failed += r.failed
	j.result.times = append(j.result.times, r.times...)
	j.result.failures = append(j.result.failures, r.failures...)
	j.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Errorf("go test %s in %s: %w", strings.Join(args, " "), folder, err)
	case r.failed > 0:
		return fmt.Errorf("%d tests skipped themselves", r.failed)
	}
	return nil
}

// read reads the events of go test -json.
func (j *job) read(from io.Reader) results {
	var r results
	var p printed
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(&j.out, line)
				continue
			}
			switch e.Action {
			case "build-output":
				fmt.Fprint(&j.out, e.Output)
			case "output":
				p.add(e)
			case "pass", "fail", "skip":
				j.ended(&r, e, &p)
			}
		}
		if err != nil {
			return r
		}
	}
}

// ended counts the end of a test or package, and prints what must be seen of it.
func (j *job) ended(r *results, e event, p *printed) {
	sub := strings.Contains(e.Test, "/")
	if sub && e.Action == "fail" {
		return // its output belongs to the failure of its test
	}
	output := p.take(e)
	took := timing{name: e.Package + " " + e.Test, took: time.Duration(e.Elapsed * float64(time.Second))}
	switch {
	case e.Test == "" && e.Action == "skip": // a package without tests
	case e.Test == "" && e.Action == "fail":
		// A panic, a limit or an exit has ended the tests that have no event for their end by now.
		fmt.Fprint(&j.out, output)
		if regexp.MustCompile(`(?m)^([^F\n]|F[^A])`).MatchString(output) { // more than FAIL and the package
			r.failures = append(r.failures, output)
		}
	case e.Test == "":
		fmt.Fprintf(&j.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
	case e.Action == "skip":
		r.failed++
		output = fmt.Sprintf("--- SKIP: %s %s\n%s", e.Package, e.Test, output)
		fmt.Fprint(&j.out, output)
		r.failures = append(r.failures, output)
	case sub:
	case e.Action == "fail":
		r.failed++
		r.times = append(r.times, took)
		fmt.Fprint(&j.out, output)
		r.failures = append(r.failures, output)
	default:
		r.passed++
		r.times = append(r.times, took)
	}
}

// printed has the output of tests and packages that have not ended, in the order of their
// beginnings.
type printed []*testOutput

// A testOutput is the output of one test, or of a package outside of tests.
type testOutput struct {
	packageName, test string
	lines             []string
}

// add adds a line or a part of one. It leaves out what go test -v says about each test.
func (p *printed) add(e event) {
	for _, verb := range []string{"RUN ", "PAUSE ", "CONT ", "NAME ", "PASS "} {
		if strings.HasPrefix(e.Output, "=== "+verb) {
			return
		}
	}
	at := slices.IndexFunc(*p, func(o *testOutput) bool { return o.packageName == e.Package && o.test == e.Test })
	if at < 0 {
		at = len(*p)
		*p = append(*p, &testOutput{packageName: e.Package, test: e.Test})
	}
	o := (*p)[at]
	if strings.HasPrefix(strings.TrimSpace(e.Output), "--- FAIL: "+e.Test+" (") {
		o.lines = slices.Insert(o.lines, 0, e.Output) // -v prints the name behind the output
	} else {
		o.lines = append(o.lines, e.Output)
	}
}

// take removes and returns the output of a test with its subtests, or of a package with its tests.
func (p *printed) take(e event) string {
	var text strings.Builder
	*p = slices.DeleteFunc(*p, func(o *testOutput) bool {
		if o.packageName != e.Package || e.Test != "" && o.test != e.Test && !strings.HasPrefix(o.test, e.Test+"/") {
			return false
		}
		text.WriteString(strings.Join(o.lines, ""))
		return true
	})
	return text.String()
}

// shorten returns the first and the last lines of an output.
func shorten(output string) string {
	const first, last = 20, 20
	lines := slices.Collect(strings.Lines(output))
	if len(lines) <= first+last+1 {
		return output
	}
	return strings.Join(lines[:first], "") + fmt.Sprintf("[%d lines]\n", len(lines)-first-last) +
		strings.Join(lines[len(lines)-last:], "")
}

// inMemory returns the environment of tests that start servers: their temporary files are in memory
// if 8 GB are free there. Servers sync their writes: a disk that is busy with builds stalls them
// for seconds, and such a fault is not under test. The builds of Go stay on disk.
func inMemory() []string {
	const room = "/dev/shm"
	if free(room) < 8<<30 || available() < 12<<30 {
		return nil
	}
	return []string{"GOTMPDIR=" + os.TempDir(), "TMPDIR=" + room}
}

// free returns the free bytes of the file system at path, if programs may run from there.
func free(path string) int64 {
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+path+" ") && strings.Contains(line, "noexec") {
			return 0
		}
	}
	out, err := exec.Command("df", "-Pk", path).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if err != nil || len(fields) < 4 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[3], 10, 64)
	return kib << 10
}

// available returns the bytes of memory that programs can still get.
func available() int64 {
	info, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}
