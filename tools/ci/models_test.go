package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A modelled repository has models whose scripts only say that they search.
type modelled struct{ *ci }

// modelScript prints a line for each line of its list that has one of the given models.
const modelScript = "list='\none.pml\none.pml  FIFO\ntwo.pml\n'\n" +
	"echo \"$list\" | grep -e \"$1\" | sed 's/^/searched /'\n"

func newModelled(t *testing.T) modelled {
	t.Helper()
	c := modelled{&ci{folder: t.TempDir()}}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	programs := t.TempDir()
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, name := range []string{"spin", "gcc"} {
		must(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\necho version 1\n"), 0o755))
	}
	for _, folder := range modelFolders {
		c.write(t, folder+"/one.pml", "init { skip }\n")
		c.write(t, folder+"/two.pml", "init { skip }\n")
		c.write(t, folder+"/shared.pml", "bit b;\n")
		c.write(t, folder+"/run.sh", modelScript)
	}
	return c
}

func (c modelled) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(c.folder, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// want checks the models, and wants a number of searched lines, and all lines in the output.
func (c modelled) want(t *testing.T, want int) {
	t.Helper()
	j := &job{ci: c.ci}
	must(t, models(t.Context(), j))
	searched, lines := 0, 0
	for line := range strings.Lines(string(j.out.Bytes())) {
		if strings.HasPrefix(line, "searched ") {
			lines++
			searched++
		} else if strings.Contains(line, "checked before") {
			searched -= map[bool]int{true: 2, false: 1}[strings.Contains(line, "one.pml")]
		}
	}
	if searched != want || lines != 3*len(modelFolders) {
		t.Errorf("%d lines were searched, want %d, and there are %d: %s", searched, want, lines, j.out.Bytes())
	}
}

func TestModelsThatWereCheckedAreNotSearchedAgain(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.want(t, 0)
}

func TestAChangedModelIsSearchedAgain(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.write(t, modelFolders[0]+"/one.pml", "init { true }\n")
	c.want(t, 2)
	c.write(t, modelFolders[1]+"/two.pml", "init { true }\n")
	c.want(t, 1)
	c.want(t, 0)
}

func TestAFileThatModelsShareBelongsToAllOfThem(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.write(t, modelFolders[0]+"/shared.pml", "byte b;\n")
	c.want(t, 3)
	c.write(t, modelFolders[0]+"/README.md", "a page\n")
	c.want(t, 0)
}

func TestALineOfTheScriptBelongsToItsModel(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.write(t, modelFolders[0]+"/run.sh", strings.Replace(modelScript, "two.pml", "two.pml LIMIT", 1))
	c.want(t, 1)
	c.write(t, modelFolders[0]+"/run.sh", "# another way to search\n"+modelScript)
	c.want(t, 3)
}

func TestTheSharedScriptOfModelsBelongsToAllFolders(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.write(t, "distributed/lease/model/check.sh", "true\n")
	c.want(t, 9) // the first folder has a script of its own, and costs one search more
}

func TestTheFullRunSearchesEachTime(t *testing.T) {
	c := newModelled(t)
	c.want(t, 9)
	c.full = true
	c.want(t, 9)
}

func TestAFailingModelIsNotKept(t *testing.T) {
	c := newModelled(t)
	c.write(t, modelFolders[2]+"/run.sh", modelScript+"exit 1\n")
	for range 2 {
		if err := models(t.Context(), &job{ci: c.ci}); err == nil {
			t.Error("a failing model is no error")
		}
	}
}

func TestAScriptThatNamesNoModelIsAnError(t *testing.T) {
	c := newModelled(t)
	c.write(t, modelFolders[1]+"/run.sh", "exit 0\n")
	if err := models(t.Context(), &job{ci: c.ci}); err == nil {
		t.Error("no model is no error")
	}
}
