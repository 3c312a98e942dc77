package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/jucgo/locks/tools/internal/workspace"
)

// tree is a repository of three modules.
const tree = `
-- tools/modules.work --
go 1.26.0

use (
	.
	./store
	./tools
)
-- go.mod --
module github.com/jucgo/locks

go 1.26.0
-- locks.go --
package locks
-- README.md --
# Locks
-- store/go.mod --
module github.com/jucgo/locks/store

go 1.26.0

require github.com/jucgo/locks v0.1.0

replace github.com/jucgo/locks => ../
-- store/store.go --
package store

import (
	_ "github.com/jucgo/locks/words"
)
-- store/README.md --
# Store
-- store/store_test.go --
package store

import (
	"os"
	"testing"
)

func TestThePage(t *testing.T) {
	if _, err := os.ReadFile("README.md"); err != nil {
		t.Fatal(err)
	}
}
-- words/words.go --
package words

import _ "embed"

//go:embed lua/first.lua
var First string
-- words/words_test.go --
package words

import "testing"

func TestTheFirstWord(t *testing.T) {
	if First != "one\n" {
		t.Fatalf("the first word is %q", First)
	}
}
-- words/lua/first.lua --
one
-- words/lua/second.lua --
two
-- user/user.go --
package user

import _ "github.com/jucgo/locks/words"
-- user/user_test.go --
package user

import "testing"

func TestPasses(t *testing.T) {}
-- tested/tested.go --
package tested
-- tested/tested_test.go --
package tested_test

import (
	"testing"

	_ "github.com/jucgo/locks/user"
)

func TestPasses(t *testing.T) {}
-- data/data.go --
package data
-- data/testdata/a/b.txt --
b
-- data/testdata/module/go.mod --
module other
-- data/testdata/src/a.go --
package a
-- data/data_test.go --
package data

import (
	"os"
	"path/filepath"
)

func read(name string) { os.ReadFile(filepath.Join("..", "docs", name)) }
-- docs/list.txt --
list
-- alone/alone.go --
package alone
-- model/queue.pml --
#include "common.pml"
-- model/other.pml --
other
-- model/common.pml --
common
-- model/run.sh --
echo "$@" >ran
. ./rules.sh
-- model/rules.sh --
true
-- other/model/run.sh --
. ../../model/rules.sh
-- orphan/orphan.go --
package orphan

import _ "github.com/jucgo/locks/gone"
-- tools/go.mod --
module github.com/jucgo/locks/tools
-- tools/docs/docs.go --
package docs
-- tools/ci/ci.go --
package main

func main() {}
-- tools/release/release.go --
package main

func main() {}
-- .ci/run --
run
-- api/locks.txt --
locks
-- .gitignore --
ran
`

// repository makes a repository of tree, whose branch main is the commit.
func repository(t *testing.T) *workspace.Workspace {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
		t.Setenv(name+"_NAME", "a maintainer")
		t.Setenv(name+"_EMAIL", "maintainer@example.com")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	files := map[string]string{}
	for _, file := range txtar.Parse([]byte(tree)).Files {
		files[file.Name] = string(file.Data)
	}
	write(t, folder, files)
	git(t, folder, "init", "-q", "-b", "main")
	git(t, folder, "add", "-A")
	git(t, folder, "commit", "-q", "-m", "first")
	git(t, folder, "switch", "-q", "-c", "change")
	w, err := workspace.Open(folder)
	must(t, err)
	return w
}

func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

