package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// processors are the values of GOMAXPROCS, which runs have in turn.
var processors = []int{1, 2, 8}

type options struct {
	folder          string // of the package
	run, skip, tags string
	runs            int
	beside          int
	loops           int
	subtests        bool
	timeout         time.Duration
}

// repeat compiles the tests, runs them, and prints what it saw. It returns how many runs failed.
func (o *options) repeat(ctx context.Context, out io.Writer) (failed int, err error) {
	work, err := os.MkdirTemp("", "flaky")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "package.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-race", "-tags", o.tags, "-o", binary, ".")
	build.Dir = o.folder
	if text, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("compile the tests of %s: %w\n%s", o.folder, err, text)
	}
	if !isFile(binary) {
		return 0, fmt.Errorf("%s has no tests", o.folder)
	}
	converter, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		return 0, fmt.Errorf("find test2json: %w", err)
	}

	stop, err := startLoops(o.loops)
	if err != nil {
		return 0, err
	}
	defer stop()
	t := newTable(o.subtests)
	var running sync.WaitGroup
	numbers := make(chan int)
	for range min(o.beside, o.runs) {
		running.Go(func() {
			for i := range numbers {
				r := o.once(ctx, binary, strings.TrimSpace(string(converter)), processors[i%len(processors)])
				if ctx.Err() == nil { // otherwise the run was ended
					t.add(r, out)
				}
			}
		})
	}
	for i := range o.runs {
		select {
		case numbers <- i:
		case <-ctx.Done():
		}
	}
	close(numbers)
	running.Wait()
	t.print(out)
	if ctx.Err() != nil {
		return t.failed, errors.New("interrupted")
	}
	return t.failed, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// A run describes one process of the tests.
type run struct {
	processors int
	failed     bool
	output     string // all of it
	took       time.Duration
	tests      map[string]*result
}

// A result is the result of a test in one run.
type result struct {
	// action is the last action of the test: run, pause, cont, pass, fail, or skip.
	action string
	// took is the time from the begin to the end, without pauses. It includes subtests that are
	// parallel, unlike the time that the test prints.
	took   time.Duration
	since  time.Time
	output strings.Builder
}

func (r *result) ended() bool { return r.action == "pass" || r.action == "fail" || r.action == "skip" }

