package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A reader finds every page below docs from docs/README.md: the index links the page, or it links
// another index that does.
func TestEveryPageIsInTheIndex(t *testing.T) {
	_, all := pages(t)
	for _, name := range unlisted(all) {
		t.Errorf("%s is in no index that docs/README.md leads to", name)
	}
}

func TestAPageThatNoIndexListsIsFound(t *testing.T) {
	all := []page{
		{"docs/README.md", "[one](guides/one.md) [lab](lab/README.md)"},
		{"docs/guides/one.md", "[two](one/two.md#part)"},
		{"docs/guides/one/two.md", "[stray](../stray.md)"},
		{"docs/guides/stray.md", "a page that another page links, and no index"},
		{"docs/lab/README.md", "[chapter](chapter.md)"},
		{"docs/lab/chapter.md", "[lost](lost.md)"},
		{"docs/lab/lost.md", "a chapter that only another chapter links"},
		{"docs/zh/README.md", "[one](guides/one.md)"},
		{"docs/zh/guides/one.md", "no index leads to its language"},
		{"examples/README.md", "not below docs"},
	}
	want := []string{"docs/guides/stray.md", "docs/lab/lost.md", "docs/zh/README.md", "docs/zh/guides/one.md"}
	if got := unlisted(all); !slices.Equal(got, want) {
		t.Errorf("the pages that no index lists are %q", got)
	}
}

// unlisted returns the pages below docs that no index lists. An index is docs/README.md, the
// README.md of a folder, the distributed.md of the lab, and a page that a folder of the same name
// belongs to, if an index lists it.
func unlisted(all []page) []string {
	texts := map[string]page{}
	for _, p := range all {
		texts[p.name] = p
	}
	index := func(name string) bool {
		folder := strings.TrimSuffix(name, ".md") + "/"
		return path.Base(name) == "README.md" || path.Base(name) == "distributed.md" ||
			slices.ContainsFunc(all, func(p page) bool { return strings.HasPrefix(p.name, folder) })
	}
	const first = "docs/README.md"
	listed := map[string]bool{first: true}
	for todo := []string{first}; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		for _, link := range texts[name].links() {
			if to, _ := link.target(name); !listed[to] && strings.HasPrefix(to, "docs/") {
				listed[to] = true
				if index(to) {
					todo = append(todo, to)
				}
			}
		}
	}
	var missing []string
	for _, p := range all {
		if strings.HasPrefix(p.name, "docs/") && !listed[p.name] {
			missing = append(missing, p.name)
		}
	}
	slices.Sort(missing)
	return missing
}

// A page about one question is read in some minutes. The bars of tables do not count as words.
func TestPagesOfOneQuestionAreShort(t *testing.T) {
	_, all := pages(t)
	n := 0
	for _, p := range all {
		if !strings.HasPrefix(p.name, "docs/guides/choosing") && !strings.HasPrefix(p.name, "docs/guides/coming-from/") {
			continue
		}
		n++
		if words := len(strings.Fields(strings.NewReplacer("|", " ", "---", " ").Replace(p.text))); words > 1200 {
			t.Errorf("%s has %d words, of 1200", p.name, words)
		}
	}
	if n < 25 {
		t.Fatalf("only %d pages", n)
	}
}

// A row of examples/README.md has each folder with programs, so that a reader finds them.
func TestTheIndexOfExamplesHasEveryExample(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	text, err := os.ReadFile(filepath.Join(w.Folder, "examples", "README.md"))
	must(t, err)
	for _, name := range unindexed(string(text), tracked(t, w)) {
		t.Errorf("examples/README.md has no row for %s", name)
	}
}

func TestAnExampleThatTheIndexLacksIsFound(t *testing.T) {
	index := "[here](local) [there](stores/main.go) [elsewhere](stores/shop/README.md)\n" +
		"| [a](stores/a) | a |\n| [shop](stores/shop/b/main.go) | b |\n| [x](../fair) | no example |\n"
	files := []string{"examples/local/main.go", "examples/stores/main.go", "examples/stores/a/a.go", "fair/mutex.go",
		"examples/stores/shop/b/main.go", "examples/stores/shop/c/c_test.go", "examples/stores/go.mod"}
	want := []string{"examples/local", "examples/stores", "examples/stores/shop/c"}
	if got := unindexed(index, files); !slices.Equal(got, want) {
		t.Errorf("the examples without a row are %q", got)
	}
}

