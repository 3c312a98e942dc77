// Package docs tests the links of this repository's Markdown files, and the programs and commands
// in them.
package docs

import (
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	spans    = regexp.MustCompile("`([^`\n]+)`")
	indented = regexp.MustCompile(`(?m)^(?: {4}|\t)(.*)$`)
	headings = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// [text](target), [name]: target, and attributes of HTML.
	links = regexp.MustCompile(`(?m)\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: +(\S+)|\b(?:href|src)="([^"]+)"`)
)

// prose returns the text of p without code.
func (p page) prose() string {
	return spans.ReplaceAllString(blocks.ReplaceAllString(p.text, ""), "")
}

// A link is where a link or a picture of a page leads: a path relative to the page, and an anchor.
type link string

// links returns the links of p within the repository.
func (p page) links() (all []link) {
	for _, match := range links.FindAllStringSubmatch(p.prose(), -1) {
		l := match[1] + match[2] + match[3]
		if to, _, _ := strings.Cut(l, "#"); !strings.Contains(to, ":") {
			all = append(all, link(l))
		}
	}
	return all
}

// target returns the name of the page or file that l leads to from the page from, and the anchor.
func (l link) target(from string) (name, anchor string) {
	to, anchor, _ := strings.Cut(string(l), "#")
	if to == "" {
		return from, anchor
	}
	return path.Join(path.Dir(from), to), anchor
}

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
		for _, l := range p.links() {
			n++
			name, anchor := l.target(p.name)
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
				t.Errorf("%s: link %s: %v", p.name, l, err)
			} else if anchor != "" && !anchors(texts[name])[anchor] {
				t.Errorf("%s: link %s: %s has no such heading", p.name, l, name)
			}
		}
	}
	if n < 100 {
		t.Fatalf("only %d links", n)
	}
}

// Commands are in blocks of any language, in indented lines, and in code within a sentence. Their
// paths are relative to the folder of the page, to the folder of a cd, or to the root.
func TestEveryGoCommandNamesWhatExists(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	_, all := pages(t)
	n := 0
	for _, p := range all {
		for _, c := range commands(p) {
			n++
			if err := c.check(w); err != nil {
				t.Errorf("%s: %s: %v", p.name, c.line, err)
			}
		}
	}
	if n < 100 {
		t.Fatalf("only %d commands", n)
	}
}

func TestWrongGoCommandsAreFound(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	for _, line := range []string{
		"go run ./fair",                      // no command
		"go test ./nowhere/...",              // no folder
		"go vet fair",                        // not in the standard library
		"go doc github.com/jucgo/locks/none", // no package
		"go install github.com/jucgo/locks/x@latest",
		"go test -run Nonesuch ./fair",              // no test
		"go test -run '^$' -bench Nonesuch ./bench", // no benchmark
		"go tool nonesuch ./...",                    // no tool
		"go frobnicate ./fair",                      // no command of go
		"(cd nowhere && go test ./...)",             // no folder
		"CI=1 go test ./nowhere",                    // no folder
	} {
		all := commands(page{"README.md", "```sh\n" + line + " # a comment\n```\n"})
		if len(all) != 1 {
			t.Fatalf("%s: %d commands", line, len(all))
		}
		if all[0].check(w) == nil {
			t.Errorf("%s is no error", line)
		}
	}
}

// A command is one go command of a page.
type command struct {
	line    string
	folders []string // in which it may run, below the root
	verb    string
	args    []string
}

var goCommand = regexp.MustCompile(`^(?:cd (\S+) && )?(?:\w+=\S* )*go ([a-z]\w*)(?: (.*))?$`)

// commands returns the go commands of p. A block that makes a module of the reader is not about
// the folders of this repository, except for the paths of its modules.
func commands(p page) (all []command) {
	add := func(line string, own bool) {
		line, _, _ = strings.Cut(line, " #")
		line, _, _ = strings.Cut(line, " | ")
		line = strings.Trim(strings.TrimSpace(line), "()")
		match := goCommand.FindStringSubmatch(line)
		if match == nil {
			return
		}
		c := command{line: line, verb: match[2], args: strings.Fields(match[3])}
		switch {
		case own:
		case match[1] != "":
			c.folders = []string{match[1], path.Join(path.Dir(p.name), match[1])}
		default:
			c.folders = []string{path.Dir(p.name), "."}
		}
		all = append(all, c)
	}
	for _, block := range blocks.FindAllStringSubmatch(p.text, -1) {
		own := strings.Contains(block[2], "go mod init")
		for line := range strings.Lines(block[2]) {
			if block[1] != "go" {
				add(line, own)
			}
		}
	}
	rest := blocks.ReplaceAllString(p.text, "")
	for _, code := range slices.Concat(spans.FindAllStringSubmatch(rest, -1), indented.FindAllStringSubmatch(rest, -1)) {
		add(code[1], false)
	}
	return all
}

