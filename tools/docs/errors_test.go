package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// ofPrograms are the folders whose errors.Join is a list for a person at a terminal, or is in code
// of a user.
var ofPrograms = regexp.MustCompile(`^(cmd|tools|bench|examples|distributed/bench|distributed/interop|internal/bench|` +
	`internal/test)/|/testdata/`)

// The text of errors.Join has a line for each error. Libraries join errors by internal/joined.
func TestErrorsOfLibrariesAreJoinedInOneLine(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	looked := 0
	for _, name := range tracked(t, w) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || ofPrograms.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.Folder, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		must(t, err)
		looked++
		for _, place := range joins(t, name, text) {
			t.Errorf("%s: errors.Join makes an error of several lines: use internal/joined, "+
				"or adapter.Join in an adapter", place)
		}
	}
	if looked < 300 {
		t.Errorf("only %d files", looked)
	}
}

func TestAJoinOfSeveralLinesIsFound(t *testing.T) {
	text := "package p\nimport \"errors\"\nvar _ = errors.Join(nil)\nvar f = errors.Join // errors.Join\n"
	if got := strings.Join(joins(t, "p.go", []byte(text)), " "); got != "p.go:3:9 p.go:4:9" {
		t.Error(got)
	}
}

// joins returns the places of errors.Join in a file.
func joins(t *testing.T, name string, text []byte) (places []string) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	must(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Join" {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "errors" {
				places = append(places, set.Position(s.Pos()).String())
			}
		}
		return true
	})
	return places
}
