// Package mistake proves that simulated lives find a mistake in the code: it builds the tests of a
// package with the mistake, and lives a life that finds it.
package mistake

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Mistake is a mistake that the code could have, and a life that finds it.
type Mistake struct {
	Name     string
	File     string // below the directory of the module locks
	Old, New string // the code without and with the mistake
	Life     string // the pattern of a test of the calling package, which calls leasetest.Simulate
	Seed     uint64
	Rule     string // that is broken
}

// CanBeMade fails t unless the code has the place of the mistake, once.
func (m Mistake) CanBeMade(t *testing.T) {
	t.Helper()
	m.made(t)
}

// module returns the directory of the module locks.
var module = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/jucgo/locks").Output()
	return strings.TrimSpace(string(root)), err
})

// made returns the file with the mistake, and its text then.
func (m Mistake) made(t *testing.T) (file, mutant string) {
	t.Helper()
	root, err := module()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(root, filepath.FromSlash(m.File))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.Old); n != 1 {
		t.Fatalf("%s has the code of the mistake %d times, not once", m.File, n)
	}
	return file, strings.Replace(string(text), m.Old, m.New, 1)
}

// Find fails t unless lives find the mistake. The runtime decides a part of each life, see
// leasetest.Simulate. So if the life of the seed does not find the mistake, other lives have to, by
// any rule: without the mistake they break none. A mistake should be found within ten seconds of a
// processor. The log has the time, which fails no test: other machines are slower.
func (m Mistake) Find(t *testing.T) {
	t.Helper()
	file, text := m.made(t)
	dir := t.TempDir()
	mutant, overlay := filepath.Join(dir, "mutant"+filepath.Ext(file)), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		mutant: text, overlay: string(replaced),
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lives := filepath.Join(dir, "lives.test")
	if out, err := exec.Command("go", "test", "-overlay", overlay, "-c", "-o", lives, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !m.find(t, lives, fmt.Sprintf("-leasetest.seed=%d", m.Seed), m.Rule) &&
		!m.find(t, lives, "-leasetest.simulate=10h", " is broken at ") {
		t.Error("nothing is found")
	}
}

// find runs lives until they print rule, the text of a rule that they break, and logs how much time
// of a processor that took. The lives' report is not waited for. They end without a finding after
// sixty times the time that they should take.
func (m Mistake) find(t *testing.T, lives, how, rule string) (found bool) {
	t.Helper()
	cmd := exec.Command(lives, "-test.v", "-test.timeout=10m", "-test.run", m.Life, how)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewReader(out); !found && err == nil; {
		var line string
		line, err = lines.ReadString('\n')
		text.WriteString(line)
		found = strings.Contains(line, rule)
	}
	if found {
		_ = cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("with %s: found %v after %v of a processor: %v\n%s", how, found, took, err, text.String())
	return found
}
