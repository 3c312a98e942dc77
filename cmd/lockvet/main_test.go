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

func TestTheREADMEShowsARealRunWithinGoVet(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```text\n\\$ go vet [^\n]*\n(.*?)```").FindSubmatch(text)
	if shown == nil {
		t.Fatal("README.md shows no run")
	}
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	vet := exec.Command("go", "vet", "-vettool="+tool, ".")
	vet.Dir = filepath.Join("checks", "testdata", "shop")
	vet.Env = append(os.Environ(), "GOWORK=off", "PWD=")
	out, err := vet.CombinedOutput()
	if err == nil {
		t.Error("go vet found nothing")
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	got = slices.DeleteFunc(got, func(line string) bool { return strings.HasPrefix(line, "#") })
	want := strings.Split(strings.TrimSpace(string(shown[1])), "\n")
	for _, lines := range [][]string{got, want} {
		slices.Sort(lines)
	}
	if !slices.Equal(got, want) {
		t.Errorf("go vet printed\n%s\nand README.md shows\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
