package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// An imported is an import in a file that is not a test. Both packages are paths below the root
// module, "." for its own package, or to is the import path of another module.
type imported struct{ from, to, file string }

// imports returns the imports of all files of the repository, for every system.
func imports(t *testing.T, w *workspace.Workspace) []imported {
	t.Helper()
	var all []imported
	must(t, filepath.WalkDir(w.Folder, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); name == ".git" || name == "artifacts" || name == "testdata" || name == "tools" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(w.Folder, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			to, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if workspace.Own(to) {
				to = path.Clean("./" + strings.TrimPrefix(to, workspace.Root))
			}
			name := filepath.ToSlash(name)
			all = append(all, imported{path.Dir(name), to, name})
		}
		return nil
	}))
	if len(all) < 500 {
		t.Fatalf("only %d imports", len(all))
	}
	return all
}

// layers returns the row of each entry of the table in ARCHITECTURE.md.
func layers(t *testing.T, w *workspace.Workspace) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.Folder, "ARCHITECTURE.md"))
	must(t, err)
	_, table, found := strings.Cut(string(text), "| layer |")
	if !found {
		t.Fatal("ARCHITECTURE.md has no table of layers")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for i, line := range strings.Split(table, "\n") {
		if strings.Contains(line, "| the root package |") {
			rows["."] = i
		}
		for _, entry := range regexp.MustCompile("`([a-z0-9/]+)`").FindAllStringSubmatch(line, -1) {
			rows[entry[1]] = i
		}
	}
	if len(rows) < 30 {
		t.Fatalf("ARCHITECTURE.md has layers of %d packages only", len(rows))
	}
	return rows
}

// entry returns the entry of the table that covers a package.
func entry(rows map[string]int, p string) (string, bool) {
	for ; ; p = path.Dir(p) {
		if _, found := rows[p]; found {
			return p, true
		}
		if !strings.Contains(p, "/") {
			return "", false
		}
	}
}

func TestPackagesImportOnlyTheLayersBelow(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	rows := layers(t, w)
	for _, i := range imports(t, w) {
		from, found := entry(rows, i.from)
		if !found {
			t.Errorf("ARCHITECTURE.md has no layer for %s", i.from)
			continue
		}
		if strings.Contains(i.to, ".") && i.to != "." || !strings.Contains(i.to, "/") && !isOwn(w, i.to) {
			continue // another module, or the standard library
		}
		to, found := entry(rows, i.to)
		if !found {
			continue // the standard library
		}
		if from != to && rows[from] >= rows[to] {
			t.Errorf("%s: %s imports %s, which is not in a layer below", i.file, i.from, i.to)
		}
	}
}

// isOwn reports whether p is a folder of the repository.
func isOwn(w *workspace.Workspace, p string) bool {
	info, err := os.Stat(filepath.Join(w.Folder, filepath.FromSlash(p)))
	return err == nil && info.IsDir()
}

func TestModulesKeepTheirImportRules(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	adapter := regexp.MustCompile(
		`^(distributed/(?:redislock|zklock|sqllock|etcdlock|consullock|` +
			`k8slock|s3lock|gcslock|natslock|dynamolock|filelock|shmlock)|` +
			`record/(?:prom|otel))(/|$)`)
	kits := regexp.MustCompile(`^(lockstest|distributed/lease/leasetest|internal/test|internal/bench|bench|` +
		`distributed/internal|` +
		`distributed/redislock/internal/suite|distributed/bench|distributed/interop|cmd|examples)(/|$)`)
	modules := regexp.MustCompile(`^distributed/open/all(/|$)`) // of their own, above the adapters
	for _, i := range imports(t, w) {
		from := adapter.FindStringSubmatch(i.from)
		if kits.MatchString(i.from) {
			continue
		}
		if from == nil && !modules.MatchString(i.from) && strings.Contains(i.to, ".") && i.to != "." &&
			i.to != "github.com/petermattis/goid" {
			t.Errorf("%s: a library of the root module imports %s", i.file, i.to)
		}
		root := strings.HasPrefix(i.to, "internal/") || strings.HasPrefix(i.to, "distributed/internal/")
		// As their package comments promise:
		stable := i.to == "distributed/internal/adapter" || i.to == "distributed/internal/classes"
		if from != nil && root && !stable && isOwn(w, i.to) {
			t.Errorf("%s: an adapter imports %s, whose next version may differ", i.file, i.to)
		}
		if to := adapter.FindStringSubmatch(i.to); from != nil && to != nil && from[1] != to[1] {
			t.Errorf("%s: an adapter imports the adapter %s", i.file, to[1])
		}
	}
}
