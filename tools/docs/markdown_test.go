// Package docs tests what the Markdown files of this repository link to and what they let the
// reader run.
package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// A page is a Markdown file. Its name is the path below the root of the repository, with slashes.
type page struct{ name, text string }

func pages(t *testing.T) (root string, all []page) {
	t.Helper()
	w, err := workspace.Open(".")
	must(t, err)
	must(t, filepath.WalkDir(w.Folder, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if name := e.Name(); name == ".git" || name == "artifacts" || name == "target" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(file) != ".md" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.Folder, file)
		all = append(all, page{filepath.ToSlash(name), strings.ReplaceAll(string(text), "\r\n", "\n")})
		return err
	}))
	if len(all) < 30 {
		t.Fatalf("only %d pages", len(all))
	}
	return w.Folder, all
}

var (
	blocks   = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// anchors returns the anchors of the headings of a page: lower case, spaces as hyphens, without
// punctuation.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range headings.FindAllStringSubmatch(blocks.ReplaceAllString(text, ""), -1) {
		var anchor strings.Builder
		for _, r := range strings.ToLower(h[1]) {
			switch {
			case r == ' ':
				anchor.WriteRune('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				anchor.WriteRune(r)
			}
		}
		found[anchor.String()] = true
	}
	return found
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	root, all := pages(t)
	texts := map[string]string{}
	for _, p := range all {
		texts[p.name] = p.text
	}
	n := 0
	for _, p := range all {
		for _, link := range links.FindAllStringSubmatch(blocks.ReplaceAllString(p.text, ""), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			n++
			name := p.name
			if target != "" {
				name = path.Join(path.Dir(p.name), target)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s: link %s: %v", p.name, link[1], err)
			} else if anchor != "" && !anchors(texts[name])[anchor] {
				t.Errorf("%s: link %s: %s has no such heading", p.name, link[1], name)
			}
		}
	}
	if n < 100 {
		t.Fatalf("only %d links", n)
	}
}

// The paths in commands are relative to the folder of the page, to that of a cd, or to the root.
func TestEveryGoCommandNamesPackagesThatExist(t *testing.T) {
	root, all := pages(t)
	n := 0
	for _, p := range all {
		for _, block := range blocks.FindAllStringSubmatch(p.text, -1) {
			if block[1] != "sh" {
				continue
			}
			for line := range strings.Lines(block[2]) {
				n += checkCommand(t, root, p, strings.TrimSpace(line))
			}
		}
	}
	if n < 50 {
		t.Fatalf("only %d commands", n)
	}
}

var goCommand = regexp.MustCompile(`^(?:cd (\S+) && )?go (run|test|vet|build|doc|install|get) (.*)$`)

// checkCommand checks one line of a block of commands, and returns how many go commands it has.
func checkCommand(t *testing.T, root string, p page, line string) int {
	line, _, _ = strings.Cut(line, " #")
	command := goCommand.FindStringSubmatch(strings.TrimSpace(line))
	if command == nil {
		return 0
	}
	folders := []string{path.Dir(p.name), "."}
	if command[1] != "" {
		folders = []string{command[1], path.Join(path.Dir(p.name), command[1])}
	}
	for _, arg := range strings.Fields(command[3]) {
		arg = strings.TrimSuffix(strings.TrimSuffix(arg, "/..."), "...")
		if imported, found := strings.CutPrefix(arg, workspace.Root); found {
			imported, _, _ = strings.Cut(imported, "@")
			arg, folders = "./"+strings.TrimPrefix(imported, "/"), []string{"."}
		}
		if arg != "." && !strings.HasPrefix(arg, "./") && !strings.HasPrefix(arg, "../") {
			continue
		}
		if !packageIn(root, folders, arg, command[2] == "run") {
			t.Errorf("%s: %q: no such package: %s", p.name, line, arg)
		}
		if command[2] == "run" {
			break // the rest are arguments of the program
		}
	}
	return 1
}

// packageIn reports whether dir is a folder in one of folders, and has a command if that is wanted.
func packageIn(root string, folders []string, dir string, command bool) bool {
	for _, folder := range folders {
		full := filepath.Join(root, filepath.FromSlash(folder), filepath.FromSlash(dir))
		if info, err := os.Stat(full); err != nil || !info.IsDir() {
			continue
		}
		if !command {
			return true
		}
		files, _ := filepath.Glob(filepath.Join(full, "*.go"))
		for _, name := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
			if err == nil && parsed.Name.Name == "main" {
				return true
			}
		}
	}
	return false
}

// A complete program follows a comment that names the file that it is a copy of, without the
// comment of its package.
func TestEveryCompleteProgramIsACopyOfACompiledFile(t *testing.T) {
	root, all := pages(t)
	n := 0
	for _, p := range all {
		for _, at := range blocks.FindAllStringSubmatchIndex(p.text, -1) {
			program := p.text[at[4]:at[5]]
			if p.text[at[2]:at[3]] != "go" || !strings.HasPrefix(program, "package main\n") {
				continue
			}
			n++
			source := regexp.MustCompile(`<!-- (\S+\.go) -->\n$`).FindStringSubmatch(p.text[:at[0]])
			if source == nil {
				t.Errorf("%s: no comment names the file of this program:\n%s", p.name, program)
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(source[1])))
			must(t, err)
			if _, text, _ := strings.Cut("\n"+string(text), "\npackage main\n"); "package main\n"+text != program {
				t.Errorf("%s: the program differs from %s", p.name, source[1])
			}
		}
	}
	if n < 4 {
		t.Fatalf("only %d programs", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
