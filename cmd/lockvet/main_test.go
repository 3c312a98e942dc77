package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheREADMEShowsARealGoVet(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text\n\\$ go vet [^\n]*\n(.*?)```").FindSubmatch(text)
	if shown == nil {
		t.Fatal("README.md shows no run")
	}
	got := vet(t, "shop")
	want := strings.Split(strings.TrimSpace(string(shown[1])), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("README.md does not show %q", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("go vet did not print %q", line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("go vet printed %d lines, README.md shows %d", len(got), len(want))
	}
}

func TestOnlyFindingsOfGoVetAreCompared(t *testing.T) {
	for _, x := range []struct {
		line, finding string
		foreign       bool
	}{
		{"shop.go:27:2: deferred Lock", "shop.go:27:2: deferred Lock", false},
		{"./shop.go:27:2: deferred Lock", "shop.go:27:2: deferred Lock", false},
		{"../../a clone/shop.go:22:2: \tacquired here", "shop.go:22:2: \tacquired here", false},
		{`C:\x\shop.go:22:2: a/b.go:1:1: c`, "shop.go:22:2: a/b.go:1:1: c", false},
		{"# example.com/testdata/shop", "", false},
		{"go: downloading github.com/petermattis/goid v0.0.0", "", false},
		{"panic: nil map", "", true},
	} {
		finding, foreign := findingOf(x.line)
		if finding != x.finding || foreign != x.foreign {
			t.Errorf("%q: %q, foreign %t", x.line, finding, foreign)
		}
	}
}

func TestAFlagNamesTypesOfLocks(t *testing.T) {
	got := vet(t, "named", "-locktypes=example.com/testdata/named.Mutex")
	for _, check := range []string{"(doublelock)", "(missingunlock)"} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasSuffix(line, check) }) {
			t.Errorf("no report of %s: %q", check, got)
		}
	}
}

// A flag that only package multichecker knows makes it load the packages.
func TestReportsAreEqualByBothLoaders(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(args ...string) string {
		lockvet := exec.Command(tool, args...)
		lockvet.Dir = filepath.Join("checks", "testdata")
		lockvet.Env = append(os.Environ(), "GOWORK=off", "PWD=", "LC_ALL=C")
		out, err := lockvet.CombinedOutput()
		if lockvet.ProcessState.ExitCode() != 3 {
			t.Errorf("%v: %v", args, err)
		}
		lines := strings.Split(string(out), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	for _, args := range [][]string{{"./shop", "./across"}, {"-lockorder", "./shop"}, {"-deferlock=false", "-test=false", "./shop"}} {
		own, other := run(args...), run(append([]string{"-c=-1"}, args...)...)
		if own != other {
			t.Errorf("%v:\n%s\nby multichecker:\n%s", args, own, other)
		}
	}
}

// vet returns the findings of go vet with lockvet as its tool, about a package with mistakes.
func vet(t *testing.T, dir string, flags ...string) []string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	vet := exec.Command("go", append(append([]string{"vet", "-vettool=" + tool}, flags...), ".")...)
	vet.Dir = filepath.Join("checks", "testdata", dir)
	vet.Env = append(os.Environ(), "GOWORK=off", "PWD=", "LC_ALL=C")
	out, err := vet.CombinedOutput()
	if err == nil {
		t.Error("go vet found nothing")
	}
	var findings []string
	for line := range strings.Lines(string(out)) {
		finding, foreign := findingOf(strings.TrimRight(line, "\r\n"))
		if foreign {
			t.Errorf("go vet printed %q", line)
		}
		if finding != "" {
			findings = append(findings, finding)
		}
	}
	return findings
}

// findingOf returns the finding in a line of go vet without the folder of its file, and whether the
// line is neither a finding nor a message of the go command.
//
// The folder may be one of another copy of the repository: go vet keeps its findings in the cache,
// and with -trimpath their key lacks a folder.
func findingOf(line string) (finding string, foreign bool) {
	m := regexp.MustCompile(`^(?:.*?[/\\])?(\w+\.go:\d+:\d+: .*)$`).FindStringSubmatch(line)
	if m != nil {
		return m[1], false
	}
	return "", !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: ")
}
