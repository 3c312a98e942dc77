package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// repository makes a small repository with a root module, a library beside it, and a command.
func repository(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	const modules = "go 1.26.0\n\nuse (\n\t.\n\t./lib\n\t./tool\n)\n"
	for name, text := range map[string]string{
		workspace.List: modules,
		"go.work":      modules,
		"go.mod":       "module github.com/jucgo/locks\n\ngo 1.26.0\n",
		"locks.go":     "package locks\n\nfunc Open(name string) (n int, err error) { return 0, nil }\n",
		"lib/lib.go":   "package lib\n\nimport \"github.com/jucgo/locks\"\n\nvar N, _ = locks.Open(\"\")\n",
		"tool/main.go": "package main\n\nimport \"github.com/jucgo/locks\"\n\nfunc main() { locks.Open(\"\") }\n",
		"lib/go.mod": "module github.com/jucgo/locks/lib\n\ngo 1.26.0\n\nrequire github.com/jucgo/locks v0.1.0\n\n" +
			"replace github.com/jucgo/locks => ..\n",
		"tool/go.mod":  "module github.com/jucgo/locks/tool\n\ngo 1.26.0\n\nrequire github.com/jucgo/locks v0.1.0\n",
		"CHANGELOG.md": "# Changelog\n\n## 0.2.0 - 2027-01-31\n",
		"api/keep":     "",
	} {
		write(t, folder, name, text)
	}
	return folder
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	file := filepath.Join(folder, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func replace(t *testing.T, folder, name, before, after string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	must(t, err)
	if !strings.Contains(string(text), before) {
		t.Fatalf("%s does not have %q", name, before)
	}
	write(t, folder, name, strings.ReplaceAll(string(text), before, after))
}

func open(t *testing.T, folder string) *workspace.Workspace {
	t.Helper()
	w, err := workspace.Open(folder)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("the error is %v, want one with %q", err, part)
	}
}

func TestModulesThatUsersCouldNotInstallAreRefused(t *testing.T) {
	must(t, checkModules(open(t, repository(t)), "v0.1.0"))
	for _, c := range []struct{ file, before, after, want string }{
		{"lib/go.mod", "v0.1.0", "v0.0.0", "requires github.com/jucgo/locks@v0.0.0"},
		{"lib/go.mod", "replace github.com/jucgo/locks => ..\n", "",
			"lib/go.mod: does not replace github.com/jucgo/locks"},
		{"lib/lib.go", "package lib", "package main", "go install refuses github.com/jucgo/locks/lib"},
		{"go.mod", "go 1.26.0\n", "go 1.26.0\n\nreplace example.com/a => example.com/b v1.0.0\n",
			"replaces example.com/a"},
	} {
		t.Run(c.want, func(t *testing.T) {
			folder := repository(t)
			replace(t, folder, c.file, c.before, c.after)
			wantError(t, checkModules(open(t, folder), "v0.1.0"), c.want)
		})
	}
}

func TestEachModuleRequiresWhatTheWorkspaceTests(t *testing.T) {
	folder := repository(t)
	replace(t, folder, "lib/go.mod", "require github.com/jucgo/locks v0.1.0\n",
		"require (\n\texample.com/a v1.2.0\n\texample.com/b v1.0.0 // indirect\n\tgithub.com/jucgo/locks v0.1.0\n)\n")
	must(t, checkVersions(open(t, folder), map[string]string{"example.com/a": "v1.2.0", "example.com/b": "v1.1.0"}))
	wantError(t, checkVersions(open(t, folder), map[string]string{"example.com/a": "v1.3.0"}),
		"lib/go.mod: requires example.com/a@v1.2.0, the workspace is tested with v1.3.0")
}

func TestAChangeOfTheAPIIsNamed(t *testing.T) {
	folder := repository(t)
	must(t, writeAPI(open(t, folder)))
	must(t, checkAPI(open(t, folder)))
	replace(t, folder, "locks.go", "(n int, err error)", "(n int64, err error)")
	err := checkAPI(open(t, folder))
	wantError(t, err, "- github.com/jucgo/locks: func Open(name string) (n int, err error)\n")
	wantError(t, err, "+ github.com/jucgo/locks: func Open(name string) (n int64, err error)\n")
	if _, err := os.Stat(filepath.Join(folder, "api", "tool.txt")); err == nil {
		t.Error("a module of commands has a list of its API")
	}
}

func TestARefusedReleaseMakesNoTag(t *testing.T) {
	folder := repository(t)
	must(t, writeAPI(open(t, folder)))
	commit(t, folder)
	wantError(t, tag(open(t, folder), "v0.2.0", false), "lib/go.mod: requires github.com/jucgo/locks@v0.1.0")
	must(t, setVersions(open(t, folder), "v0.2.0"))
	wantError(t, tag(open(t, folder), "v0.2.0", false), "the working tree has changes")
	commit(t, folder)
	wantError(t, tag(open(t, folder), "v0.3.0", false), `want "## 0.3.0 - YYYY-MM-DD"`)
	must(t, tag(open(t, folder), "v0.2.0", true))
	if tags := gitIn(t, folder, "tag"); tags != "" {
		t.Errorf("the tags are:\n%s", tags)
	}
}

func TestAReleaseTagsEveryPublicModule(t *testing.T) {
	folder := repository(t)
	must(t, writeAPI(open(t, folder)))
	must(t, setVersions(open(t, folder), "v0.2.0"))
	commit(t, folder)
	must(t, tag(open(t, folder), "v0.2.0", false))
	if tags := gitIn(t, folder, "tag"); tags != "lib/v0.2.0\ntool/v0.2.0\nv0.2.0\n" {
		t.Errorf("the tags are:\n%s", tags)
	}
}

func commit(t *testing.T, folder string) {
	t.Helper()
	for _, key := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		t.Setenv(key+"_NAME", "a maintainer")
		t.Setenv(key+"_EMAIL", "maintainer@example.com")
	}
	gitIn(t, folder, "init", "-q")
	gitIn(t, folder, "add", "-A")
	gitIn(t, folder, "commit", "-q", "-m", "release: prepare a version")
}

func gitIn(t *testing.T, folder string, args ...string) string {
	t.Helper()
	out, err := git(&workspace.Workspace{Folder: folder}, args...)
	must(t, err)
	return out
}
