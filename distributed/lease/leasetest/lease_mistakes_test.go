//go:build simulation

package leasetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are mistakes that package lease could have, one each, and the seed of a life that finds
// it.
var mistakes = []struct {
	name     string
	file     string // of package lease
	old, new string
	kind     string // of the store
	seed     uint64
	rule     string // that is broken
}{
	{
		"Extend says nil after a release", "hold.go",
		"case !h.g.answered(p) || h.released.Load():", "case !h.g.answered(p):",
		"watched", 15136505265680566642, "a hold that was given back is over for its owner",
	},
	{
		"a partial failure of a renewal loses the holds", "renewal.go",
		"		case !ok[i] && failed: // unknown\n", "",
		"permits", 6039686379169489725, "a hold that is lost before its time was lost in the store",
	},
	{
		"a late request is not swept", "acquire.go",
		"			if a.queue == nil {\n				a.sweep(r.doubt, nil)\n			}\n			return r\n", "			return r\n",
		"watched", 7910323219216466424, "what a late request takes is given back",
	},
	{
		"a grant is kept that comes while the client closes", "acquire.go",
		"late := g != nil && c.open.Err() != nil", "late := false",
		"watched", 8061150522148204742, "a client that is closed gives no lock",
	},
	{
		"the name of a doubtful request is used again", "acquire.go",
		"if a.queue == nil && !r.doubt.IsZero() {", "if false {",
		"watched", 14073248167299904744, "no two holds are valid at once",
	},
	{
		"the doubt of an earlier queued request ends with the release", "release.go",
		"	if !g.doubt.IsZero() {", "	if false {",
		"queued", 11032761739447035232, "what a late request takes is given back",
	},
}

// TestLivesFindMistakesOfLease builds this package's tests with a mistake in package lease, and
// lives a life that finds it. The runtime decides a part of each life, see [Simulate]. So if the
// life of the seed does not find the mistake, others do.
func TestLivesFindMistakesOfLease(t *testing.T) {
	lease, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(lease, m.file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), m.old); n != 1 {
				t.Fatalf("%s has the code of the mistake %d times, not once", m.file, n)
			}
			mutant, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
			replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{file: mutant}})
			if err != nil {
				t.Fatal(err)
			}
			for name, data := range map[string]string{
				mutant: strings.Replace(string(text), m.old, m.new, 1), overlay: string(replaced),
			} {
				if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found := func(how string) bool {
				out, err := exec.Command("go", "test", "-overlay", overlay, "-count=1", "-timeout=1h",
					"-run", "^TestLivesOfEachKindOfStore$/^"+m.kind+"$", ".", how).CombinedOutput()
				t.Logf("with %s: %v\n%s", how, err, out)
				return err != nil && strings.Contains(string(out), m.rule)
			}
			if !found(fmt.Sprintf("-leasetest.seed=%d", m.seed)) && !found("-leasetest.simulate=10h") {
				t.Error("nothing is found")
			}
		})
	}
}
