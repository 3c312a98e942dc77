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
	for _, lines := range [][]string{got, want} {
		slices.Sort(lines)
	}
	if !slices.Equal(got, want) {
		t.Errorf("go vet printed\n%s\nand README.md shows\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
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

var folder = regexp.MustCompile(`^\S*/`)

// vet returns what go vet prints with lockvet as its tool, about a package with mistakes.
func vet(t *testing.T, dir string, flags ...string) []string {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	vet := exec.Command("go", append(append([]string{"vet", "-vettool=" + tool}, flags...), ".")...)
	vet.Dir = filepath.Join("checks", "testdata", dir)
	vet.Env = append(os.Environ(), "GOWORK=off", "PWD=")
	out, err := vet.CombinedOutput()
	if err == nil {
		t.Error("go vet found nothing")
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, line := range lines {
		// A line may have the folder of another copy of the module: go vet keeps results in the cache,
		// and with -trimpath the key of a result has no folder.
		lines[i] = folder.ReplaceAllString(line, "")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "#") })
}