// unindexed returns the folders below examples with Go files to which no row of index leads.
func unindexed(index string, files []string) []string {
	linked := map[string]bool{}
	for line := range strings.Lines(index) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for _, l := range (page{"examples/README.md", line}).links() {
			to, _ := l.target("examples/README.md")
			if path.Ext(to) != "" {
				to = path.Dir(to)
			}
			linked[to] = true
		}
	}
	var missing []string
	for _, name := range files {
		folder := path.Dir(name)
		if strings.HasPrefix(name, "examples/") && path.Ext(name) == ".go" && !linked[folder] {
			missing = append(missing, folder)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// A reader who compares two stores finds the same questions in the same order.
var questions = []string{"A complete program", "Versions", "Owners", "Use it for", "Poolers and proxies",
	"Planned failovers", "Errors"}

func TestThePagesOfTheStoresHaveOneOrder(t *testing.T) {
	_, all := pages(t)
	w, err := workspace.Open(".")
	must(t, err)
	n := 0
	for _, p := range all {
		if !aStore(p.name) {
			continue
		}
		if _, err := os.Stat(filepath.Join(w.Folder, filepath.FromSlash(path.Dir(p.name)), "go.mod")); err != nil {
			continue // a part of another module
		}
		n++
		if err := disorder(p.text); err != "" {
			t.Errorf("%s: %s", p.name, err)
		}
	}
	if n < 12 {
		t.Fatalf("only %d stores", n)
	}
}

func TestAPageOfAStoreInAnotherOrderIsFound(t *testing.T) {
	right := "# a\n\n## " + strings.Join(questions, "\n\ntext\n\n## ") + "\n\ntext\n\n## Rights\n\n## In a clone\n"
	if err := disorder(right); err != "" {
		t.Errorf("the right order is refused: %s", err)
	}
	for _, wrong := range []string{
		strings.Replace(right, "## Owners", "## Owner", 1),
		strings.Replace(right, "## Owners\n", "", 1),
		strings.Replace(right, "\n\ntext\n\n## Owners", "\n\n## Owners", 1), // an empty section
		strings.Replace(right, "## Versions", "## Rights\n\n## Versions", 1),
		strings.Replace(right, "## In a clone", "## In a clone\n\n## More", 1),
	} {
		if disorder(wrong) == "" {
			t.Errorf("this order is accepted: %q", wrong)
		}
	}
}

// aStore reports whether a page is the README of a folder in distributed that has locks on a store.
func aStore(name string) bool {
	folder := path.Dir(name)
	return path.Base(name) == "README.md" && path.Dir(folder) == "distributed" &&
		!slices.Contains([]string{"bench", "interop", "open"}, path.Base(folder))
}

// disorder returns how the sections of the page of a store differ from the questions, or "".
func disorder(text string) string {
	sections := strings.Split(blocks.ReplaceAllString(text, "code"), "\n## ")[1:]
	for i, want := range questions {
		if i >= len(sections) {
			return "section " + want + " is missing"
		}
		title, rest, _ := strings.Cut(sections[i], "\n")
		if title != want {
			return "section " + title + " is where " + want + " should be"
		}
		if strings.TrimSpace(rest) == "" {
			return "section " + want + " is empty"
		}
	}
	if last := sections[len(sections)-1]; !strings.HasPrefix(last, "In a clone") {
		return "the last section is not In a clone"
	}
	return ""
}

// Doc comments, messages and templates name pages as docs/NAME.md, without a link.
func TestEveryPageNamedOutsideOfPagesExists(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	named := regexp.MustCompile(`(?:^|[\s("'` + "`" + `])(docs/[\w./-]+\.(?:md|png))`)
	n := 0
	for _, name := range tracked(t, w) {
		if path.Ext(name) == ".md" || strings.HasPrefix(name, "tools/") {
			continue // links are tested; tests of tools name pages that they make up
		}
		text, err := os.ReadFile(filepath.Join(w.Folder, filepath.FromSlash(name)))
		if err != nil || !utf8.Valid(text) {
			continue // removed and not yet committed, or a picture
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			n++
			if _, err := os.Stat(filepath.Join(w.Folder, filepath.FromSlash(match[1]))); err != nil {
				t.Errorf("%s names %s: %v", name, match[1], err)
			}
		}
	}
	if n < 8 {
		t.Fatalf("only %d names of pages", n)
	}
}
