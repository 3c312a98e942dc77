package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, c *ci, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, filepath.FromSlash(name)))
	must(t, err)
	return string(text)
}

func open(t *testing.T) *ci {
	t.Helper()
	c, err := newCI(".")
	must(t, err)
	return c
}

// parts returns the parts of the steps of a run, each once.
func parts(c *ci, full bool) []string {
	var parts []string
	for _, s := range c.steps() {
		if (s.gate || full) && s.part != preparation && !slices.Contains(parts, s.part) {
			parts = append(parts, s.part)
		}
	}
	slices.Sort(parts)
	return parts
}

func TestPublicCIRunsEveryPart(t *testing.T) {
	c := open(t)
	for file, full := range map[string]bool{"ci.yml": false, "nightly.yml": true} {
		matrix := regexp.MustCompile(`(?m)^ +part: \[(.*)\]$`).FindStringSubmatch(read(t, c, ".github/workflows/"+file))
		if matrix == nil {
			t.Fatalf("%s has no list of parts", file)
		}
		listed := strings.Split(matrix[1], ", ")
		slices.Sort(listed)
		if want := parts(c, full); !slices.Equal(listed, want) {
			t.Errorf("%s runs %v, .ci/run has %v", file, listed, want)
		}
	}
}

func TestEveryPackageIsForAKnownStep(t *testing.T) {
	c := open(t)
	known := []string{"all", "full"}
	for _, s := range c.steps() {
		known = append(known, s.name, s.part)
	}
	for line := range strings.Lines(read(t, c, ".ci/packages")) {
		needing, _, ok := strings.Cut(line, " : ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for _, name := range strings.Fields(needing) {
			if !slices.Contains(known, name) {
				t.Errorf(".ci/packages: .ci/run has no step or part %s: %s", name, line)
			}
		}
	}
}

// subtests is the part of a pattern behind the name of a test, where bars in parentheses may be.
var subtests = regexp.MustCompile(`/[^|(]*(\([^)]*\)[^|(]*)*`)

