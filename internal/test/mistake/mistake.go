// Package mistake proves that simulated lives find a mistake in the code: it builds the tests of a
// package with the mistake, and lives a life that finds it.
package mistake

import (
	"encoding/json"
	"fmt"
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

// Find fails t unless the life finds the mistake. The runtime decides a part of each life, see
// leasetest.Simulate. So if the life of the seed does not find the mistake, other lives have to.
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
	found := func(how string) bool {
		out, err := exec.Command("go", "test", "-overlay", overlay, "-count=1", "-timeout=1h", "-run", m.Life, ".", how).CombinedOutput()
		t.Logf("with %s: %v\n%s", how, err, out)
		return err != nil && strings.Contains(string(out), m.Rule)
	}
	if !found(fmt.Sprintf("-leasetest.seed=%d", m.Seed)) && !found("-leasetest.simulate=10h") {
		t.Error("nothing is found")
	}
}