func git(t *testing.T, folder string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newChecker(t *testing.T, w *workspace.Workspace) *checker {
	t.Helper()
	return &checker{ctx: t.Context(), w: w, out: t.Output(), listed: map[string][]goPackage{}}
}

// planned returns what is checked for a changed file, as words: packages, and models after a colon.
func planned(t *testing.T, c *checker, files ...string) string {
	t.Helper()
	p, err := c.plan(files)
	must(t, err)
	var words []string
	for folder := range p.packages {
		words = append(words, folder)
	}
	slices.Sort(words)
	for _, folder := range slices.Sorted(maps.Keys(p.models)) {
		words = append(words, ":"+folder)
		words = append(words, p.models[folder]...)
	}
	return strings.Join(words, " ")
}

func TestEachChangedFileIsMappedToItsPackages(t *testing.T) {
	w := repository(t)
	for _, c := range []struct{ file, want string }{
		{"words/words.go", "tested user words"},
		{"words/words_test.go", "tested user words"},
		{"words/lua/first.lua", "tested tools/docs user words"},
		{"words/lua/second.lua", "tested tools/docs user words"},
		{"words/lua/removed.lua", "tested tools/docs user words"},
		{"user/user.go", "tested user"},
		{"tested/tested.go", "tested"},
		{"data/testdata/a/b.txt", "data tools/docs"},
		{"data/testdata/module/go.mod", "data tools/docs"},
		{"data/testdata/src/a.go", "data"},
		{"docs/list.txt", "data tools/docs"},
		{"store/README.md", "store tools/docs"},
		{"store/go.mod", "store tools/docs tools/release"},
		{"README.md", "tools/docs"},
		{".ci/run", "tools/ci tools/docs"},
		{"api/locks.txt", "tools/docs tools/release"},
		{"LICENSE", "tools/docs"},
		{"gone/gone.go", "orphan"},
		{"gone/unused/unused.go", ""},
		{"model/queue.pml", "tools/docs :model queue.pml"},
		{"model/common.pml", "tools/docs :model common.pml queue.pml"},
		{"model/run.sh", "tools/docs :model"},
		{"model/rules.sh", "tools/docs :model :other/model"},
	} {
		t.Run(c.file, func(t *testing.T) {
			if got := planned(t, newChecker(t, w), c.file); got != c.want {
				t.Errorf("%q is checked, want %q", got, c.want)
			}
		})
	}
}

func TestSeveralModelsAreCheckedInOneRun(t *testing.T) {
	w := repository(t)
	got := planned(t, newChecker(t, w), "model/other.pml", "model/queue.pml")
	if got != "tools/docs :model other.pml queue.pml" {
		t.Errorf("%q is checked", got)
	}
	if got := planned(t, newChecker(t, w), "model/run.sh", "model/queue.pml"); got != "tools/docs :model" {
		t.Errorf("%q is checked", got)
	}
}

// Each row is a kind of file that is not Go's.
func TestFilesOfThisRepositoryAreMapped(t *testing.T) {
	w, err := workspace.Open(".")
	must(t, err)
	c := newChecker(t, w)
	for _, want := range []struct{ file, packages string }{
		{"distributed/redislock/internal/lua/lib_take.lua", "distributed/redislock/internal/lua distributed/redislock"},
		{"distributed/sqllock/postgres.sql", "distributed/sqllock"},
		{"cmd/lockvet/checks/testdata/src/new/new.go", "cmd/lockvet/checks"},
		{"record/prom/alerts.yml", "record/prom"},
		{"record/prom/testdata/alerts_test.yml", "record/prom"},
		{"cmd/withlock/command/completion/_withlock", "cmd/withlock/command"},
		{"cmd/withlock/withlock.1", "cmd/withlock"},
		{"debug/locks/page.css", "debug/locks"},
		{"api/locks.txt", ". tools/docs tools/release"},
		{".devcontainer/Dockerfile.dockerignore", "tools/docs"},
		{"distributed/interop/redisson/src/main/java/interop/Agent.java", "distributed/interop/redisson"},
		{"internal/syncq/model/sync.pml", "tools/docs"},
	} {
		t.Run(want.file, func(t *testing.T) {
			p, err := c.plan([]string{want.file})
			must(t, err)
			for _, folder := range strings.Fields(want.packages) {
				if p.packages[folder] == nil {
					t.Errorf("%s is not tested, only %v %v", folder, p.packages, p.models)
				}
			}
		})
	}
	p, err := c.plan([]string{"internal/syncq/model/sync.pml"})
	must(t, err)
	words := p.models["internal/syncq/model"]
	if !slices.Contains(words, "queue.pml") || !slices.Contains(words, "bias.pml") {
		t.Errorf("the lines of %q are checked", words)
	}
}

// checked runs all checks, and returns what they print.
func checked(t *testing.T, w *workspace.Workspace, named ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := check(t.Context(), w, named, &out)
	return out.String(), err
}

func TestAChangedScriptIsTested(t *testing.T) {
	w := repository(t)
	if out, err := checked(t, w); err != nil || !strings.Contains(out, "no file differs") {
		t.Fatalf("%v\n%s", err, out)
	}
	write(t, w.Folder, map[string]string{"words/lua/first.lua": "uno"})
	out, err := checked(t, w)
	if err == nil || !strings.Contains(out, `the first word is "uno"`) {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "ok  \tgithub.com/jucgo/locks/user\t") || strings.Contains(out, "locks/alone") {
		t.Errorf("not the right packages:\n%s", out)
	}
}

func TestAChangedModelIsChecked(t *testing.T) {
	t.Setenv("CI", "true") // also without spin
	w := repository(t)
	write(t, w.Folder, map[string]string{"model/common.pml": "changed\n", "model/other.pml": "changed\n"})
	if out, err := checked(t, w); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ran, err := os.ReadFile(filepath.Join(w.Folder, "model/ran"))
	if err != nil || string(ran) != `common.pml\|other.pml\|queue.pml`+"\n" {
		t.Errorf("run.sh got %q: %v", ran, err)
	}
}

func TestChangesAreThoseSinceMain(t *testing.T) {
	w := repository(t)
	write(t, w.Folder, map[string]string{"a b.txt": "new\n", "user/new.go": "package user\n", "ran": "ignored\n"})
	git(t, w.Folder, "add", "user")
	git(t, w.Folder, "commit", "-q", "-m", "second")
	git(t, w.Folder, "rm", "-q", "docs/list.txt")
	changed, err := newChecker(t, w).changed()
	must(t, err)
	if want := []string{"a b.txt", "docs/list.txt", "user/new.go"}; !slices.Equal(changed, want) {
		t.Errorf("the changes are %q, want %q", changed, want)
	}
}

func TestNamedPackagesAreTestedInTheirModules(t *testing.T) {
	w := repository(t)
	out, err := checked(t, w, "./user", "store")
	if err != nil || !strings.Contains(out, "locks/user\t") || !strings.Contains(out, "locks/store\t") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := checked(t, w, "./nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere is no package") {
		t.Error(err)
	}
}

func TestAnUnformattedFileEndsTheChecks(t *testing.T) {
	w := repository(t)
	write(t, w.Folder, map[string]string{"user/user.go": "package   user\n"})
	if _, err := checked(t, w); err == nil || !strings.Contains(err.Error(), "user/user.go") {
		t.Error(err)
	}
}
