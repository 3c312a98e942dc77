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

func TestALineNamesWhatIsLeftOut(t *testing.T) {
	all := checks.LeftOut{
		Package: "a/b", Acquisitions: 99, Nameless: 1, Given: 2, Unclear: 3, Released: 4, Kept: 5, Generated: 6,
	}
	for _, x := range []struct {
		l    checks.LeftOut
		zh   bool
		want string
	}{
		{checks.LeftOut{Package: "a/b", Acquisitions: 9}, false, ""},
		{checks.LeftOut{Package: "a/b", Acquisitions: 9, Given: 2}, false,
			"a/b: of 9 acquisitions of locks, left out: 2 of locks that other code gets\n"},
		{all, false, "a/b: of 99 acquisitions of locks, left out: 1 without a fixed name such as s.mu; " +
			"2 of locks that other code gets; 3 on paths that are not clear; 4 of locks that another function releases; " +
			"5 in functions that keep the lock, by their name or comment; 6 in generated files\n"},
		{all, true, "a/b：共 99 处加锁，未跟踪：1 处没有 s.mu 这样固定的名字；2 处的锁会交给其他代码；3 处的路径不明确；" +
			"4 处的锁由另一个函数释放；5 处所在的函数按名字或注释会留着锁；6 处在生成的文件里\n"},
	} {
		var out bytes.Buffer
		if printLeftOut(&out, x.l, x.zh); out.String() != x.want {
			t.Errorf("got %q, want %q", out.String(), x.want)
		}
	}
}

func TestWhatIsLeftOutIsPrinted(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "lockvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(tool, "-leftout", ".")
	run.Dir = filepath.Join("checks", "testdata", "leftout")
	run.Env = append(os.Environ(), "GOWORK=off", "PWD=", "LC_ALL=C")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.HasPrefix(string(out), "example.com/testdata/leftout: of 8 acquisitions") || bytes.Count(out, []byte("\n")) != 1 {
		t.Errorf("it printed %q", out)
	}
}

// go vet has the facts of imported packages computed too. Nobody reads reports about these.
func TestImportedPackagesAreNotChecked(t *testing.T) {
	for text, want := range map[string]bool{`{"VetxOnly": true}`: true, `{"VetxOnly": false}`: false, `{}`: false, "": false} {
		config := filepath.Join(t.TempDir(), "vet.cfg")
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := factsOnly(config); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	for _, a := range checks.Analyzers() {
		if i := idle(a); i.Name != a.Name || len(i.Requires) != 1 || len(i.Requires[0].FactTypes) == 0 {
			t.Errorf("%s requires %v, want one analyzer with facts", i.Name, i.Requires)
		}
	}
}