// A pattern that names no test any more would hide a new test of that name.
func TestEveryPatternOfTheFullRunNamesATest(t *testing.T) {
	c := open(t)
	lines, err := readFull(c.folder)
	must(t, err)
	var sorted []string
	for _, l := range lines {
		sorted = append(sorted, l.module)
		if l.reason == "" {
			t.Errorf(".ci/full: %s %s has no reason", l.module, l.pattern)
		}
		module := filepath.Join(c.folder, filepath.FromSlash(l.module))
		var names []string
		must(t, filepath.WalkDir(module, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path != module {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return filepath.SkipDir
				}
			}
			if !strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`).FindAllSubmatch(text, -1) {
				names = append(names, string(m[1]))
			}
			return err
		}))
		for top := range strings.SplitSeq(subtests.ReplaceAllString(l.pattern, ""), "|") {
			re, err := regexp.Compile(top)
			must(t, err)
			if !slices.ContainsFunc(names, re.MatchString) {
				t.Errorf(".ci/full: no test of %s has the name %s", l.module, top)
			}
		}
	}
	if !slices.IsSorted(sorted) {
		t.Error(".ci/full is not sorted by module")
	}
}

func TestPatternsOfWholeTestsAreFirst(t *testing.T) {
	got := wholeFirst([]string{"^Test/^(a|b/c)$/^x[/|]$|^TestA$/^a$", "^TestB$|^TestC$"})
	if want := "^TestB$|^TestC$|^TestA$/^a$|^Test/^(a|b/c)$/^x[/|]$"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestANamedPartHasTheStepsOfTheRun(t *testing.T) {
	all := []step{{name: "setup", part: preparation, gate: true}, {name: "vet", part: "lint", gate: true}, {name: "tidy", part: "lint"}, {name: "races", part: "core", gate: true}}
	for _, x := range []struct {
		full bool
		args []string
		want string
	}{
		{false, nil, "setup vet races"},
		{true, nil, "setup vet tidy races"},
		{false, []string{"lint"}, "setup vet"},
		{true, []string{"lint"}, "setup vet tidy"},
		{false, []string{"tidy"}, "setup tidy"},
		{false, []string{"races", "vet"}, "setup vet races"},
	} {
		chosen, err := choose(all, x.full, x.args)
		must(t, err)
		var names []string
		for _, s := range chosen {
			names = append(names, s.name)
		}
		if got := strings.Join(names, " "); got != x.want {
			t.Errorf("full %v, %v: %s, want %s", x.full, x.args, got, x.want)
		}
	}
	if _, err := choose(all, false, []string{"vett"}); err == nil {
		t.Error("an unknown name is no error")
	}
}

// events runs go test -json over a package with one file, and lets a job read the output.
func events(t *testing.T, file string, flags ...string) (results, string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/x\n\ngo 1.26\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte("package x\n\nimport \"testing\"\n\n"+file), 0o644))
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-json", "-count=1"}, flags...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+dir)
	out, _ := cmd.Output()
	j := &job{ci: &ci{}}
	r := j.read(bytes.NewReader(out))
	return r, string(j.out.Bytes())
}

func TestTestsHaveTheRoomOfTheChecksWhenTheseAreOver(t *testing.T) {
	c := open(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var starts []time.Duration
		check := func(context.Context, *job) error { time.Sleep(10 * time.Second); return nil }
		test := func(context.Context, *job) error {
			mu.Lock()
			starts = append(starts, time.Since(began))
			mu.Unlock()
			time.Sleep(25 * time.Second)
			return nil
		}
		all := []step{{name: "a", lane: checks, do: check}, {name: "b", lane: checks, do: check}}
		for range 8 {
			all = append(all, step{name: "test", lane: tests, do: test})
		}
		must(t, c.run(t.Context(), all))
		want := []time.Duration{0, 0, 0, 10, 10, 25, 25, 25}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(starts, want) {
			t.Errorf("the tests began at %v, want %v", starts, want)
		}
	})
}

func TestAFailingTestIsShownAndCounted(t *testing.T) {
	r, out := events(t, `
func TestA(t *testing.T) { t.Log("quiet") }
func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("broken") }) }
`)
	if r.passed != 1 || r.failed != 1 || !strings.Contains(out, "broken") || strings.Contains(out, "quiet") {
		t.Errorf("%+v\n%s", r, out)
	}
}

// The tests that run at the end of a process have no event for it.
func TestATestThatEndsTheProcessIsShown(t *testing.T) {
	for name, end := range map[string]string{
		"exit":      `fmt.Println("broken"); os.Exit(3)`,
		"goroutine": `go panic("broken"); select {}`,
		"limit":     `fmt.Println("broken"); time.Sleep(time.Hour)`,
	} {
		t.Run(name, func(t *testing.T) {
			limit := "10m"
			if name == "limit" {
				limit = "1s"
			}
			r, out := events(t, fmt.Sprintf(`
import ("fmt"; "os"; "time")
var _, _, _ = fmt.Print, os.Exit, time.Now
func TestA(t *testing.T) { t.Log("quiet") }
func TestB(t *testing.T) { t.Run("sub", func(t *testing.T) { %s }) }
`, end), "-timeout="+limit)
			if len(r.failures) != 1 || !strings.Contains(out, "broken") || strings.Contains(out, "quiet") {
				t.Errorf("%+v\n%s", r, out)
			}
		})
	}
}

func TestAFailuresOutputBeginsWithTheName(t *testing.T) {
	_, out := events(t, `
func TestA(t *testing.T) { t.Parallel(); t.Log("first"); t.Run("sub", func(t *testing.T) { t.Error("broken") }) }
func TestB(t *testing.T) { t.Parallel(); t.Error("also") }
`)
	out = regexp.MustCompile(`\d+\.\d+s`).ReplaceAllString(out, "0s")
	for _, want := range []string{
		"--- FAIL: TestA (0s)\n    x_test.go:6: first\n--- FAIL: TestA/sub (0s)\n    x_test.go:6: broken\n",
		"--- FAIL: TestB (0s)\n    x_test.go:7: also\n",
	} {
		if !strings.Contains(strings.ReplaceAll(out, "    --- FAIL", "--- FAIL"), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "===") {
		t.Error(out)
	}
}

func TestALongFailureKeepsHeadAndTail(t *testing.T) {
	short := strings.Repeat("x\n", 41)
	if got := shorten(short); got != short {
		t.Errorf("41 lines became %q", got)
	}
	got := shorten("head\n" + strings.Repeat("x\n", 98) + "tail\n")
	if !strings.HasPrefix(got, "head\n") || !strings.HasSuffix(got, "tail\n") || !strings.Contains(got, "[60 lines]") {
		t.Error(got)
	}
}

func TestATestThatSkipsItselfFails(t *testing.T) {
	r, out := events(t, `
