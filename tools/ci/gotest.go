package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// results counts tests, not subtests.
type results struct {
	passed, failed int
	times          []timing
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

// goTest runs go test in a folder of the repository. It prints a line for each package, and all
// that a failing test or package printed. A test that skips itself fails: what is left out here is
// left out by name, in .ci/full.
func (j *job) goTest(ctx context.Context, folder string, env []string, args ...string) error {
	cmd := j.command(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = j.path(folder)
	cmd.Env = append(cmd.Env, append(env, "PWD="+cmd.Dir)...)
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
	j.mu.Lock()
	j.result.passed += r.passed
	j.result.failed += r.failed
	j.result.times = append(j.result.times, r.times...)
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
	printed := map[string]*strings.Builder{} // by package and test
	of := func(key string) *strings.Builder {
		if printed[key] == nil {
			printed[key] = &strings.Builder{}
		}
		return printed[key]
	}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(&j.out, line)
				continue
			}
			top, _, sub := strings.Cut(e.Test, "/")
			key := e.Package + " " + top
			switch e.Action {
			case "build-output":
				fmt.Fprint(&j.out, e.Output)
			case "output":
				of(key).WriteString(e.Output)
			case "pass", "fail", "skip":
				j.ended(&r, e, sub, of(key).String())
				if !sub {
					delete(printed, key)
				}
			}
		}
		if err != nil {
			return r
		}
	}
}

// ended counts the end of a test or package, and prints what has to be seen of it.
func (j *job) ended(r *results, e event, sub bool, printed string) {
	took := timing{e.Package + " " + e.Test, time.Duration(e.Elapsed * float64(time.Second))}
	switch {
	case e.Test == "" && e.Action == "skip": // a package without tests
	case e.Test == "":
		if e.Action == "fail" {
			fmt.Fprint(&j.out, printed)
		} else {
			fmt.Fprintf(&j.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
		}
	case e.Action == "skip":
		r.failed++
		fmt.Fprintf(&j.out, "--- SKIP: %s %s\n%s", e.Package, e.Test, printed)
	case sub:
	case e.Action == "fail":
		r.failed++
		r.times = append(r.times, took)
		fmt.Fprint(&j.out, printed)
	default:
		r.passed++
		r.times = append(r.times, took)
	}
}

// inMemory returns the environment of tests that start servers: their temporary files are in memory
// if 8 GB are free there. Servers sync what they write: a disk that is busy with builds stalls them
// for seconds, and no such fault is under test. What Go builds stays on disk.
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
