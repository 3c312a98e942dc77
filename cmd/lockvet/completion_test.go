package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jucgo/locks/cmd/lockvet/checks"
)

func TestTheScriptsOfCompletionParse(t *testing.T) {
	for shell, script := range scriptOf {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				if shell == "bash" {
					t.Fatal(err)
				}
				t.Logf("no %s on this machine: nothing was parsed", shell)
				return
			}
			if out, err := exec.Command(path, "-n", filepath.Join("completion", script)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestCompletionSuggestsWhatComesNext(t *testing.T) {
	for _, x := range []struct{ words, want string }{
		{"help lockor", "lockorder"},
		{"help completion ", "bash fish zsh"},
		{"-lockord", "-lockorder"},
		{"-f", "-fix"},
		{"he", "help"},
		{"./ch", ""},
		{"help nothing", ""},
	} {
		var out bytes.Buffer
		code := complete(strings.Split(x.words, " "), checks.Analyzers(), &out)
		var names []string
		for line := range strings.Lines(out.String()) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if names = append(names, name); text == "" {
				t.Errorf("%q: %s has no text", x.words, name)
			}
		}
		if got := strings.Join(names, " "); got != x.want || (code == 0) != (x.want != "") {
			t.Errorf("%q: %q, code %d", x.words, got, code)
		}
	}
}

func TestTheHelpPrintsTheCompletionOfAShell(t *testing.T) {
	for shell, script := range scriptOf {
		want, err := os.ReadFile(filepath.Join("completion", script))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := asked(t, 0, "help", "completion", shell); got != string(want) {
			t.Errorf("%s: %s", shell, got)
		}
	}
	if _, stderr := asked(t, 1, "help", "completion", "ksh"); !strings.Contains(stderr, "need a shell") {
		t.Error(stderr)
	}
}

// The driver declares its flags in its own main function.
func TestCompletionKnowsTheFlagsOfTheDriver(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range flags {
		name, _, _ := strings.Cut(f.name, "=")
		args := []string{name, "-V=short"}
		if name == "-locktypes" {
			args[0] = "-locktypes=a/b.C"
		}
		out, err := exec.Command(tool, args...).CombinedOutput()
		if strings.Contains(string(out), flag.ErrHelp.Error()) || strings.Contains(string(out), "not defined") {
			t.Errorf("%s: %v %s", f.name, err, out)
		}
	}
}
