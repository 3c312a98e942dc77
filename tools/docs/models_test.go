package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A table of a model maps the names of the model to the methods and fields of the code. A name that
// the code no longer has says that the model may be behind the code.
func TestTheTablesOfModelsNameWhatTheCodeHas(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	all := tracked(t, w)
	has := make(map[string]bool)
	for _, name := range all {
		if !strings.HasSuffix(name, ".go") || notLibrary.MatchString(name) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(w.Folder, filepath.FromSlash(name)), nil, 0)
		must(t, err)
		members(f, has)
	}
	tables := 0
	for _, name := range all {
		if path.Base(path.Dir(name)) != "model" || path.Base(name) != "README.md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(w.Folder, filepath.FromSlash(name)))
		must(t, err)
		mapped := mapped(string(text))
		if len(mapped) > 0 {
			tables++
		}
		for _, member := range mapped {
			if !has[member] {
				t.Errorf("%s maps to %s, which the code does not have", name, member)
			}
		}
	}
	if tables < 3 {
		t.Errorf("only %d tables", tables)
	}
}

func TestANameThatTheCodeDoesNotHaveIsFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a
		type grant struct { until, taken int }
		func (g *grant) noteAnswer() {}
		type list[T any] struct { first T }
		func (l *list[T]) push(x T) {}
		type store interface { Renew() }`, 0)
	must(t, err)
	has := make(map[string]bool)
	members(f, has)
	text := "| model | code |\n| --- | --- |\n| `answer` | `grant.noteAnswer` and `driver.grant.until`; `list.push` in a.go |\n" +
		"| `x` | `grant.answered`, `store.Renew` |\n\n| mutant | the mistake |\n| --- | --- |\n| `X` | `grant.gone` |\n"
	var missing []string
	for _, member := range mapped(text) {
		if !has[member] {
			missing = append(missing, member)
		}
	}
	if !slices.Equal(missing, []string{"grant.answered"}) {
		t.Errorf("missing are %v", missing)
	}
}

// members adds the methods and fields of f, each as type.name.
func members(f *ast.File, has map[string]bool) {
	add := func(of string, fields *ast.FieldList) {
		for _, field := range fields.List {
			for _, name := range field.Names {
				has[of+"."+name.Name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv != nil {
				has[receiver(n.Recv.List[0].Type)+"."+n.Name.Name] = true
			}
		case *ast.TypeSpec:
			switch x := n.Type.(type) {
			case *ast.StructType:
				add(n.Name.Name, x.Fields)
			case *ast.InterfaceType:
				add(n.Name.Name, x.Methods)
			}
		}
		return true
	})
}

// receiver returns the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

var (
	// ofCode matches a name of the code, such as `grant.noteAnswer`.
	ofCode = regexp.MustCompile("`(?:[a-z]+\\.)??([A-Za-z]+\\.[A-Za-z]+)`")
	// notOurs are the names of files, and of Go's package sync.
	notOurs = regexp.MustCompile(`\.(go|pml|sh|md)$|^sync\.`)
)

// mapped returns the methods and fields in the second column of the tables of models and code.
func mapped(text string) (names []string) {
	inside := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case len(cells) < 4:
			inside = false
		case strings.TrimSpace(cells[1]) == "model" && strings.TrimSpace(cells[2]) == "code":
			inside = true
		case inside:
			for _, m := range ofCode.FindAllStringSubmatch(cells[2], -1) {
				if !notOurs.MatchString(m[1]) {
					names = append(names, m[1])
				}
			}
		}
	}
	return names
}