// check returns what c names that does not exist.
func (c command) check(w *workspace.Workspace) error {
	switch c.verb {
	case "run", "test", "vet", "build", "doc", "install", "get", "list", "generate":
	case "tool":
		return checkTool(w, c.args)
	case "mod", "work", "env", "version", "fmt", "help":
		return nil
	default:
		return fmt.Errorf("go has no command %q", c.verb)
	}
	var packages []string
	patterns := map[string]string{} // by flag
	for i := 0; i < len(c.args); i++ {
		flag, value, joined := strings.Cut(c.args[i], "=")
		if c.verb == "test" && !joined && (flag == "-run" || flag == "-bench") && i+1 < len(c.args) {
			i++
			value = c.args[i]
		}
		if strings.HasPrefix(flag, "-") {
			patterns[flag] = strings.Trim(value, "'")
			continue
		}
		folder, err := c.find(w, c.args[i])
		if err != nil {
			return err
		}
		if folder != "" {
			packages = append(packages, folder)
		}
		if c.verb == "run" || c.verb == "doc" {
			break // the rest are arguments of the program, or a name in the package
		}
	}
	for flag, kinds := range map[string]string{"-run": "Test|Example|Fuzz", "-bench": "Benchmark"} {
		if pattern := patterns[flag]; pattern != "" && pattern != "." && pattern != "^$" {
			if err := someTest(packages, kinds, pattern); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the folder of the package or pattern that arg names, or "" if arg is a flag's value
// or is of another module.
func (c command) find(w *workspace.Workspace, arg string) (string, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(arg, "..."), "/")
	folders := c.folders
	switch imported, own := strings.CutPrefix(name, workspace.Root); {
	case own:
		imported, _, _ = strings.Cut(imported, "@")
		name, folders = "./"+strings.TrimPrefix(imported, "/"), []string{"."}
	case len(folders) == 0:
		return "", nil
	case name == "." || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../"):
	case c.verb == "vet":
		return "", fmt.Errorf("%s is no path", arg)
	default:
		return "", nil
	}
	for _, folder := range folders {
		full := filepath.Join(w.Folder, filepath.FromSlash(folder), filepath.FromSlash(name))
		if packageIn(full, c.verb == "run" || c.verb == "install") {
			return full, nil
		}
	}
	return "", fmt.Errorf("no such package: %s", arg)
}

// checkTool returns an error if no go.mod lists the tool and Go has none of this name.
func checkTool(w *workspace.Workspace, args []string) error {
	if len(args) == 0 || slices.Contains([]string{"trace", "pprof", "cover", "vet"}, args[0]) {
		return nil
	}
	for _, m := range w.Modules {
		for _, tool := range m.File.Tool {
			if path.Base(tool.Path) == args[0] {
				return nil
			}
		}
	}
	return fmt.Errorf("no module has the tool %s", args[0])
}

// someTest returns an error if no test function in or below one of folders matches pattern.
func someTest(folders []string, kinds, pattern string) error {
	pattern, _, _ = strings.Cut(pattern, "/")
	want, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	declared := regexp.MustCompile(`(?m)^func ((?:` + kinds + `)\w*)\(`)
	for _, folder := range folders {
		found := false
		err := filepath.WalkDir(folder, func(file string, e fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, f := range declared.FindAllStringSubmatch(string(text), -1) {
				found = found || want.MatchString(f[1])
			}
			return err
		})
		if found || err != nil {
			return err
		}
	}
	return fmt.Errorf("nothing matches %s", pattern)
}

// packageIn reports whether folder exists, and has a command if that is wanted.
func packageIn(folder string, command bool) bool {
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return false
	}
	if !command {
		return true
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	return slices.ContainsFunc(files, func(name string) bool {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		return err == nil && parsed.Name.Name == "main"
	})
}

// A reader gives the README a minute, and then four more.
func TestTheREADMEHasNineHundredWords(t *testing.T) {
	_, all := pages(t)
	for _, p := range all {
		if n := len(strings.Fields(p.text)); p.name == "README.md" && n > 900 {
			t.Errorf("README.md has %d words", n)
		}
	}
}

// A figure in a table of the README is in the pages of figures, so that a reader finds how it was
// measured, and it is not left behind when it is measured again.
func TestTheFiguresOfTheREADMEAreMeasured(t *testing.T) {
	_, all := pages(t)
	var readme page
	measured := map[string]bool{}
	for _, p := range all {
		switch p.name {
		case "README.md":
			readme = p
		case "docs/guides/comparison.md", "docs/guides/finding-mistakes.md", "distributed/bench/README.md":
			for n := range numbers(p) {
				measured[n] = true
			}
		}
	}
	n := 0
	for _, row := range strings.Split(readme.text, "\n") {
		if !strings.HasPrefix(row, "| ") {
			continue
		}
		for figure := range numbers(page{"README.md", row}) {
			n++
			if !measured[figure] {
				t.Errorf("no page of figures has %s: %s", figure, row)
			}
		}
	}
	if n < 20 {
		t.Fatalf("only %d figures", n)
	}
}

func TestTheREADMENamesTheGoVersionOfTheModule(t *testing.T) {
	root, all := pages(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)[1]
	for _, p := range all {
		if p.name != "README.md" && p.name != "README.zh-CN.md" {
			continue
		}
		for _, named := range regexp.MustCompile(`\bGo[ -](\d+\.\d+)`).FindAllStringSubmatch(p.text, -1) {
			if named[1] != string(version) {
				t.Errorf("%s says Go %s, and go.mod %s", p.name, named[1], version)
			}
		}
	}
}

// A complete program follows a comment that names the file that it is a copy of, without the
// comment of its package.
func TestEveryCompleteProgramCopiesACompiledFile(t *testing.T) {
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
	if n < 9 {
		t.Fatalf("only %d programs", n)
	}
}

// A part of a program is lines of a file that is compiled, but for white space. A line of three
// dots stands for lines left out.
func TestEveryPartIsInACompiledFile(t *testing.T) {
	_, all := pages(t)
	var sources, texts []string
	for _, name := range goFiles(t) {
		text, err := os.ReadFile(name)
		must(t, err)
		sources = append(sources, squeezed(statements(text)))
		texts = append(texts, squeezed(string(text)))
	}
	n := 0
	for _, p := range all {
		for _, block := range blocks.FindAllStringSubmatch(p.text, -1) {
			if block[1] != "go" || strings.HasPrefix(block[2], "package main\n") {
				continue
			}
			n++
			for _, part := range strings.Split(block[2], "\n...\n") {
				if !compiled(statements([]byte(part)), sources) || !compiled(part, texts) {
					t.Errorf("%s: no file has these lines:\n%s", p.name, part)
				}
			}
		}
	}
	if n < 25 {
		t.Fatalf("only %d parts", n)
	}
}

// A block of Java is lines of a Java file, but for white space. Tests compile these files with the
// libraries that the pages are about. The lab's chapters say in Java's words what a chapter shows in
// Go, and have no files.
func TestEveryBlockOfJavaIsInACompiledFile(t *testing.T) {
	root, all := pages(t)
	var sources []string
	must(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".java" {
			return err
		}
		text, err := os.ReadFile(file)
		sources = append(sources, squeezed(string(text)))
		return err
	}))
	n := 0
	for _, p := range all {
		for _, block := range blocks.FindAllStringSubmatch(p.text, -1) {
			if block[1] != "java" || generated(p) {
				continue
			}
			n++
			if !compiled(block[2], sources) {
				t.Errorf("%s: no file has these lines:\n%s", p.name, block[2])
			}
		}
	}
	if n < 18 {
		t.Fatalf("only %d blocks", n)
	}
}

