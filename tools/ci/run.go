package main

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A lane says beside which other steps a step runs.
type lane int

const (
	first   lane = iota // alone and in order, before all others
	prepare             // at the same time, after the first and before the others
	checks              // two at a time, with a lower priority than the tests beside them
	tests               // three at a time, five when the checks are over: these steps mostly wait
	last                // alone and in order, after all others
)

// How many steps of a lane run at a time, while both lanes have some. The checks mostly compute.
// But most of them wait for a single process again and again, such as the linker of a program. The
// packages that compile for minutes on an empty cache are compiled before: beside such a
// compilation, a request to a real server takes seconds.
const (
	checksAtATime = 2
	testsAtATime  = 3
)

// A step is one check.
type step struct {
	name string
	part string
	what string // what it checks, for people
	gate bool   // whether a change has to pass it; the full run has all steps
	lane lane
	do   func(context.Context, *job) error
}

// ci is one run.
type ci struct {
	folder string // of the repository
	work   *workspace.Workspace
	full   bool
	began  time.Time
	temp   string   // a folder for what steps build
	names  []string // of the steps
	parts  []string // of the steps, each once

	mu     sync.Mutex
	result results
	times  []timing
	failed []string
	readme []byte // what the test command of the README printed
}

// A timing is how long a step or a test took, and for how long the programs of a step computed.
type timing struct {
	name           string
	took, computed time.Duration
}

func newCI(folder string) (*ci, error) {
	w, err := workspace.Open(folder)
	if err != nil {
		return nil, err
	}
	return &ci{folder: w.Folder, work: w, began: time.Now()}, nil
}

// run runs the steps, and goes on after a failure, so that one run shows all failures.
func (c *ci) run(ctx context.Context, steps []step) error {
	temp, err := os.MkdirTemp("", "ci")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	c.temp = temp
	for _, s := range steps {
		c.names = append(c.names, s.name)
		if !slices.Contains(c.parts, s.part) {
			c.parts = append(c.parts, s.part)
		}
	}
	of := func(l lane) []step {
		return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.lane != l })
	}
	for _, s := range of(first) {
		if !c.one(ctx, s) {
			return c.report() // what follows needs these
		}
	}
	c.some(ctx, of(prepare), make(chan struct{}, len(steps)))
	// When the checks are over, tests have their room too.
	room := make(chan struct{}, testsAtATime+checksAtATime)
	for range checksAtATime {
		room <- struct{}{}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		c.some(ctx, of(checks), make(chan struct{}, checksAtATime))
		for range checksAtATime {
			<-room
		}
	})
	c.some(ctx, of(tests), room)
	wg.Wait()
	for _, s := range of(last) {
		c.one(ctx, s)
	}
	return c.report()
}

// some runs steps in their order, as many at a time as there is room for.
func (c *ci) some(ctx context.Context, steps []step, room chan struct{}) {
	var wg sync.WaitGroup
	for _, s := range steps {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c.one(ctx, s)
		})
	}
	wg.Wait()
}

// one runs a step, and prints its output when it has ended.
func (c *ci) one(ctx context.Context, s step) bool {
	if ctx.Err() != nil {
		return false
	}
	began := time.Now()
	j := &job{ci: c, nice: s.lane == checks}
	err := s.do(ctx, j)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	took := time.Since(began)

	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, timing{s.name, took, j.computed})
	fmt.Printf("\n== %4.0f s: %s, %.0f s: %s\n", time.Since(c.began).Seconds(), s.name, took.Seconds(), s.what)
	os.Stdout.Write(j.out.Bytes())
	if err != nil {
		c.failed = append(c.failed, s.name)
		fmt.Printf("FAILED %s: %v\n", s.name, err)
	}
	return err == nil
}

// report prints the times of the steps, and then what the test runner says.
func (c *ci) report() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	slowest := func(times []timing) []timing {
		slices.SortFunc(times, func(a, b timing) int { return cmp.Compare(b.took, a.took) })
		return times
	}
	if tests := slowest(c.result.times); len(tests) > 0 {
		fmt.Print("\nseconds  test (the slowest)\n")
		for _, t := range tests[:min(15, len(tests))] {
			fmt.Printf("%7.1f  %s\n", t.took.Seconds(), t.name)
		}
	}
	fmt.Print("\nseconds  of processors  step\n")
	var computed time.Duration
	for _, t := range slowest(c.times) {
		computed += t.computed
		fmt.Printf("%7.1f  %13.1f  %s\n", t.took.Seconds(), t.computed.Seconds(), t.name)
	}
	fmt.Printf("%7.1f  %13.1f  all of it, by the clock\n\n", time.Since(c.began).Seconds(), computed.Seconds())
	os.Stdout.Write(c.readme)
	// The output of the steps may be long. So its end repeats what matters most.
	for _, output := range c.result.failures[:min(10, len(c.result.failures))] {
		fmt.Println(shorten(output))
	}
	for _, name := range c.failed {
		fmt.Println("failed:", name)
	}
	if n := c.result; n.passed+n.failed > 0 {
		fmt.Printf("%d passed, %d failed\n", n.passed, n.failed)
	}
	if len(c.failed) > 0 {
		return errors.New("failed: " + strings.Join(c.failed, ", "))
	}
	return nil
}

// A job is a step at work. Its commands follow each other.
type job struct {
	*ci
	nice     bool
	computed time.Duration // by the commands that have ended, on all processors
	out      output
}

// output collects what a step prints. A command and the reader of its events write at a time.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// Bytes returns a copy of the written bytes.
func (o *output) Bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.b.Bytes())
}

// Truncate forgets all but the first n bytes.
func (o *output) Truncate(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Truncate(n)
}

// command returns a command of the repository's folder that writes to the output of the step.
func (j *job) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if j.nice {
		if nice, err := exec.LookPath("nice"); err == nil {
			name, args = nice, append([]string{"-n", "5", name}, args...)
		}
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Dir = j.folder
	cmd.Env = os.Environ()
	cmd.Stdout, cmd.Stderr = &j.out, &j.out
	return cmd
}

// sh runs a command.
func (j *job) sh(ctx context.Context, name string, args ...string) error {
	return j.finish(j.command(ctx, name, args...))
}

// finish runs a command to its end.
func (j *job) finish(cmd *exec.Cmd) error {
	err := cmd.Run()
	j.count(cmd)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

// count adds how long a command that has ended computed, with all processes that it waited for.
func (j *job) count(cmd *exec.Cmd) {
	if s := cmd.ProcessState; s != nil {
		j.computed += s.UserTime() + s.SystemTime()
	}
}

// quiet runs a command whose output matters only if it fails.
func (j *job) quiet(ctx context.Context, name string, args ...string) error {
	before := len(j.out.Bytes())
	err := j.sh(ctx, name, args...)
	if err == nil {
		j.out.Truncate(before)
	}
	return err
}

// retry runs a command up to three times, for downloads.
func (j *job) retry(ctx context.Context, name string, args ...string) error {
	var err error
	for try := range 3 {
		if err = j.quiet(ctx, name, args...); err == nil {
			return nil
		}
		select {
		case <-time.After(time.Duration(10*(try+1)) * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// output runs a command and returns what it prints.
func (j *job) output(ctx context.Context, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := j.command(ctx, name, args...)
	cmd.Stdout = io.MultiWriter(&out)
	err := j.finish(cmd)
	return out.String(), err
}

// path returns a path below the repository.
func (j *job) path(name string) string { return filepath.Join(j.folder, filepath.FromSlash(name)) }
