package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// texts are the kinds of the text files of this repository.
var texts = strings.Fields(`.go .mod .sum .work .s .lua .sql .pml .md .txt .tmpl .golden .html .css .js .json .toml .xml
	.yaml .yml .java .rs .sh .bash .fish .1 .conf .gitignore .gitattributes .dockerignore`)

// images are the only files that are not text. Each belongs to a page.
var images = []string{".png"}

func TestEveryTrackedFileIsOfAKnownKind(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	files := tracked(t, w)
	if len(files) < 1000 {
		t.Fatalf("only %d files", len(files))
	}
	for _, name := range files {
		full := filepath.Join(w.Folder, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not yet committed
		}
		must(t, err)
		if !info.Mode().IsRegular() {
			t.Errorf("%s is no regular file: a checkout without symbolic links does not have it", name)
			continue
		}
		text, err := os.ReadFile(full)
		must(t, err)
		if err := known(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileOfAnUnknownKindIsFound(t *testing.T) {
	for name, text := range map[string]string{
		"4.7.0/org/redisson/RedissonLockEntry.class": "\xca\xfe\xba\xbe",
		"distributed/agent.jar":                      "PK",
		"cmd/lockvet/lockvet":                        "\x7fELF",
		"fair/fair.test":                             "\x7fELF",
		"notes.txt":                                  "a\x00b",
		"page.md":                                    "\xff\xfe",
		"fair/picture.png":                           "\x89PNG",
	} {
		if known(name, []byte(text)) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, text := range map[string]string{
		"LICENSE": "Apache", ".ci/install": "#!/usr/bin/env bash\n", "fair/mutex.go": "package fair\n", "docs/a.png": "\x89PNG",
	} {
		if err := known(name, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// known returns why a file does not belong into the repository.
func known(name string, text []byte) error {
	kind, folder := path.Ext(name), path.Dir(name)
	if slices.Contains(images, kind) {
		if folder != "docs" {
			return errors.New("an image outside of docs")
		}
		return nil
	}
	whole := []string{"LICENSE", "Makefile", ".devcontainer/Dockerfile", "cmd/withlock/command/completion/_withlock",
		"cmd/lockvet/completion/_lockvet"}
	script := folder == ".ci" && kind == ""
	if !slices.Contains(texts, kind) && !slices.Contains(whole, name) && !script {
		return fmt.Errorf("the repository has no files of kind %q; if it shall have, list the kind in tools/docs", kind)
	}
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return errors.New("not a text file")
	}
	return nil
}

// tracked returns the names of all files that git tracks, with slashes. A downloaded copy of the
// repository has no more files than these.
func tracked(t *testing.T, w *workspace.Workspace) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(w.Folder, ".git")); errors.Is(err, fs.ErrNotExist) {
		var names []string
		must(t, fs.WalkDir(os.DirFS(w.Folder), ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				names = append(names, name)
			}
			return err
		}))
		return names
	}
	cmd := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = w.Folder
	out, err := cmd.Output()
	must(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A folder that the Dockerfile copies must pass its ignore file, which leaves out everything else.
func TestTheDevcontainerCopiesWhatItsIgnoreFileLeavesIn(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(w.Folder, ".devcontainer", name))
		must(t, err)
		return string(text)
	}
	copied := copies(read("Dockerfile"))
	if len(copied) < 2 {
		t.Fatalf("the Dockerfile copies %q only", copied)
	}
	ignore := read("Dockerfile.dockerignore")
	n := 0
	for _, name := range tracked(t, w) {
		if !slices.ContainsFunc(copied, func(c string) bool { return name == c || strings.HasPrefix(name, c+"/") }) {
			if !ignored(ignore, name) {
				t.Errorf("%s is sent to the builder, and the Dockerfile does not copy it", name)
			}
			continue
		}
		n++
		if ignored(ignore, name) {
			t.Errorf("the Dockerfile copies %s, which its ignore file leaves out", name)
		}
	}
	if n < 10 {
		t.Fatalf("the Dockerfile copies %d files only", n)
	}
	for _, c := range copied {
		if _, err := os.Stat(filepath.Join(w.Folder, filepath.FromSlash(c))); err != nil {
			t.Error(err)
		}
	}
}

func TestAnIgnoreFileThatLeavesOutWhatIsCopiedIsFound(t *testing.T) {
	if got := copies("FROM x\nCOPY .ci /opt/.ci\nCOPY --from=y /a /b\nCOPY --chmod=755 a b/c /opt/\n"); !slices.Equal(got,
		[]string{".ci", "a", "b/c"}) {
		t.Errorf("the copies are %q", got)
	}
	for _, c := range []struct {
		ignore, name string
		want         bool
	}{
		{"*\n!.ci\n", ".ci/run", false},
		{"*\n!.ci\n", "distributed/k8slock/internal/apiserver/main.go", true},
		{"*\n!distributed/k8slock/internal/apiserver\n", "distributed/k8slock/internal/apiserver/main.go", false},
		{"*\n!a\na/*.md\n", "a/x.md", true},
		{"**/testdata\n", "a/b/testdata/c", true},
		{"# a\n\nb\n", "a", false},
	} {
		if got := ignored(c.ignore, c.name); got != c.want {
			t.Errorf("%q leaves out %s: %t", c.ignore, c.name, got)
		}
	}
}

// copies returns the sources in the repository that a Dockerfile copies or adds.
func copies(dockerfile string) []string {
	var sources []string
	for line := range strings.Lines(strings.ReplaceAll(dockerfile, "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "COPY" && words[0] != "ADD" || strings.Contains(line, " --from=") {
			continue
		}
		for _, word := range words[1 : len(words)-1] {
			if !strings.HasPrefix(word, "--") {
				sources = append(sources, path.Clean(word))
			}
		}
	}
	return sources
}

// ignored reports whether an ignore file of Docker leaves out a file: the last line decides that
// matches the file or a folder above it.
func ignored(ignore, name string) bool {
	out := false
	for line := range strings.Lines(ignore) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, again := strings.CutPrefix(line, "!")
		pattern = strings.Trim(path.Clean(pattern), "/")
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.NewReplacer(`\*\*/`, `(.*/)?`, `\*\*`, `.*`, `\*`, `[^/]*`, `\?`, `[^/]`).Replace(quoted)
		if regexp.MustCompile(`^` + quoted + `(/|$)`).MatchString(name) {
			out = !again
		}
	}
	return out
}