// A table can have a column of code, each cell one line of a file that is compiled.
func TestEveryLineOfATableIsInACompiledFile(t *testing.T) {
	_, all := pages(t)
	var files []string
	for _, name := range goFiles(t) {
		text, err := os.ReadFile(name)
		must(t, err)
		files = append(files, string(text))
	}
	n := 0
	for _, p := range all {
		for _, line := range codeCells(p.text) {
			n++
			if !slices.ContainsFunc(files, func(text string) bool { return strings.Contains(text, line) }) {
				t.Errorf("%s: no file has %s", p.name, line)
			}
		}
	}
	if n < 15 {
		t.Fatalf("only %d lines", n)
	}
}

func TestTheLinesOfATableAreFound(t *testing.T) {
	got := codeCells("| a | A line of code |\n| --- | --- |\n| `no` | `x.Lock()` |\n| | none |\n\n" +
		"| 甲 | 一行代码 | b |\n| --- | --- | --- |\n| | `y` | `no` |\n\n| b | c |\n| --- | --- |\n| d | `no` |\n")
	if !slices.Equal(got, []string{"x.Lock()", "y"}) {
		t.Errorf("the lines are %q", got)
	}
}

// codeCells returns the code in the columns of tables that have lines of code.
func codeCells(text string) (all []string) {
	column := -1
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			column = -1
			continue
		}
		for i, cell := range cells {
			if cell = strings.TrimSpace(cell); cell == "A line of code" || cell == "一行代码" {
				column = i
			}
		}
		if column >= 0 && column < len(cells) {
			for _, code := range spans.FindAllStringSubmatch(cells[column], -1) {
				all = append(all, code[1])
			}
		}
	}
	return all
}

