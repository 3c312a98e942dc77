package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

func TestPublicCIRunsEveryPartWithItsPackages(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(w.Folder, filepath.FromSlash(name)))
		must(t, err)
		return string(text)
	}
	var parts []string
	for _, part := range regexp.MustCompile(`(?m)^  \[(\w+)\]="`).FindAllStringSubmatch(read(".ci/run"), -1) {
		parts = append(parts, part[1])
	}
	matrix := regexp.MustCompile(`(?m)^ +part: \[(.*)\]$`).FindStringSubmatch(read(".github/workflows/ci.yml"))
	if matrix == nil {
		t.Fatal("ci.yml has no list of parts")
	}
	if listed := strings.Split(matrix[1], ", "); !slices.Equal(listed, parts) {
		t.Errorf("ci.yml runs %v, .ci/run has %v", listed, parts)
	}
	for line := range strings.Lines(read(".ci/packages")) {
		needing, _, ok := strings.Cut(line, " : ")
		if !ok {
			continue
		}
		for _, part := range strings.Fields(needing) {
			if part != "all" && !slices.Contains(parts, part) {
				t.Errorf(".ci/packages: .ci/run has no part %s: %s", part, line)
			}
		}
	}
}
