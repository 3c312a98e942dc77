package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

// asked returns what helped prints for args.
func asked(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code, ok := helped(args, checks.Analyzers(), &out, &errs)
	if !ok || code != want {
		t.Errorf("%q: code %d, %t", args, code, ok)
	}
	return out.String(), errs.String()
}

func TestTheManualOfLockvetIsCurrent(t *testing.T) {
	want, err := os.ReadFile("lockvet.1")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := asked(t, 0, "help", "man"); got != string(want) {
		t.Error("lockvet.1 is stale: run go generate")
	}
}

func TestHelpAndManualOfLockvetSayTheSame(t *testing.T) {
	help, _ := asked(t, 0, "help")
	man, _ := asked(t, 0, "help", "man")
	man = strings.NewReplacer(`\-`, "-", `\e`, `\`).Replace(man)
	for _, text := range []string{help, man} {
		for _, u := range usages {
			wants(t, text, u.line, u.purpose)
		}
		for _, a := range checks.Analyzers() {
			wants(t, text, a.Name, title(a))
		}
		for _, e := range exitCodes {
			wants(t, text, e.code+" ", e.meaning)
		}
		wants(t, text, append(unseen, about, limits, other)...)
	}
	for _, args := range [][]string{{"-h"}, {"--help"}, {"-help"}} {
		if got, _ := asked(t, 0, args...); got != help {
			t.Errorf("%q is not help", args)
		}
	}
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	fields := strings.Join(strings.Fields(text), " ")
	for _, part := range parts {
		if !strings.Contains(fields, strings.Join(strings.Fields(part), " ")) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestTheHelpOfACheckSaysItsLimits(t *testing.T) {
	for _, a := range checks.Analyzers() {
		text, _ := asked(t, 0, "help", a.Name)
		wants(t, text, a.Doc, limits)
	}
}

func TestAnUnknownCheckIsOneLine(t *testing.T) {
	_, stderr := asked(t, 1, "help", "lockordr")
	if stderr != "lockvet: no check is called \"lockordr\": see lockvet help\n" {
		t.Error(stderr)
	}
	if _, stderr := asked(t, 1); strings.Count(stderr, "\n") != 1 {
		t.Error(stderr)
	}
}

// The flags and exit codes come from the driver.
func TestTheExitCodesOfTheHelpAreTrue(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		code, lines int // lines of stderr at most, or 0
		args        []string
	}{
		{1, 0, []string{"./no-such-package"}},
		{1, 1, nil},
		{1, 1, []string{"help", "nothing"}},
		{2, 2, []string{"-lockordr", "./shop"}},
		{3, 0, []string{"./shop"}},
		{3, 0, []string{"-lockorder", "./shop"}},
		{0, 0, []string{"-waitloop", "./shop"}},
		{0, 0, []string{"help"}},
	} {
		cmd := exec.Command(tool, c.args...)
		cmd.Dir = filepath.Join("checks", "testdata")
		cmd.Env = append(os.Environ(), "GOWORK=off", "PWD=", "LC_ALL=C")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		lines := strings.Count(stderr.String(), "\n")
		if cmd.ProcessState.ExitCode() != c.code || c.lines > 0 && lines != c.lines {
			t.Errorf("lockvet %q: code %d\n%s", c.args, cmd.ProcessState.ExitCode(), stderr.String())
		}
	}
}