// goFiles returns the names of all Go files of the repository that are compiled. The go command
// leaves out a folder testdata, but the tests of lockvet type-check the testdata of lockvet.
func goFiles(t *testing.T) (names []string) {
	t.Helper()
	w, err := workspace.Open(".")
	must(t, err)
	must(t, filepath.WalkDir(w.Folder, func(file string, _ fs.DirEntry, err error) error {
		data := strings.Contains(filepath.ToSlash(file), "/testdata/")
		if filepath.Ext(file) == ".go" && (!data || strings.Contains(filepath.ToSlash(file), "/cmd/lockvet/")) {
			names = append(names, file)
		}
		return err
	}))
	return names
}

// A block of Go that is marked as another language, or indented, would be no copy of anything.
func TestEveryBlockOfGoIsMarkedAsGo(t *testing.T) {
	_, all := pages(t)
	for _, p := range all {
		for _, block := range unmarked(p.text) {
			t.Errorf("%s: this block has no language, or it is Go and its language is not go:\n%s",
				p.name, block)
		}
	}
}

func TestABlockOfGoThatIsNotMarkedIsFound(t *testing.T) {
	const code = "x := f()\n"
	for _, text := range []string{
		"```\nany text\n```\n", "```text\n" + code + "```\n", "```golang\n" + code + "```\n", "~~~go\n" + code + "~~~\n",
		"- point\n\n  ```go\n  " + code + "  ```\n", "    " + code, "\t" + code, "````go\n" + code + "````\n",
		"```go title=x\n" + code + "```\n",
	} {
		if len(unmarked("Text.\n\n"+text)) == 0 {
			t.Errorf("no block is found in %q", text)
		}
	}
	for _, text := range []string{
		"```go\n" + code + "```\n", "```java\n" + code + "```\n", "```sh\ngo test ./...\n```\n", "    go test ./...\n",
		"- point\n    goes on here\n",
	} {
		if got := unmarked("Text.\n\n" + text); len(got) > 0 {
			t.Errorf("%q is found in %q", got, text)
		}
	}
}

// unmarked returns the blocks of a page that have no language, or that are Go under the name of
// another language. Some lines of Java are Go too.
func unmarked(text string) (all []string) {
	for _, block := range blocks.FindAllStringSubmatch(text, -1) {
		if block[1] == "" || block[1] != "go" && block[1] != "java" && isGo(block[2]) {
			all = append(all, block[0])
		}
	}
	rest := blocks.ReplaceAllString(text, "")
	all = append(all, regexp.MustCompile("(?m)^\\s*(?:```|~~~).*$").FindAllString(rest, -1)...)
	for _, block := range regexp.MustCompile(`(?m)^\n(?:(?: {4}|\t).*\n)+`).FindAllString(rest, -1) {
		if isGo(block) {
			all = append(all, block)
		}
	}
	return all
}

// isGo reports whether text is a file, declarations or statements of Go.
func isGo(text string) bool {
	for _, file := range []string{text, "package p\n" + text, "package p\nfunc f() {\n" + text + "\n}"} {
		if _, err := parser.ParseFile(token.NewFileSet(), "", file, 0); err == nil {
			return true
		}
	}
	return false
}

// statements returns text without what the compiler does not check: comments of several lines, and
// the lines of a raw string.
func statements(text []byte) string {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	out := slices.Clone(text)
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return string(out)
		}
		if (kind == token.STRING || kind == token.COMMENT) && strings.Contains(literal, "\n") {
			begin := file.Offset(at)
			end := min(begin+len(literal), len(out)) // carriage returns are not in literal
			for i := begin + 1; i < end-1; i++ {
				if out[i] != '\n' {
					out[i] = '`'
				}
			}
		}
	}
}

func TestStringsAndCommentsAreNoCompiledLines(t *testing.T) {
	text := "package p\n\nconst s = `\none()\n`\n\n/*\ntwo()\n*/\nfunc f() {\n\tthree() // all\n}\n"
	sources := []string{squeezed(statements([]byte(text)))}
	if compiled("one()\n", sources) || compiled("two()\n", sources) {
		t.Error("a line of a string or of a comment counts as compiled")
	}
	if !compiled("three() // all\n", sources) {
		t.Error("the statement is there")
	}
}

func TestAPartThatNoFileHasIsFound(t *testing.T) {
	sources := []string{squeezed("func f() {\n\tone()\n\n\ttwo()   // both\n}\n")}
	if !compiled("one()\ntwo() // both\n", sources) {
		t.Error("the lines are there")
	}
	if compiled("one()\nthree()\n", sources) || compiled("on", sources) {
		t.Error("these are no lines of the file")
	}
}

// compiled reports whether one of the sources, which are squeezed, has the lines of part.
func compiled(part string, sources []string) bool {
	want := squeezed(part)
	return slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, want) })
}

// squeezed returns text without empty lines, and with one space for each run of white space.
func squeezed(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			b.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	return b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