// once runs all tests once in a process of their own.
func (o *options) once(ctx context.Context, binary, converter string, processors int) *run {
	args := []string{"-test.v=test2json", "-test.shuffle=on", "-test.paniconexit0", "-test.timeout=" + o.timeout.String()}
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	if o.skip != "" {
		args = append(args, "-test.skip="+o.skip)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = o.folder
	cmd.WaitDelay = 10 * time.Second // a server that outlives the tests keeps their output open
	cmd.Env = append(os.Environ(), "CI=true", fmt.Sprint("GOMAXPROCS=", processors))
	var text, events bytes.Buffer
	convert := exec.Command(converter, "-t") // adds the time to each line when it comes
	convert.Stdout = &events
	lines, err := convert.StdinPipe()
	if err == nil {
		err = convert.Start()
	}
	if err != nil {
		return &run{processors: processors, failed: true, output: fmt.Sprintf("start test2json: %v\n", err)}
	}
	both := io.MultiWriter(&text, lines)
	cmd.Stdout, cmd.Stderr = both, both
	begin := time.Now()
	err = cmd.Run()
	r := &run{processors: processors, failed: err != nil, took: time.Since(begin), tests: make(map[string]*result)}
	lines.Close()
	r.output = text.String()
	if err != nil {
		r.output += err.Error() + "\n"
	}
	if err := convert.Wait(); err != nil {
		r.failed = true
		r.output += fmt.Sprintf("test2json: %v\n", err)
	}
	r.read(&events)
	if r.failed {
		r.blame()
	}
	return r
}

// read reads the events of test2json.
func (r *run) read(events *bytes.Buffer) {
	for line := range bytes.Lines(events.Bytes()) {
		var event struct {
			Time                 time.Time
			Action, Test, Output string
		}
		if json.Unmarshal(line, &event) != nil || event.Test == "" {
			continue
		}
		test := r.tests[event.Test]
		if test == nil {
			test = new(result)
			r.tests[event.Test] = test
		}
		if event.Action == "output" {
			test.output.WriteString(event.Output)
			continue
		}
		if test.action == "run" || test.action == "cont" {
			test.took += event.Time.Sub(test.since)
		}
		test.action, test.since = event.Action, event.Time
	}
}

// blame finds which tests a failed process is to be counted for, if no test has failed itself: the
// tests that ran when the process ended. After a hang, these are the tests that the runtime names.
func (r *run) blame() {
	_, hung, timedOut := strings.Cut(r.output, "panic: test timed out after")
	for name, test := range r.tests {
		if test.action == "fail" && !timedOut {
			return
		}
		if timedOut && !test.ended() && !strings.Contains(hung, "\t"+name+" (") {
			test.action = "pause"
		}
	}
	for name, test := range r.tests {
		if test.action != "run" && test.action != "cont" {
			continue
		}
		test.took = r.took
		parent := false
		for other, inside := range r.tests {
			parent = parent || strings.HasPrefix(other, name+"/") && !inside.ended()
		}
		if !parent { // a subtest shows the output
			test.output.Reset()
			test.output.WriteString(r.output)
		}
	}
	for _, test := range r.tests {
		if test.action == "run" || test.action == "cont" {
			test.action = "fail"
		}
	}
}

// A table counts the results of all runs.
type table struct {
	subtests bool

	mu     sync.Mutex
	runs   int
	failed int
	tests  map[string]*row
}

// A row is the row of the table for one test.
type row struct {
	failed int
	times  []time.Duration
}

// whole is the row of faults that belong to no test, such as a goroutine that outlives all tests.
const whole = "(the whole binary)"

func newTable(subtests bool) *table { return &table{subtests: subtests, tests: make(map[string]*row)} }

// add counts a run, and prints what a test printed when it failed for the first time.
func (t *table) add(r *run, out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	of := t.row(whole)
	of.times = append(of.times, r.took)
	blamed := false
	for name, test := range r.tests {
		if !test.ended() {
			continue
		}
		row := t.row(name)
		row.times = append(row.times, test.took)
		if test.action != "fail" {
			continue
		}
		blamed = true
		if row.failed++; row.failed == 1 {
			fmt.Fprintf(out, "FAIL %s in run %d, GOMAXPROCS=%d:\n%s\n", name, t.runs, r.processors, test.output.String())
		}
	}
	if !r.failed {
		return
	}
	t.failed++
	if !blamed {
		if of.failed++; of.failed == 1 {
			fmt.Fprintf(out, "FAIL %s in run %d, GOMAXPROCS=%d:\n%s\n", whole, t.runs, r.processors, r.output)
		}
	}
}

func (t *table) row(name string) *row {
	if t.tests[name] == nil {
		t.tests[name] = new(row)
	}
	return t.tests[name]
}

// print prints the tests, the slowest first, and the line that ends the output.
func (t *table) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	width := 0
	for name, row := range t.tests {
		slices.Sort(row.times)
		if t.subtests || row.failed > 0 || !strings.Contains(name, "/") {
			names = append(names, name)
			width = max(width, len(name))
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := t.tests[a], t.tests[b]
		return cmp.Or(cmp.Compare(y.median(), x.median()), cmp.Compare(y.longest(), x.longest()), cmp.Compare(a, b))
	})
	fmt.Fprintf(out, "%-*s %6s %6s %9s %9s\n", width, "test", "runs", "failed", "median", "longest")
	for _, name := range names {
		row := t.tests[name]
		fmt.Fprintf(out, "%-*s %6d %6d %8.2fs %8.2fs\n", width, name, len(row.times), row.failed,
			row.median().Seconds(), row.longest().Seconds())
	}
	fmt.Fprintf(out, "%d runs, %d failed\n", t.runs, t.failed)
}

func (r *row) median() time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[len(r.times)/2]
}

func (r *row) longest() time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[len(r.times)-1]
}