func TestA(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Skip("no server") }) }
`)
	if r.failed != 1 || !strings.Contains(out, "no server") {
		t.Errorf("%+v\n%s", r, out)
	}
}

func TestAPackageThatDoesNotCompileIsShown(t *testing.T) {
	_, out := events(t, "func TestA(t *testing.T) { undefined() }\n")
	if !strings.Contains(out, "undefined: undefined") {
		t.Error(out)
	}
}

func TestAPanicOutsideOfTestsIsShown(t *testing.T) {
	_, out := events(t, "func TestMain(*testing.M) { panic(\"main is broken\") }\n")
	if !strings.Contains(out, "main is broken") {
		t.Error(out)
	}
}

func TestAStepsOutputHasEventsAndErrors(t *testing.T) {
	c := open(t)
	j := &job{ci: c}
	must(t, j.goTest(t.Context(), ".", nil, "-count=1", "-run=^$", "./cas", "./named"))
	if out := string(j.out.Bytes()); strings.Count(out, "ok  \t") != 2 {
		t.Errorf("two packages passed, and the output is %q", out)
	}
}

func TestOnlyTheFullRunDrawsNewSeeds(t *testing.T) {
	t.Setenv("LOCKS_SEARCH", "") // the full run sets it for this test, and the gate sets RAPID_SEED
	t.Setenv("RAPID_SEED", "")
	file := filepath.Join("..", "..", "internal", "test", "effort", "effort.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, search := range []string{allSearches, newSearches} {
		name, value, _ := strings.Cut(search, "=")
		for _, asks := range []string{fmt.Sprintf("os.Getenv(%q)", name), fmt.Sprintf("== %q", value)} {
			if !strings.Contains(string(text), asks) {
				t.Errorf("%s does not have %s", file, asks)
			}
		}
	}
	// In the place of go, a program writes its environment down.
	folder := t.TempDir()
	env := filepath.Join(folder, "env")
	must(t, os.WriteFile(filepath.Join(folder, "go"), []byte("#!/bin/sh\nexec env >"+env+"\n"), 0o755))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	newer := func(c *ci, j *job) error { return c.newer(t.Context(), j) }
	races := func(c *ci, j *job) error { return races(t.Context(), j) }
	for _, test := range []struct {
		name string
		full bool
		step func(*ci, *job) error
		want string
	}{
		{"newer of the gate", false, newer, allSearches},
		{"newer of the gate", false, newer, sameSeed},
		{"races of the gate", false, races, "LOCKS_SEARCH="},
		{"races of the gate", false, races, sameSeed},
		{"newer of the full run", true, newer, newSearches},
		{"newer of the full run", true, newer, "RAPID_SEED="},
		{"races of the full run", true, races, newSearches},
	} {
		c := open(t)
		c.full = test.full
		must(t, test.step(c, &job{ci: c}))
		set, err := os.ReadFile(env)
		must(t, err)
		if !slices.Contains(strings.Split(string(set), "\n"), test.want) {
			t.Errorf("%s has no %s", test.name, test.want)
		}
	}
}

func TestTheTestCommandOfTheREADMEIsFound(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		string(page):                     "./...",
		"go test ./... # all\n":          "./...",
		"go test ./fair\n":               "./fair",
		"go test -race ./...\n":          "",
		"run go test ./... in a clone\n": "",
	} {
		if got := testPattern([]byte(text)); got != want {
			t.Errorf("the packages are %q, want %q, of a page that begins with %.40q", got, want, text)
		}
	}
}
